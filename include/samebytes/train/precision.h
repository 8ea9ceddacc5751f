// Precision: the dtypes of a run. It computes in f32; or with 16-bit activations, gradients and working copies of the
// parameters; or, with bf16_weights, with parameters in bf16 only. f16 uses a loss scaler, bf16 needs none.
//   train::Precision precision({.dtype = bf16});
//   precision.prepare(net);               // before the optimizer is made
//   optim::AdamW adam(net.parameters());
//   const auto scope = precision.scope(); // while the forward pass and the loss are built
#pragma once

#include <memory>
#include <optional>

#include "samebytes/autocast.h"
#include "samebytes/dtype.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/grad_scaler.h"

namespace samebytes::nn {
class Module;
}

namespace samebytes::train {

struct PrecisionOptions {
  Dtype dtype = f32;                     // or f16, bf16
  bool bf16_weights = false;             // with bf16: no f32 master copy of the parameters
  bool trains = true;                    // false: takes no gradients, so f16 has no scaler
  optim::GradScalerOptions scaler = {};  // of f16
};

class Precision {
 public:
  // Throws ArgumentError for another dtype, and for bf16_weights without bf16.
  explicit Precision(const PrecisionOptions& options = {});

  // Converts the parameters as the options say; adapters stay in f32.
  void prepare(nn::Module& net) const;
  std::unique_ptr<Autocast> scope() const;  // null for f32

  // One step of the optimizer, with loss scaling if there is a scaler.
  void step(optim::Optimizer& optimizer, const Array& loss);
  // The same in parts: scaled() returns the loss to differentiate for each piece, step() updates after all pieces.
  Array scaled(const Array& loss);
  void step(optim::Accumulator& accumulator);
  // The update together with the last piece, in one evaluation.
  void step(optim::Accumulator& accumulator, const Array& loss, double samples);

  Dtype dtype() const { return options_.dtype; }
  const optim::GradScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }
  optim::GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }

 private:
  PrecisionOptions options_;
  std::optional<optim::GradScaler> scaler_;
};

}  // namespace samebytes::train
