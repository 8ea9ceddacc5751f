// Pooling layers, channels last, over sequences x [N, L, C] -> [N, L', C], images x [N, H, W, C] -> [N, H', W', C] and
// volumes x [N, D, H, W, C] -> [N, D', H', W', C]; global pooling -> [N, C]. Sizes, padding and what NaN does are those
// of the ops with the same names (ops/pool.h); layers throw what the ops throw. nn/unpooling.h is the way back.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"
#include "samebytes/nn/size3.h"
#include "samebytes/ops/pool.h"

namespace samebytes::nn {

struct MaxPool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;     // before x, and behind it where pad_end is not set
  bool ceil_mode = false;
  int dilation = 1;
  std::optional<int> pad_end{};
};

class MaxPool1d final : public Module {
 public:
  explicit MaxPool1d(const MaxPool1dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  PoolResult with_indices(const Input& x);  // and where the values lie, as PyTorch's return_indices, for MaxUnpool1d
  std::string kind() const override { return "MaxPool1d"; }
  std::string describe() const override;
  const MaxPool1dOptions& options() const { return options_; }

 private:
  MaxPool1dOptions options_;
};

struct AvgPool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // the divisor counts the padding
  int dilation = 1;
  std::optional<int> pad_end{};
  int divisor = 0;  // divides by this number instead of the count of places; 0: by the count
};

class AvgPool1d final : public Module {
 public:
  explicit AvgPool1d(const AvgPool1dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AvgPool1d"; }
  std::string describe() const override;
  const AvgPool1dOptions& options() const { return options_; }

 private:
  AvgPool1dOptions options_;
};

class GlobalAvgPool1d final : public Module {
 public:
  Array forward(const Array& x) override;
  std::string kind() const override { return "GlobalAvgPool1d"; }
};

struct MaxPool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: the kernel's size
  Size2 pad = 0;     // before x, and behind it where pad_end is not set
  bool ceil_mode = false;
  Size2 dilation = 1;
  std::optional<Size2> pad_end{};
};

class MaxPool2d final : public Module {
 public:
  explicit MaxPool2d(const MaxPool2dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  PoolResult with_indices(const Input& x);  // and where the values lie, as PyTorch's return_indices, for MaxUnpool2d
  std::string kind() const override { return "MaxPool2d"; }
  std::string describe() const override;
  const MaxPool2dOptions& options() const { return options_; }

 private:
  MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: the kernel's size
  Size2 pad = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // the divisor counts the padding
  Size2 dilation = 1;
  std::optional<Size2> pad_end{};
  int divisor = 0;  // divides by this number instead of the count of places; 0: by the count
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

struct MaxPool3dOptions {
  Size3 kernel = 2;
  Size3 stride = 0;  // 0: the kernel's size
  Size3 pad = 0;     // before x, and behind it where pad_end is not set
  bool ceil_mode = false;
  Size3 dilation = 1;
  std::optional<Size3> pad_end{};
};

class MaxPool3d final : public Module {
 public:
  explicit MaxPool3d(const MaxPool3dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  PoolResult with_indices(const Input& x);  // and where the values lie, as PyTorch's return_indices, for MaxUnpool3d
  std::string kind() const override { return "MaxPool3d"; }
  std::string describe() const override;
  const MaxPool3dOptions& options() const { return options_; }

 private:
  MaxPool3dOptions options_;
};

struct AvgPool3dOptions {
  Size3 kernel = 2;
  Size3 stride = 0;  // 0: the kernel's size
  Size3 pad = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  // the divisor counts the padding
  Size3 dilation = 1;
  std::optional<Size3> pad_end{};
  int divisor = 0;  // divides by this number instead of the count of places; 0: by the count
};

class AvgPool3d final : public Module {
 public:
  explicit AvgPool3d(const AvgPool3dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AvgPool3d"; }
  std::string describe() const override;
  const AvgPool3dOptions& options() const { return options_; }

 private:
  AvgPool3dOptions options_;
};

class GlobalAvgPool3d final : public Module {
 public:
  Array forward(const Array& x) override;
  std::string kind() const override { return "GlobalAvgPool3d"; }
};

}  // namespace samebytes::nn
