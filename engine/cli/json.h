// JSON as the command writes it: keys in the order in which they were set.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace samebytes::cli {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
inline Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }
inline Json finite_or_null(const std::optional<double>& value) { return value ? finite_or_null(*value) : Json(); }

}  // namespace samebytes::cli
