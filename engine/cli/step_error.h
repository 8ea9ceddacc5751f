// What ended a run, in the terms of its log: the kind of an error, and errors that know their step.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "samebytes/error.h"

namespace samebytes::cli {

// The loss, or with --check-nan the result of an op, became NaN or infinite.
inline constexpr const char* kNotFinite = "NotFinite";

// {"event": "error", "kind": "OutOfMemory", "message": ..., "need_bytes": ..., "limit_bytes": ...}
nlohmann::ordered_json error_line(const std::exception& error);

// An error in a step; keeps what error_line says of its cause.
class StepError : public Error {
 public:
  // `cause` is what the engine threw; or a loss that is not finite.
  StepError(std::int64_t step, const Error& cause);
  StepError(std::int64_t step, const std::string& message, const char* kind);
  const nlohmann::ordered_json& line() const { return line_; }

 private:
  nlohmann::ordered_json line_;
};

}  // namespace samebytes::cli
