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
  // add() and step() in one evaluation, for the last micro-batch of a group that is known to be the last: the same
  // bytes, and one pass over the gradients less. With a scaler it ends in scaler.update(), too. With a source its
  // gradients are the flat ones that the step takes, of the mean of all micro-batches.
  void step(const Array& loss, double samples, const Optimizer::GradientSource& source = {});
  void step(const Array& loss, double samples, GradScaler& scaler, const Optimizer::GradientSource& source = {});

  // add() in parts, for whoever evaluates its nodes with others and may have to build them anew where that fails
  // (train/parallel/data_parallel.h). What was added before stays as it is until added(), which is called when they
  // have run; or lost(): what they write to is not used again.
  std::vector<Array> adding(const Array& loss, double samples);
  void added(double samples);
  void lost();
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
  std::vector<Array> zeros() const;
  // The nodes that write the means with this loss into `cells`.
  std::vector<Array> updates(const Array& loss, double samples, const std::vector<Array>& cells) const;
  std::vector<Array> last_means(const Array& loss, double samples, bool is_read_again,
                                const Optimizer::GradientSource& source) const;
  std::vector<Array> source_means(const Array& loss, double samples, const Optimizer::GradientSource& source) const;
  bool steps_at_once(const Optimizer::GradientSource& source) const;
  std::vector<StateArray> named_means() const;

  Optimizer* optimizer_;
  std::vector<Array> means_;  // one flat cell per arena
  std::vector<Array> next_;   // what adding() makes of them
  double samples_ = 0.0;
  Watch watch_;
};

}  // namespace samebytes::optim
