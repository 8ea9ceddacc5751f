// Plateau: lowers the rate when a number that is watched, such as the loss of the test set, stops getting better
// (PyTorch's ReduceLROnPlateau).
//   if (plateau.step(test_loss)) ...                 // once an epoch
//   optimizer.set_rate(plateau.rate());
#pragma once

#include <cstdint>

#include "samebytes/optim/state.h"

namespace samebytes::optim {

enum class PlateauMode : std::uint8_t { min, max };                 // whether smaller or larger is better
enum class PlateauThreshold : std::uint8_t { relative, absolute };  // better by a share of the best, or by so much

struct PlateauOptions {
  double rate = 1e-3;  // to begin with
  PlateauMode mode = PlateauMode::min;
  double factor = 0.1;  // in (0, 1)
  std::int64_t patience = 10;
  double threshold = 1e-4;
  PlateauThreshold threshold_mode = PlateauThreshold::relative;
  std::int64_t cooldown = 0;
  double min_rate = 0.0;
  double eps = 1e-8;  // the least change of the rate; smaller ones are left out
};

class Plateau {
 public:
  // Throws ArgumentError for options out of range.
  explicit Plateau(const PlateauOptions& options = {});

  // A new value of what is watched. After more than `patience` values in a row that were not better than the best so
  // far the rate is multiplied by factor, but not below min_rate; the `cooldown` values after that do not count.
  // Returns whether the rate changed. NaN is not better.
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
