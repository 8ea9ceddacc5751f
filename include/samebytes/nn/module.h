// Module: a layer, a block or a whole network - a forward function with named parameters, buffers and children.
// A module is a value. Its parameters are cells (array.h), made on the device at their first use: constructing or
// moving a module computes nothing. A copy has cells of its own with the same values, so that training one leaves the
// other; nn::clone() says so where it is read, and nn::tied() makes a layer on the very cells of another. A module
// belongs to the engine that was current when it was made. A user's own module derives from Module, holds its children
// as members and its own cells as Parameters, and names everything once, in visit():
//   class Net : public nn::Module {
//    public:
//     Array forward(const Array& x) override { return out_(relu(in_(x))); }
//     void visit(nn::Visitor& v) override { v.child("in", in_); v.child("out", out_); }
//    private:
//     nn::Linear in_{{.in = 784, .out = 128}}, out_{{.in = 128, .out = 10}};
//   };
// A module is used by one thread at a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
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

// How a parameter lies in memory, for whoever converts it. Shapes: linear [out, in]; linear_transposed is a linear
// whose file has [in, out] (GPT-2's Conv1D); conv [taps..., in / groups, out] with one axis of taps for each axis of
// the sequence, image or volume; conv_transpose [taps..., out / groups, in].
enum class Layout : std::uint8_t { plain, linear, linear_transposed, conv, conv_transpose };

// A cell that belongs to a module: a parameter, or a buffer. Used as an array it is a handle on the cell; a copy is
// another cell with the same value, which is computed at once.
class Parameter : public Array {
 public:
  Parameter() = default;  // none
  explicit Parameter(const Array& cell) : Array(cell) {}
  Parameter(const Parameter& other);
  Parameter(Parameter&& other) noexcept = default;
  Parameter& operator=(const Parameter& other) &;
  Parameter& operator=(Parameter&& other) & noexcept = default;
};
using Buffer = Parameter;

// The adapter of a linear layer, or none (lora.h). A copy has an adapter of its own.
class Adapter : public std::shared_ptr<Lora> {
 public:
  Adapter() = default;
  Adapter(std::shared_ptr<Lora> lora) : shared_ptr(std::move(lora)) {}
  Adapter(const Adapter& other);
  Adapter(Adapter&& other) noexcept = default;
  Adapter& operator=(const Adapter& other) &;
  Adapter& operator=(Adapter&& other) & noexcept = default;
};

// One entry of a module's state, with the name that PyTorch's state_dict gives it ("0.weight", "1.running_mean").
struct NamedArray {
  std::string name;
  Array array;  // the cell
  Layout layout = Layout::plain;
  bool is_buffer = false;  // running statistics: saved, never trained
  bool is_frozen = false;
  bool is_adapter = false;  // of a Lora (lora.h)
  // Of a linear weight behind a Flatten of images with so many channels: its columns run over (position, channel) here
  // and over (channel, position) in PyTorch. 0: not behind a Flatten, or the channels are not known.
  std::int64_t flattened_channels = 0;
};

// Told by Module::visit what a module consists of, in order.
class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void parameter(std::string_view name, const Parameter& cell, Layout layout = Layout::plain) = 0;
  virtual void buffer(std::string_view name, const Buffer& cell) = 0;
  virtual void child(std::string_view name, Module& module) = 0;
  // A linear layer of this module, y = x weight^T + bias, by the name that its parameters begin with ("" where they
  // have none), after them: where apply_lora() puts an adapter. One that is there is a child without a name.
  virtual void projection(std::string_view name, const Array& weight, Adapter& adapter);
  // Here images leave with so many channels; called by convolutions.
  virtual void channels(std::int64_t /*count*/) {}
  // Here images become rows; `channels` 0 means those of the last convolution before.
  virtual void flatten(std::int64_t /*channels*/) {}
};

class Module {
 public:
  virtual ~Module() = default;

