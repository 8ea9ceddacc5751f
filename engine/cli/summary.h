// Summary: what a run came to, as text for people and as the one JSON object that --json prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/engine.h"
#include "samebytes/train/run_meter.h"
#include "workloads/workload.h"

namespace samebytes::cli {

// What a run that survives had to do for it.
struct Survival {
  std::int64_t resumed_from = 0;           // step; 0: began anew
  std::int64_t checkpoints = 0;            // written by this process
  double checkpoint_ms = 0;                // of one, on average
  std::size_t checkpoint_bytes = 0;        // the last one's
  std::string checkpoint;                  // its path; empty where it is kept in memory
  std::vector<std::string> device_errors;  // that the run went on after
  std::vector<std::string> damaged;        // checkpoints that were passed over
};

// Of a training by several processes; each is a mean over this one's steps.
struct RanksReport {
  int size = 1;
  std::int64_t buckets = 0;
  double bytes_sent_per_step = 0;
  double exchange_ms = 0;       // of a step, from its first bucket to its last one
  double wait_ms = 0;           // ... of that, with nothing else to do
  double hidden = 0;            // share of the exchange behind the backward pass
  double spread_ms = 0;         // with --shard-state: of a step, until everybody has everybody's parameters
  std::size_t state_bytes = 0;  // of the optimizer, on rank 0
};

// Of a run on several devices.
struct DeviceShare {
  std::string device;
  std::int64_t share = 0;    // samples of a batch, at the end
  std::int64_t samples = 0;  // of the run
};

struct Summary : train::RunFigures {
  std::string workload;
  std::string device;  // "cpu:0 pthread-..."
  std::string memory_mode;
  std::string personality;
  std::string precision = "f32";              // of activations, gradients and working copies: f32, f16 or bf16
  std::optional<double> loss_scale;           // at the end of a training in f16
  std::optional<std::int64_t> skipped_steps;  // ... whose gradients overflowed
  std::string tuning = "built-in";            // hash of the tuner's choices
  std::int64_t batch = 0;
  std::optional<double> train_loss;  // mean of the last epoch
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;           // share of right answers, 0 to 1
  std::optional<double> test_balanced_accuracy;  // of a binary workload: mean over the two classes
  std::optional<double> test_area_under_curve;   // ... under the receiver operating characteristic
  std::vector<double>
      fold_areas;  // under the curve, of each fold where there are several; the others are the last one's
  std::vector<workloads::Baseline> baselines;  // what simpler methods reach on the same data
  // Of a run with --memory-limit or --batch auto.
  std::optional<std::size_t> memory_limit_bytes, planned_peak_bytes;
  std::string memory_techniques;  // "micro-batches of 2", or "nothing"
  // train only
  std::string optimizer;                   // "adamw"
  std::string schedule;                    // "cosine"
  double rate = 0;                         // the highest
  std::int64_t warmup = 0;                 // steps
  std::optional<double> ema;               // decay of the averaged weights that were tested
  std::optional<Survival> survival;        // where it was asked for
  std::optional<RanksReport> ranks;        // where there are several
  std::optional<std::int64_t> last_batch;  // with --adaptive-batch, where `batch` is the first one and steps are its
  std::int64_t updates = 0;                // halves: the size at the end, the updates that were made, and the gradient
  double noise_scale = 0;                  // noise scale at the last look
  std::vector<DeviceShare> shares;
  std::vector<std::string> device_events;  // of devices that failed or slowed down
  // bench only
  std::string mode;  // "train" or "infer"
  std::int64_t parameters = 0;
  bool fixed_batch = false;                        // one batch, made once, instead of the loader's
  std::optional<std::size_t> resident_peak_bytes;  // what the process grew by since before the model, at its largest
  double gflops = 0;
  double fraction_of_peak = 0;
  double fraction_of_bandwidth = 0;           // of c = a + b; bytes in a cache can exceed it
  std::optional<std::int64_t> largest_batch;  // with --largest-batch
  std::optional<double> joules;               // of the processor meanwhile, where its counters can be read
  // With --fallback: what another device ran.
  std::optional<std::vector<Fallback>> fallbacks;

  double gigabytes_per_second() const {
    return seconds > 0 ? bytes_per_step * static_cast<double>(steps) / seconds * 1e-9 : 0;
  }
  std::optional<double> joules_per_sample() const {
    if (!joules || samples == 0) return {};
    return *joules / static_cast<double>(samples);
  }
};

// The keys are a contract (README.md): they are added to, never renamed. Numbers that there are not are null.
nlohmann::ordered_json to_json(const Summary& summary);
// Several lines, without the last line's end.
std::string to_text(const Summary& summary, bool interrupted);

}  // namespace samebytes::cli
