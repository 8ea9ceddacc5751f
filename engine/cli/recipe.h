// Recipe: how train changes the parameters - the optimizer, the schedule of its rate and the average of the weights
// that the options and the workload ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/workloads.h"
#include "samebytes/optim.h"

namespace samebytes::cli {

const std::vector<std::string>& optimizer_names();
const std::vector<std::string>& schedule_names();
Dtype moments_dtype(const Options& options);  // of --moments

// What --scale-rate says, else the rule that suits the optimizer where the batch changes by itself.
optim::ScaleRule scale_rule_of(const Options& options);

class Recipe {
 public:
  // For a run of `steps` steps, `epoch_steps` of them an epoch. Throws UsageError for options that do not go together
  // or that the optimizer does not have.
  Recipe(const Options& options, const Workload& workload, std::int64_t batch, std::int64_t steps,
         std::int64_t epoch_steps);

  const std::string& optimizer() const { return optimizer_; }
  const std::string& schedule() const { return schedule_; }
  double rate() const { return scaled_.rate; }  // the highest
  // Where no option says another one, for the workload's batch.
  double default_rate() const { return default_rate_; }
  std::int64_t warmup() const { return scaled_.warmup; }
  // The rate as a function of the step, for whoever sets it himself. Throws UsageError for onecycle and plateau, which
  // change more than that, or by the tests.
  optim::RateSchedule rate_schedule(const char* for_option) const;

  std::unique_ptr<optim::Optimizer> make_optimizer(std::span<const Array> parameters) const;
  // Nothing without --ema.
  std::optional<optim::EmaOptions> ema_options() const;
  // Of --schedule plateau.
  std::optional<optim::PlateauOptions> plateau_options() const;
  // "rate 0.004 (4 x 0.001 for a batch of 256), warm-up of 115 steps"
  std::string to_text() const;

 private:
  optim::RateSchedule decay(std::int64_t steps) const;
  optim::OneCycle one_cycle() const;

  const Options& options_;
  Defaults defaults_;
  std::string optimizer_, schedule_;
  std::int64_t steps_;
  double default_rate_ = 0;
  optim::ScaledRate scaled_;
};

}  // namespace samebytes::cli
