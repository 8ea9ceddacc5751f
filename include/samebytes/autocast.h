// Mixed precision: inside an Autocast scope matrix products, convolutions, attention and look-ups read and return
// 16-bit arrays (arithmetic stays f32), losses and long sums stay f32, and other ops accept either. Parameters stay
// f32; they are cast once, or have 16-bit copies from keep_working_copies(). The model is PyTorch's torch.autocast;
// docs/precision.md has the table of ops and when not to use it. Scopes belong to a thread and may be nested.
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

// How an op treats its f32 and 16-bit inputs inside a scope. f64 and integers are never cast.
enum class CastRule : std::uint8_t {
  lower,     // casts them to the scope's dtype, which the result has, too
  keep_f32,  // casts them to f32
  widest,    // casts to the widest of them, for ops that need one dtype
  as_given,  // no cast: 16 bits in, 16 bits out, inner sums in f32
};
std::string_view name_of(CastRule rule);  // "lower", "keep_f32", "widest", "as_given"

// The rule of each op that has one, by the name of its function. Pointwise ops except exp, log and pow, pooling,
// dropout and layout ops have none: they do not cast, and f16 with f32 gives f32. A value; copies are independent.
class AutocastPolicy {
 public:
  AutocastPolicy();  // the default rules
  // Both throw ArgumentError for an op that is not in the table, listing those that are.
  CastRule rule(std::string_view op) const;
  AutocastPolicy& set(std::string_view op, CastRule rule);
  const std::map<std::string, CastRule, std::less<>>& table() const { return rules_; }

 private:
  std::map<std::string, CastRule, std::less<>> rules_;
};

// The current engine's policy; scopes opened later use it unless they have their own.
AutocastPolicy autocast_policy();
void set_autocast_policy(const AutocastPolicy& policy);

struct AutocastOptions {
  Dtype dtype = bf16;   // f16 or bf16
  bool enabled = true;  // false: no casts, even inside another scope
  std::optional<AutocastPolicy> policy = {};
};

class Autocast {
 public:
  // Throws ArgumentError for a dtype that is not f16 or bf16.
  explicit Autocast(const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // Number of cast nodes made in this scope. A cell is cast once for all readers of the same value; one with a working
  // copy is not cast. Under NoGrad the cast of a cell is kept until the scope ends or the cell changes.
  std::int64_t casts() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
  State* outer_;
};
// The dtype of this thread's scope; nullopt if none is open or enabled.
std::optional<Dtype> autocast_dtype();

// Gives each f32 parameter with two or more axes a copy in dtype (f16 or bf16), which ops with rule `lower` read inside
// a scope of that dtype. Biases and weights of norms get none and stay f32. Every update of a parameter updates its
// copy: an optimizer made afterwards writes both in its update launch. The gradient of such a parameter (gradients(),
// Optimizer::flat_gradients()) has the dtype of its copy. Skips a parameter that already has a copy with this dtype.
// Throws ArgumentError for another dtype, for an array that is not a cell, and for a parameter that already belongs to
// an optimizer.
void keep_working_copies(std::span<const Array> parameters, Dtype dtype);
// The copy of a parameter; an empty handle if it has none.
Array working_copy(const Array& parameter);

}  // namespace samebytes
