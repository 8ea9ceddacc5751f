// Flatten: [N, ...] -> [N, size], a view. Images are channels last, so the columns of a Linear after it are in
// (position, channel) order; files keep PyTorch's (channel, position). Converters find the number of channels in
// NamedArray::flattened_channels: the option below if set, otherwise that of the last images seen, otherwise that of
// the preceding convolution.
#pragma once

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct FlattenOptions {
  std::int64_t channels = 0;  // of the images; needed only if no convolution precedes
};

class Flatten final : public Module {
 public:
  explicit Flatten(const FlattenOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Flatten"; }
  // [H, W, C] of the last images seen; empty before the first call and after an x that was not [N, H, W, C].
  const Shape& seen() const { return seen_; }

 private:
  FlattenOptions options_;
  Shape seen_;
};

}  // namespace samebytes::nn
