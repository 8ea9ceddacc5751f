// Lines of a text in memory with their numbers and byte offsets, and errors about them. Used by the readers of text
// files.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "core/io_error.h"

namespace samebytes::detail {

class LineReader {
 public:
  // Both views must outlive the reader. `reader` and `path` are for errors.
  LineReader(std::string_view reader, std::string_view path, std::string_view text)
      : reader_(reader), path_(path), text_(text) {}

  // The next line without its end (\n or \r\n); false at the end of the text.
  bool next(std::string_view& line) {
    if (place_ >= text_.size()) return false;
    start_ = place_;
    ++number_;
    const std::size_t end = text_.find('\n', place_);
    place_ = end == std::string_view::npos ? text_.size() : end + 1;
    line = text_.substr(start_, end == std::string_view::npos ? std::string_view::npos : end - start_);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return true;
  }

  int number() const { return number_; }  // of the line read last, from 1

  // `at` is inside the text; the message ends with up to 40 characters from there.
  [[noreturn]] void fail(std::string_view at, const std::string& expected) const {
    constexpr std::size_t kShown = 40;
    fail_with(at, expected, at.empty() ? "nothing" : "'" + std::string(at.substr(0, kShown)) + "'");
  }
  [[noreturn]] void fail_with(std::string_view at, const std::string& expected, const std::string& found) const {
    const auto offset = at.data() == nullptr ? start_ : static_cast<std::size_t>(at.data() - text_.data());
    throw_io(std::string(reader_), std::string(path_), static_cast<std::int64_t>(offset),
             expected + (number_ > 0 ? " in line " + std::to_string(number_) : ""), found);
  }
  [[noreturn]] void fail_at_end(const std::string& expected) const {
    throw_io(std::string(reader_), std::string(path_), static_cast<std::int64_t>(text_.size()), expected,
             "the end of the file");
  }

 private:
  std::string_view reader_, path_, text_;
  std::size_t place_ = 0, start_ = 0;
  int number_ = 0;
};

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return text.substr(0, 0);
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Parses all of `text` as a number with an optional plus.
template <class T>
bool parse_number(std::string_view text, T& value) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Cuts the part before the first `separator` off `rest`. Without a separator, takes all of `rest` and returns false.
inline bool cut(std::string_view& rest, char separator, std::string_view& part) {
  const std::size_t end = rest.find(separator);
  part = rest.substr(0, end);
  rest = end == std::string_view::npos ? rest.substr(rest.size()) : rest.substr(end + 1);
  return end != std::string_view::npos;
}

}  // namespace samebytes::detail
