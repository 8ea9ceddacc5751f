// Fits a training step into memory before it runs: finds the largest batch, or chooses techniques that bring the step
// under a budget. Each try is a rehearsal: your own training code takes its steps on an engine that plans and counts
// but allocates and launches nothing (EngineOptions::dry_run).
//   const auto rehearse = train::rehearsal({}, [&](Engine& engine, const train::StepSettings& step) {
//     nn::Sequential net = make_net();
//     data::Loader batches(engine, train::hollow(set), {.batch = step.batch, .workers = 0});
//     train::Session session(engine, net, task, batches, {.accumulation = {.micro_batch = step.micro_batch}});
//     session.fit_steps(2);   // the second step knows all state
//   });
//   const train::MemoryFit fit = train::fit_memory({.asked = {.batch = 256}, .budget = parse_bytes("1GB")}, rehearse);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/budget.h"
#include "samebytes/checkpoint.h"
#include "samebytes/data/dataset.h"
#include "samebytes/data/transform.h"
#include "samebytes/dtype.h"
#include "samebytes/engine.h"

namespace samebytes::train {

// What decides how much memory a step takes: parts of the options of the engine, the model, the loss, the optimizer and
// the Session. A rehearsal and the run that follows must obey all that are tried.
struct StepSettings {
  std::int64_t batch = 1;                        // LoaderOptions::batch
  double recompute = EngineOptions{}.recompute;  // EngineOptions::recompute
  Checkpointing checkpointing = {};              // nn::Module::gradient_checkpointing
  bool chunks_head = false;                      // linear_cross_entropy instead of cross_entropy
  bool late_head_gradient = false;               // LinearCrossEntropyOptions::late_weight_gradient
  std::int64_t micro_batch = 0;                  // AccumulationOptions::micro_batch
  bool release_gradients = false;                // of the optimizer
  Dtype moments = f32;                           // ...
  Dtype precision = f32;                         // PrecisionOptions::dtype
  bool bf16_weights = false;                     // PrecisionOptions::bf16_weights
};

// How messages name these settings. A program with options of its own gives their names.
struct FitNames {
  std::string finds_batch = "FitOptions::finds_batch";
  std::string techniques = "a fixed batch";  // "... looks for techniques that need less"
  std::string budget = "FitOptions::budget";
  std::string allow = "allows_moments and allows_precision";  // "... makes that 12 MB"
  std::string no_clipping = "a clip_norm of 0";               // "... turns that off"
};

struct FitOptions {
  StepSettings asked = {};  // techniques that it already uses stay as they are
  std::size_t budget = 0;   // bytes of the engine, above 0; usable_memory() is what the machine gives
  bool trains = true;       // false: inference, where only the precision can change
  // Techniques that depend on the program.
  bool has_head = false;       // the loss can be computed in chunks (linear_cross_entropy)
  bool may_cut_batch = true;   // micro-batches
  bool clips_by_norm = false;  // excludes releasing gradients; the message says so
  // Techniques that change results.
  bool allows_moments = false, allows_precision = false;  // bf16
  // Finds the largest batch instead of techniques; asked.batch is then ignored.
  bool finds_batch = false;
  std::int64_t most_batch = std::int64_t{1} << 20;  // such as the size of the training set
  std::int64_t multiple = 8;                        // the batch is a multiple of this, which fills vectors and tiles
  std::size_t bytes_per_sample = 0;                 // beside those of the engine
  FitNames names = {};
};

struct MemoryFit {
  StepSettings step;
  std::size_t planned = 0;  // bytes at the peak
  std::size_t budget = 0;
  std::string techniques;  // "recomputation of pointwise values, micro-batches of 16", or "nothing"
};

// The peak bytes of a step. Throws ArgumentError for settings that exclude each other.
using PeakOf = std::function<std::size_t(const StepSettings& step)>;

// Chooses among recomputation (with checkpointing and a chunked head), micro-batches, gradient release, 16-bit moments
// and precision, in this order, as choose_within_budget() does; or finds the largest batch. Throws OutOfMemory if
// nothing fits, with the smallest budget that would do and how; ArgumentError for a budget of 0.
MemoryFit fit_memory(const FitOptions& options, const PeakOf& peak);

// Calls `run` with a dry engine of these options and settings as this thread's current engine. Its memory limit is off.
PeakOf rehearsal(EngineOptions engine, std::function<void(Engine& engine, const StepSettings& step)> run);

// The engine's memory limit, less what stays free: 2 GiB, or an eighth of a smaller limit.
std::size_t usable_memory(const Engine& engine);

// A data set for rehearsals, with the fields that `set` has after `transforms`; as large as `set` unless `samples` says
// otherwise. It reads no sample of `set` and writes none, so batches are zeros in a dry engine, undefined in others.
data::DatasetPtr hollow(const data::DatasetPtr& set, const std::vector<data::TransformPtr>& transforms = {},
                        std::optional<std::int64_t> samples = {});

}  // namespace samebytes::train
