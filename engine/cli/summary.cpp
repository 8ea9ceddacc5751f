#include "cli/summary.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "cli/text.h"

namespace samebytes::cli {
namespace {

struct Spread {
  double mean = 0, deviation = 0;  // of a sample: divided by n - 1
};
Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) spread.mean += v / n;
  for (const double v : values) spread.deviation += (v - spread.mean) * (v - spread.mean);
  spread.deviation = values.size() > 1 ? std::sqrt(spread.deviation / (n - 1)) : 0;
  return spread;
}

// The network beside simpler methods on the same data.
std::string baseline_table(const Summary& summary) {
  TextTable table("lrr", 2);
  table.add({"", "balanced", "area under curve"});
  const auto add = [&](const std::string& name, double balanced, double area) {
    table.add({name, fmt::format("{:.2f} %", 100 * balanced), fmt::format("{:.4f}", area)});
  };
  add(summary.workload + ", this network", summary.test_balanced_accuracy.value_or(NAN),
      summary.test_area_under_curve.value_or(NAN));
  for (const workloads::Baseline& baseline : summary.baselines)
    add(baseline.name, baseline.balanced_accuracy, baseline.area_under_curve);
  return table.to_text();
}

std::string row(const char* key, const std::string& value) { return fmt::format("  {:<14}{}\n", key, value); }

// A run that was complete when it was started again has trained no step here.
bool has_steps(const Summary& summary) { return summary.first_step_seconds > 0; }

std::string speed_rows(const Summary& summary) {
  const std::string steps =
      fmt::format("{} of {} in {}", counted_text(static_cast<double>(summary.steps), "step"),
                  summary.last_batch ? summary.batch / 2 : summary.batch, duration_text(summary.seconds));
  if (!has_steps(summary)) return row("steps", steps + ", all before this start");
  const double steady = summary.steady_samples_per_second();
  return row("speed",
             fmt::format("{} samples/s{}; {}; p50 {:.2f} ms, p95 {:.2f} ms, first step {}",
                         count_text(steady > 0 ? steady : summary.samples_per_second()),
                         summary.first_step_samples == 0 ? ""
                         : steady > 0                    ? " without the first step, which compiles"
                                                         : " with the first step, which compiles",
                         steps, summary.step_ms_p50, summary.step_ms_p95, duration_text(summary.first_step_seconds)));
}

// What was run, and how.
void add_settings(const Summary& summary, Json& json) {
  json["workload"] = summary.workload;
  if (!summary.mode.empty()) json["mode"] = summary.mode;
  json["device"] = summary.device;
  json["memory_mode"] = summary.memory_mode;
  json["personality"] = summary.personality;
  json["precision"] = summary.precision;
  if (summary.loss_scale) json["loss_scale"] = finite_or_null(summary.loss_scale);
  if (summary.skipped_steps) json["skipped_steps"] = *summary.skipped_steps;
  json["tuning"] = summary.tuning;
  if (!summary.optimizer.empty()) {
    json["optimizer"] = summary.optimizer;
    json["schedule"] = summary.schedule;
    json["rate"] = finite_or_null(summary.rate);
    json["warmup"] = summary.warmup;
    if (summary.ema) json["ema"] = finite_or_null(summary.ema);
  }
  if (summary.planned_peak_bytes) {
    json["memory_limit_bytes"] = summary.memory_limit_bytes ? Json(*summary.memory_limit_bytes) : Json();
    json["planned_peak_bytes"] = *summary.planned_peak_bytes;
    json["memory_techniques"] = summary.memory_techniques;
  }
}

// What was learnt, in which time.
void add_results(const Summary& summary, Json& json) {
  json["batch"] = summary.batch;
  if (summary.last_batch) {
    json["last_batch"] = *summary.last_batch;
    json["updates"] = summary.updates;
    json["noise_scale"] = finite_or_null(summary.noise_scale);
  }
  json["steps"] = summary.steps;
  json["samples"] = summary.samples;
  json["seconds"] = finite_or_null(summary.seconds);
  json["samples_per_second"] = finite_or_null(summary.samples_per_second());
  json["step_ms_p50"] = finite_or_null(summary.step_ms_p50);
  json["step_ms_p95"] = finite_or_null(summary.step_ms_p95);
  json["train_loss"] = finite_or_null(summary.train_loss);
  json["test_loss"] = finite_or_null(summary.test_loss);
  if (summary.test_accuracy) json["test_accuracy"] = finite_or_null(summary.test_accuracy);
  if (summary.test_balanced_accuracy) json["test_balanced_accuracy"] = finite_or_null(summary.test_balanced_accuracy);
  if (summary.test_area_under_curve) json["test_area_under_curve"] = finite_or_null(summary.test_area_under_curve);
  if (!summary.fold_areas.empty()) {
    const Spread spread = spread_of(summary.fold_areas);
    json["folds"] = {
        {"test_area_under_curve", summary.fold_areas}, {"mean", spread.mean}, {"deviation", spread.deviation}};
  }
  for (const workloads::Baseline& baseline : summary.baselines)
    json["baselines"].push_back({{"name", baseline.name},
                                 {"test_balanced_accuracy", finite_or_null(baseline.balanced_accuracy)},
                                 {"test_area_under_curve", finite_or_null(baseline.area_under_curve)}});
}

