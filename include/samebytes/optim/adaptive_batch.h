// AdaptiveBatch: a batch size that starts small and doubles when the gradient noise scale shows that a larger one pays
// off (noise_scale.h; S. Smith, P. Kindermans, C. Ying and Q. Le, "Don't Decay the Learning Rate, Increase the Batch
// Size", 2018, argue that noise falls as the batch grows). It tells the number of samples of the next step; the loop
// adds micro-batches up to that, so arrays and plans stay those of the micro-batch. The learning rate follows
// scale_rate()'s rule, with its ceiling and a warm-up from the previous rate.
//   optim::Accumulator sums(sgd);
//   optim::NoiseScaleMeter meter(sums);
//   optim::AdaptiveBatch size({.batch = 32, .max_batch = 1024});
//   for (const auto& [x, y] : batches_of_16) {
//     sums.add(cross_entropy(net(x), y), 16);
//     if (sums.samples() < size.batch()) continue;
//     sgd.set_rate(rate * size.rate_factor());
//     meter.measure();
//     sums.step();
//     size.stepped(meter);
//   }
// It reads the meter at a fixed interval of steps, so its growth is reproducible for a seed. A value type for one
// thread.
#pragma once

#include <cstdint>

#include "samebytes/optim/noise_scale.h"
#include "samebytes/optim/scale_rate.h"
#include "samebytes/optim/state.h"

namespace samebytes::optim {

struct AdaptiveBatchOptions {
  std::int64_t batch = 0;      // initial samples per step; required
  std::int64_t max_batch = 0;  // required; the size is batch times a power of two, at most this
  std::int64_t every = 10;     // steps between two measurements of the noise scale
  // Hysteresis: the batch doubles after `patience` measurements in a row above `grow_above` times the batch, and
  // halves, down to its initial size, after as many below `shrink_below` times the batch; shrink_below 0: it never
  // halves. Throws ArgumentError unless the two differ by a factor of two or more, since the size would oscillate.
  std::int64_t patience = 3;
  double grow_above = 1.0;
  double shrink_below = 0.0;
  ScaleRule rule = ScaleRule::square_root;
  double most_factor = 32.0;  // ceiling of the rate's factor, as in ScaleRateOptions
  std::int64_t warmup = 20;   // steps over which the rate moves from its old factor to the new one
};

class AdaptiveBatch {
 public:
  // Throws ArgumentError for options out of range.
  explicit AdaptiveBatch(const AdaptiveBatchOptions& options);

  std::int64_t batch() const { return batch_; }  // samples of the next step
  double rate_factor() const;                    // of the next step: 1 at the start
  // Call it after each step. Every `every` steps it reads the meter, which waits. Returns whether the batch changed.
  bool stepped(NoiseScaleMeter& meter);
  // The same for other ways to measure: a step without a measurement, and a measurement. NaN is ignored; infinity is
  // above every batch.
  void stepped();
  bool measured(double noise_scale);

  double noise_scale() const { return noise_scale_; }  // last measurement; NaN before the first
  std::int64_t steps() const { return steps_; }
  const AdaptiveBatchOptions& options() const { return options_; }

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  double factor_of(std::int64_t batch) const;
  void change(std::int64_t batch);

  AdaptiveBatchOptions options_;
  std::int64_t batch_;
  std::int64_t steps_ = 0;
  std::int64_t above_ = 0, below_ = 0;  // measurements in a row
  double noise_scale_;
  double old_factor_ = 1.0;  // where the warm-up began
  std::int64_t warmed_;      // steps of the warm-up so far
};

}  // namespace samebytes::optim
