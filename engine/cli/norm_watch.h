// NormWatch: which updates of a run have the norm of their gradient in the log (--log-grad-norm): every one where
// clipping computes it anyway, which costs nothing, else those that were asked for, each of which costs a pass over the
// gradients. Nothing waits for it: the norm is read with the loss of its step, some steps later.
#pragma once

#include <cstdint>

#include "cli/options.h"
#include "cli/workload.h"
#include "samebytes/optim.h"

namespace samebytes::cli {

// From one norm to the next, in updates; 0: never.
std::int64_t norm_interval(const Options& options, const Defaults& defaults);

class NormWatch {
 public:
  // Uses the optimizer. Throws UsageError beside --release-gradients.
  NormWatch(const Options& options, const Defaults& defaults, optim::Optimizer& optimizer);

  void before_step();
  // Of the update that was made since the last call; empty where none was, or it is not its turn.
  optim::GradientNorm after_step();

 private:
  optim::Optimizer& optimizer_;
  std::int64_t every_;
  std::int64_t seen_ = 0;  // updates
};

}  // namespace samebytes::cli
