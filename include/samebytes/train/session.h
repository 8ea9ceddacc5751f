// Session: what `samebytes train` does, in one object: steps, validation, precision, accumulation, averages,
// checkpoints with exact resume, logs, early stopping. Model, loss and data are needed, all else is an option.
//   train::Session session(engine, net, {.loss = loss, .metrics = {train::accuracy()}}, training,
//                          {.validation = &validation, .precision = {.dtype = bf16},
//                           .log = std::make_shared<train::RunLog>("digits.jsonl")});
//   const train::Report report = session.fit(10);   // epochs
// or a loop of one's own, with the same bytes:
//   for (const data::Batch& batch : training) session.step(batch);
//   session.end_epoch();
// Losses are read some steps after they were enqueued, so that nothing waits. One thread at a time. What is handed in
// by reference or pointer must outlive the Session. It never prints: callbacks tell.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/optim/adaptive_batch.h"
#include "samebytes/optim/ema.h"
#include "samebytes/optim/plateau.h"
#include "samebytes/optim/schedules.h"
#include "samebytes/train/accumulation.h"
#include "samebytes/train/checkpoints.h"
#include "samebytes/train/evaluate.h"
#include "samebytes/train/run_log.h"

namespace samebytes::train {

// An update whose loss is known: a few updates later.
struct StepReport {
  std::int64_t step = 0;  // from 1, over all epochs
  int epoch = 0;          // from 1
  double loss = 0;
  double rate = 0;
  double milliseconds = 0;
  std::optional<double> grad_norm = {};  // where it was kept; may be infinite in f16
};

struct EpochReport {
  int epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0;
  double seconds = 0;                         // of its steps
  std::optional<Evaluation> validation = {};  // nothing without a validation set, or where it was interrupted
};

struct ProgressReport {
  int epoch = 0;
  std::int64_t step = 0, steps = 0;  // steps: of the whole run; 0 where not known
  std::int64_t samples = 0;
  double seconds = 0;
  double loss = NAN, grad_norm = NAN;      // smoothed, recent; NaN where not known yet
  std::optional<std::int64_t> batch = {};  // with an adaptive batch
};

// An adaptive batch changed its size.
struct BatchReport {
  std::int64_t step = 0, updates = 0, batch = 0;
  double noise_scale = NAN;  // at the last look; infinite where it is beyond measure
  double rate_factor = 1;    // that the rate reaches ...
  std::int64_t warmup = 0;   // ... after so many updates
};

// Called in this order: on_step for each update, on_epoch after the validation, on_checkpoint after it was written.
// What they throw ends the run.
struct Callbacks {
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
  std::function<void(const Checkpoint&)> on_checkpoint = {};  // the path is empty for a state in memory
  std::function<void(const BatchReport&)> on_batch = {};
  std::function<void(const std::string&)> on_message = {};  // for people: memory that is short
  // At most every progress_seconds.
  std::function<void(const ProgressReport&)> on_progress = {};
  double progress_seconds = 0.5;
};

// Ends a run whose validation gets no better, as in Keras and Lightning.
struct EarlyStopping {
  std::string monitor = "loss";  // or one of the task's metrics, of the validation
  std::int64_t patience = 3;     // it ends after so many validations in a row that are no better than the best
  double min_delta = 0;          // what is better by no more than this is not better
  bool maximize = false;         // the larger, the better
};

struct AdaptiveBatching {
  optim::AdaptiveBatchOptions sizes;  // the loader gives micro-batches: half of sizes.batch, or less
  optim::RateSchedule rate;           // of the micro-batch's number, before the batch's own factor
};

// What a run gives up while memory is short, and when it ends (pressure.h): batches prepared ahead, then half of a
// piece at a time.
struct PressureRelief {
  std::size_t limit = 0;                            // bytes of the process; 0: what the system gives it
  bool may_change = false;                          // pieces also where batch norms or dropout would see them
  std::string hint = "PressureRelief::may_change";  // what allows that, for the message
};

using OptimizerPtr = std::unique_ptr<optim::Optimizer>;

struct SessionOptions {
  data::Loader* validation = nullptr;  // after each epoch
  // Made of net.parameters() after the precision was prepared; empty: AdamW. Or one that is there, for a network that
  // Precision::prepare() has prepared.
  std::function<OptimizerPtr(std::span<const Array> parameters)> make_optimizer = {};
  optim::Optimizer* optimizer = nullptr;
  optim::RateSchedule schedule = {};                  // empty: the optimizer's own rate
  std::optional<optim::PlateauOptions> plateau = {};  // looks at the validation's loss ...
  std::int64_t plateau_start = 0;                     // ... after so many updates
  PrecisionOptions precision = {};
  AccumulationOptions accumulation = {};
  std::optional<AdaptiveBatching> adaptive = {};  // instead of accumulation
  std::optional<optim::EmaOptions> ema = {};      // validations are of the averages
  std::int64_t grad_norm_every = 0;               // updates whose gradient norm is kept; 0: none
  std::optional<PressureRelief> pressure = {};
  std::optional<EarlyStopping> early_stopping = {};
  std::shared_ptr<Checkpoints> checkpoints = {};
  std::shared_ptr<RunLog> log = {};
  // Lines "start", "resume", "error" and "summary" of the log, and messages of damaged checkpoints; false where a
  // program has its own.
  bool frames_log = true;
  Callbacks callbacks = {};
  std::function<bool()> should_stop = {};             // asked after each update and batch of a validation: Ctrl-C
  std::string nan_hint = "EngineOptions::check_nan";  // what finds the op behind a loss that is not finite
  DeviceStrategy* devices = nullptr;                  // strategy.h
  RankStrategy* ranks = nullptr;
};

enum class Stopped : std::uint8_t { finished, asked, early };
const char* name_of(Stopped stopped);  // "early"

// What a run came to, an earlier one that it resumes included.
struct Report {
  RunFigures figures;
  std::int64_t epochs = 0;                // begun
  std::optional<double> train_loss = {};  // mean of the last epoch
  std::optional<Evaluation> validation = {};
  Stopped stopped_because = Stopped::finished;
  std::optional<double> loss_scale = {};           // of f16
  std::optional<std::int64_t> skipped_steps = {};  // ... whose gradients overflowed
  std::optional<BatchReport> adaptive = {};        // at the end
  Checkpoints::Written checkpoints = {};
  std::optional<std::int64_t> resumed_from = {};  // step
};

struct Resumed {
  std::int64_t step = 0;
  std::string from;  // a path, or "memory"
  std::string text;  // "goes on after step 40, from ..."
};

class Session {
 public:
  // Throws ArgumentError for options that do not go together, naming them.
  Session(Engine& engine, nn::Module& net, Task task, data::Loader& training, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Trains until so many epochs were trained in all, those of an earlier fit() and of a run that it resumes included: a
  // program that was killed and starts again ends at the same place, with the same bytes. Resumes first, where
  // `checkpoints` says so. Throws StepError for a loss that is not finite and for what failed in a step, and what the
  // loader and the devices throw.
  Report fit(std::int64_t epochs);
  // The same in updates; ends with a validation. With an adaptive batch, in micro-batches.
  Report fit_steps(std::int64_t steps);

  // A step by hand; nothing where the update waits for more batches (accumulation, adaptive batch).
  std::optional<Accumulation::Step> step(const data::Batch& batch);
  // The rest of an accumulation, the validation, the epoch's line, early stopping and, where it is due, a checkpoint.
  EpochReport end_epoch();
  // Of the averages, where there are any; nothing without a validation set, or where it was asked to stop first.
  std::optional<Evaluation> validate();

  // The state as it is now, beside those that fit() writes. Throws ArgumentError without `checkpoints`, and while an
  // accumulation waits for more batches.
  void save();
  // Once, before the first step; fit() does it too. Nothing where the run begins anew. Throws ArgumentError for a state
  // of another run.
  std::optional<Resumed> resume();
  // For what else belongs to the run, and for words that must be the same (RunState::expect); before resume().
  RunState& state();

  void request_stop();  // after the update under way
  bool is_stopped_early() const;
  Report report() const;       // so far; waits for the queue
  std::int64_t steps() const;  // updates, or micro-batches of an adaptive batch
  double train_loss() const;   // the mean of this epoch so far; waits for the queue
  std::int64_t steps_per_epoch() const;

  optim::Optimizer& optimizer();
  Precision& precision();
  Accumulation& accumulation();
  optim::Ema* ema();  // null where there is none

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace samebytes::train
