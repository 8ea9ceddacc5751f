#include "models/answer.h"

#include <algorithm>

namespace samebytes::models {

StopWords::StopWords(std::vector<std::string> words) : words_(std::move(words)) { std::erase(words_, std::string()); }

std::string StopWords::add(const std::string& text) {
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

Answer::Answer(text::Tokenizer tokenizer, Options options)
    : stream_(std::move(tokenizer)), stop_(options.stop), options_(std::move(options)) {}

bool Answer::tell(const std::string& text) {
  text_ += text;
  return text.empty() || !options_.on_text || options_.on_text(text);
}

bool Answer::add(std::int32_t id) {
  if (std::find(options_.ends.begin(), options_.ends.end(), id) != options_.ends.end()) return false;
  return tell(stop_.add(stream_.add(id))) && !stop_.has_stopped();
}

void Answer::finish() {
  if (stop_.has_stopped()) return;
  tell(stop_.add(stream_.finish()));
  if (!stop_.has_stopped()) tell(stop_.finish());
}

}  // namespace samebytes::models
