// samebytes doctor: reads what a run left behind and ranks what to do about it (doctor_rules.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cli/doctor_rules.h"
#include "cli/json.h"
#include "cli/option_table.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

constexpr std::span<const Rule> (*kFamilies[])() = {failure_rules, learning_rules, gradient_rules, speed_rules};

// Every word of "--batch 32 --scale-rate linear" that begins with -- is an option of train; of "samebytes tune ..." the
// verb is one of this program's.
bool program_has(const std::string& options) {
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    if (word == "samebytes") {
      words >> word;
      const std::vector<std::string> names = verb_names();
      return std::find(names.begin(), names.end(), word) != names.end();
    }
    if (word.starts_with("--") && find_row(Verb::train, word) == nullptr) return false;
  }
  return true;
}

Json to_json(const Finding& finding) {
  Json json{{"rule", finding.rule}, {"source", finding.source}, {"severity", name_of(finding.severity)},
            {"seen", finding.seen}, {"file", finding.file},     {"line", finding.line},
            {"why", finding.why},   {"actions", Json::array()}};
  for (const Action& action : finding.actions)
    json["actions"].push_back({{"options", action.options}, {"text", action.text}});
  return json;
}

// Wraps at blanks; lines after the first are indented.
std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kWidth = 110;
  std::istringstream words(text);
  std::string result;
  std::size_t column = indent;
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > kWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string to_text(std::size_t number, const Finding& finding) {
  constexpr std::size_t kIndent = 9;
  std::string place = finding.file;
  if (finding.line > 0) place += fmt::format(":{}", finding.line);
  std::string text =
      fmt::format("{}. {} ({}; {})\n   seen  {}\n   why   {}\n", number, finding.rule, name_of(finding.severity),
                  finding.source, wrapped(place + ": " + finding.seen, kIndent), wrapped(finding.why, kIndent));
  const char* head = "   do    ";
  for (const Action& action : finding.actions) {
    const std::string options = action.options.empty() ? "" : action.options + "  ";
    text += fmt::format("{}{}\n", head,
                        options + wrapped(action.text, kIndent + (options.size() < 40 ? options.size() : 2)));
    head = "         ";
  }
  return text;
}

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

std::size_t rule_count() {
  std::size_t count = 0;
  for (const auto family : kFamilies) count += family().size();
  return count;
}

std::vector<Finding> diagnose(const Patient& patient) {
  std::vector<Finding> findings;
  for (const auto family : kFamilies) {
    for (const Rule& rule : family()) {
      std::optional<Finding> finding = rule.check(patient);
      if (!finding) continue;
      finding->rule = rule.name;
      finding->source = rule.source;
      std::erase_if(finding->actions, [&](const Action& action) { return !program_has(action.options); });
      findings.push_back(*finding);
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.severity != b.severity ? a.severity > b.severity : a.weight > b.weight;
  });
  return findings;
}

int run_doctor(const Options& options) {
  const RunLog run = read_run_log(options.doctor.run);
  std::optional<ProfileLog> profile;
  if (!options.doctor.profile.empty()) profile = read_profile(options.doctor.profile);
  const Patient patient{run, profile ? &*profile : nullptr};
  const std::vector<Finding> findings = diagnose(patient);
  if (options.json) {
    Json json{{"run", run.path}, {"workload", run.text("workload")}, {"findings", Json::array()}};
    for (const Finding& finding : findings) json["findings"].push_back(to_json(finding));
    fmt::print("{}\n", json.dump());
    return kDone;
  }
  fmt::print("{}\n", heading(run));
  if (findings.empty())
    fmt::print("Nothing to complain about: {} rules looked{}.\n", rule_count(),
               profile ? "" : "; a profile (samebytes profile WORKLOAD --json) shows them more");
  for (std::size_t i = 0; i < findings.size(); ++i) fmt::print("\n{}", to_text(i + 1, findings[i]));
  return kDone;
}

}  // namespace samebytes::cli