// What the devices did for it.
void add_work(const Summary& summary, Json& json) {
  json["bytes_copied_per_step"] = finite_or_null(summary.bytes_copied_per_step);
  json["bytes_gathered_per_step"] = finite_or_null(summary.bytes_gathered_per_step);
  json["launches_per_step"] = finite_or_null(summary.launches_per_step);
  json["peak_bytes"] = summary.peak_bytes;
  json["stall_fraction"] = finite_or_null(summary.stall_fraction);
  json["first_step_seconds"] = finite_or_null(summary.first_step_seconds);
  if (summary.fallbacks) json["fallbacks"] = Json::array();
  for (const Fallback& fallback : summary.fallbacks.value_or(std::vector<Fallback>{}))
    json["fallbacks"].push_back({{"op", fallback.op},
                                 {"device", fallback.device},
                                 {"reason", fallback.reason},
                                 {"ran_on", fallback.ran_on},
                                 {"launches", fallback.launches},
                                 {"bytes_crossed", fallback.bytes_crossed}});
  for (const DeviceShare& share : summary.shares)
    json["shares"].push_back({{"device", share.device}, {"share", share.share}, {"samples", share.samples}});
  if (!summary.shares.empty()) json["device_events"] = summary.device_events;
  if (summary.survival) {
    const Survival& survival = *summary.survival;
    json["survival"] = {{"resumed_from", survival.resumed_from},
                        {"checkpoints", survival.checkpoints},
                        {"checkpoint_ms", finite_or_null(survival.checkpoint_ms)},
                        {"checkpoint_bytes", survival.checkpoint_bytes},
                        {"checkpoint", survival.checkpoint},
                        {"device_errors", survival.device_errors},
                        {"damaged", survival.damaged}};
  }
  if (summary.ranks) {
    const RanksReport& ranks = *summary.ranks;
    json["ranks"] = {{"size", ranks.size},
                     {"buckets", ranks.buckets},
                     {"bytes_sent_per_step", finite_or_null(ranks.bytes_sent_per_step)},
                     {"exchange_ms", finite_or_null(ranks.exchange_ms)},
                     {"wait_ms", finite_or_null(ranks.wait_ms)},
                     {"hidden", finite_or_null(ranks.hidden)},
                     {"spread_ms", finite_or_null(ranks.spread_ms)},
                     {"state_bytes", ranks.state_bytes}};
  }
}

// What bench measures besides.
void add_measurements(const Summary& summary, Json& json) {
  if (!summary.mode.empty()) {
    json["parameters"] = summary.parameters;
    json["fixed_batch"] = summary.fixed_batch;
    json["resident_peak_bytes"] = summary.resident_peak_bytes ? Json(*summary.resident_peak_bytes) : Json();
    json["gflops"] = finite_or_null(summary.gflops);
    json["fraction_of_peak"] = finite_or_null(summary.fraction_of_peak);
    json["gigabytes_per_second"] = finite_or_null(summary.gigabytes_per_second());
    json["fraction_of_bandwidth"] = finite_or_null(summary.fraction_of_bandwidth);
    json["largest_batch"] = summary.largest_batch ? Json(*summary.largest_batch) : Json();
    json["joules_per_sample"] = finite_or_null(summary.joules_per_sample());
  }
}

}  // namespace

Json to_json(const Summary& summary) {
  Json json;
  add_settings(summary, json);
  add_results(summary, json);
  add_work(summary, json);
  add_measurements(summary, json);
  return json;
}

