// Module: a layer, a block or a whole network - a forward function with named parameters, buffers and children.
// A module is a value. Its parameters are cells (array.h), made on the device at their first use: constructing or
// moving a module computes nothing. A copy has its own cells with the same values, so training one leaves the other
// unchanged; nn::clone() makes such a copy explicit, and nn::tied() makes a layer that shares the cells of another. A
// module belongs to the engine that was current when it was made. A user's own module derives from Module, holds its
// children as members and its own cells as Parameters, and names them all once, in visit():
//   class Net : public nn::Module {
//    public:
//     Array forward(const Array& x) override { return out_(relu(in_(x))); }
//     void visit(nn::Visitor& v) override { v.child("in", in_); v.child("out", out_); }
//    private:
//     nn::Linear in_{{.in = 784, .out = 128}}, out_{{.in = 128, .out = 10}};
//   };
// A module with several inputs overrides forward_all() and is called as net(image, text) or net({image, text}).
// A child that forward() calls but visit() does not name would never train: that call throws ArgumentError.
// In evaluation mode several threads may call one module at once, each under its own EngineScope and NoGrad; training,
// loading, freezing and changing the mode take one thread at a time.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/checkpoint.h"
#include "samebytes/profile.h"

namespace samebytes::nn {

class Lora;
class Module;
class QuantizedWeight;

// How a parameter lies in memory, for code that converts it. Shapes: linear [out, in]; linear_transposed is a linear
// that files store as [in, out] (GPT-2's Conv1D); conv [taps..., in / groups, out] with one axis of taps for each
// spatial axis; conv_transpose [taps..., out / groups, in].
enum class Layout : std::uint8_t { plain, linear, linear_transposed, conv, conv_transpose };

// A cell that belongs to a module: a parameter, or a buffer. As an Array it is a handle on the cell. A copy is a new
// cell with the same value, which is computed at once.
class Parameter : public Array {
 public:
  Parameter() = default;  // none
  explicit Parameter(const Array& cell) : Array(cell) {}
  Parameter(const Parameter& other);
  Parameter(Parameter&& other) noexcept = default;
  Parameter& operator=(const Parameter& other) &;
  Parameter& operator=(Parameter&& other) & noexcept = default;

  // What quantize() (quantize.h) made of a weight, which layers multiply instead; null: nothing. A copy has it, too.
  const std::shared_ptr<const QuantizedWeight>& quantized() const { return quantized_; }
  void set_quantized(std::shared_ptr<const QuantizedWeight> weight) const { quantized_ = std::move(weight); }

 private:
  mutable std::shared_ptr<const QuantizedWeight> quantized_;
};
using Buffer = Parameter;

// The adapter of a linear layer, or null (lora.h). A copy has its own adapter.
class Adapter : public std::shared_ptr<Lora> {
 public:
  Adapter() = default;
  Adapter(std::shared_ptr<Lora> lora) : shared_ptr(std::move(lora)) {}
  Adapter(const Adapter& other);
  Adapter(Adapter&& other) noexcept = default;
  Adapter& operator=(const Adapter& other) &;
  Adapter& operator=(Adapter&& other) & noexcept = default;
};

// One entry of a module's state, with its name in PyTorch's state_dict ("0.weight", "1.running_mean").
struct NamedArray {
  std::string name;
  Array array;  // the cell
  Layout layout = Layout::plain;
  bool is_buffer = false;  // running statistics: saved, never trained
  bool is_frozen = false;
  bool is_adapter = false;  // of a Lora (lora.h)
  // For a linear weight after a Flatten: the number of channels of the flattened images. Its columns run over
  // (position, channel) here and over (channel, position) in PyTorch. 0: not after a Flatten, or not known.
  std::int64_t flattened_channels = 0;
};

// Module::visit tells a Visitor what the module consists of, in order.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void parameter(std::string_view name, const Parameter& cell, Layout layout = Layout::plain) = 0;
  virtual void buffer(std::string_view name, const Buffer& cell) = 0;
  virtual void child(std::string_view name, Module& module) = 0;
  // Called after the parameters of a linear layer, y = x weight^T + bias, with the prefix of their names ("" if they
  // have none): apply_lora() puts an adapter here. An existing adapter is visited as a child without a name.
  virtual void projection(std::string_view name, const Array& weight, Adapter& adapter);
  // Called for a weight that multiplies in int8 after quantize() (quantize.h), if it is of one group: name as above.
  virtual void quantizable(std::string_view /*name*/, const Parameter& /*weight*/, int /*groups*/ = 1) {}
  // Called by convolutions: the number of channels of their result.
  virtual void channels(std::int64_t /*count*/) {}
  // Called where images become rows; `channels` 0 means those of the preceding convolution.
  virtual void flatten(std::int64_t /*channels*/) {}
};

class Module {
 public:
  virtual ~Module() = default;

  // Adds this module's ops to the graph; nothing runs. Throws ArgumentError if x does not fit, as the ops do. A module
  // overrides one of these two, or both: forward() for one input, forward_all() for another number of them.
  virtual Array forward(const Array& x);
  virtual Array forward_all(std::span<const Array> inputs);
  Array operator()(const Input& x);
  Array operator()(const Inputs& inputs);
  template <std::convertible_to<const Array&>... More>
  Array operator()(const Input& first, const Input& second, const More&... more) {
    const Array inputs[] = {first, second, more...};
    return call_all(inputs);
  }

