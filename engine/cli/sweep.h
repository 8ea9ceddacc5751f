// What `sweep` finds out about one batch size, and how it is shown.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/progress.h"
#include "cli/workloads.h"
#include "samebytes/optim.h"
#include "samebytes/plot.h"

namespace samebytes::cli {

// A test between steps.
struct SweepPoint {
  std::int64_t steps = 0;
  double seconds = 0;  // of the steps alone
  double test_loss = 0;
};

struct SweepRow {
  std::int64_t batch = 0;
  double rate = 0;
  std::int64_t warmup = 0;
  std::int64_t steps = 0, samples = 0;
  double seconds = 0;
  double step_ms_p50 = 0, step_ms_p95 = 0;
  std::size_t peak_bytes = 0;
  std::size_t activation_bytes = 0;  // of the peak, what parameters, gradients, optimizer and batches leave
  double noise_scale = std::numeric_limits<double>::quiet_NaN();
  double gradient_square = noise_scale, covariance_trace = noise_scale;
  double test_loss = noise_scale;             // the lowest
  std::optional<std::int64_t> skipped_steps;  // of f16: whose gradients overflowed
  std::optional<SweepPoint> target;
  std::vector<SweepPoint> curve;
  std::string trouble;  // why it ended before its time

  double samples_per_second() const {  // by the median step
    return step_ms_p50 > 0 ? 1e3 * static_cast<double>(batch) / step_ms_p50 : 0;
  }
};

struct SweepPlan {
  const Options& options;
  const Workload& workload;
  const data::Split& split;
  data::DatasetPtr test;  // a part of the test set, the same for all sizes
  std::int64_t samples;   // of each size, unless the options say steps
  Progress& progress;
};

// At most so many steps for a batch.
std::int64_t steps_of(const SweepPlan& plan, std::int64_t batch);
// Trains with one size until the target is reached; without one, to the end. `title` stands before the bar.
SweepRow train_size(const SweepPlan& plan, std::int64_t batch, std::optional<double> target, const std::string& title);

struct SweepReport {
  std::string workload, device, precision;
  std::uint64_t seed = 0;
  double target_loss = 0;
  std::string target_text;  // where it comes from
  std::int64_t training_samples = 0, test_samples = 0;
  std::vector<SweepRow> rows;  // by size
  optim::BatchRecommendation advice;
};

std::string to_text(const SweepReport& report);
nlohmann::ordered_json to_json(const SweepReport& report);
Plot to_plot(const SweepReport& report);

}  // namespace samebytes::cli
