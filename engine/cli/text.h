// Small text helpers of the command: the nearest word to a mistyped one, and JSON with its keys in the order in which
// they were set.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/figures.h"

namespace samebytes::cli {

std::string list_text(const std::vector<std::string>& words);  // "a, b, c"

std::string shown(const std::string& word);  // itself; '' of an empty one
// A message of the library about a field, "base_batch: ...", in the words of the command: "--base-batch: ...".
std::string as_option(std::string message);
// The candidate with the smallest edit distance, if that is at most a third of the word's length plus one; else empty.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);
// Ends a message about a mistyped word: ", did you mean train?"; empty where no candidate is near.
std::string or_nearest(std::string_view word, const std::vector<std::string>& candidates);

using Json = nlohmann::ordered_json;

// One line; bytes that are no UTF-8, such as those of a file's name, become U+FFFD.
inline std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
// On standard output, at once: what the run still says on the other stream comes after it.
void print_json(const Json& json);

// JSON has no NaN and no infinity.
inline Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }
inline Json finite_or_null(const std::optional<double>& value) { return value ? finite_or_null(*value) : Json(); }

}  // namespace samebytes::cli
