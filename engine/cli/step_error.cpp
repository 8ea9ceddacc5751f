#include "cli/step_error.h"

#include <new>

#include "cli/json.h"
#include "cli/usage_error.h"
#include "samebytes/distributed.h"

namespace samebytes::cli {
namespace {

constexpr const char* kCheckNan = "check_nan: ";  // what the engine's message begins with

}  // namespace

Json error_line(const std::exception& error) {
  if (const auto* step = dynamic_cast<const StepError*>(&error)) return step->line();
  Json line{{"event", "error"}};
  if (const auto* memory = dynamic_cast<const OutOfMemory*>(&error)) {
    line["kind"] = "OutOfMemory";
    line["need_bytes"] = memory->need();
    line["limit_bytes"] = memory->budget();
  } else if (const auto* device = dynamic_cast<const DeviceError*>(&error)) {
    line["kind"] = "DeviceError";
    line["status"] = device->status();
  } else if (dynamic_cast<const distributed::DistributedError*>(&error)) {
    line["kind"] = "DistributedError";
  } else if (dynamic_cast<const std::bad_alloc*>(&error)) {
    line["kind"] = "OutOfMemory";
  } else if (dynamic_cast<const BuildError*>(&error)) {
    line["kind"] = "BuildError";
  } else if (dynamic_cast<const IoError*>(&error)) {
    line["kind"] = "IoError";
  } else if (dynamic_cast<const UsageError*>(&error)) {
    line["kind"] = "UsageError";
  } else if (dynamic_cast<const ArgumentError*>(&error)) {
    line["kind"] = "ArgumentError";
  } else {
    line["kind"] = std::string(error.what()).find(kCheckNan) != std::string::npos ? kNotFinite : "Error";
  }
  line["message"] = error.what();
  return line;
}

StepError::StepError(std::int64_t step, const Error& cause)
    : Error(fmt::format("step {}: {}", step, cause.what())), line_(error_line(cause)) {
  line_["step"] = step;
}

StepError::StepError(std::int64_t step, const std::string& message, const char* kind)
    : Error(fmt::format("step {}: {}", step, message)),
      line_{{"event", "error"}, {"kind", kind}, {"message", message}, {"step", step}} {}

}  // namespace samebytes::cli
