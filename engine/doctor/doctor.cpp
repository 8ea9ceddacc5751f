#include "samebytes/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "doctor/rules.h"

namespace samebytes::doctor {
namespace {

constexpr std::span<const Rule> (*kFamilies[])() = {failure_rules, learning_rules, gradient_rules, speed_rules};

std::string heading(const RunLog& run) {
  std::string text =
      fmt::format("{}: {}, batch {}, {}, {} at {}, on {}", run.path, run.text("workload"),
                  number_text(run.number("batch").value_or(0)), run.text("precision"), run.text("optimizer"),
                  number_text(run.number("rate").value_or(0)), run.text("device"));
  const double planned = run.number("steps").value_or(0);
  const double done =
      run.result("steps").value_or(run.steps.empty() ? 0.0 : static_cast<double>(run.steps.back().step));
  return text + fmt::format("; {} of {} steps", number_text(done), number_text(planned));
}

}  // namespace

const char* name_of(Severity severity) {
  return severity == Severity::failure ? "failure" : severity == Severity::serious ? "serious" : "advice";
}

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

double Patient::largest_fair_rate() const {
  const double own = run.number("workload_rate").value_or(0), times = batch() / std::max(1.0, workload_batch());
  return own * std::max(times, std::sqrt(times));
}

double Patient::smallest_fair_rate() const {
  const double own = run.number("workload_rate").value_or(0), times = batch() / std::max(1.0, workload_batch());
  return own * std::min({times, std::sqrt(times), 1.0});
}

std::string Patient::with_batch(double other) const {
  std::string options = fmt::format("--batch {}", number_text(other));
  if (run.text("scale_rate").empty())
    options += fmt::format(" --scale-rate linear --base-batch {}", number_text(batch()));
  return options;
}

double Patient::stall_fraction() const {
  if (const std::optional<double> all = run.result("stall_fraction")) return *all;
  return run.epochs.empty() ? 0 : run.epochs.back().stall_fraction.value_or(0);
}

Finding Patient::finding(Severity severity, double weight, int line) const {
  Finding finding;
  finding.severity = severity;
  finding.weight = weight;
  finding.file = run.path;
  finding.line = line;
  return finding;
}

Finding Patient::profile_finding(Severity severity, double weight) const {
  Finding finding = this->finding(severity, weight, 0);
  finding.file = profile->path;
  return finding;
}

Diagnosis diagnose(const std::string& log, const std::string& profile) {
  const RunLog run = read_run_log(log);
  std::optional<ProfileLog> measured;
  if (!profile.empty()) measured = read_profile(profile);
  const Patient patient{run, measured ? &*measured : nullptr};
  Diagnosis result{.heading = heading(run), .workload = run.text("workload"), .run = log, .profile = profile};
  for (const auto family : kFamilies) {
    result.rules += family().size();
    for (const Rule& rule : family()) {
      std::optional<Finding> finding = rule.check(patient);
      if (!finding) continue;
      finding->rule = rule.name;
      finding->source = rule.source;
      result.findings.push_back(std::move(*finding));
    }
  }
  std::stable_sort(result.findings.begin(), result.findings.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.weight > b.weight;
  });
  return result;
}

}  // namespace samebytes::doctor
