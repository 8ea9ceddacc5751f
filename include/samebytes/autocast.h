// Mixed precision: inside an Autocast scope matrix products, convolutions, attention and look-ups read and give 16-bit
// arrays (arithmetic stays f32), losses and long sums stay f32, and everything between takes what comes. Parameters
// stay f32; their 16-bit values are made once, or kept beside them by keep_working_copies(). The model is PyTorch's
// torch.autocast; docs/precision.md has the table and when not to use it. Scopes belong to a thread and may be nested.
//   keep_working_copies(net.parameters(), f16);            // before the optimizer is made
//   optim::GradScaler scaler;                              // f16 only
//   { const Autocast use({.dtype = f16}); loss = cross_entropy(net(image), label); }
//   scaler.step(adam, loss);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "samebytes/array.h"

namespace samebytes {

// What an op does with its floating f32 and 16-bit inputs inside a scope. f64 and integers are never cast.
enum class CastRule : std::uint8_t {
  lower,     // they are cast to the scope's dtype, which the result has, too
  keep_f32,  // they are cast to f32
  widest,    // to the widest of them, for ops that need one dtype
  as_given,  // they stay what they are: 16 bits in, 16 bits out, sums inside in f32
};
std::string_view name_of(CastRule rule);  // "lower", "keep_f32", "widest", "as_given"

// The rule of each op that asks for one, by the name of its function. Pointwise ops but exp, log and pow, pooling,
// dropout and layout have none: they are as given, and f16 beside f32 gives f32. A value; copies are independent.
class AutocastPolicy {
 public:
  AutocastPolicy();  // the rules that stand beside the functions
  // Both throw ArgumentError for an op that is not in the table, naming those that are.
  CastRule rule(std::string_view op) const;
  AutocastPolicy& set(std::string_view op, CastRule rule);
  const std::map<std::string, CastRule, std::less<>>& table() const { return rules_; }

 private:
  std::map<std::string, CastRule, std::less<>> rules_;
};

// The policy of the current engine, which scopes opened from now on use where they have none of their own.
AutocastPolicy autocast_policy();
void set_autocast_policy(const AutocastPolicy& policy);

struct AutocastOptions {
  Dtype dtype = bf16;   // f16 or bf16
  bool enabled = true;  // false: as outside of any scope, also inside another one
  std::optional<AutocastPolicy> policy = {};
};

class Autocast {
 public:
  // Throws ArgumentError for a dtype that is not f16 or bf16.
  explicit Autocast(const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // Cast nodes made in this scope. A cell is cast once for all that read the same value of it; with a working copy not
  // at all. Where no gradient is wanted (NoGrad) the cast of a cell is kept until the scope ends or the cell changes.
  std::int64_t casts() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  State* outer_;
};
// The dtype of this thread's scope; empty where none is open or enabled.
std::optional<Dtype> autocast_dtype();

// Gives each f32 parameter of two axes and more a copy in dtype (f16 or bf16), which ops of rule `lower` read inside a
// scope of that dtype. Biases and weights of norms have none and stay f32. Whatever changes a parameter changes its
// copy: an optimizer made afterwards writes both in its one update launch. The gradient of such a parameter
// (gradients(), Optimizer::flat_gradients()) has the dtype of its copy. A parameter that has a copy of this dtype is
// left as it is. Throws ArgumentError for another dtype, for what is not a cell, and for a parameter that already
// belongs to an optimizer.
void keep_working_copies(std::span<const Array> parameters, Dtype dtype);
// The copy of a parameter; an empty handle where there is none.
Array working_copy(const Array& parameter);

}  // namespace samebytes
