// Small text helpers of the command: numbers for people, the nearest word to a mistyped one, and JSON with its keys in
// the order in which they were set.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/budget.h"  // bytes_text

namespace samebytes::cli {

std::string value_text(double value);                          // all digits; "nan" whatever its sign
std::string count_text(double count);                          // "12 345"; three digits for small numbers: "9.87"
std::string counted_text(double count, std::string_view one);  // "1 step", "1 200 steps"
std::string duration_text(double seconds);                     // "0.42 s", "12.3 s", "3:05", "1:02:03"
std::string list_text(const std::vector<std::string>& words);  // "a, b, c"

// The candidate with the smallest edit distance, if that is at most a third of the word's length plus one; else empty.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);
// Ends a message about a mistyped word: ", did you mean train?"; empty where no candidate is near.
std::string or_nearest(std::string_view word, const std::vector<std::string>& candidates);

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
inline Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }
inline Json finite_or_null(const std::optional<double>& value) { return value ? finite_or_null(*value) : Json(); }

}  // namespace samebytes::cli
