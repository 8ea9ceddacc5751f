// PrefetchDepth: computes how many slots a loader should have from the time its loop waited for batches. It reads no
// clock and allocates nothing: it gets times and returns a number. It works in windows of batches. After a window in
// which the loop waited for more than a small share of the time, it requests half as many slots again, but only if a
// worker has waited for a slot since the last request: more slots do not help a source that is always slower than the
// loop, but they do help one that is slow occasionally, or several workers with too few slots. After several windows in
// a row without any wait it gives one slot back.
#pragma once

#include <algorithm>

namespace samebytes::data {

struct PrefetchDepthOptions {
  int least = 2, most = 2;
  int window = 16;        // batches
  double stalled = 0.03;  // share of the time above which the loop counts as waiting
  double idle = 0.002;    // ... below which it counts as idle
  int patience = 8;       // idle windows in a row before a slot is given back
};

class PrefetchDepth {
 public:
  explicit PrefetchDepth(const PrefetchDepthOptions& options) : options_(options), slots_(options.least) {}

  // Call it when the loop gets a batch.
  struct Step {
    double waited = 0;             // seconds that the loop waited for the batch
    double seconds = 0;            // since the previous batch
    bool slot_was_wanted = false;  // a worker had to wait for a free slot meanwhile
  };
  void observe(const Step& step) {
    waited_ += step.waited;
    seconds_ += step.seconds;
    slot_was_wanted_ = slot_was_wanted_ || step.slot_was_wanted;
    if (++steps_ < options_.window) return;
    stalled_ = seconds_ > 0 ? waited_ / seconds_ : 0;
    steps_ = 0;
    waited_ = seconds_ = 0;
    idle_windows_ = stalled_ < options_.idle ? idle_windows_ + 1 : 0;
    if (stalled_ > options_.stalled && slot_was_wanted_ && slots_ < options_.most) {
      slots_ = std::min(options_.most, slots_ + std::max(1, slots_ / 2));
      slot_was_wanted_ = false;
    } else if (idle_windows_ >= options_.patience && slots_ > options_.least) {
      --slots_;
      idle_windows_ = 0;
    }
  }

  int slots() const { return slots_; }
  double stalled() const { return stalled_; }  // share of the last window
  // Call it if no memory is left for more slots.
  void set_most(int most) {
    options_.most = std::max(options_.least, most);
    slots_ = std::min(slots_, options_.most);
  }

 private:
  PrefetchDepthOptions options_;
  int slots_;
  int steps_ = 0, idle_windows_ = 0;
  double waited_ = 0, seconds_ = 0, stalled_ = 0;
  bool slot_was_wanted_ = false;
};

}  // namespace samebytes::data
