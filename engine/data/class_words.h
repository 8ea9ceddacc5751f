// Converts label words to numbers: their indices in the sorted list of words, sorted by value if all are numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/lines.h"

namespace samebytes::detail {

// Normalises the spelling of numbers: 1.0000000e+00 and 1 are both "1".
inline std::string plain_word(std::string_view word) {
  constexpr double kExact = 1e15;
  double value = 0;
  if (!parse_number(word, value) || value != std::floor(value) || std::fabs(value) > kExact) return std::string(word);
  return std::to_string(static_cast<long long>(value));
}

// `all` without repetitions, sorted.
inline std::vector<std::string> sorted_classes(std::vector<std::string> all) {
  double value = 0;
  const bool numbers =
      std::all_of(all.begin(), all.end(), [&](const std::string& word) { return parse_number(word, value); });
  std::sort(all.begin(), all.end(), [&](const std::string& a, const std::string& b) {
    double left = 0, right = 0;
    if (numbers && parse_number(a, left) && parse_number(b, right) && left != right) return left < right;
    return a < b;
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// The index of each word in `classes`, which becomes the sorted list of `all`. Requires: `all` has each word.
inline std::vector<std::int32_t> number_words(const std::vector<std::string>& words,
                                              const std::vector<std::string>& all, std::vector<std::string>& classes) {
  classes = sorted_classes(all);
  std::vector<std::int32_t> labels;
  labels.reserve(words.size());
  for (const std::string& word : words)
    labels.push_back(static_cast<std::int32_t>(std::find(classes.begin(), classes.end(), word) - classes.begin()));
  return labels;
}

}  // namespace samebytes::detail
