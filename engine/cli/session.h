// What train, eval and bench share: what the options say of the engine, of a step and of a test, in the terms of the
// library, and what a summary says of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/summary.h"
#include "cli/workloads.h"
#include "samebytes/engine.h"
#include "samebytes/memory_snapshot.h"
#include "samebytes/optim.h"
#include "samebytes/train/accumulation.h"
#include "samebytes/train/evaluate.h"
#include "samebytes/train/precision.h"
#include "samebytes/train/run_meter.h"

namespace samebytes::cli {

// Throws UsageError for a device that there is not, DeviceError where there is none at all.
std::unique_ptr<Engine> open_engine(const Options& options, const std::string& device, bool profile = false);
std::string device_text(const DeviceInfo& info);  // "cpu:0 pthread-..."
std::string device_text(const Engine& engine);    // ... of all its devices
// The devices of an engine: a name, the names of a list, or all; and how one is split (devices.cpp).
EngineOptions devices_of(const Options& options, const std::string& device);
bool is_list(const std::string& device);  // of names, or "all"
// Throws UsageError where a verb of one device is given several.
void expect_one_device(const Options& options, const std::string& verb);
// Throws UsageError for a --batch that is larger than the set.
void expect_within(std::int64_t batch, const data::Dataset& set, const char* name);
// Throws UsageError, with the way out, for a checkpoint of a run in place of a file of weights.
void expect_weights(const io::TensorFile& file);
// What a loader of these options looks like: in order, every sample, nothing changed.
data::LoaderOptions loader_options(const Options& options, std::int64_t batch);

// How a run computes, as --precision and --weights say. Throws UsageError for f16 with --check-nan where gradients are
// taken: overflows are a part of it; for bf16 weights without bf16 precision.
train::PrecisionOptions precision_options(const Options& options, bool is_training);
// With --precision int8: quantizes the model, static ranges by its first batches of the loader. Throws UsageError for a
// dry run, which has no values to take ranges from, and for a model that has no such layer.
void quantize_model(const Options& options, const Workload& workload, nn::Module& model, data::Loader& calibration);
Dtype moments_dtype(const Options& options);  // of --moments
// As --accumulate and --micro-batch say. Throws UsageError for what needs all gradients at once, beside
// --release-gradients.
train::AccumulationOptions accumulation_options(const Options& options);
// How many updates lie between two norms of the gradient in the log: each one where clipping computes it anyway, which
// costs nothing, else those of --log-grad-norm; 0: none. Throws UsageError for that beside --release-gradients.
std::int64_t norm_interval(const Options& options, const Defaults& defaults);
// What a workload says of AdamW, but for the schedule.
optim::AdamWOptions optimizer_options(const Workload& workload, const Options& options);

// What a validation of the workload computes, and what is learnt.
train::Task task_of(const Workload& workload);
std::string to_text(const train::Evaluation& evaluation);  // "test loss 0.0312  accuracy 99.20 %"

void fill(const train::Evaluation& evaluation, Summary& summary);
void fill(const train::RunFigures& figures, const Engine& engine, Summary& summary);
// The name, and of a scaler its scale and the steps of the optimizer that were skipped; waits for the queue.
void fill(const train::Precision& precision, const optim::Optimizer* optimizer, Summary& summary);
// Fills what a summary says about workload and device.
void describe(const Engine& engine, const Workload& workload, std::int64_t batch, Summary& summary);
// Prints the summary as the options want it.
void print_summary(const Options& options, const Summary& summary, bool interrupted);
// As --gradient-checkpointing says. Throws UsageError for a model without blocks.
void divide(nn::Module& net, const Options& options);
// With --explain: the plan of the engine's largest step, on the stream for people.
void print_plan(const Options& options, const Engine& engine);
// What --memory-snapshot asks for, around a run of one engine.
class MemoryWatch {
 public:
  // Keeps the engine's history where the option came; else does nothing. The engine must outlive it.
  MemoryWatch(const Options& options, Engine& engine);
  // Writes the file and says so on the stream for people. Throws IoError.
  void save() const;

 private:
  const Options& options_;
  Engine& engine_;
  std::unique_ptr<MemoryHistory> history_;
};

// What the first wait of a verb says: "reading data"; "making data" of a workload that needs none.
std::string reading_text(const Options& options);

// The stream for people: standard output, or standard error where JSON has the former.
std::FILE* stream_for_people(const Options& options);

}  // namespace samebytes::cli
