// The gradient noise scale: how many samples a batch can have before more of them stop paying (S. McCandlish, J. Kaplan
// and D. Amodei, "An Empirical Model of Large-Batch Training", 2018). With the true gradient G and the covariance Sigma
// of one sample's gradient the simple noise scale is B = tr(Sigma) / |G|^2 (equation 2.9): far below B samples, twice
// the batch takes half the steps; far above it, as many. Both parts are estimated without bias from the gradients of
// two batch sizes (appendix A.1):
//   E|g_b|^2 = |G|^2 + tr(Sigma) / b
//   |G|^2     ~ (b_big |g_big|^2 - b_small |g_small|^2) / (b_big - b_small)
//   tr(Sigma) ~ (|g_small|^2 - |g_big|^2) / (1 / b_small - 1 / b_big)
// The quotient of the two is noisy and biased, so each has a moving average of its own, and B is the quotient of those.
// Samples are taken as independent; batch norm ties those of one micro-batch together, so that there B is of its size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/state.h"

namespace samebytes::optim {

struct NoiseScaleOptions {
  double decay = 0.95;  // of the moving averages, in [0, 1); the weight of what was before
};

class GradientNoiseScale {
 public:
  // Throws ArgumentError for a decay out of range.
  explicit GradientNoiseScale(const NoiseScaleOptions& options = {});

  // One measurement: the squared norm of the gradient of small_samples and of big_samples. Where the small ones are
  // micro-batches of a big one, small_square is the mean of theirs, each weighted with its number of samples, and
  // small_samples is big_samples over their number: that is free of bias also where one of them is smaller. Numbers
  // that are not finite (an overflow of f16) are left out. Throws ArgumentError unless 0 < small_samples < big_samples.
  void add(double small_square, double small_samples, double big_square, double big_samples);

  std::int64_t count() const { return count_; }  // measurements
  // The averages, corrected for their start as Adam's are; NaN where there was no measurement. |G|^2 may be below 0,
  // since an estimate without bias has to be able to.
  double gradient_square() const;   // |G|^2
  double covariance_trace() const;  // tr(Sigma)
  // In samples. Infinity where |G|^2 is not above 0: the noise drowns the gradient at this number of samples. NaN where
  // there was no measurement.
  double noise_scale() const;

  StateDict state_dict() const;  // count, gradient_square, covariance_trace
  void load_state_dict(const StateDict& state);

 private:
  double corrected(double average) const;
  double decay_;
  std::int64_t count_ = 0;
  double gradient_square_ = 0.0, covariance_trace_ = 0.0;
};

// Measures the noise scale while an Accumulator adds up micro-batches. Costs one pass over the gradients of each
// micro-batch and one over their sum; the host waits in read() only. An optimizer whose arenas are so large that
// gradients are released by themselves keeps them whole while it is watched.
//   optim::Accumulator sums(adam);
//   optim::NoiseScaleMeter meter(sums);
//   for (...) sums.add(loss, samples);
//   meter.measure();
//   sums.step();
//   meter.read().noise_scale();                      // now and then
class NoiseScaleMeter {
 public:
  // Watches the accumulator, which must outlive it and stay where it is; another watch ends.
  explicit NoiseScaleMeter(Accumulator& accumulator, const NoiseScaleOptions& options = {});
  ~NoiseScaleMeter();
  NoiseScaleMeter(const NoiseScaleMeter&) = delete;
  NoiseScaleMeter& operator=(const NoiseScaleMeter&) = delete;

  // After the last add(), before step(): enqueues and returns. Fewer than two micro-batches measure nothing. With the
  // scaler whose scale() the losses went through, its factor is taken out.
  void measure(GradScaler* scaler = nullptr);
  // Waits for the measurements so far. The same ones in the same order give the same bytes whenever it is called.
  const GradientNoiseScale& read();
  // What the next measurements depend on, in the middle of a group of micro-batches too: the averages, and of the open
  // group its number of micro-batches and the cell "squares". Waits as read() does.
  StateDict state_dict();
  // Throws ArgumentError for another state; nothing is changed then.
  void load_state_dict(const StateDict& state);

 private:
  struct Pending {
    Array squares;  // [2]: of the micro-batches, of their mean
    double small_samples, big_samples;
  };
  Accumulator* accumulator_;
  GradientNoiseScale scale_;
  Array small_;  // cell [1]: squared norms times samples, added up
  std::int64_t batches_ = 0;
  std::vector<Pending> pending_;
};

}  // namespace samebytes::optim
