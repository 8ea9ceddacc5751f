// Networks that only answer. A frozen module builds the graph of its module without running the module's code, and
// computes what follows from weights alone once instead of in every call: norms folded into the convolutions in front
// of them, filters transformed for minimal filtering, matrices packed for products of few rows.
//   net.eval();
//   nn::FrozenModule frozen = nn::freeze_for_inference(net);
//   const Array y = frozen(x);   // what net(x) gives
// Results are the same bytes, but for products of 8 to 32 rows or of a thousand terms, which may add up in another
// order.
// The first two calls with inputs of some shapes and dtypes run the module's code; later ones repeat what it built.
// So forward() must build the same for the same shapes: code that reads values of arrays, draws random numbers or
// updates cells is run each time instead, but members that the code looks at must not change; after such a change, call
// reset(). Weights may change: any write to one makes the next call compute what followed from it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "samebytes/nn/module.h"

namespace samebytes::detail {
class Recordings;
}

namespace samebytes::nn {

struct FreezeOptions {
  // Bytes that may be kept beside the weights for inputs of one kind; where more would be needed, nothing is kept. Kept
  // values count as parameters in the memory report. They are also left out where memory does not suffice.
  std::size_t most_kept_bytes = std::numeric_limits<std::size_t>::max();
};

struct FreezeReport {
  std::size_t graphs = 0;       // that were recorded: one for inputs of each kind, of the last eight
  std::size_t kept = 0;         // values that stand beside the weights
  std::size_t kept_bytes = 0;   // of them; those that several graphs share count once
  std::string to_text() const;  // "1 graph, 41 values (1.14 MB) beside the weights"
};

// Refers to a module, which must live as long. Several threads may call it at once, as they may a module in evaluation
// mode, each under its own EngineScope. onnx::save() and nn::summary() take the module.
class FrozenModule : public Module {
 public:
  static constexpr int kCallsToRecord = 2;  // for inputs of a kind
  explicit FrozenModule(Module& module, const FreezeOptions& options = {});
  FrozenModule(FrozenModule&&) = default;
  FrozenModule& operator=(FrozenModule&&) = default;
  Module& module() const { return *module_; }
  // As the module's, without gradients. In training mode, in an Autocast scope and for inputs that are views, it is the
  // module's code that runs.
  Array forward(const Array& x) override { return forward_all({&x, 1}); }
  Array forward_all(std::span<const Array> inputs) override;
  void visit(Visitor& visitor) override { visitor.child("", *module_); }
  std::string kind() const override { return "Frozen"; }
  std::string describe() const override { return "Frozen(" + module_->describe() + ")"; }
  FreezeReport report() const;
  // Forgets what was recorded and kept.
  void reset();

 private:
  Module* module_;
  std::shared_ptr<detail::Recordings> graphs_;
};

// Puts the module into evaluation mode.
FrozenModule freeze_for_inference(Module& module, const FreezeOptions& options = {});

}  // namespace samebytes::nn