std::string to_text(const Summary& summary, bool interrupted) {
  std::string text = fmt::format("{}{}\n", summary.workload, interrupted ? ": interrupted" : "");
  if (summary.test_accuracy)
    text += row("test accuracy",
                fmt::format("{:.2f} %, loss {:.4f}", 100 * *summary.test_accuracy, summary.test_loss.value_or(NAN)));
  else if (summary.test_loss)
    text += row("test loss", fmt::format("{:.4f}", *summary.test_loss));
  if (summary.test_balanced_accuracy)
    text += row("balanced", fmt::format("{:.2f} %, area under curve {:.4f}", 100 * *summary.test_balanced_accuracy,
                                        summary.test_area_under_curve.value_or(NAN)));
  if (!summary.fold_areas.empty()) {
    const Spread spread = spread_of(summary.fold_areas);
    text += row("folds", fmt::format("area under curve {:.4f} +- {:.4f} over {}", spread.mean, spread.deviation,
                                     summary.fold_areas.size()));
  }
  if (!summary.baselines.empty()) text += baseline_table(summary);
  if (summary.train_loss) text += row("train loss", fmt::format("{:.4f}", *summary.train_loss));
  text += speed_rows(summary);
  text += row("device", fmt::format("{}, {} kernels", summary.device, summary.personality));
  for (const Fallback& fallback : summary.fallbacks.value_or(std::vector<Fallback>{}))
    text += row("fallback", fmt::format("{} on {}: {}, {} crossed; {}: {}", fallback.op, fallback.ran_on,
                                        counted_text(static_cast<double>(fallback.launches), "launch"),
                                        bytes_text(fallback.bytes_crossed), fallback.device, fallback.reason));
  text += row("memory mode", summary.memory_mode);
  text += row("precision", summary.loss_scale
                               ? fmt::format("{}, loss scale {}, {} skipped", summary.precision,
                                             count_text(*summary.loss_scale), summary.skipped_steps.value_or(0))
                               : summary.precision);
  if (!summary.optimizer.empty())
    text +=
        row("optimizer",
            fmt::format(
                "{}, {} schedule, rate {:.4g}{}{}", summary.optimizer, summary.schedule, summary.rate,
                summary.warmup > 0 ? ", warm-up of " + counted_text(static_cast<double>(summary.warmup), "step") : "",
                summary.ema ? fmt::format(", averaged weights {:g}", *summary.ema) : ""));
  if (summary.survival) {
    const Survival& survival = *summary.survival;
    const std::string place = survival.checkpoint.empty() ? "in memory" : survival.checkpoint;
    text += row("checkpoints", survival.checkpoints == 0
                                   ? "none written"
                                   : fmt::format("{} of {} in {:.1f} ms each, the last one {}", survival.checkpoints,
                                                 bytes_text(survival.checkpoint_bytes), survival.checkpoint_ms, place));
    for (const std::string& error : survival.device_errors) text += row("device error", error);
  }
  if (summary.ranks)
    text += row(
        "ranks",
        fmt::format("{}, {} sent per step; exchange {:.2f} ms, {:.0f} % of it behind the backward pass; optimizer {}",
                    summary.ranks->size, bytes_text(static_cast<std::size_t>(summary.ranks->bytes_sent_per_step)),
                    summary.ranks->exchange_ms, 100 * summary.ranks->hidden, bytes_text(summary.ranks->state_bytes)));
  for (const DeviceShare& share : summary.shares)
    text += row("share", fmt::format("{} of {} samples, {} of {} in all{}", share.share, summary.batch, share.samples,
                                     summary.samples, ": " + share.device));
  for (const std::string& event : summary.device_events) text += row("device", event);
  if (summary.last_batch)
    text += row("batch", fmt::format("{} to {} in {}, noise scale {}", summary.batch, *summary.last_batch,
                                     counted_text(static_cast<double>(summary.updates), "update"),
                                     count_text(summary.noise_scale)));
  text += row("tuning", summary.tuning);
  if (has_steps(summary)) {
    text += row("bytes copied", fmt::format("{} per step", count_text(summary.bytes_copied_per_step)));
    text += row("gathered", fmt::format("{} per step, by the host into batches",
                                        bytes_text(static_cast<std::size_t>(summary.bytes_gathered_per_step))));
    if (summary.launches_per_step > 0)
      text += row("launches", fmt::format("{} per step", count_text(std::round(summary.launches_per_step * 10) / 10)));
  }
  text += row("memory peak", bytes_text(summary.peak_bytes));
  if (has_steps(summary))
    text += row("waiting", fmt::format("{:.1f} % of the time for data", 100 * summary.stall_fraction));
  text.pop_back();
  return text;
}

}  // namespace samebytes::cli
