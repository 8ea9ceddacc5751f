// GradScaler: dynamic loss scaling for f16 (P. Micikevicius et al., "Mixed precision training", 2018, section 3.2),
// with PyTorch's rule: the loss is multiplied by a scale, so that small gradients do not vanish in 16 bits; gradients
// are divided by it in f32; a step whose gradients have an infinity or NaN is skipped and the scale multiplied by
// backoff_factor; after growth_interval steps in a row without one it is multiplied by growth_factor. All of it happens
// on the device: the scale, the number of good steps and the decision are cells and values there, and the host never
// waits. A skipped step changes no parameter and no state of the optimizer, and does not count in bias corrections
// (Optimizer::skipped_steps()); a learning-rate schedule goes on. bf16 needs no scaler. A scaler is used by one thread.
//   scaler.step(adam, loss);                                       // all in one evaluation, or in parts:
//   auto gradients = adam.flat_gradients(scaler.scale(loss));
//   gradients = clip_by_global_norm(scaler.unscale(adam, gradients), 1.0);
//   scaler.step_flat(adam, gradients);
//   scaler.update();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;   // above 1
  double backoff_factor = 0.5;  // between 0 and 1
  std::int64_t growth_interval = 2000;
  bool enabled = true;  // false: scales nothing and skips nothing
};

// All that a scaler remembers between steps.
struct GradScalerState {
  double scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t growth_tracker = 0;  // steps without an overflow since the scale changed
};

class GradScaler {
 public:
  // Throws ArgumentError for options out of range.
  explicit GradScaler(const GradScalerOptions& options = {});
  GradScaler(GradScaler&&) = default;
  GradScaler& operator=(GradScaler&&) = default;

  // Everything a step is, in one evaluation: scale, gradients, unscale, the optimizer's own clipping, the update unless
  // something overflowed, and the new scale. Throws ArgumentError between unscale() or step_flat() and update().
  void step(Optimizer& optimizer, const Array& loss);

  // loss times the scale. Throws ArgumentError for an empty handle.
  Array scale(const Array& loss);
  // Flat gradients of the scaled loss, one for each of optimizer.arenas(), in f32 and divided by the scale, for
  // clipping or looking at them. Throws ArgumentError where this optimizer's were unscaled, or it has stepped, since
  // the last update().
  std::vector<Array> unscale(const Optimizer& optimizer, std::span<const Array> gradients);
  // One step of the optimizer, skipped where its gradients overflowed. They are unscaled here unless unscale() was
  // called. Throws ArgumentError where the optimizer has stepped since the last update().
  void step_flat(Optimizer& optimizer, std::span<const Array> gradients);
  // The new scale, after the steps of all optimizers. Throws ArgumentError where there was none since the last one.
  void update();
  void set_scale(double scale);  // instead of update()'s rule

  bool is_enabled() const { return options_.enabled; }
  double scale() const;           // the factor as it is now, 1 where not enabled; waits for the queue
  GradScalerState state() const;  // waits for the queue
  void load_state(const GradScalerState& state);

 private:
  friend class Accumulator;
  // A whole step with flat gradients of scaled losses, which are made while its graph is built.
  void step_with(Optimizer& optimizer, const std::function<std::vector<Array>()>& flat_gradients);
  enum class Stage : std::uint8_t { unscaled, stepped };
  struct Progress {
    Stage stage;
    Array finite;  // bool [1]
  };

  void make_cells();
  Array finite_of(const Optimizer& optimizer, std::span<const Array> gradients) const;
  std::vector<Array> divided(std::span<const Array> gradients) const;
  std::vector<Array> new_scale(const Array& finite) const;

  GradScalerOptions options_;
  Array scale_, tracker_;  // cells [1], made at first use; the tracker counts steps without an overflow
  std::map<const Optimizer*, Progress> progress_;
};

}  // namespace samebytes::optim
