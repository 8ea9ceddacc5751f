// Accumulator: gradients of several micro-batches before one update, weighted by their numbers of samples, so that the
// result is that of one batch with all of them, also where the last one is smaller. The means so far are the only array
// beside those of a step: gradients are added to them as they are made. A large batch that is there at once is cut into
// pieces over the same bytes by data::Batch::piece() or share_rows() (slot.h).
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "samebytes/optim/grad_scaler.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

class Accumulator {
 public:
  // Uses the optimizer's arenas; the optimizer must outlive it and stay where it is. Throws ArgumentError for one with
  // release_gradients, which has no gradients to add up.
  explicit Accumulator(Optimizer& optimizer);

  // Adds the gradient of loss, the mean over `samples`; enqueues it and returns. Throws ArgumentError unless samples >
  // 0.
  void add(const Array& loss, double samples);
  // One step of the optimizer with the mean over everything added; does nothing where nothing was. Call it after each
  // group of micro-batches, the incomplete last one too.
  void step();
  // The same for gradients of losses that the scaler scaled, which is then to be updated: scaler.update().
  void step(GradScaler& scaler);
  // add() and step() in one evaluation, for the last micro-batch of a group that is known to be the last: the same
  // bytes, and one pass over the gradients less. With a scaler it ends in scaler.update(), too. Where the optimizer has
  // a gradient source (Optimizer::set_gradient_source), as in distributed::DataParallel, it is asked here, and add()
  // never asks it.
  void step(const Array& loss, double samples);
  void step(const Array& loss, double samples, GradScaler& scaler);
  double samples() const { return samples_; }  // added since the last step
  void reset() { samples_ = 0.0; }             // forgets what was added

  // For whoever measures gradients: called by add() with the flat gradients of its loss, one for each arena; the nodes
  // that it returns are evaluated in the same run. An empty function ends it.
  using Watch = std::function<std::vector<Array>(std::span<const Array> gradients, double samples)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  // The mean gradient of what was added, a flat cell for each arena; only where samples() is above 0.
  const std::vector<Array>& means() const { return means_; }

  // The number of samples and, where there are any, the mean of their gradients ("0.mean").
  StateDict state_dict() const;
  // Throws ArgumentError where the state is of other parameters; nothing is changed then.
  void load_state_dict(const StateDict& state);

 private:
  static void check(double samples);
  Array mean_with(std::size_t arena, const Array& gradient, double samples) const;
  std::vector<Array> updates(const Array& loss, double samples) const;
  std::vector<Array> last_means(const Array& loss, double samples, bool is_read_again) const;
  std::vector<Array> source_means(const Array& loss, double samples) const;
  bool steps_at_once() const;
  std::vector<StateArray> named_means() const;

  Optimizer* optimizer_;
  std::vector<Array> means_;  // a flat cell for each arena
  double samples_ = 0.0;
  Watch watch_;
};

}  // namespace samebytes::optim
