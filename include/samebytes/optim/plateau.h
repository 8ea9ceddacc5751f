// Plateau: lowers the rate when a monitored value, such as the loss of the test set, stops improving (PyTorch's
// ReduceLROnPlateau).
//   if (plateau.step(test_loss)) ...                 // once an epoch
//   optimizer.set_rate(plateau.rate());
#pragma once

#include <cstdint>

#include "samebytes/optim/state.h"

namespace samebytes::optim {

enum class PlateauMode : std::uint8_t { min, max };                 // whether smaller or larger is better
enum class PlateauThreshold : std::uint8_t { relative, absolute };  // improvement relative to the best, or absolute

struct PlateauOptions {
  double rate = 1e-3;  // initial
  PlateauMode mode = PlateauMode::min;
  double factor = 0.1;  // in (0, 1)
  std::int64_t patience = 10;
  double threshold = 1e-4;
  PlateauThreshold threshold_mode = PlateauThreshold::relative;
  std::int64_t cooldown = 0;
  double min_rate = 0.0;
  double eps = 1e-8;  // smallest change of the rate; smaller ones are not applied
};

class Plateau {
 public:
  // Throws ArgumentError for options out of range.
  explicit Plateau(const PlateauOptions& options = {});

  // Adds a new value. After more than `patience` values in a row without improvement over the best, the rate is
  // multiplied by factor, down to min_rate; the next `cooldown` values do not count. Returns whether the rate changed.
  // NaN is no improvement.
  bool step(double value);
  double rate() const { return rate_; }
  double best() const { return best_; }
  const PlateauOptions& options() const { return options_; }

  StateDict state_dict() const;  // rate, best, bad_steps, cooldown_left
  void load_state_dict(const StateDict& state);

 private:
  bool is_better(double value) const;

  PlateauOptions options_;
  double rate_, best_;
  std::int64_t bad_steps_ = 0, cooldown_left_ = 0;
};

}  // namespace samebytes::optim
