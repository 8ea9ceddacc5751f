// Optimizer: what all optimizers share. The constructor lays the parameters into arenas (arena.h), one for each group
// and dtype and as many more as the device's largest allocation asks for; a parameter that comes twice in a group
// counts once. step() adds gradients and update to the graph, enqueues them in one evaluation and returns at once; the
// update takes one or two launches for each arena, whatever its number of parameters.
//
// Gradient release (update inside backward): parameters are updated in groups of neighbours, each as soon as its
// gradients are final, so that the gradients are never all there at once; the parameters become the same, bit for bit.
// Without clip_norm it happens by itself where an arena has 64 MiB or more. With release_gradients it is asked for: it
// also happens where there is less, and what needs all gradients together is an ArgumentError: clip_norm, Accumulator,
// step_flat. A launch that cannot be enqueued may then leave some parameters updated and others not; they are lost.
//
// 16-bit moments (the option `moments` of Adam, AdamW, Sgd, RmsProp and Lion): what an optimizer remembers of each
// parameter is stored in bf16 and computed with in f32, in the same launch. A moment is rounded by chance
// (round_stochastic), because its changes, such as a thousandth of it where beta2 is 0.999, are mostly less than half a
// step of bf16 and would be lost: it stays right on average and strays by a few per cent. The chance is a function of
// the step and of the values, so a run repeats bit for bit and goes on from a saved state. f16 is refused: squares of
// gradients below 2.4e-4 are less than its smallest number, and a second moment of 0 makes a step of any size.
//
// 16-bit weights (store_in_bf16 of weights.h, with Adam, AdamW, Sgd, RmsProp, Adagrad and Lion): parameters in bf16
// without anything wider beside them. A step widens them, computes in f32 and rounds the result by chance, in the same
// launch: rounded to the nearest, every change below half a step of bf16, 1/512 of a weight, would be lost, and
// training would end there. What decides is a function of the step and of the element's place. Other optimizers refuse
// such parameters.
//
// An optimizer moves, is not copied, and is used by one thread at a time. While it
// lives its parameters belong to it: another optimizer on one of them throws ArgumentError.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/autograd.h"
#include "samebytes/host_array.h"
#include "samebytes/optim/arena.h"
#include "samebytes/optim/clip.h"
#include "samebytes/optim/group.h"
#include "samebytes/optim/state.h"

namespace samebytes::optim {

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step down the gradient of loss. Throws as gradients() does: also where a parameter has no gradient, unless
  // that is allowed.
  void step(const Array& loss);
  // Who makes the flat gradients of a loss instead of the optimizer, as part of the same evaluation, such as the mean
  // over several processes (train/parallel/data_parallel.h). `map`: what it takes each gradient for, such as the mean
  // with those of earlier micro-batches: of its place in parameters() and the gradient, as soon as that is there;
  // empty: the gradient itself.
  using GradientMap = std::function<Array(std::size_t parameter, const Array& gradient)>;
  using GradientSource = std::function<std::vector<Array>(const Array& loss, const GradientMap& map)>;
  void step(const Array& loss, const GradientSource& source);
  // From now on a parameter that a loss does not depend on has gradient 0: heads that take turns, layers left out by
  // chance. Weight decay and momentum still move it.
  void set_allow_unused(bool is_allowed);
  GradientOptions gradient_options() const;  // for gradients()
  // One step with gradients that the caller has, one for each of parameters().
  void step(std::span<const Array> gradients);
  // One step with flat gradients, one for each of arenas(), with zeros between the parameters as flat_gradients() has.
  // Throws ArgumentError with release_gradients.
  void step_flat(std::span<const Array> gradients);

  const std::vector<Array>& parameters() const;  // by group, then order
  const std::vector<ParameterArena>& arenas() const;
  // The flat gradient of each arena; nothing runs.
  std::vector<Array> flat_gradients(const Array& loss) const { return flat_gradients(loss, {}); }
  std::vector<Array> flat_gradients(std::span<const Array> gradients) const;
  std::vector<Array> flat_gradients(const Array& loss, const GradientMap& map) const;

