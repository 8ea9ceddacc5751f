#include "samebytes/train/precision.h"

#include <vector>

#include "samebytes/error.h"
#include "samebytes/nn/module.h"
#include "samebytes/weights.h"

namespace samebytes::train {

Precision::Precision(const PrecisionOptions& options) : options_(options) {
  const Dtype dtype = options.dtype;
  if (dtype != f32 && dtype != f16 && dtype != bf16)
    throw ArgumentError(std::string("precision: expected f32, f16 or bf16, got ") + std::string(name_of(dtype)));
  if (options.bf16_weights && dtype != bf16)
    throw ArgumentError(std::string("precision: bf16_weights needs dtype bf16, got ") + std::string(name_of(dtype)));
  if (dtype == f16 && options.trains) scaler_.emplace(options.scaler);
}

void Precision::prepare(nn::Module& net) const {
  if (options_.dtype == f32) return;
  std::vector<Array> alone, copied;  // frozen ones too, which would be cast in every step
  for (const nn::NamedArray& entry : net.named_parameters())
    (options_.bf16_weights && !entry.is_adapter ? alone : copied).push_back(entry.array);
  store_in_bf16(alone);
  keep_working_copies(copied, options_.dtype);
}

std::unique_ptr<Autocast> Precision::scope() const {
  return options_.dtype == f32 ? nullptr : std::make_unique<Autocast>(AutocastOptions{.dtype = options_.dtype});
}

void Precision::step(optim::Optimizer& optimizer, const Array& loss) {
  if (scaler_)
    scaler_->step(optimizer, loss);
  else
    optimizer.step(loss);
}

Array Precision::scaled(const Array& loss) { return scaler_ ? scaler_->scale(loss) : loss; }

void Precision::step(optim::Accumulator& accumulator) {
  if (!scaler_) return accumulator.step();
  accumulator.step(*scaler_);
  scaler_->update();
}

void Precision::step(optim::Accumulator& accumulator, const Array& loss, double samples) {
  if (scaler_)
    accumulator.step(scaler_->scale(loss), samples, *scaler_);
  else
    accumulator.step(loss, samples);
}

}  // namespace samebytes::train
