// Session: everything `samebytes train` does, in one object: steps, validation, precision, accumulation, averages,
// checkpoints with exact resume, logs, early stopping. It needs a model, a loss and data; the rest is optional.
//   train::Session session(engine, net, {.loss = loss, .metrics = {train::accuracy()}}, training,
//                          {.validation = &validation, .precision = {.dtype = bf16},
//                           .log = std::make_shared<train::RunLog>("digits.jsonl")});
//   const train::Report report = session.fit(10);   // epochs
// or a hand-written loop, with the same bytes:
//   for (const data::Batch& batch : training) session.step(batch);
//   session.end_epoch();
// A Session reads losses a few steps after it enqueued them, so the loop does not wait. Use it from one thread at a
// time. Arguments passed by reference or pointer must outlive it. It never prints; callbacks report.
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

// An update, reported once its loss is known: a few updates later.
struct StepReport {
  std::int64_t step = 0;  // from 1, over all epochs
  int epoch = 0;          // from 1
  double loss = 0;
  double rate = 0;
  double milliseconds = 0;
  std::optional<double> grad_norm = {};  // if it was recorded; may be infinite in f16
};

struct EpochReport {
  int epoch = 0;
  std::int64_t step = 0;
  double train_loss = 0;
  double seconds = 0;                         // of its steps
  std::optional<Evaluation> validation = {};  // nullopt without a validation set or if interrupted
};

struct ProgressReport {
  int epoch = 0;
  std::int64_t step = 0, steps = 0;  // steps: of the whole run; 0 if unknown
  std::int64_t samples = 0;
  double seconds = 0;
  double samples_per_second = 0;           // without the first step, which compiles; 0 until known
  double seconds_left = NAN;               // of the steps to come; NaN until known
  double loss = NAN, grad_norm = NAN;      // mean of the epoch so far, recent norm; NaN until known
  std::optional<std::int64_t> batch = {};  // with an adaptive batch
};

// A change of the adaptive batch size.
struct BatchReport {
  std::int64_t step = 0, updates = 0, batch = 0;
  double noise_scale = NAN;  // last measurement; infinite if too large to measure
  double rate_factor = 1;    // factor that the rate reaches ...
  std::int64_t warmup = 0;   // ... after this many updates
};

// Called in this order: on_step for each update, on_epoch after the validation, on_checkpoint once it is written. An
// exception from a callback ends the run.
struct Callbacks {
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
  std::function<void(const Checkpoint&)> on_checkpoint = {};  // the path is empty for a state in memory
  std::function<void(const BatchReport&)> on_batch = {};
  std::function<void(const std::string&)> on_message = {};  // text for people, such as low memory
  // Before work between steps, "testing" or "writing a checkpoint", and with an empty text after it.
  std::function<void(const std::string&)> on_wait = {};
  // Called at most every progress_seconds.
  std::function<void(const ProgressReport&)> on_progress = {};
  double progress_seconds = 0.5;
};

// Ends a run whose validation stops improving, as in Keras and Lightning.
struct EarlyStopping {
  std::string monitor = "loss";  // or a metric of the task, on the validation set
  std::int64_t patience = 3;     // ends after this many validations in a row without improvement
  double min_delta = 0;          // an improvement must exceed this
  bool maximize = false;         // larger is better
};

struct AdaptiveBatching {
  optim::AdaptiveBatchOptions sizes;  // the loader yields micro-batches: at most half of sizes.batch
  optim::RateSchedule rate;           // over the index of the micro-batch, before the batch's own factor
};

// What a run gives up when memory is low, and when it ends (pressure.h): first the batches prepared ahead, then it
// halves the piece size, repeatedly.
struct PressureRelief {
  std::size_t limit = 0;                            // bytes for the process; 0: what the system allows
  bool may_change = false;                          // allows pieces even if batch norms or dropout make them differ
  std::string hint = "PressureRelief::may_change";  // the setting that allows it, for messages
};

using OptimizerPtr = std::unique_ptr<optim::Optimizer>;

