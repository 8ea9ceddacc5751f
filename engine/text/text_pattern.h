// A pattern of tokenizer.json: {"String": "..."} or {"Regex": "..."}, and its matches in a text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/json_part.h"
#include "text/regex.h"

namespace samebytes::detail {

class TextPattern {
 public:
  explicit TextPattern(const JsonPart& part, const char* key = "pattern") {
    const JsonPart pattern = part.part(key);
    if (pattern.find("String") != nullptr) {
      string_ = pattern.text("String");
    } else if (pattern.find("Regex") != nullptr) {
      regex_text_ = pattern.text("Regex");
      try {
        regex_.emplace(regex_text_);
      } catch (const ArgumentError& error) {
        throw IoError("tokenizer: " + part.path() + ": " + pattern.place() + ": " + error.what(), part.path(), -1);
      }
    } else {
      pattern.fail_here("String or Regex", pattern.json());
    }
  }
  // Empty for a string.
  const std::string& regex() const { return regex_text_; }

  // Calls act(begin, end) for each match. An empty string matches nowhere.
  template <class Act>
  void for_each_match(std::string_view text, const Act& act) const {
    if (regex_) {
      Regex::Search search(*regex_, text);
      while (const auto match = search.next()) act(match->begin, match->end);
    } else if (!string_.empty()) {
      for (std::size_t place = 0; (place = text.find(string_, place)) != std::string_view::npos;
           place += string_.size())
        act(place, place + string_.size());
    }
  }

 private:
  std::string string_, regex_text_;
  std::optional<Regex> regex_;
};

}  // namespace samebytes::detail
