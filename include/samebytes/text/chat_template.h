// Chat templates: how a language model wants a conversation written, in Jinja, as Hugging Face's folders have it in
// chat_template.jinja or in tokenizer_config.json.
//   const auto chat = text::ChatTemplate::load("SmolLM2-135M-Instruct");
//   const std::string prompt = chat.apply({{"user", "How high is the Matterhorn?"}}, {.add_generation_prompt = true});
//   const std::vector<std::int32_t> ids = tokenizer.encode(prompt, {.add_special_tokens = false}).ids;
// The text is that of transformers' apply_chat_template(tokenize=False). What templates of Llama, Qwen, Gemma, Phi,
// SmolLM and Mistral use of Jinja is there; macros, imports and filters that change the letters of other alphabets are
// not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::text {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = false;  // ends with what an answer begins with
  std::string variables = {};          // a JSON object with more for the template: {"tools": [...]}
};

class ChatTemplate {
 public:
  // Of a folder: chat_template.jinja, or else chat_template of tokenizer_config.json (of several the one named
  // "default"), with the texts of bos_token, eos_token and their like; or of a GGUF file. nullopt where there is no
  // template. Throws IoError, naming file and line, for damaged files and for what this version's Jinja does not have.
  static std::optional<ChatTemplate> find(const std::string& folder);
  // The same; throws IoError where there is none.
  static ChatTemplate load(const std::string& folder);
  // A template by itself; `path` stands for its file in errors, `tokens` is a JSON object: {"bos_token": "<s>"}.
  static ChatTemplate parse(const std::string& path, std::string_view jinja, std::string_view tokens = "{}");

  // Throws Error, naming the line, for what the template refuses (raise_exception) or cannot compute.
  std::string apply(const std::vector<ChatMessage>& messages, const ChatOptions& options = {}) const;
  // The same of messages as JSON, a list of objects, which may have more than role and content. Throws ArgumentError
  // for other JSON.
  std::string apply_json(std::string_view messages, const ChatOptions& options = {}) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace samebytes::text
