// A sweep as a table with advice, as JSON, and as a plot.
#include <fmt/format.h>

#include <cmath>

#include "cli/json.h"
#include "cli/sweep.h"
#include "cli/text.h"

namespace samebytes::cli {
namespace {

std::string noise_text(double noise) {
  return std::isnan(noise) ? "" : std::isfinite(noise) ? count_text(std::round(noise)) : "beyond";
}

}  // namespace

std::string to_text(const SweepReport& report) {
  std::string text = fmt::format("{:>7} {:<6} {:>10} {:>9} {:>9} {:>10} {:>11} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
                                 "batch", "class", "samples/s", "ms p50", "ms p95", "memory", "activations", "noise",
                                 "steps", "samples", "seconds", "rate", "test loss");
  for (const SweepRow& row : report.rows) {
    const auto reached = [&](const std::string& value, const std::string& most) {
      return row.target ? value : row.trouble.empty() ? "> " + most : std::string("-");
    };
    const SweepPoint at = row.target.value_or(SweepPoint{});
    text += fmt::format(
        "{:>7} {:<6} {:>10} {:>9.2f} {:>9.2f} {:>10} {:>11} {:>8} {:>8} {:>9} {:>9} {:>9.3g} {:>9.4f}\n", row.batch,
        optim::name_of(optim::class_of_batch(row.batch, report.training_samples)), count_text(row.samples_per_second()),
        row.step_ms_p50, row.step_ms_p95, bytes_text(row.peak_bytes), bytes_text(row.activation_bytes),
        noise_text(row.noise_scale), reached(std::to_string(at.steps), std::to_string(row.steps)),
        reached(std::to_string(at.steps * row.batch), std::to_string(row.samples)),
        reached(fmt::format("{:.2f}", at.seconds), fmt::format("{:.2f}", row.seconds)), row.rate, row.test_loss);
  }
  for (const SweepRow& row : report.rows)
    if (row.skipped_steps && *row.skipped_steps > 0)
      text += fmt::format("batch {}: {} steps were skipped, their gradients overflowed f16\n", row.batch,
                          *row.skipped_steps);
  for (const SweepRow& row : report.rows)
    if (!row.trouble.empty()) text += fmt::format("batch {}: {}\n", row.batch, row.trouble);
  text += fmt::format(
      "steps, samples and seconds are those to a test loss of {:.4g} on {} samples: {}\n"
      "noise is the gradient noise scale, in samples; rate is the highest one; computed in {}\n",
      report.target_loss, report.test_samples, report.target_text, report.precision);
  if (report.advice.batch == 0) return text;
  text += fmt::format("\nrecommended: {}, because {}\n", report.advice.batch, report.advice.reason);
  for (const optim::BatchAdvice& advice : report.advice.advice)
    text += fmt::format("  {} {:<16} {}\n", advice.holds ? "ok  " : "mind", advice.rule, advice.text);
  return text;
}

Json to_json(const SweepReport& report) {
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json curve = Json::array();
    for (const SweepPoint& point : row.curve)
      curve.push_back(
          {{"steps", point.steps}, {"seconds", point.seconds}, {"test_loss", finite_or_null(point.test_loss)}});
    rows.push_back({{"batch", row.batch},
                    {"class", optim::name_of(optim::class_of_batch(row.batch, report.training_samples))},
                    {"samples_per_second", row.samples_per_second()},
                    {"step_ms_p50", row.step_ms_p50},
                    {"step_ms_p95", row.step_ms_p95},
                    {"peak_bytes", row.peak_bytes},
                    {"activation_bytes", row.activation_bytes},
                    {"noise_scale", finite_or_null(row.noise_scale)},
                    {"gradient_square", finite_or_null(row.gradient_square)},
                    {"covariance_trace", finite_or_null(row.covariance_trace)},
                    {"rate", row.rate},
                    {"warmup", row.warmup},
                    {"steps", row.steps},
                    {"samples", row.samples},
                    {"seconds", row.seconds},
                    {"test_loss", finite_or_null(row.test_loss)},
                    {"steps_to_target", row.target ? Json(row.target->steps) : Json()},
                    {"samples_to_target", row.target ? Json(row.target->steps * row.batch) : Json()},
                    {"seconds_to_target", row.target ? Json(row.target->seconds) : Json()},
                    {"skipped_steps", row.skipped_steps ? Json(*row.skipped_steps) : Json()},
                    {"trouble", row.trouble.empty() ? Json() : Json(row.trouble)},
                    {"curve", curve}});
  }
  Json advice = Json::array();
  for (const optim::BatchAdvice& one : report.advice.advice)
    advice.push_back({{"rule", one.rule}, {"text", one.text}, {"holds", one.holds}});
  return {{"workload", report.workload},
          {"device", report.device},
          {"precision", report.precision},
          {"seed", report.seed},
          {"target_loss", finite_or_null(report.target_loss)},
          {"target", report.target_text},
          {"training_samples", report.training_samples},
          {"test_samples", report.test_samples},
          {"rows", rows},
          {"recommended_batch", report.advice.batch > 0 ? Json(report.advice.batch) : Json()},
          {"reason", report.advice.reason},
          {"advice", advice}};
}

Plot to_plot(const SweepReport& report) {
  PlotSeries speed{"samples/s"}, steps{"steps"}, seconds{"seconds"}, noise{"noise scale"}, peak{"peak"},
      activations{"activations"};
  constexpr double kMega = 1e-6;
  for (const SweepRow& row : report.rows) {
    const auto batch = static_cast<double>(row.batch);
    if (row.step_ms_p50 > 0) speed.points.emplace_back(batch, row.samples_per_second());
    if (row.target) {
      steps.points.emplace_back(batch, static_cast<double>(row.target->steps));
      seconds.points.emplace_back(batch, row.target->seconds);
    }
    noise.points.emplace_back(batch, row.noise_scale);
    if (row.peak_bytes == 0) continue;
    peak.points.emplace_back(batch, kMega * static_cast<double>(row.peak_bytes));
    activations.points.emplace_back(batch, kMega * static_cast<double>(row.activation_bytes));
  }
  const std::string to = fmt::format("to a test loss of {:.4g}", report.target_loss);
  return {.title = fmt::format("samebytes sweep {}{}", report.workload,
                               report.precision == "f32" ? "" : " --precision " + report.precision),
          .x_label = "batch",
          .is_log = true,
          .panels = {{.y_label = "samples a second, by the median step", .series = {speed}},
                     {.y_label = "steps " + to, .series = {steps}, .is_log = true},
                     {.y_label = "seconds " + to, .series = {seconds}},
                     {.y_label = "gradient noise scale, samples", .series = {noise}, .is_log = true},
                     {.y_label = "memory, MB", .series = {peak, activations}, .is_log = true}}};
}

}  // namespace samebytes::cli
