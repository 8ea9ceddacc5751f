// GradScaler: dynamic loss scaling for f16 (P. Micikevicius et al., "Mixed precision training", 2018, section 3.2),
// with PyTorch's rule: it multiplies the loss by a scale, so that small gradients do not vanish in 16 bits, and divides
// the gradients by it in f32. If gradients have an infinity or NaN, it skips the step and multiplies the scale by
// backoff_factor; after growth_interval good steps in a row it multiplies the scale by growth_factor. The scale, the
// number of good steps and the decision stay on the device, so the host never waits. A skipped step changes no
// parameter and no state of the optimizer, and does not count in bias corrections (Optimizer::skipped_steps()); a
// learning-rate schedule does advance. bf16 needs no scaler. Use a scaler from one thread.
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

// The complete state of a scaler between steps.
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

  // A complete step in one evaluation: scaling, gradients, unscaling, the optimizer's clipping, the update unless
  // gradients overflowed, and the new scale. Throws ArgumentError between unscale() or step_flat() and update().
  void step(Optimizer& optimizer, const Array& loss);
  // ... with flat gradients of the scaled loss from `source`.
  void step(Optimizer& optimizer, const Array& loss, const Optimizer::GradientSource& source);

  // loss times the scale. Throws ArgumentError for an empty handle.
  Array scale(const Array& loss);
  // Converts flat gradients of the scaled loss, one for each of optimizer.arenas(), to f32 and divides them by the
  // scale, for clipping or inspection. Throws ArgumentError if this optimizer's were already unscaled, or it has
  // stepped, since the last update().
  std::vector<Array> unscale(const Optimizer& optimizer, std::span<const Array> gradients);
  // One step of the optimizer, skipped if its gradients overflowed. Unscales them unless unscale() was called. Throws
  // ArgumentError if the optimizer has already stepped since the last update().
  void step_flat(Optimizer& optimizer, std::span<const Array> gradients);
  // Computes the new scale, after the steps of all optimizers. Throws ArgumentError if none has stepped since the last
  // update().
  void update();
  void set_scale(double scale);  // overrides update()'s rule

  bool is_enabled() const { return options_.enabled; }
  double scale() const;           // the current factor, 1 if not enabled; waits for the queue
  GradScalerState state() const;  // waits for the queue
  void load_state(const GradScalerState& state);

 private:
  friend class Accumulator;
  // A complete step with flat gradients of scaled losses; flat_gradients() runs while the step's graph is built.
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