  // One of `ranks` processes that keep and update the state of one share of each arena each (ZeRO, stage 1: S.
  // Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", 2020, section 5.1).
  struct Shard {
    int rank = 0, ranks = 1;
    std::function<void()> spread = {};  // called after each step: everybody's shares of the parameters to everybody
    // All shares of what `cell`, one of state(), is a share of, on rank 0; empty elsewhere. Every rank calls it.
    std::function<HostArray(const Array& cell)> gather = {};
  };
  // From now on steps update this rank's share alone, and state() is of that share. Throws ArgumentError with
  // release_gradients, a second time, and for an optimizer that does not say what its state is of.
  void shard(Shard shard);
  // Another spread and gather, or none.
  void set_shard_calls(std::function<void()> spread, std::function<HostArray(const Array&)> gather);
  bool is_sharded() const;
  int shard_rank() const;
  // How an array of state() is cut: `size` elements without shards, of which rank r keeps [bounds[r], bounds[r + 1]).
  struct Cut {
    std::int64_t size = 0;
    std::vector<std::int64_t> bounds;
  };
  const Cut& cut_of(const Array& cell) const;  // throws ArgumentError for what is not of a sharded state
  // Elements [first, second) of an arena that a rank updates: whole parameters where the update of an element looks at
  // others of its parameter (Lars, Lamb, Adafactor), else equal shares.
  std::pair<std::int64_t, std::int64_t> share(std::size_t arena, int rank) const;
  std::pair<std::int64_t, std::int64_t> share(std::size_t arena) const { return share(arena, shard_rank()); }
  // The state as it is without shards, on rank 0, to be saved. Every rank calls it.
  std::vector<std::pair<std::string, HostArray>> whole_state() const;

  bool releases_gradients() const;
  std::size_t group_count() const;
  // What holds for a group, its own or the optimizer's; options that the optimizer does not have are empty. Its rate is
  // the one it was made with.
  const GroupOptions& group(std::size_t index) const;
  std::size_t group_of_arena(std::size_t arena) const;

  // From now on each step keeps the norm of its gradient, after clip_value and before clip_norm, which computes it
  // anyway. Elsewhere it costs a pass over the gradients, which are all there at once then, whatever their size. Throws
  // ArgumentError with release_gradients.
  void watch_gradient_norm(bool is_on);
  const GradientNorm& gradient_norm() const;  // of the last step; none where it was not kept

  double rate() const;                   // of the next step
  double rate(std::size_t group) const;  // ... in a group: in proportion, where it has a rate of its own
  void set_rate(double rate);            // ends a schedule
  // From now on step k (the first is 0) uses schedule(k).
  void set_schedule(std::function<double(std::int64_t step)> schedule);

  // The momentum, or beta1 where the optimizer has that; empty where it has neither.
  std::optional<double> momentum() const;
  bool has_momentum() const;  // that can be changed: all groups were made with one
  // For all groups; ends a schedule of it. Throws ArgumentError out of range, and for an optimizer that has none or was
  // made without.
  void set_momentum(double momentum);
  // From now on step k uses schedule(k) as momentum. Throws as set_momentum() does.
  void set_momentum_schedule(std::function<double(std::int64_t step)> schedule);

  std::int64_t step_count() const;          // steps taken
  void set_step_count(std::int64_t count);  // when a saved state is restored
  // Of step_count(), those that a GradScaler skipped because a gradient overflowed: they changed nothing and do not
  // count in bias corrections. Waits for the queue where there is a scaler.
  std::int64_t skipped_steps() const;
  void set_skipped_steps(std::int64_t count);  // when a saved state is restored
  virtual std::vector<StateArray> state() const = 0;
  // All that the next steps depend on but the parameters: state(), the numbers of steps, rate and momentum. A schedule
  // is a function of the step and is set again by whoever restores.
  StateDict state_dict() const;
  // Throws ArgumentError where the state is of another optimizer or of other parameters; nothing is changed then.
  void load_state_dict(const StateDict& state);

