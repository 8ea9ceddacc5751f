// Pooling layers over images, channels last: x [N, H, W, C] -> [N, H', W', C], global pooling -> [N, C].
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"

namespace samebytes::nn {

struct MaxPool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: the kernel's size
  Size2 pad = 0;     // at most half the kernel
  bool ceil_mode = false;
};

class MaxPool2d final : public Module {
 public:
  explicit MaxPool2d(const MaxPool2dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "MaxPool2d"; }
  std::string describe() const override;
  const MaxPool2dOptions& options() const { return options_; }

 private:
  MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: the kernel's size
  Size2 pad = 0;     // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;
};

class AvgPool2d final : public Module {
 public:
  explicit AvgPool2d(const AvgPool2dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AvgPool2d"; }
  std::string describe() const override;
  const AvgPool2dOptions& options() const { return options_; }

 private:
  AvgPool2dOptions options_;
};

class GlobalAvgPool2d final : public Module {
 public:
  Array forward(const Array& x) override;
  std::string kind() const override { return "GlobalAvgPool2d"; }
};

}  // namespace samebytes::nn
