// The way back of max pooling, channels last: each value of x at its index, zeros elsewhere.
//   nn::MaxPool2d pool({.kernel = 2});
//   nn::MaxUnpool2d unpool({.kernel = 2});
//   const auto [values, indices] = pool.with_indices(x);
//   const Array y = unpool(values, indices);
#pragma once

#include <span>

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"
#include "samebytes/nn/size3.h"

namespace samebytes::nn {

// The options of the pooling, from which the size of the result follows: (in - 1) stride - 2 pad + kernel along each
// axis, as in PyTorch. Where several sizes pool to one, size says which.
struct MaxUnpool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;
  int size = 0;  // of the result; 0: what follows from the others
};

// (x, indices), i32 or i64 indices of x's shape: [N, L, C] -> [N, L', C]. Throws
// ArgumentError for any other number of inputs than two, and as max_unpool1d() (ops/pool.h).
class MaxUnpool1d final : public Module {
 public:
  explicit MaxUnpool1d(const MaxUnpool1dOptions& options = {}) : options_(options) {}
  Array forward_all(std::span<const Array> inputs) override;
  std::string kind() const override { return "MaxUnpool1d"; }
  std::string describe() const override;
  const MaxUnpool1dOptions& options() const { return options_; }

 private:
  MaxUnpool1dOptions options_;
};

struct MaxUnpool2dOptions {
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: the kernel's size
  Size2 pad = 0;
  Size2 size = 0;  // of the result; 0: what follows from the others
};

// (x, indices), i32 or i64 indices of x's shape: [N, H, W, C] -> [N, H', W', C].
class MaxUnpool2d final : public Module {
 public:
  explicit MaxUnpool2d(const MaxUnpool2dOptions& options = {}) : options_(options) {}
  Array forward_all(std::span<const Array> inputs) override;
  std::string kind() const override { return "MaxUnpool2d"; }
  std::string describe() const override;
  const MaxUnpool2dOptions& options() const { return options_; }

 private:
  MaxUnpool2dOptions options_;
};

struct MaxUnpool3dOptions {
  Size3 kernel = 2;
  Size3 stride = 0;  // 0: the kernel's size
  Size3 pad = 0;
  Size3 size = 0;  // of the result; 0: what follows from the others
};

// (x, indices), i32 or i64 indices of x's shape: [N, D, H, W, C] -> [N, D', H', W', C].
class MaxUnpool3d final : public Module {
 public:
  explicit MaxUnpool3d(const MaxUnpool3dOptions& options = {}) : options_(options) {}
  Array forward_all(std::span<const Array> inputs) override;
  std::string kind() const override { return "MaxUnpool3d"; }
  std::string describe() const override;
  const MaxUnpool3dOptions& options() const { return options_; }

 private:
  MaxUnpool3dOptions options_;
};

}  // namespace samebytes::nn