  // Adds this module's ops to the graph; nothing runs. Throws ArgumentError where x does not fit, as the ops do.
  virtual Array forward(const Array& x) = 0;
  Array operator()(const Array& x);

  // Names parameters, buffers and children, in the order of construction.
  virtual void visit(Visitor& /*visitor*/) {}
  // What it is: "Linear".
  virtual std::string kind() const { return "Module"; }
  // kind() and its options: "Linear(in=784, out=10)".
  virtual std::string describe() const { return kind(); }

  // The trainable parameters in order, a shared one once; what an optimizer takes. Frozen ones are left out.
  // The lists are const, since an entry is a handle: parameters()[0] = x would change no parameter and does not
  // compile. assign(parameters()[0], x) does.
  const std::vector<Array> parameters() const;
  // All parameters with their names, frozen and shared ones too.
  const std::vector<NamedArray> named_parameters() const;
  const std::vector<NamedArray> named_buffers() const;
  // Parameters and buffers in the order of PyTorch's state_dict.
  const std::vector<NamedArray> state() const;
  // Numbers in all parameters, shared ones counted once, buffers not.
  std::int64_t parameter_count() const;
  // ... of those that are not frozen.
  std::int64_t trainable_parameter_count() const;
  // All modules below and this one, each with its path ("" for this one, "2.block").
  struct NamedModule {
    std::string name;
    Module* module;
  };
  std::vector<NamedModule> modules();

  // Training mode (the default): batch statistics and dropout. Evaluation mode: running statistics, no dropout. With
  // children.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const;
  // Keeps this module's parameters, and its children's, out of parameters(). A child may be freed again by itself.
  void freeze(bool on = true);
  bool is_frozen() const { return frozen_; }

  // How the blocks of this module's stacks, and its children's, are checkpointed in training mode (checkpoint.h); off()
  // ends it. The uppermost stacks are divided, not those inside their blocks. Throws ArgumentError where there is none.
  void gradient_checkpointing(const Checkpointing& how = Checkpointing::every(1));
  const Checkpointing& checkpointing() const { return checkpointing_; }

 protected:
  Module() = default;
  // Throws ArgumentError where parameters of `other` are tied, which a plain copy would untie: clone() keeps them so.
  Module(const Module& other);
  Module(Module&&) = default;
  Module& operator=(const Module& other);
  Module& operator=(Module&&) = default;

  // True where forward() runs a stack of blocks by run_blocks().
  virtual bool is_stack() const { return false; }
  bool is_checkpointed() const { return checkpointing_.is_on() && is_training(); }
  // What operator() does around forward(), for another way through this module: layers have their names.
  Array call(const std::function<Array()>& body);
  // block(0), block(1), ..., block(count - 1), in segments where this module is checkpointed.
  void run_blocks(std::size_t count, const std::function<void(std::size_t)>& block) const;

 private:
  // Gives all modules below this one path and kind ("2.block ResidualBlock") as names of layers in a profile.
  void name_layers();

  bool training_ = true;
  bool frozen_ = false;
  Checkpointing checkpointing_;
  Label layer_;
  const Module* named_as_root_ = nullptr;  // this one, once it was; a copy or a moved one is named again
};

// Not for users: what copies of Parameters and Adapters in this thread are while it lives: each once for all that share
// it, or shared with the original.
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

// A copy with parameters, buffers and adapters of its own, of the same values, names and modes. What is tied inside the
// module is tied inside the copy.
template <std::derived_from<Module> M>
M clone(const M& module) {
  const Copies scope(Copies::Kind::own);
  return M(module);
}

// A module with the very parameters of this one, as in a network that uses a layer twice:
//   nn::Linear layer({.in = 8, .out = 8});
//   nn::Sequential net(nn::tied(layer), nn::Relu(), std::move(layer));
template <std::derived_from<Module> M>
M tied(const M& module) {
  const Copies scope(Copies::Kind::shared);
  return M(module);
}

}  // namespace samebytes::nn
