#include "cli/norm_watch.h"

#include <utility>

#include "cli/usage_error.h"

namespace samebytes::cli {

std::int64_t norm_interval(const Options& options, const Defaults& defaults) {
  const bool clips = options.clip_norm.value_or(defaults.clip_norm) > 0;
  // Some norms wait to be read, in a few kB that a plan to the byte does not have.
  return options.seeing.grad_norm.value_or(clips && !options.limit.memory ? 1 : 0);
}

NormWatch::NormWatch(const Options& options, const Defaults& defaults, optim::Optimizer& optimizer)
    : optimizer_(optimizer), every_(norm_interval(options, defaults)) {
  if (every_ > 0 && options.release_gradients)
    throw UsageError(
        "--log-grad-norm reads all gradients at once, and --release-gradients throws each one away; use one of the "
        "two");
}

void NormWatch::before_step() {
  if (every_ > 0) optimizer_.watch_gradient_norm((optimizer_.step_count() + 1) % every_ == 0);
}

optim::GradientNorm NormWatch::after_step() {
  if (std::exchange(seen_, optimizer_.step_count()) == optimizer_.step_count()) return {};
  return optimizer_.gradient_norm();
}

}  // namespace samebytes::cli
