// Upsample: resizes images, channels last.
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"
#include "samebytes/ops/resize.h"

namespace samebytes::nn {

struct UpsampleOptions {
  Size2 size = 0;    // of the result; 0: use `scale`
  double scale = 0;  // both axes
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;
};

// x [N, H, W, C] -> [N, H', W', C], see resize(). Throws ArgumentError unless exactly one of size and scale is given.
class Upsample final : public Module {
 public:
  explicit Upsample(const UpsampleOptions& options);
  Array forward(const Array& x) override;
  std::string kind() const override { return "Upsample"; }
  std::string describe() const override;
  const UpsampleOptions& options() const { return options_; }

 private:
  UpsampleOptions options_;
};

}  // namespace samebytes::nn
