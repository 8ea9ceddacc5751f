#include "samebytes/models/chat.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.h"
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

// Lets text through that cannot become one of the words that end it.
class StopWords {
 public:
  explicit StopWords(std::vector<std::string> words) : words_(std::move(words)) { std::erase(words_, std::string()); }
  // What can be shown now.
  std::string add(const std::string& text) {
    held_ += text;
    std::size_t end = std::string::npos;
    for (const std::string& word : words_) end = std::min(end, held_.find(word));
    if (end != std::string::npos) {
      has_stopped_ = true;
      held_.resize(end);
      return std::exchange(held_, {});
    }
    std::size_t kept = 0;  // the longest end of the text that begins a word
    for (const std::string& word : words_)
      for (std::size_t size = std::min(word.size() - 1, held_.size()); size > kept; --size)
        if (held_.compare(held_.size() - size, size, word, 0, size) == 0) kept = size;
    std::string shown = held_.substr(0, held_.size() - kept);
    held_.erase(0, shown.size());
    return shown;
  }
  std::string finish() { return std::exchange(held_, {}); }
  bool has_stopped() const { return has_stopped_; }

 private:
  std::vector<std::string> words_;
  std::string held_;
  bool has_stopped_ = false;
};

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
    text::TextStream stream(tokenizer_);
    StopWords stop(options.stop);
    const auto tell = [&](const std::string& text) {
      reply.text += text;
      return text.empty() || !options.on_text || options.on_text(text);
    };
    GenerateOptions sampling = options.sampling;
    sampling.on_token = [&](std::int32_t id) {
      ++reply.tokens;
      const bool goes_on = !options.sampling.on_token || options.sampling.on_token(id);
      if (std::find(ends_.begin(), ends_.end(), id) != ends_.end()) return false;
      return tell(stop.add(stream.add(id))) && !stop.has_stopped() && goes_on;
    };
    generate(model_, ids, sampling);
    if (!stop.has_stopped()) {
      tell(stop.add(stream.finish()));
      if (!stop.has_stopped()) tell(stop.finish());
    }
    add("assistant", reply.text);
    return reply;
  } catch (...) {
    messages_ = before;
    throw;
  }
}

}  // namespace samebytes::models
