// BenchRun: one workload in one mode, made once and then run as long as somebody wants to measure it. The table of
// `bench` and the worker of `bench --serve` are two ways to drive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "cli/options.h"
#include "cli/parallel.h"
#include "cli/session.h"
#include "cli/summary.h"
#include "cli/workloads.h"
#include "samebytes/autograd.h"
#include "samebytes/data.h"
#include "samebytes/estimate.h"
#include "samebytes/optim.h"
#include "samebytes/resident_peak.h"

namespace samebytes::cli {

class BenchRun {
 public:
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 2;
  static constexpr double kForever = 1e9;
  static constexpr std::int64_t kBatchesOfData = 32;

  // Makes the samples, then the model and, to train it, its optimizer. While one for inference lives, nothing that this
  // thread builds has a gradient.
  BenchRun(const Options& options, Engine& engine, const Workload& workload, bool is_training);

  // So many steps more, fewer where the seconds are over first (then one at least) or Ctrl-C came; all have run when it
  // returns.
  void run(std::int64_t steps, double seconds = kForever);
  // Called after each step that was enqueued.
  void set_step_listener(std::function<void()> listener) { listener_ = std::move(listener); }
  // What was counted so far was warm-up.
  void restart();
  std::optional<std::size_t> resident_peak() const { return resident_->grown(); }
  std::optional<std::size_t> resident_size() const { return resident_->largest(); }
  // What a step holds at its fullest moment (estimate.h). Evaluates nothing.
  LiveBytes live_bytes();
  MemoryParts memory() const;  // at the peak since the engine was made
  std::int64_t trained_parameters() const { return net_->trainable_parameter_count(); }
  // What the model holds beside them before the first step, without mapped files; 0 where all are trained.
  std::size_t frozen_bytes() const;
  // Of the steps since the last restart. first_step_seconds is from the model's making to the end of the first step.
  Summary summary() const;

 private:
  void step(const data::Batch& batch);
  Array loss_of(const data::Batch& batch);
  void run_loader(std::int64_t until, double end);
  bool is_over(std::int64_t until, double end) const;

  bool waits_ = false;  // for each of few steps: a queue that fills would make the first ones look short
  const Workload workload_;
  Engine& engine_;
  bool is_training_;
  train::Precision precision_;
  bool is_int8_;
  bool has_fixed_batch_;
  double clip_norm_;
  Summary described_;
  train::RunMeter meter_;
  std::optional<data::Loader> batches_;
  std::optional<ResidentPeak> resident_;  // set back after the samples are there, before the first graph
  std::optional<NoGrad> no_grad_;
  std::unique_ptr<nn::Module> net_;
  std::optional<nn::FrozenModule> frozen_;  // of it, where one device infers
  std::optional<optim::AdamW> optimizer_;
  std::unique_ptr<train::DevicesStrategy> devices_;  // on several devices
  std::optional<train::Accumulation> accumulation_;
  double making_seconds_ = 0;
  double flops_before_ = 0;  // of the engine, at the last restart
  data::Batch fixed_;
  Array last_loss_;
  std::function<void()> listener_;
};

}  // namespace samebytes::cli
