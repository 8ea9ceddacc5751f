// A conversation with a language model: its chat template, its tokenizer, how its answers are drawn, what ends them,
// and their text as it comes.
//   auto model = models::from_pretrained("SmolLM2-135M-Instruct");
//   models::Chat chat = models::Chat::open("SmolLM2-135M-Instruct", *model);
//   chat.reply("How high is the Matterhorn?", {.on_text = [](std::string_view text) { std::cout << text; return true;
//   }});
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/models/pretrained.h"
#include "samebytes/text/chat_template.h"
#include "samebytes/text/tokenizer.h"

namespace samebytes::models {

struct ReplyOptions {
  GenerateOptions sampling = {.tokens = 512};  // on_token is called, too
  std::vector<std::string> stop = {};          // texts that end an answer; they do not belong to it
  // Called with what the answer gets, in whole characters; false ends it.
  std::function<bool(std::string_view text)> on_text = {};
};

struct Reply {
  std::string text;
  std::int64_t prompt_tokens = 0, tokens = 0;
};

// Not copyable; the model must outlive it.
class Chat {
 public:
  // The tokenizer, the template, if there is one, and the ends of generation_config.json of a model's folder, or what a
  // GGUF file has of them. Throws IoError.
  static Chat open(const std::string& folder, Pretrained& model);
  // Throws ArgumentError for a model that is no decoder. `ends`: tokens that end an answer, beside those of the config.
  Chat(Pretrained& model, text::Tokenizer tokenizer, std::optional<text::ChatTemplate> chat_template,
       std::vector<std::int32_t> ends = {});
  Chat(Chat&&) = default;
  Chat(const Chat&) = delete;

  // Adds the message and the answer to the conversation; each answer reads the whole of it. Without a template the
  // texts follow each other as they are. Throws what generate() and ChatTemplate::apply() throw; the conversation is
  // then as it was.
  Reply reply(const std::string& message, const ReplyOptions& options = {});
  // A message of another role, such as "system", that is answered later.
  void add(const std::string& role, const std::string& content);
  void clear();  // forgets the conversation
  const std::vector<text::ChatMessage>& messages() const { return messages_; }
  bool has_template() const { return template_.has_value(); }

 private:
  std::vector<std::int32_t> prompt() const;

  Pretrained& model_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
  std::vector<std::int32_t> ends_;
  std::vector<text::ChatMessage> messages_;
};

}  // namespace samebytes::models
