// Ema: the exponential moving average of weights (B. Polyak and A. Juditsky, 1992; as in torch.optim.swa_utils and
// timm), which often validates better than the weights themselves. Call update() after each step of the optimizer;
// between two calls of swap() the model itself holds the averages:
//   { optim::EmaScope averaged(ema); accuracy = evaluate(net); }
// An update is one launch per arena of the optimizer. Running statistics of norms are not averaged.
#pragma once

#include <cstdint>
#include <vector>

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct EmaOptions {
  double decay = 0.999;
  // As timm: the decay of update k is min(decay, 1 - (1 + k / gamma)^-power), which forgets early weights sooner.
  bool warmup = false;
  double gamma = 1.0;
  double power = 2.0 / 3.0;
  double least_decay = 0.0;  // during the warm-up
  std::int64_t start = 0;    // updates that copy the weights before averaging begins; the first one always copies
};

class Ema {
 public:
  // Averages the optimizer's parameters; the optimizer must outlive it, and may move. Throws ArgumentError for options
  // out of range.
  explicit Ema(const Optimizer& optimizer, const EmaOptions& options = {});

  // average = d average + (1 - d) weights with d = decay_of(update_count()). Throws ArgumentError while swapped.
  void update();
  // Exchanges weights and averages; a second call restores both bit for bit. Averages of bf16 weights are f32; swapped
  // in, they are rounded.
  void swap();
  bool is_swapped() const { return is_swapped_; }

  double decay_of(std::int64_t update) const;  // the first update is 0 and has decay 0
  std::int64_t update_count() const { return update_count_; }
  const EmaOptions& options() const { return options_; }
  // The averages, one flat cell per arena ("0.average"), and the number of updates.
  StateDict state_dict() const;
  // Throws ArgumentError, without any change, if the state belongs to other parameters, and while swapped.
  void load_state_dict(const StateDict& state);

 private:
  EmaOptions options_;
  std::vector<ParameterArena> arenas_;
  std::vector<Array> averages_;
  std::vector<Array> narrow_;  // bf16 weights while their averages are swapped in
  std::int64_t update_count_ = 0;
  bool is_swapped_ = false;
};

// Swaps the averages into the model while it lives. The destructor enqueues the swap back and does not throw.
class EmaScope {
 public:
  explicit EmaScope(Ema& ema);
  ~EmaScope();
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

 private:
  Ema* ema_;
};

}  // namespace samebytes::optim
