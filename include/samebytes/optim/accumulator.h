// Accumulator: averages the gradients of several micro-batches before one update, weighted by their numbers of samples,
// so the result is that of one large batch, even if the last one is smaller. The running mean is its only additional
// array: gradients are added to it as they are computed. data::Batch::piece() or share_rows() (slot.h) cut a large
// batch into pieces over the same bytes.
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
  // Uses the optimizer's arenas; the optimizer must outlive the accumulator and must not move. Throws ArgumentError for
  // one with release_gradients, which keeps no gradients to sum.
  explicit Accumulator(Optimizer& optimizer);

  // Adds the gradient of loss, the mean over `samples`; enqueues it and returns. Throws ArgumentError unless samples >
  // 0.
  void add(const Array& loss, double samples);
  // One step of the optimizer with the mean over everything added; no effect if nothing was added. Call it after each
  // group of micro-batches, including an incomplete last one.
  void step();
  // The same for losses that the scaler scaled; call scaler.update() afterwards.
  void step(GradScaler& scaler);
  // add() and step() in one evaluation, for a micro-batch that is known to be the last of its group: the same bytes,
  // with one pass fewer over the gradients. With a scaler it also calls scaler.update(). If the optimizer has a
  // gradient source (Optimizer::set_gradient_source), as in distributed::DataParallel, this function uses it; add()
  // never does.
  void step(const Array& loss, double samples);
  void step(const Array& loss, double samples, GradScaler& scaler);
  double samples() const { return samples_; }  // added since the last step
  void reset() { samples_ = 0.0; }             // discards what was added

  // Observes gradients: add() calls `watch` with the flat gradients of its loss, one per arena, and evaluates the nodes
  // that it returns in the same run. An empty function ends it.
  using Watch = std::function<std::vector<Array>(std::span<const Array> gradients, double samples)>;
  void watch(Watch watch) { watch_ = std::move(watch); }
  // The mean gradient of what was added, one flat cell per arena; valid only if samples() is above 0.
  const std::vector<Array>& means() const { return means_; }

  // The number of samples and, unless it is 0, the mean of their gradients ("0.mean").
  StateDict state_dict() const;
  // Throws ArgumentError, without any change, if the state belongs to other parameters.
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
  std::vector<Array> means_;  // one flat cell per arena
  double samples_ = 0.0;
  Watch watch_;
};

}  // namespace samebytes::optim
