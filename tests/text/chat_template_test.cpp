// text::ChatTemplate against what transformers made of the same templates (chats.json, by make_chats.py).
#include "samebytes/text/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samebytes/error.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::text {
namespace {

using Json = nlohmann::ordered_json;
using testing::TemporaryFolder;

const Json& chats() {
  static const Json parsed = Json::parse(testing::get(testing::source_folder() + "/tests/text/chats.json"));
  return parsed;
}

ChatTemplate parsed(const std::string& jinja) {
  return ChatTemplate::parse("x.jinja", jinja, chats()["tokens"].dump());
}
std::string rendered(const std::string& jinja, const std::string& variables = "{}") {
  return parsed(jinja).apply_json("[]", {.variables = variables});
}

TEST(ChatTemplate, families_give_the_texts_of_transformers) {
  for (const Json& family : chats()["families"]) {
    const ChatTemplate chat = parsed(family["template"].get<std::string>());
    for (const Json& one : family["cases"]) {
      SCOPED_TRACE(family["name"].get<std::string>() + ": " + one["messages"].dump());
      const ChatOptions options{.add_generation_prompt = one["add"].get<bool>(), .variables = one["variables"].dump()};
      if (one["text"].is_null())
        EXPECT_THROW(chat.apply_json(one["messages"].dump(), options), Error);
      else
        EXPECT_EQ(chat.apply_json(one["messages"].dump(), options), one["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplate, each_feature_gives_the_text_of_transformers) {
  for (const Json& one : chats()["snippets"]) {
    const auto jinja = one["template"].get<std::string>();
    SCOPED_TRACE(jinja);
    EXPECT_EQ(parsed(jinja).apply_json(chats()["chat"].dump(), {.variables = chats()["values"].dump()}),
              one["text"].get<std::string>());
  }
}

TEST(ChatTemplate, is_found_in_a_folder_with_its_tokens) {
  const TemporaryFolder folder;
  EXPECT_FALSE(ChatTemplate::find(folder.string()));
  EXPECT_ERROR(ChatTemplate::load(folder.string()), IoError,
               ("chat template: " + folder.string() +
                ": expected chat_template.jinja, or chat_template in tokenizer_config.json, found none")
                   .c_str());
  const std::string jinja =
      "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}{{ eos_token }}";
  const Json config{{"bos_token", "<a>"}, {"eos_token", {{"content", "<b>"}}}, {"chat_template", jinja}};
  testing::put(folder / "tokenizer_config.json", config.dump());
  const std::vector<ChatMessage> messages{{"user", "hi"}};
  EXPECT_EQ(ChatTemplate::load(folder.string()).apply(messages), "<a>user:hi<b>");
  Json several = config;
  several["chat_template"] = {{{"name", "tool_use"}, {"template", "t"}}, {{"name", "default"}, {"template", jinja}}};
  testing::put(folder / "tokenizer_config.json", several.dump());
  EXPECT_EQ(ChatTemplate::load(folder.string()).apply(messages), "<a>user:hi<b>");
  testing::put(folder / "chat_template.jinja", "{{ messages[0].content ~ bos_token }}\n");
  EXPECT_EQ(ChatTemplate::load(folder.string()).apply(messages), "hi<a>");
}

TEST(ChatTemplate, gives_the_date) {
  EXPECT_EQ(rendered("{{ strftime_now('%Y') | length }}{{ strftime_now('%d %b %Y') | length }}"), "411");
}

TEST(ChatTemplate, says_what_is_wrong_and_where) {
  const struct {
    const char *jinja, *message;
  } wrong[] = {
      {"a\n{% if x %}", "expected {% endif %} in line 2, found the end of the template"},
      {"{{ x", "expected an end }} in line 1, found the end of the template"},
      {"{{ x | nothing }}", "expected a filter that this version has in line 1, found nothing"},
      {"{% macro f() %}{% endmacro %}", "expected if, for, set, break, continue or generation in line 1, found macro"},
      {"{{ 1 + }}", "expected a value in line 1, found the end of the tag"},
      {"{{ 'a }}", "expected an end }} in line 1, found the end of the template"},
      {"\n\n{% break %}", "expected break in a loop in line 3, found it outside of one"},
      {"{% for x in y recursive %}{% endfor %}", "expected a loop that is not recursive in line 1, found recursive"},
  };
  for (const auto& one : wrong)
    EXPECT_ERROR(parsed(one.jinja), IoError, (std::string("chat template: x.jinja: ") + one.message).c_str());
  const struct {
    const char *jinja, *message;
  } failing[] = {
      {"a\n{{ raise_exception('no') }}", "line 2: the template refuses: no"},
      {"{{ missing.part }}", "line 1: expected a value to take part of, missing is undefined"},
      {"{{ 1 + 'a' }}", "line 1: '+' does not go with a number and a text"},
      {"{{ 1 // 0 }}", "line 1: division by zero"},
      {"{{ nothing() }}", "line 1: expected a function that this version has, got nothing"},
      {"{{ 'a' * 1000000000 }}", "line 1: expected a text of at most 64 MiB, got more"},
      {"{{ range(10000000) }}", "line 1: expected a range of at most 2^20 numbers, got more"},
      {"{% set x = 'aaaaaaaa' %}{% for i in range(99) %}{% set x %}{{ x }}{{ x }}{% endset %}{% for j in range(999999) "
       "%}{{ x }}{% endfor %}{% endfor %}",
       "line 1: expected a text of at most 64 MiB, got more"},
  };
  for (const auto& one : failing)
    EXPECT_ERROR(rendered(one.jinja), Error, (std::string("chat template: x.jinja, ") + one.message).c_str());
  EXPECT_ERROR(parsed("x").apply_json("{"), ArgumentError, "chat template: expected JSON as messages");
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "(";
  EXPECT_THROW(parsed("{{ " + deep), IoError);
  EXPECT_THROW(parsed("{{ " + deep + "1"), IoError);
  std::string chain = "{{ 1";
  for (int i = 0; i < 5000; ++i) chain += " + 1";
  EXPECT_THROW(parsed(chain + " }}"), IoError);
}

}  // namespace
}  // namespace samebytes::text
