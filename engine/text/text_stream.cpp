// The text of tokens that come one by one.
#include <string>
#include <utility>

#include "samebytes/text/tokenizer.h"

namespace samebytes::text {

TextStream::TextStream(Tokenizer tokenizer, const DecodeOptions& options)
    : tokenizer_(std::move(tokenizer)), options_(options) {}

std::string TextStream::add(std::int32_t id) {
  ids_.push_back(id);
  std::string text = tokenizer_.decode(ids_, options_);
  // A character that is not whole yet ends as U+FFFD.
  if (text.size() <= before_.size() || text.ends_with("\xef\xbf\xbd")) return {};
  std::string added = text.starts_with(before_) ? text.substr(before_.size()) : text;
  // What was written stays as the context of what comes, since a decoder drops the blank of the first token.
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(written_));
  before_ = tokenizer_.decode(ids_, options_);
  written_ = ids_.size();
  return added;
}

std::string TextStream::finish() {
  const std::string text = tokenizer_.decode(ids_, options_);
  std::string added = text.size() > before_.size() ? text.substr(before_.size()) : std::string();
  ids_.clear();
  before_.clear();
  written_ = 0;
  return added;
}

}  // namespace samebytes::text
