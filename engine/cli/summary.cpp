#include "cli/summary.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/text.h"

namespace samebytes::cli {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

std::string row(const char* key, const std::string& value) { return fmt::format("  {:<14}{}\n", key, value); }

}  // namespace

Json to_json(const Summary& summary) {
  Json json;
  json["workload"] = summary.workload;
  if (!summary.mode.empty()) json["mode"] = summary.mode;
  json["device"] = summary.device;
  json["memory_mode"] = summary.memory_mode;
  json["personality"] = summary.personality;
  json["precision"] = summary.precision;
  json["batch"] = summary.batch;
  json["steps"] = summary.steps;
  json["samples"] = summary.samples;
  json["seconds"] = number(summary.seconds);
  json["samples_per_second"] = number(summary.samples_per_second());
  json["step_ms_p50"] = number(summary.step_ms_p50);
  json["step_ms_p95"] = number(summary.step_ms_p95);
  json["train_loss"] = number(summary.train_loss);
  json["test_loss"] = number(summary.test_loss);
  if (summary.test_accuracy) json["test_accuracy"] = number(summary.test_accuracy);
  json["bytes_copied_per_step"] = number(summary.bytes_copied_per_step);
  json["launches_per_step"] = number(summary.launches_per_step);
  json["peak_bytes"] = summary.peak_bytes;
  json["stall_fraction"] = number(summary.stall_fraction);
  json["first_step_seconds"] = number(summary.first_step_seconds);
  if (!summary.mode.empty()) {
    json["gflops"] = number(summary.gflops);
    json["fraction_of_peak"] = number(summary.fraction_of_peak);
  }
  return json;
}

std::string to_text(const Summary& summary, bool interrupted) {
  std::string text = fmt::format("{}{}\n", summary.workload, interrupted ? ": interrupted" : "");
  if (summary.test_accuracy)
    text += row("test accuracy",
                fmt::format("{:.2f} %, loss {:.4f}", 100 * *summary.test_accuracy, summary.test_loss.value_or(NAN)));
  else if (summary.test_loss)
    text += row("test loss", fmt::format("{:.4f}", *summary.test_loss));
  if (summary.train_loss) text += row("train loss", fmt::format("{:.4f}", *summary.train_loss));
  text +=
      row("speed", fmt::format("{} samples/s, {} steps of {} in {}; p50 {:.2f} ms, p95 {:.2f} ms, first step {}",
                               count_text(summary.samples_per_second()), count_text(static_cast<double>(summary.steps)),
                               summary.batch, duration_text(summary.seconds), summary.step_ms_p50, summary.step_ms_p95,
                               duration_text(summary.first_step_seconds)));
  text += row("device", fmt::format("{}, {} kernels", summary.device, summary.personality));
  text += row("memory mode", summary.memory_mode);
  text += row("bytes copied", fmt::format("{} per step", count_text(summary.bytes_copied_per_step)));
  text += row("launches", fmt::format("{} per step", count_text(std::round(summary.launches_per_step * 10) / 10)));
  text += row("memory peak", bytes_text(summary.peak_bytes));
  text += row("waiting", fmt::format("{:.1f} % of the time for data", 100 * summary.stall_fraction));
  text.pop_back();
  return text;
}

}  // namespace samebytes::cli