  // Names parameters, buffers and children, in the order of construction.
  virtual void visit(Visitor& /*visitor*/) {}
  // The type: "Linear".
  virtual std::string kind() const { return "Module"; }
  // kind() and its options: "Linear(in=784, out=10)".
  virtual std::string describe() const { return kind(); }

  // The trainable parameters in order, shared ones once, frozen ones left out; pass these to an optimizer.
  // The lists are const because an entry is a handle: parameters()[0] = x would change no parameter, so it does not
  // compile. Write assign(parameters()[0], x).
  const std::vector<Array> parameters() const;
  // All parameters with their names, including frozen and shared ones.
  const std::vector<NamedArray> named_parameters() const;
  const std::vector<NamedArray> named_buffers() const;
  // Parameters and buffers in the order of PyTorch's state_dict.
  const std::vector<NamedArray> state() const;
  // Number of values in all parameters; shared ones count once, buffers do not count.
  std::int64_t parameter_count() const;
  // ... of those that are not frozen.
  std::int64_t trainable_parameter_count() const;
  // This module and all below it, each with its path ("" for this one, "2.block").
  struct NamedModule {
    std::string name;
    Module* module;
  };
  std::vector<NamedModule> modules();

  // Training mode (the default): batch statistics and dropout. Evaluation mode: running statistics, no dropout. Applies
  // to all children.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  // Removes the parameters of this module and its children from parameters(); freeze(false) on a child undoes it there.
  void freeze(bool on = true);
  bool is_frozen() const { return frozen_; }
  // The same for the parameters whose names match, as in "layer1.*" (fnmatch: * any text, ? one character, [a-c] a
  // set); freeze(false) ends it. Returns how many parameters match.
  std::size_t freeze_matching(const std::string& pattern);
  // Of a parameter of this module itself, by its name in visit().
  bool freezes(std::string_view parameter) const;

  // Sets how the blocks of this module's stacks, and its children's, are checkpointed in training mode (checkpoint.h);
  // off() ends it. Only the outermost stacks are divided, not those inside their blocks. Throws ArgumentError if the
  // module has no stack.
  void gradient_checkpointing(const Checkpointing& how = Checkpointing::every(1));
  const Checkpointing& checkpointing() const { return checkpointing_; }

 protected:
  Module() = default;
  // Throws ArgumentError if parameters of `other` are tied: a plain copy would untie them, clone() keeps them tied.
  Module(const Module& other);
  Module(Module&& other) noexcept;
  Module& operator=(const Module& other);
  Module& operator=(Module&& other) noexcept;

  // True if forward() runs a stack of blocks by run_blocks().
  virtual bool is_stack() const { return false; }
  bool is_checkpointed() const { return checkpointing_.is_on() && is_training(); }
  // Runs `body` as operator() runs forward(), with layers named for profiles: for another entry point of this module.
  Array call(const std::function<Array()>& body);
  // Calls block(0), block(1), ..., block(count - 1), in segments if this module is checkpointed.
  void run_blocks(std::size_t count, const std::function<void(std::size_t)>& block) const;

 private:
  Array call_all(std::span<const Array> inputs);
  // Names the layers of a profile: path and kind ("2.block ResidualBlock") of each module below this one.
  void name_layers();
  // Throws ArgumentError if `root`, whose forward() calls this module, does not name it and so would never train it.
  void require_named_by(Module& root);
  void take_modes(const Module& other);

  bool training_ = true;
  bool frozen_ = false;
  std::vector<std::string> frozen_parameters_;  // of this module itself
  Checkpointing checkpointing_;
  std::atomic<Label> layer_{};
  std::atomic<const Module*> named_as_root_{};  // this module once it is named; a copy or a moved one is named again
  std::atomic<const Module*> root_{};           // the outermost module that was last seen to name this one
};

// Not for users: while it lives, it decides what copies of Parameters and Adapters in this thread are: own (one new
// cell for all that share one) or shared with the original.
class Copies {
 public:
  enum class Kind : std::uint8_t { own, shared };
  explicit Copies(Kind kind);
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

 private:
  friend class Parameter;
  friend class Adapter;
  friend class Module;
  struct State;
  static thread_local State* current;
  std::unique_ptr<State> state_;
};

// A copy with its own parameters, buffers and adapters and the same values, names and modes. Parameters that are tied
// inside the module are tied inside the copy.
template <std::derived_from<Module> M>
M clone(const M& module) {
  const Copies scope(Copies::Kind::own);
  return M(module);
}

// A module that shares the parameters of this one, for a network that uses a layer twice:
//   nn::Linear layer({.in = 8, .out = 8});
//   nn::Sequential net(nn::tied(layer), nn::Relu(), std::move(layer));
template <std::derived_from<Module> M>
M tied(const M& module) {
  const Copies scope(Copies::Kind::shared);
  return M(module);
}

}  // namespace samebytes::nn
