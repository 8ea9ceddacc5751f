// Scanners for the patterns that cut text into words before bytes are paired: GPT-2's, and those of Llama 3 and of
// Qwen2. They give what the regular expressions give, many times as fast; tests/text compares them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace samebytes::detail {

enum class WordPattern : char {
  gpt2,
  llama3,  // numbers in groups of three digits
  qwen2,   // digits one by one
};

// The scanner for a regular expression, if it is one of those (as files write them).
std::optional<WordPattern> word_pattern_of(std::string_view regex);
std::string_view regex_of(WordPattern pattern);

// Appends the words of a text, which are all of it. Bytes that are not UTF-8 are neither letters, numbers nor blanks.
void split_words(WordPattern pattern, std::string_view text, std::vector<std::string_view>& words);

}  // namespace samebytes::detail
