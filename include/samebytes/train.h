// Statistics of a training loop: running means and accuracy on the device, rates and times on the host.
// Mean and Accuracy enqueue and return; only value() and state() wait. They keep no added array alive. Use them from
// one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// The weighted mean of numbers that are still on the device. It belongs to the engine of the first array added. Sums
// are compensated (W. Kahan, 1965), so an epoch of thousands of f32 values loses no precision.
class Mean {
 public:
  // Adds x and returns at once. Each element of x has weight `weight` (a batch's mean loss: its number of samples).
  // Throws ArgumentError for an array that is empty or not floating, and for a negative weight.
  void add(const Array& x, double weight = 1.0);
  // The same for a number on the host. Throws ArgumentError for a negative weight.
  void add_value(double value, double weight = 1.0);
  // Adds the sum (one element) of `count` numbers.
  void add_sum(const Array& sum, double count);
  double value() const;                      // waits; NaN if nothing was added
  double weight() const { return weight_; }  // sum of all weights
  void reset();

  // The complete state, for saving and resuming a run; state() waits. A restored Mean belongs to the current engine.
  struct State {
    double sum = 0.0, lost = 0.0, weight = 0.0;
    bool is_f64 = false;  // what was added
  };
  State state() const;
  void restore(const State& state);

 private:
  void fold(const Array& x, double factor, double count);
  void take(Dtype dtype, const std::function<Array()>& added, double count);
  Array sum_, lost_;  // cells: the sum and its rounding error
  double weight_ = 0.0;
};

// The share of rows whose largest logit is at the label.
class Accuracy {
 public:
  // logits [N, C]; labels i32, i64 or u8 [N]. Returns at once. Throws ArgumentError for other shapes or types.
  void add(const Array& logits, const Array& labels);
  double value() const { return mean_.value(); }   // in [0, 1]; waits; NaN if nothing was added
  double count() const { return mean_.weight(); }  // rows
  void reset() { mean_.reset(); }
  Mean::State state() const { return mean_.state(); }
  void restore(const Mean::State& state) { mean_.restore(state); }

 private:
  Mean mean_;
};

// Metrics of a binary classifier, on the host: a score above 0 predicts class 1; truth holds 0 and 1. Both throw
// ArgumentError for unequal lengths and for other values in truth, and return NaN if a class is missing.
// The mean over both classes of the share of correct predictions.
double balanced_accuracy(std::span<const float> scores, std::span<const float> truth);
// The area under the receiver operating characteristic: the probability that a sample of class 1 scores higher than one
// of class 0; ties count half (T. Fawcett, "An introduction to ROC analysis", 2006).
double area_under_curve(std::span<const float> scores, std::span<const float> truth);

// Units per second; 0 if seconds is 0.
double throughput(double units, double seconds);

// The progress of a run as plain numbers: rate over the last seconds, time left. Reads the clock only in the
// constructor and in advance().
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // total in the caller's units (samples, steps); 0 if unknown.
  explicit Progress(double total, Clock::time_point now = Clock::now());
  void advance(double units, Clock::time_point now = Clock::now());

  double done() const { return done_; }
  double fraction() const;      // in [0, 1]; 0 if the total is unknown
  double seconds() const;       // from the start to the last advance
  double rate() const;          // units per second over about the last kWindowSeconds
  double average_rate() const;  // units per second since the start
  double seconds_left() const;  // at rate(); 0 if unknown

 private:
  static constexpr double kWindowSeconds = 5.0;
  struct Mark {
    Clock::time_point time;
    double done;
  };
  double total_;
  double done_ = 0.0;
  Clock::time_point start_, last_;
  std::vector<Mark> marks_;  // the window, oldest first
};

// Times from step to step and their percentiles over the last 80 % of the steps, which excludes the first ones (builds,
// plans).
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;
  // Call it at the end of each step. The first call only starts the clock.
  void mark(Clock::time_point now = Clock::now());
  // The percentile of the step times in milliseconds (nearest rank); 0 before the second mark. Throws ArgumentError for
  // a percent outside [0, 100].
  double percentile_ms(double percent) const;
  std::size_t count() const { return ms_.size(); }

 private:
  bool started_ = false;
  Clock::time_point last_{};
  std::vector<double> ms_;
};

}  // namespace samebytes
