// What a sweep came to: as text, as JSON and as a plot.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/figures.h"
#include "samebytes/train/sweep.h"
#include "train/session_impl.h"

namespace samebytes::train {
namespace {

using Json = nlohmann::ordered_json;

std::string target_text(const SweepReport& report, const SweepSubject& subject) {  // where it comes from
  if (!report.target_steps) return subject.target_name;
  return fmt::format("the lowest of batch {} in the first half of its {}", report.reference,
                     counted_text(static_cast<double>(*report.target_steps), "step"));
}

std::string noise_text(double noise) {
  return std::isnan(noise) ? "" : std::isfinite(noise) ? count_text(std::round(noise)) : "beyond";
}

std::vector<std::string> cells_of(const SweepRow& row, const SweepSubject& subject) {
  const auto reached = [&](const std::string& value, const std::string& most) {
    return row.target ? value : row.trouble.empty() ? "> " + most : std::string("-");
  };
  const auto count = [](std::int64_t number) { return count_text(static_cast<double>(number)); };
  const SweepPoint at = row.target.value_or(SweepPoint{});
  return {count(row.batch),
          optim::name_of(optim::class_of_batch(row.batch, subject.training_samples)),
          count_text(row.samples_per_second()),
          fmt::format("{:.2f}", row.step_ms_p50),
          fmt::format("{:.2f}", row.step_ms_p95),
          bytes_text(row.peak_bytes),
          bytes_text(row.activation_bytes),
          noise_text(row.noise_scale),
          reached(count(at.steps), count(row.steps)),
          reached(count(at.steps * row.batch), count(row.samples)),
          reached(fmt::format("{:.2f}", at.seconds), fmt::format("{:.2f}", row.seconds)),
          fmt::format("{:.3g}", row.rate),
          fmt::format("{:.4f}", row.validation_loss)};
}

}  // namespace

std::string sweep_text(const SweepReport& report, const SweepSubject& subject) {
  TextTable table("rlrrrrrrrrrrr");
  table.add({"batch", "class", "samples/s", "ms p50", "ms p95", "memory", "activations", "noise", "steps", "samples",
             "seconds", "rate", "test loss"});
  for (const SweepRow& row : report.rows) table.add(cells_of(row, subject));
  std::string text = table.to_text();
  for (const SweepRow& row : report.rows) {
    if (row.skipped_steps.value_or(0) > 0)
      text += fmt::format("batch {}: {} skipped, for their gradients overflowed f16\n", row.batch,
                          counted_text(static_cast<double>(*row.skipped_steps), "step"));
    if (!row.trouble.empty()) text += fmt::format("batch {}: {}\n", row.batch, row.trouble);
  }
  text += fmt::format(
      "steps, samples and seconds are those to a test loss of {:.4g} on {}: {}\n"
      "noise is the gradient noise scale, in samples; rate is the highest one; computed in {}\n",
      report.target_loss, counted_text(static_cast<double>(subject.test_samples), "sample"),
      target_text(report, subject), subject.precision);
  if (report.advice.batch == 0) return text;
  text += fmt::format("\nrecommended: {}, because {}\n", report.advice.batch, report.advice.reason);
  TextTable advice("lll", 2);
  for (const optim::BatchAdvice& one : report.advice.advice)
    advice.add({one.holds ? "ok" : "mind", one.rule, one.text});
  return text + advice.to_text();
}

std::string sweep_json(const SweepReport& report, const SweepSubject& subject) {
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json curve = Json::array();
    for (const SweepPoint& point : row.curve)
      curve.push_back(
          {{"steps", point.steps}, {"seconds", point.seconds}, {"test_loss", finite_or_null(point.validation_loss)}});
    rows.push_back({{"batch", row.batch},
                    {"class", optim::name_of(optim::class_of_batch(row.batch, subject.training_samples))},
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
                    {"test_loss", finite_or_null(row.validation_loss)},
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
  return detail::to_line(Json{{"workload", subject.workload},
                              {"device", subject.device},
                              {"precision", subject.precision},
                              {"seed", subject.seed},
                              {"target_loss", finite_or_null(report.target_loss)},
                              {"target", target_text(report, subject)},
                              {"training_samples", subject.training_samples},
                              {"test_samples", subject.test_samples},
                              {"rows", rows},
                              {"recommended_batch", report.advice.batch > 0 ? Json(report.advice.batch) : Json()},
                              {"reason", report.advice.reason},
                              {"advice", advice}});
}

Plot sweep_plot(const SweepReport& report, const SweepSubject& subject) {
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
  return {.title = fmt::format("samebytes sweep {}{}", subject.workload,
                               subject.precision == "f32" ? "" : " --precision " + subject.precision),
          .x_label = "batch",
          .is_log = true,
          .panels = {{.y_label = "samples a second, by the median step", .series = {speed}},
                     {.y_label = "steps " + to, .series = {steps}, .is_log = true},
                     {.y_label = "seconds " + to, .series = {seconds}},
                     {.y_label = "gradient noise scale, samples", .series = {noise}, .is_log = true},
                     {.y_label = "memory, MB", .series = {peak, activations}, .is_log = true}}};
}

}  // namespace samebytes::train
