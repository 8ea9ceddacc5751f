// Flatten: [N, ...] -> [N, size], a view. Images are channels last, so a Linear behind it has its columns in (position,
// channel) order; files keep PyTorch's (channel, position). Whoever converts finds the number of channels in
// NamedArray::flattened_channels: those given here, else those of the images last seen, else those of the last
// convolution before.
#pragma once

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct FlattenOptions {
  std::int64_t channels = 0;  // of the images; needed only where no convolution comes before
};

class Flatten final : public Module {
 public:
  explicit Flatten(const FlattenOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Flatten"; }
  // [H, W, C] of the images last seen; an empty shape before, and where x was not [N, H, W, C].
  const Shape& seen() const { return seen_; }

 private:
  FlattenOptions options_;
  Shape seen_;
};

}  // namespace samebytes::nn
