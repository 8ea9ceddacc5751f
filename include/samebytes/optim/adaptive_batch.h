// AdaptiveBatch: a batch that begins small and doubles when the gradient noise scale says that a larger one pays
// (noise_scale.h; S. Smith, P. Kindermans, C. Ying and Q. Le, "Don't Decay the Learning Rate, Increase the Batch Size",
// 2018, has the argument that noise falls as the batch grows). It says how many samples the next step should have; the
// loop adds that many micro-batches, so arrays and plans stay those of the micro-batch. The learning rate follows by
// scale_rate()'s rule, with its ceiling and a warm-up from the rate before.
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
// It reads the meter after fixed numbers of steps, so a seed decides when it grows. A value; used by one thread.
#pragma once

#include <cstdint>

#include "samebytes/optim/noise_scale.h"
#include "samebytes/optim/scale_rate.h"
#include "samebytes/optim/state.h"

namespace samebytes::optim {

struct AdaptiveBatchOptions {
  std::int64_t batch = 0;      // samples a step at the start; needed
  std::int64_t max_batch = 0;  // needed; the batch is batch times a power of two, at most this
  std::int64_t every = 10;     // steps from one look at the noise scale to the next
  // Hysteresis: it doubles after so many looks in a row that found the noise scale above `grow_above` times the batch,
  // and halves, never below its start, after so many that found it below `shrink_below` times the batch. 0: it never
  // halves. Throws where the two are not a factor of two apart, since it would swing.
  std::int64_t patience = 3;
  double grow_above = 1.0;
  double shrink_below = 0.0;
  ScaleRule rule = ScaleRule::square_root;
  double most_factor = 32.0;  // of the rate, as in ScaleRateOptions
  std::int64_t warmup = 20;   // steps in which the rate goes from its old factor to the new one
};

class AdaptiveBatch {
 public:
  // Throws ArgumentError for options out of range.
  explicit AdaptiveBatch(const AdaptiveBatchOptions& options);

  std::int64_t batch() const { return batch_; }  // samples of the next step
  double rate_factor() const;                    // of the next step: 1 at the start
  // A step was taken. Every `every` steps it reads the meter, which waits. Returns whether the batch changed.
  bool stepped(NoiseScaleMeter& meter);
  // The same for whoever measures otherwise: a step without a look, and a look. NaN says nothing; infinity is above
  // every batch.
  void stepped();
  bool measured(double noise_scale);

  double noise_scale() const { return noise_scale_; }  // at the last look; NaN before it
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
  std::int64_t above_ = 0, below_ = 0;  // looks in a row
  double noise_scale_;
  double old_factor_ = 1.0;  // where the warm-up began
  std::int64_t warmed_;      // steps of it taken
};

}  // namespace samebytes::optim
