// What the doctor knows: a table of rules. A rule looks at the log of a run, and at a profile where there is
// one, and says what it saw, why that matters and what to do. Another rule is one function in failure.cpp,
// learning.cpp, gradients.cpp or speed.cpp and one line in the table of that file.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "doctor/run_log.h"
#include "samebytes/doctor.h"

namespace samebytes::doctor {

// What the rules look at.
struct Patient {
  const RunLog& run;
  const ProfileLog* profile = nullptr;

  double batch() const { return run.number("batch").value_or(0); }
  double workload_batch() const { return run.number("workload_batch").value_or(batch()); }
  double rate() const { return run.number("rate").value_or(0); }
  // The workload's rate for its batch, moved to the batch of this run by the linear and by the square-root rule.
  double largest_fair_rate() const;
  double smallest_fair_rate() const;
  // Options of the same run with another batch, the rate in proportion.
  std::string with_batch(double other) const;
  double stall_fraction() const;                                      // of the run, or of its last epoch
  Finding finding(Severity severity, double weight, int line) const;  // ... of the log
  Finding profile_finding(Severity severity, double weight) const;
};

struct Rule {
  const char* name;
  const char* source;
  std::optional<Finding> (*check)(const Patient& patient);
};

std::span<const Rule> failure_rules();   // what ended a run
std::span<const Rule> learning_rules();  // what it learned
std::span<const Rule> gradient_rules();  // the norms of its gradients
std::span<const Rule> speed_rules();     // what it cost

// Of the steps, at each end: what a trend is read from.
inline constexpr double kTrendShare = 0.2;

std::string number_text(double value);  // "0.003", "1e+04"

}  // namespace samebytes::doctor
