// Optimizer: what Sgd, Adam and AdamW share. The constructor lays the parameters into arenas (arena.h), one for each
// dtype and as many more as the device's largest allocation asks for; a parameter that comes twice counts once. step()
// adds gradients and update to the graph, enqueues them in one evaluation and returns at once; without clipping the
// update is one launch for each arena.
//
// Gradient release (update inside backward): parameters are updated in groups of neighbours, each as soon as its
// gradients are final, so that the gradients are never all there at once; the parameters become the same, bit for bit.
// Without clip_norm it happens by itself where an arena has 64 MiB or more. With release_gradients it is asked for: it
// also happens where there is less, and what needs all gradients together is an ArgumentError: clip_norm, Accumulator,
// step_flat. A launch that cannot be enqueued may then leave some parameters updated and others not; they are lost.
//
// An optimizer moves, is not copied, and is used by one thread at a time. While it
// lives its parameters belong to it: another optimizer on one of them throws ArgumentError.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/optim/arena.h"

namespace samebytes::optim {

// A part of an optimizer's state: a flat cell, to be read with host() and restored with assign().
struct StateArray {
  std::string name;  // "0.moment1": number of the arena and what it is
  Array array;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step down the gradient of loss. A parameter that loss does not depend on has gradient 0. Throws as gradients()
  // does.
  void step(const Array& loss);
  // One step with gradients that the caller has, one for each of parameters().
  void step(std::span<const Array> gradients);
  // One step with flat gradients, one for each of arenas(). Throws ArgumentError with release_gradients.
  void step_flat(std::span<const Array> gradients);

  const std::vector<Array>& parameters() const { return parameters_; }
  const std::vector<ParameterArena>& arenas() const { return arenas_; }
  // The flat gradient of each arena; nothing runs.
  std::vector<Array> flat_gradients(const Array& loss) const;
  std::vector<Array> flat_gradients(std::span<const Array> gradients) const;

  bool releases_gradients() const { return releases_gradients_; }

  double rate() const { return rate_; }  // of the next step
  void set_rate(double rate);            // ends a schedule
  // From now on step k (the first is 0) uses schedule(k).
  void set_schedule(std::function<double(std::int64_t step)> schedule);

  std::int64_t step_count() const { return step_count_; }  // steps taken
  void set_step_count(std::int64_t count);                 // when a saved state is restored
  virtual std::vector<StateArray> state() const = 0;

 protected:
  struct Common {
    double rate;
    double clip_norm;   // 0: off
    double clip_value;  // 0: off
    bool release_gradients = false;
  };
  Optimizer(const char* name, std::span<const Array> parameters, const Common& common);
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  // The updates of one arena for the step after step_count(), with a gradient that has been clipped.
  virtual std::vector<Array> updates(std::size_t arena, const Array& gradient) const = 0;
  // A cell of zeros for each arena.
  std::vector<Array> zeros_for_arenas(const char* name) const;
  std::vector<StateArray> named(const char* name, const std::vector<Array>& cells) const;
  static void require_range(const char* name, const char* option, double value, double low, double high);

 private:
  void run(const std::function<std::vector<Array>()>& gradients);
  std::vector<Array> all_updates(std::vector<Array> gradients) const;

  std::string name_;
  double rate_;
  double clip_norm_, clip_value_;
  bool releases_gradients_;
  std::function<double(std::int64_t)> schedule_;
  std::int64_t step_count_ = 0;
  std::vector<Array> parameters_;
  std::vector<ParameterArena> arenas_;
  std::vector<std::vector<std::size_t>> places_;  // of each arena's parameters in parameters_
};

}  // namespace samebytes::optim
