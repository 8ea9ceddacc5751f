#!/usr/bin/env python3
"""Writes tests/text/chats.json: chat templates of several families, small templates for single features of Jinja, and
the texts that transformers makes of them.

    make_chats.py > tests/text/chats.json
"""
import json

from transformers.utils.chat_template_utils import render_jinja_template

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

FAMILIES = {
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>'"
              " + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
              "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}"
              "{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
              "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
              "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + "
              "'\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}"
              "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
              "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}"
              "{% endfor %}",
    "llama3": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- This block extracts the system message, so we can slot it into the right place. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{#- System message #}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "You have access to the following functions. " }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("Cannot put tools in the first user message when there's no first user message!") }}
{%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {{- "Given the following functions, please respond with a JSON for a function call.\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "qwen2.5": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nYou may call one or more functions.\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "qwen3": """{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
""",
    "gemma2": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
              "{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
              "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
              "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}"
              "{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
              "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    "gemma3": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
""",
    "phi3": "{% for message in messages %}{% if message['role'] == 'system' %}{{'<|system|>\n' + message['content'] + "
            "'<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}"
            "{% elif message['role'] == 'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
    "smollm2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
               "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}"
               "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
               "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "smollm3": """{# ───── defaults ───── #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{%- if messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}
    {%- set reasoning_mode = "/no_think" -%}
  {%- else -%}
    {%- set reasoning_mode = "/think" -%}
  {%- endif -%}
  {%- set custom_instructions = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{{- "<|im_start|>system\\n" -}}
{%- if custom_instructions -%}
  {{- custom_instructions -}}
{%- endif -%}
{{- "\\nReasoning Mode: " + (reasoning_mode or "/think") + "<|im_end|>\\n" -}}
{%- for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "user" -%}
        {{ "<|im_start|>" + message.role + "\\n"  + content + "<|im_end|>\\n" }}
    {%- elif message.role == "assistant" -%}
        {% generation %}
        {%- if enable_thinking -%}
            {{ "<|im_start|>assistant\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- else -%}
            {{ "<|im_start|>assistant\\n" + "<think>\\n\\n</think>\\n" + content.lstrip("\\n") + "<|im_end|>\\n" }}
        {%- endif -%}
        {% endgeneration %}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ "<|im_start|>assistant\\n" }}
{%- endif -%}
""",
    "mistral": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}

{#- This block checks for alternating user/assistant messages, skipping tool calling messages #}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}

{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
            {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
""",
}

# Single features; each sees CHAT and VALUES.
SNIPPETS = [
    "  {% if true %}\n  a\n  {% endif %}\nb\n", "a\n\n{%- if true -%}\n\n b \n\n{%- endif %}  c", "a {%+ if true +%}\n b{% endif %}\n",
    "{# note #}\n  x {# another -#}  \n y", "x\n  {#- gone -#}\n  y\n\n", "{{ '{{' }} {{ \"}}\" }} {% set x = '%}' %}{{ x }}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 2 * 3 + 4 }} {{ 1 - 2 - 3 }}",
    "{{ 1.5 + 1 }} {{ 2.0 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ -3 }} {{ - 2.5 }}", "{{ 'ab' * 3 }} {{ 'a' ~ 1 ~ none ~ true }}",
    "{{ [1, 'a', none, true, 2.5] }} {{ {'a': 1, 'b': [1, \"it's\"]} }} {{ (1, 2) | list }}",
    "{{ text[1:3] }} {{ text[::-1] }} {{ text[-1] }} {{ text | length }} {{ items[-2:] }} {{ items[:-1] }} {{ items[5:1:-2] }}",
    "{{ 'x' if missing else 'y' }} {{ 'x' if missing is defined }}|{{ missing }}|{{ missing | default('d') }} {{ '' | default('e', true) }}",
    "{{ not true and false or true }} {{ 1 < 2 < 3 }} {{ 1 in items }} {{ 9 not in items }} {{ 'a' in {'a': 1} }} {{ 'el' in 'hello' }}",
    "{{ 3 is odd }} {{ 4 is divisibleby 2 }} {{ 4 is divisibleby(3) }} {{ none is none }} {{ 'a' is string }} {{ {} is mapping }} {{ [] is sequence }} {{ 1 is number }} {{ true is boolean }} {{ 2.5 is float }} {{ 1 is not string }}",
    "{% for k, v in record.items() %}{{ k }}={{ v }};{% endfor %}{% for k in record %}{{ k }}{% endfor %}{{ record.get('none', 'x') }} {{ record.keys() | list }} {{ record | items | list | length }} {{ record | dictsort | first | last }}",
    "{% for x in items if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ ',' if not loop.last }}{% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}",
    "{% for x in items %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{{ loop.previtem is defined }}{{ loop.nextitem }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}",
    "{% set ns = namespace(n=0, all=[]) %}{% for i in items %}{% set ns.n = ns.n + i %}{% set ns.all = ns.all + [i * 2] %}{% endfor %}{{ ns.n }} {{ ns.all }}",
    "{% set block %}\n <{{ text }}>\n{% endset %}{{ block | trim }}|{{ block | length }}", "{% set a, b = [1, 2] %}{{ b }}{{ a }}",
    "{{ text | upper }} {{ text | title }} {{ 'hello WORLD' | capitalize }} {{ ' x ' | trim }}. {{ 'a-b' | replace('-', '+') }} {{ 'a,b' .split(',') }}",
    "{{ '  a b  c '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'xxaxx'.strip('x') }} {{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'a\nb\n'.splitlines() }} {{ 'aXbX'.rstrip('X') }} {{ 'hello'.find('l') }} {{ 'ab'.upper() }} {{ 'a.b'.replace('.', '') }}",
    "{{ record | tojson }} {{ items | tojson(indent=2) }} {{ 'é\"\n' | tojson }} {{ [] | tojson }} {{ {} | tojson(indent=4) }} {{ none | tojson }}",
    "{{ items | join(', ') }} {{ people | map(attribute='name') | join('+') }} {{ people | selectattr('age', 'gt', 20) | map(attribute='name') | list }} {{ people | rejectattr('admin') | list | length }} {{ people | selectattr('admin', 'defined') | list | length }}",
    "{{ items | first }} {{ items | last }} {{ items | sum }} {{ items | max }} {{ items | min }} {{ [3, 1, 2] | sort }} {{ ['b', 'A'] | sort }} {{ [1, 1, 2] | unique | list }} {{ items | reverse | list }} {{ people | sort(attribute='age') | map(attribute='name') | list }}",
    "{{ '12' | int + 1 }} {{ 'x' | int }} {{ '1.5' | float }} {{ 3.7 | int }} {{ -2 | abs }} {{ 5 | string + 'a' }}", "{{ 'a\nb\n\nc' | indent(2) }}|{{ 'a\nb' | indent(2, first=true) }}",
    "{{ range(3) | list }} {{ range(1, 8, 3) | list }} {% for i in range(2) %}{{ i }}{% endfor %} {{ dict(a=1).a }}",
    "{{ record['list'][0] }} {{ record.list.0 }} {{ record.deep.a.b }} {{ record.nothing }} {{ record.nothing is defined }} {{ messages[0].role }} {{ messages[-1]['content'] }}",
    "{% if messages | length > 1 and messages[1].role == 'assistant' %}yes{% elif true %}no{% else %}never{% endif %}",
    "{{ bos_token }}{{ eos_token }}{{ tools }}{{ tools is none }}{{ '\\u00e9\\t|' }}{{ \"a'b\" }}{{ 'a\\'b' }}", "{{ 'a' 'b' }}{{ [1, 2,] }}{{ 1_000 }}",
    "{{ text.title() }}{{ 'ab' > 'aa' }}{{ none == false }}{{ 1 == 1.0 }}{{ true == 1 }}{{ [1] == [1] }}{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}",
    "a {{- ' b ' -}} c\n{{ 1 }}\n\n{%- for i in [1,2] %}\n{{ i }}\n{%- endfor %}\n", "{{ '日本語😀'[1] }}{{ '日本語😀' | length }}{{ '日本語😀'[::-1] }}",
]
VALUES = {"text": "hello world", "items": [1, 2, 3, 5], "record": {"z": 1, "a": "x", "list": [7], "deep": {"a": {"b": "deep"}}},
          "people": [{"name": "Ann", "age": 30, "admin": True}, {"name": "Bo", "age": 18}]}

CHAT = [{"role": "user", "content": " How high is the Matterhorn? "}, {"role": "assistant", "content": "4478 m.\n"},
        {"role": "user", "content": "Und der Säntis? 😀"}]
TOOLS = [{"type": "function", "function": {"name": "height", "description": "Gives a mountain's height.", "parameters": {
    "type": "object", "properties": {"name": {"type": "string", "description": "the mountain"}}, "required": ["name"]}}}]
CALLS = [CHAT[0], {"role": "assistant", "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {
    "name": "height", "arguments": {"name": "Säntis", "unit": None}}}]},
    {"role": "tool", "tool_call_id": "abcdefghi", "content": "2502"}]
THOUGHT = [CHAT[0], {"role": "assistant", "content": "<think>\nhigh\n</think>\n\n4478 m."}]
CASES = [(CHAT[:1], {}, True), (CHAT, {}, True), (CHAT[:2], {}, False), ([{"role": "system", "content": "Be brief."}, *CHAT], {}, True),
         (CHAT[1:], {}, True), (CALLS, {"tools": TOOLS}, True), (CHAT[:1], {"tools": TOOLS}, True), (THOUGHT, {}, False),
         (CHAT[:1], {"enable_thinking": False}, True),
         ([{"role": "user", "content": [{"type": "text", "text": " a text "}]}], {}, True)]


def rendered(template, messages, variables, add):
    variables = {**TOKENS, **variables}
    tools = variables.pop("tools", None)
    try:
        texts, _ = render_jinja_template(conversations=[messages], tools=tools, chat_template=template,
                                         add_generation_prompt=add, **variables)
        return texts[0]
    except Exception:  # a template that refuses, or cannot
        return None


def main():
    result = {"tokens": TOKENS, "families": [], "snippets": []}
    for name, template in FAMILIES.items():
        cases = [{"messages": messages, "variables": variables, "add": add,
                  "text": rendered(template, messages, variables, add)} for messages, variables, add in CASES]
        result["families"].append({"name": name, "template": template, "cases": cases})
    for template in SNIPPETS:
        text = rendered(template, CHAT, VALUES, False)
        assert text is not None, template
        result["snippets"].append({"template": template, "text": text})
    result["values"], result["chat"] = VALUES, CHAT
    print(json.dumps(result, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
