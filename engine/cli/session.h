// What train, eval and bench share: the engine that the options ask for, the meter of a run, and the test of a model.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/step_clock.h"
#include "cli/summary.h"
#include "cli/workload.h"
#include "samebytes/autocast.h"
#include "samebytes/engine.h"
#include "samebytes/optim.h"

namespace samebytes::cli {

// Throws UsageError for a device that there is not, DeviceError where there is none at all.
std::unique_ptr<Engine> open_engine(const Options& options, const std::string& device, bool profile = false);
std::string device_text(const DeviceInfo& info);  // "cpu:0 pthread-..."
std::string device_text(const Engine& engine);    // ... of all its devices
// What an engine is told of devices: a name, the names of a list, or all; and how one is split (options_devices.cpp).
EngineOptions device_wish(const Options& options, const std::string& device);
bool is_list(const std::string& device);  // of names, or "all"
// Throws UsageError where a verb of one device is given several.
void expect_one_device(const Options& options, const std::string& verb);
// What a loader of these options looks like: in order, every sample, nothing changed.
data::LoaderOptions loader_options(const Options& options, std::int64_t batch);

// Counts steps, time, bytes and launches of the loops it is told of, and nothing between them.
class RunMeter {
 public:
  explicit RunMeter(Engine& engine) : engine_(&engine) {}
  void begin();                      // a loop over batches begins
  void step(std::int64_t samples);   // a step was enqueued; waits for the first one
  void end(double stalled_seconds);  // the loop is over; waits for its last step
  void restart();                    // forgets all steps but the duration of the first one
  void fill(Summary& summary) const;
  // What an interrupted run had counted before this one goes on.
  void go_on_from(std::int64_t steps, std::int64_t samples, double seconds);
  // Work between two steps that belongs to neither.
  void pause() { clock_.add_rest(); }
  void resume() { clock_.resume(); }

  std::int64_t steps() const { return steps_before_ + clock_.steps(); }
  std::int64_t samples() const { return samples_; }
  double seconds() const { return seconds_before_ + clock_.seconds(); }
  double last_step_seconds() const { return last_step_seconds_; }

 private:
  Engine* engine_;
  StepClock clock_;
  std::int64_t steps_before_ = 0;  // of the run that goes on
  double seconds_before_ = 0;
  std::int64_t samples_ = 0;
  bool is_first_ = true;
  double first_step_seconds_ = 0;
  double last_step_seconds_ = 0;
  double stall_seconds_ = 0;
  std::uint64_t copied_ = 0, copied_before_ = 0;
  std::uint64_t gathered_ = 0, gathered_before_ = 0;
  std::uint64_t launches_ = 0, launches_before_ = 0;
  double touched_ = 0, touched_before_ = 0;  // bytes that launches read and write
  std::int64_t launch_steps_ = 0;
};

// How a run computes, as --precision says: in f32 alone, or with 16-bit activations, gradients and working copies of
// the parameters, or, with --weights bf16, with bf16 weights alone. f16 has a loss scaler, bf16 needs none.
class Precision {
 public:
  // Throws UsageError for f16 with --check-nan where gradients are taken: overflows are a part of it; for bf16 weights
  // without bf16 precision.
  Precision(const Options& options, bool is_training);
  // How the parameters are stored; after adapters were added, and before the optimizer is made.
  void prepare(nn::Module& net) const;
  // Open while the forward pass and the loss are built; null for f32.
  std::unique_ptr<Autocast> scope() const;
  void step(optim::Optimizer& optimizer, const Array& loss);
  // The same in parts: what the gradient of a piece is taken of, and the update after all of them.
  Array scaled(const Array& loss);
  void step(optim::Accumulator& accumulator);
  // ... with the last piece, in one evaluation.
  void step(optim::Accumulator& accumulator, const Array& loss, double samples);
  // The name, and of a scaler its scale and the steps that were skipped; waits for the queue.
  void fill(const optim::Optimizer* optimizer, Summary& summary) const;
  // The same for a line of the log.
  void add_to(nlohmann::ordered_json& line, const optim::Optimizer& optimizer) const;
  const optim::GradScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }
  optim::GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }

 private:
  Dtype dtype_;
  bool has_bf16_weights_;
  std::optional<optim::GradScaler> scaler_;
};

// What a workload says of AdamW, but for the schedule.
optim::AdamWOptions optimizer_options(const Workload& workload, const Options& options);

class SharedSteps;
class Ranks;

// Loss and accuracy over a data set, in evaluation mode and without gradients.
struct Evaluation {
  double loss = 0;
  std::optional<double> accuracy = {};           // where the workload counts right answers
  std::optional<double> balanced_accuracy = {};  // of a binary workload
  std::optional<double> area_under_curve = {};
  void fill(Summary& summary) const;
  std::string to_text() const;  // "test loss 0.0312  accuracy 99.20 %"
};
// At most `steps` batches; the meter, if there is one, counts them; over several devices, where there are, and with the
// batches of all ranks, each its own. Nothing where Ctrl-C came first, to one of them.
std::optional<Evaluation> evaluate(const Workload& workload, nn::Module& net, data::Loader& batches,
                                   std::int64_t steps = std::numeric_limits<std::int64_t>::max(),
                                   RunMeter* meter = nullptr, SharedSteps* shared = nullptr,
                                   const Ranks* ranks = nullptr);

// Fills what a summary says about workload and device.
void describe(const Engine& engine, const Workload& workload, std::int64_t batch, Summary& summary);
// Prints the summary as the options want it.
void print_summary(const Options& options, const Summary& summary, bool interrupted);
// As --gradient-checkpointing says. Throws UsageError for a model without blocks.
void divide(nn::Module& net, const Options& options);
// With --explain: the plan of the engine's largest step, on the stream for people.
void print_plan(const Options& options, const Engine& engine);
// The stream for people: standard output, or standard error where JSON has the former.
std::FILE* stream_for_people(const Options& options);

}  // namespace samebytes::cli