 protected:
  struct Common {
    double rate;
    double clip_norm;       // 0: off
    double clip_value;      // 0: off
    bool maximize = false;  // steps up the gradient
    bool adapts = false;    // has GroupOptions::adapts
    bool release_gradients = false;
    Dtype moments = f32;          // or bf16
    bool rounds_weights = false;  // takes parameters in bf16: reads weights() and writes by written()
  };
  // An option that groups may have of their own: its default and its range [low, high).
  struct Option {
    const char* name;
    std::optional<double> GroupOptions::*member;
    double value;
    double low, high;
  };
  // A cell and what a step makes of it. With an empty cell the value is a node that writes its cells itself and obeys
  // control().
  struct CellUpdate {
    Array cell, value;
  };
  Optimizer(const char* name, std::span<const ParameterGroup> groups, const Common& common,
            std::initializer_list<Option> options);
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;
  static std::vector<ParameterGroup> one_group(std::span<const Array> parameters);
  // Each group in two: what has two or more axes, and the rest, which neither adapts nor decays.
  static std::vector<ParameterGroup> without_vectors(const std::vector<ParameterGroup>& groups);

  // The cells of its state, each list by arenas; where each element of them follows from its own gradient and
  // parameter alone.
  virtual std::vector<std::vector<Array>*> elementwise_cells() { return {}; }
  // The same where an update looks at whole parameters. Neither: it cannot be sharded.
  virtual std::vector<std::vector<Array>*> cells_of_parameters() { return {}; }
  // How many elements of a cell of list `list` are of the parameters that end at `element` of an arena.
  virtual std::int64_t state_before(std::size_t list, std::size_t arena, std::int64_t element) const;
  virtual void follow_share() {}  // for what else goes with the cells, once they are of this rank's share
  Array share_of(std::size_t arena, const Array& gradient) const;  // this rank's elements of it
  // The updates of one arena for the step after step_count(), with a gradient that has been clipped.
  virtual std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const = 0;
  // The number of this step, from 1, among those that were not skipped: one element on the device where a scaler may
  // have skipped some, else an empty handle, and the number is step_count() + 1.
  Array steps_taken() const;
  // For nodes that write cells themselves: [0] is 0 where a scaler skips this step, then `numbers` ([1] each), all of
  // the arena's dtype; an empty handle where there never was a scaler.
  Array control(std::size_t arena, std::initializer_list<Array> numbers = {}) const;
  const GroupOptions& options_of(std::size_t arena) const;
  double rate_of(std::size_t arena) const;
  // Cells of zeros for each arena, and for one, of the dtype of moments.
  std::vector<Array> zeros_for_arenas(const char* name) const;
  Array zeros_for_arena(std::size_t arena, const char* name) const;
  // The same for momentum: an empty handle for an arena whose group was made without.
  std::vector<Array> momentum_buffers() const;
  // A moment's cell as a step computes with it, and its cell with what the step makes of it, rounded where it is
  // narrower. `moment` tells those of an optimizer apart.
  Array widened(std::size_t arena, const Array& cell) const;
  CellUpdate kept(std::size_t arena, const Array& cell, const Array& next, int moment) const;
  // An arena's parameters as a step computes with them, and what the step makes of them, rounded by chance where they
  // are narrower.
  Array weights(std::size_t arena) const;
  CellUpdate written(std::size_t arena, const Array& next) const;
  Dtype compute_dtype(std::size_t arena) const { return arenas()[arena].dtype() == f64 ? f64 : f32; }
  // The cells that there are, as "0.momentum".
  std::vector<StateArray> named(const char* name, const std::vector<Array>& cells) const;
  static void require_range(const char* name, const char* option, double value, double low, double high);
  const std::string& name() const;

 private:
  friend class Accumulator;
  friend class GradScaler;
  struct StepParts;
  struct Impl;
  void run(const std::function<StepParts()>& parts);
  std::vector<Array> all_updates(StepParts parts);
  std::vector<CellUpdate> updates_of_share(std::size_t arena, const Array& gradient) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace samebytes::optim