struct SessionOptions {
  data::Loader* validation = nullptr;  // evaluated after each epoch
  // Called with net.parameters() once the precision is prepared; empty: AdamW. Or pass an existing `optimizer`, for a
  // network that Precision::prepare() has prepared.
  std::function<OptimizerPtr(std::span<const Array> parameters)> make_optimizer = {};
  optim::Optimizer* optimizer = nullptr;
  optim::RateSchedule schedule = {};                  // empty: the optimizer's own rate
  std::optional<optim::PlateauOptions> plateau = {};  // follows the validation loss ...
  std::int64_t plateau_start = 0;                     // ... from this update on
  PrecisionOptions precision = {};
  AccumulationOptions accumulation = {};
  std::optional<AdaptiveBatching> adaptive = {};  // replaces accumulation
  std::optional<optim::EmaOptions> ema = {};      // validations use the averages
  std::int64_t grad_norm_every = 0;               // record the gradient norm every n updates; 0: never
  std::optional<PressureRelief> pressure = {};
  std::optional<EarlyStopping> early_stopping = {};
  std::shared_ptr<Checkpoints> checkpoints = {};
  // Whether checkpoints have the frozen parameters, too. Without them the network that resumes must have them already:
  // a published model, which its folder gives again.
  bool keeps_frozen = true;
  std::shared_ptr<RunLog> log = {};
  // Writes the log's lines "start", "resume", "error" and "summary", and messages about damaged checkpoints; false if
  // the program writes its own.
  bool frames_log = true;
  Callbacks callbacks = {};
  std::function<bool()> should_stop = {};             // called after each update and validation batch: Ctrl-C
  std::string nan_hint = "EngineOptions::check_nan";  // setting that finds the op behind a non-finite loss
  Strategy* shared = nullptr;                         // parallel/strategy.h
};

enum class Stopped : std::uint8_t { finished, asked, early };
const char* name_of(Stopped stopped);  // "early"

// The result of a run, including the run that it resumed.
struct Report {
  RunFigures figures;
  std::int64_t epochs = 0;                // begun
  std::optional<double> train_loss = {};  // mean of the last epoch
  std::optional<Evaluation> validation = {};
  Stopped stopped_because = Stopped::finished;
  std::optional<double> loss_scale = {};           // of f16
  std::optional<std::int64_t> skipped_steps = {};  // ... steps whose gradients overflowed
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
  // Throws ArgumentError for options that contradict each other; the message names them.
  Session(Engine& engine, nn::Module& net, Task task, data::Loader& training, SessionOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Trains until `epochs` epochs are complete in total, counting those of an earlier fit() and of a resumed run: a
  // program that was killed and restarted ends at the same place, with the same bytes. Resumes first if `checkpoints`
  // says so. Throws StepError for a loss that is not finite and for a failure in a step, and what the loader and the
  // devices throw.
  Report fit(std::int64_t epochs);
  // The same, counted in updates, or in micro-batches with an adaptive batch; ends with a validation.
  Report fit_steps(std::int64_t steps);

  // One step by hand; returns nullopt if the update needs more batches (accumulation, adaptive batch).
  std::optional<Accumulation::Step> step(const data::Batch& batch);
  // Completes a pending accumulation, validates, logs the epoch, checks early stopping and writes a checkpoint if one
  // is due.
  EpochReport end_epoch();
  // Evaluates the validation set, with the averaged weights if `ema` is set. Returns nullopt without a validation set,
  // or if a stop was requested first.
  std::optional<Evaluation> validate();

  // Saves the current state, in addition to those that fit() saves. Throws ArgumentError without `checkpoints`, and
  // while an accumulation waits for more batches.
  void save();
  // Call it once, before the first step; fit() does it otherwise. Returns nullopt if the run starts anew. Throws
  // ArgumentError for the state of a different run.
  std::optional<Resumed> resume();
  // Register further state of the run here, and values that must agree on resume (RunState::expect); before resume().
  RunState& state();

  void request_stop();  // stops after the current update
  bool is_stopped_early() const;
  Report report() const;       // so far; waits for the queue
  std::int64_t steps() const;  // updates, or micro-batches of an adaptive batch
  double train_loss() const;   // mean of this epoch so far; waits for the queue
  std::int64_t steps_per_epoch() const;

  optim::Optimizer& optimizer();
  Precision& precision();
  Accumulation& accumulation();
  optim::Ema* ema();  // null if not used

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace samebytes::train
