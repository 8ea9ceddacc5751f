#include "samebytes/models/chat.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.h"
#include "models/answer.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"

namespace samebytes::models {
namespace {

// eos_token_id of generation_config.json: a number or a list; nothing without the file.
std::vector<std::int32_t> ends_of(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "generation_config.json").string();
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  const std::vector<std::byte> bytes = io::read_file(path);
  const auto config = detail::parse_json("chat", path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return detail::reading_json("chat", path, [&]() -> std::vector<std::int32_t> {
    if (!config.contains("eos_token_id") || config["eos_token_id"].is_null()) return {};
    const auto& ends = config["eos_token_id"];
    if (ends.is_number()) return {ends.get<std::int32_t>()};
    return ends.get<std::vector<std::int32_t>>();
  });
}

}  // namespace

Chat Chat::open(const std::string& folder, Pretrained& model) {
  return {model, text::Tokenizer::load(folder), text::ChatTemplate::find(folder), ends_of(folder)};
}

Chat::Chat(Pretrained& model, text::Tokenizer tokenizer, std::optional<text::ChatTemplate> chat_template,
           std::vector<std::int32_t> ends)
    : model_(model), tokenizer_(std::move(tokenizer)), template_(std::move(chat_template)), ends_(std::move(ends)) {
  if (!model.is_decoder()) throw ArgumentError("Chat: expected a model that writes text, got " + model.kind());
}

void Chat::add(const std::string& role, const std::string& content) { messages_.push_back({role, content}); }
void Chat::clear() { messages_.clear(); }

std::vector<std::int32_t> Chat::prompt() const {
  if (template_)
    return tokenizer_
        .encode(template_->apply(messages_, {.add_generation_prompt = true}), {.add_special_tokens = false})
        .ids;
  std::string text;
  for (const text::ChatMessage& message : messages_) text += message.content;
  return tokenizer_.encode(text).ids;
}

Reply Chat::reply(const std::string& message, const ReplyOptions& options) {
  const std::vector<text::ChatMessage> before = messages_;
  add("user", message);
  try {
    const std::vector<std::int32_t> ids = prompt();
    Reply reply;
    reply.prompt_tokens = static_cast<std::int64_t>(ids.size());
    Answer answer(tokenizer_, {.ends = ends_, .stop = options.stop, .on_text = options.on_text});
    GenerateOptions sampling = options.sampling;
    sampling.on_token = [&](std::int32_t id) {
      ++reply.tokens;
      const bool goes_on = !options.sampling.on_token || options.sampling.on_token(id);
      return answer.add(id) && goes_on;
    };
    generate(model_, ids, sampling);
    answer.finish();
    reply.text = answer.text();
    add("assistant", reply.text);
    return reply;
  } catch (...) {
    messages_ = before;
    throw;
  }
}

}  // namespace samebytes::models
