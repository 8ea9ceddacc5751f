// What a training loop counts: running means and accuracy on the device, rates and times on the host.
// Mean and Accuracy enqueue and return; only value() waits. They hold no array that was added. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

// The weighted mean of numbers that are still on the device. It belongs to the engine of the first array that is added.
// Sums are compensated (W. Kahan, 1965), so that an epoch of thousands of f32 values loses nothing.
class Mean {
 public:
  // Folds x in and returns at once. Each element of x counts `weight` (a batch's mean loss: its number of samples).
  // Throws ArgumentError for an empty or not floating array and a negative weight.
  void add(const Array& x, double weight = 1.0);
  // The same for a number that the host has. Throws ArgumentError for a negative weight.
  void add_value(double value, double weight = 1.0);
  // Adds a sum, one element, of `count` numbers.
  void add_sum(const Array& sum, double count);
  double value() const;                      // waits; NaN where nothing was added
  double weight() const { return weight_; }  // all weights together
  void reset();

  // All of it, for a run that is saved and goes on; waits. What is restored belongs to the current engine.
  struct State {
    double sum = 0.0, lost = 0.0, weight = 0.0;
    bool is_f64 = false;  // what was added
  };
  State state() const;
  void restore(const State& state);

 private:
  void fold(const Array& x, double factor, double count);
  void take(Dtype dtype, const std::function<Array()>& added, double count);
  Array sum_, lost_;  // cells: the sum and what rounding took from it
  double weight_ = 0.0;
};

// The part of rows whose largest logit is at the label.
class Accuracy {
 public:
  // logits [N, C]; labels i32 or u8 [N]. Returns at once. Throws ArgumentError for other shapes or types.
  void add(const Array& logits, const Array& labels);
  double value() const { return mean_.value(); }   // in [0, 1]; waits; NaN where nothing was added
  double count() const { return mean_.weight(); }  // rows
  void reset() { mean_.reset(); }
  Mean::State state() const { return mean_.state(); }
  void restore(const Mean::State& state) { mean_.restore(state); }

 private:
  Mean mean_;
};

// Of a binary classifier, on the host: a score above 0 says class 1; truth holds 0 and 1. Both throw ArgumentError for
// unequal lengths and for other values in truth; they are NaN where one class is missing.
// The mean of the shares of right answers within each class.
double balanced_accuracy(std::span<const float> scores, std::span<const float> truth);
// The area under the receiver operating characteristic: how often a sample of class 1 scores higher than one of class
// 0, ties counted half (T. Fawcett, "An introduction to ROC analysis", 2006).
double area_under_curve(std::span<const float> scores, std::span<const float> truth);

// Units per second; 0 for no time.
double throughput(double units, double seconds);

// How far a run is, as plain numbers: rate over the last seconds, time left. Reads the clock in start() and advance()
// only.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // total in the caller's units (samples, steps); 0 where unknown.
  explicit Progress(double total, Clock::time_point now = Clock::now());
  void advance(double units, Clock::time_point now = Clock::now());

  double done() const { return done_; }
  double fraction() const;      // in [0, 1]; 0 where the total is unknown
  double seconds() const;       // from the start to the last advance
  double rate() const;          // units per second over about the last kWindowSeconds
  double average_rate() const;  // units per second since the start
  double seconds_left() const;  // at rate(); 0 where it is unknown

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

// Times from step to step and their percentiles over the last 80 %, so that the first steps (builds, plans) do not
// count.
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;
  // One step has ended and the next one begins. The first call only starts the clock.
  void mark(Clock::time_point now = Clock::now());
  // Milliseconds that `percent` of the steps stay below (nearest rank); 0 before two marks. Throws ArgumentError
  // outside [0, 100].
  double percentile_ms(double percent) const;
  std::size_t count() const { return ms_.size(); }

 private:
  bool started_ = false;
  Clock::time_point last_{};
  std::vector<double> ms_;
};

}  // namespace samebytes
