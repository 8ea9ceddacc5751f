// The gradient noise scale: the batch size beyond which more samples stop paying (S. McCandlish, J. Kaplan and D.
// Amodei, "An Empirical Model of Large-Batch Training", 2018). With the true gradient G and the covariance Sigma of one
// sample's gradient the simple noise scale is B = tr(Sigma) / |G|^2 (equation 2.9): far below B samples, doubling the
// batch halves the steps; far above it, the steps stay the same. Both terms have unbiased estimates from the gradients
// of two batch sizes (appendix A.1):
//   E|g_b|^2 = |G|^2 + tr(Sigma) / b
//   |G|^2     ~ (b_big |g_big|^2 - b_small |g_small|^2) / (b_big - b_small)
//   tr(Sigma) ~ (|g_small|^2 - |g_big|^2) / (1 / b_small - 1 / b_big)
// The quotient of the two is noisy and biased, so each has its own moving average, and B is the quotient of the
// averages. Samples are assumed independent; batch norm couples those of a micro-batch, and B is then about the
// micro-batch's size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/state.h"

namespace samebytes::optim {

struct NoiseScaleOptions {
  double decay = 0.95;  // of the moving averages, in [0, 1): the weight of the old average
};

class GradientNoiseScale {
 public:
  // Throws ArgumentError for a decay out of range.
  explicit GradientNoiseScale(const NoiseScaleOptions& options = {});

  // One measurement: the squared norm of the gradient of small_samples and of big_samples. If the small ones are
  // micro-batches of the big one, pass as small_square the mean of their squares, weighted by their numbers of samples,
  // and as small_samples big_samples over their number: this is unbiased even if one is smaller. Ignores numbers that
  // are not finite (an overflow of f16). Throws ArgumentError unless 0 < small_samples < big_samples.
  void add(double small_square, double small_samples, double big_square, double big_samples);

  std::int64_t count() const { return count_; }  // measurements
  // The averages with Adam's bias correction; NaN before the first measurement. |G|^2 may be negative, as an unbiased
  // estimate can be.
  double gradient_square() const;   // |G|^2
  double covariance_trace() const;  // tr(Sigma)
  // In samples. Infinity if |G|^2 is not above 0: noise dominates the gradient at this number of samples. NaN before
  // the first measurement.
  double noise_scale() const;

  StateDict state_dict() const;  // count, gradient_square, covariance_trace
  void load_state_dict(const StateDict& state);

 private:
  double corrected(double average) const;
  double decay_;
  std::int64_t count_ = 0;
  double gradient_square_ = 0.0, covariance_trace_ = 0.0;
};

// Measures the noise scale while an Accumulator sums micro-batches. Costs one pass over the gradients of each
// micro-batch and one over their sum; the host waits only in read(). While watched, an optimizer with large arenas does
// not release gradients early.
//   optim::Accumulator sums(adam);
//   optim::NoiseScaleMeter meter(sums);
//   for (...) sums.add(loss, samples);
//   meter.measure();
//   sums.step();
//   meter.read().noise_scale();                      // now and then
class NoiseScaleMeter {
 public:
  // Watches the accumulator, which must outlive the meter and must not move; replaces any earlier watch.
  explicit NoiseScaleMeter(Accumulator& accumulator, const NoiseScaleOptions& options = {});
  ~NoiseScaleMeter();
  NoiseScaleMeter(const NoiseScaleMeter&) = delete;
  NoiseScaleMeter& operator=(const NoiseScaleMeter&) = delete;

  // After the last add(), before step(): enqueues and returns. Measures nothing with fewer than two micro-batches.
  // `scaler`: the one that scaled the losses; its factor is divided out.
  void measure(GradScaler* scaler = nullptr);
  // Waits for the measurements so far. The same measurements in the same order give the same bytes, whenever it is
  // called.
  const GradientNoiseScale& read();
  // The complete state, also within a group of micro-batches: the averages, and the open group's number of
  // micro-batches and the cell "squares". Waits as read() does.
  StateDict state_dict();
  // Throws ArgumentError, without any change, for a state that does not match.
  void load_state_dict(const StateDict& state);

 private:
  struct Pending {
    Array squares;  // [2]: of the micro-batches, and of their mean
    double small_samples, big_samples;
  };
  Accumulator* accumulator_;
  GradientNoiseScale scale_;
  Array small_;  // cell [1]: sum of squared norms times samples
  std::int64_t batches_ = 0;
  std::vector<Pending> pending_;
};

}  // namespace samebytes::optim
