// Trains a model with several batch sizes, each from the same start, and reports what each costs and reaches: speed,
// memory, gradient noise scale, steps and seconds to a target loss. Recommends one.
//   const train::SweepReport report = train::sweep_batches(
//       {.batches = {8, 32, 128}, .samples = 60'000}, [&](Engine& engine, const train::SweepSize& size) {
//         return train::SweepTraining{.net = std::make_unique<nn::Sequential>(make_net()), .task = task,
//                                     .training = digits.train, .validation = digits.test,
//                                     .make_optimizer = adamw_for(size.batch, size.steps)};
//       });
//   // report.advice.batch, because report.advice.reason
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/optim/batch_advice.h"
#include "samebytes/plot.h"
#include "samebytes/train/session.h"

namespace samebytes::train {

// A validation between steps.
struct SweepPoint {
  std::int64_t steps = 0;
  double seconds = 0;  // of the steps only
  double validation_loss = 0;
};

// The results of one batch size; NaN: not measured.
struct SweepRow {
  std::int64_t batch = 0;
  double rate = 0;  // as SweepTraining says
  std::int64_t warmup = 0;
  std::int64_t steps = 0, samples = 0;
  double seconds = 0;
  double step_ms_p50 = 0, step_ms_p95 = 0;
  std::size_t peak_bytes = 0;        // of the engine, after three steps
  std::size_t activation_bytes = 0;  // of these, without parameters, gradients, optimizer state and batches
  double noise_scale = NAN;          // in samples (optim/noise_scale.h)
  double gradient_square = NAN, covariance_trace = NAN;
  double validation_loss = NAN;                    // the lowest
  std::optional<std::int64_t> skipped_steps = {};  // of f16: steps whose gradients overflowed
  std::optional<SweepPoint> target = {};           // first validation that reached the target
  std::vector<SweepPoint> curve = {};
  std::string trouble = {};  // why it ended early: "diverged", "out of memory: ...", what the model refused

  double samples_per_second() const {  // by the median step
    return step_ms_p50 > 0 ? 1e3 * static_cast<double>(batch) / step_ms_p50 : 0;
  }
};

struct SweepSize {
  std::int64_t batch = 0;
  std::int64_t steps = 0;        // at most, for schedules
  std::int64_t epoch_steps = 0;  // steps in an epoch
};

// The training of one size. The same seed and parameters for each make them comparable.
struct SweepTraining {
  std::unique_ptr<nn::Module> net;
  Task task;
  data::DatasetPtr training, validation;
  data::LoaderOptions loading = {};  // of both: slots, workers, seed; batch and shuffle are the sweep's
  std::vector<data::TransformPtr> augment = {}, prepare = {};  // of training samples; of all samples, after augment
  std::int64_t validation_batch = 64;
  std::int64_t noise_batch = 16;  // samples of each gradient that the noise scale compares, at most
  std::function<OptimizerPtr(std::span<const Array> parameters)> make_optimizer = {};  // empty: AdamW
  double rate = 0;                                                                     // for the report ...
  std::int64_t warmup = 0;                                                             // ... in steps
  PrecisionOptions precision = {};
  std::optional<optim::EmaOptions> ema = {};          // validations use the averages
  std::optional<optim::PlateauOptions> plateau = {};  // follows the validation loss ...
  std::int64_t plateau_start = 0;                     // ... from this step on
};

struct SweepProgress {
  std::int64_t batch = 0;
  std::size_t size = 0, sizes = 0;  // the size's number, from 1, and how many there are
  std::int64_t step = 0, steps = 0, samples = 0;
  double seconds = 0;
  double samples_per_second = 0;  // without the first step, which compiles; 0 until known
  double seconds_left = NAN;      // of this size's steps to come; NaN until known
  double validation_loss = NAN;   // the last one
};

struct SweepOptions {
  std::vector<std::int64_t> batches = {};  // duplicates count once
  std::int64_t training_samples = 0;       // size of the training set
  std::int64_t samples = 60'000;           // that each size trains on at most; at least 20 steps
  std::optional<std::int64_t> steps = {};  // instead
  std::optional<double> target_loss = {};  // empty: the lowest that the size nearest to `reference` reaches in the ...
  std::int64_t reference = 64;             // ... first half of its steps; this size trains first
  optim::BatchFacts facts = {};            // for the advice; the sweep fills in what it measures itself
  std::function<std::unique_ptr<Engine>()> make_engine = [] { return std::make_unique<Engine>(); };
  std::function<bool()> should_stop = {};                      // called after each step and validation batch
  std::function<void(const SweepProgress&)> on_progress = {};  // after each step; must be fast
  std::function<void(const SweepRow&)> on_row = {};
  // Before work between steps, "batch 64: testing", and with an empty text after it.
  std::function<void(const std::string&)> on_wait = {};
};

struct SweepReport {
  double target_loss = NAN;
  std::optional<std::int64_t> target_steps = {};  // of `reference`, where the target comes from; empty: it was given
  std::int64_t reference = 0;                     // the batch that the target comes from
  std::vector<SweepRow> rows = {};                // by batch
  optim::BatchRecommendation advice = {};         // batch 0 if nothing could be measured
};

// What was swept, for its report.
struct SweepSubject {
  std::string workload, device;
  std::string precision = "f32";
  std::uint64_t seed = 0;
  std::int64_t training_samples = 0, test_samples = 0;
  std::string target_name = "target_loss";  // the setting that SweepOptions::target_loss comes from
};

std::string sweep_text(const SweepReport& report, const SweepSubject& subject);  // a table, its notes, and advice
std::string sweep_json(const SweepReport& report, const SweepSubject& subject);  // one line, without its end
Plot sweep_plot(const SweepReport& report, const SweepSubject& subject);         // speed, steps, noise, memory by batch

using MakeSweepTraining = std::function<SweepTraining(Engine& engine, const SweepSize& size)>;

// Trains each size on an engine of its own, the thread's current one during `make`, until it reaches the target, but
// for 20 steps at least; the first size to its end if the target comes from it. Other sizes go on if one runs out of
// memory or the model refuses it. Throws ArgumentError for options out of range, BuildError, and what `make` throws
// otherwise.
SweepReport sweep_batches(const SweepOptions& options, const MakeSweepTraining& make);

}  // namespace samebytes::train
