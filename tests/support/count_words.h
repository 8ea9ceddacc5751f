// How often a word stands in a text.
#pragma once

#include <string>

namespace samebytes::testing {

inline int count_words(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace samebytes::testing
