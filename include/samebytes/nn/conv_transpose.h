// ConvTranspose1d, ConvTranspose2d, ConvTranspose3d: transposed convolutions over sequences, images and volumes,
// channels last.
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"
#include "samebytes/nn/size3.h"

namespace samebytes::nn {

struct ConvTranspose1dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  int kernel = 1;
  int stride = 1;
  int pad = 0;
  int output_pad = 0;  // added to the end of the result; below stride or dilation
  int dilation = 1;
  int groups = 1;
  bool bias = true;
  Dtype dtype = f32;
};

// x [N, L, in] -> [N, L', out] with L' = (L - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1. weight
// [kernel, out / groups, in] and bias [out] start uniform in +-1 / sqrt(kernel out / groups), as in PyTorch. Throws
// ArgumentError for sizes below 1 and channels that groups do not divide.
class ConvTranspose1d final : public Module {
 public:
  explicit ConvTranspose1d(const ConvTranspose1dOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "ConvTranspose1d"; }
  std::string describe() const override;

  const ConvTranspose1dOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  ConvTranspose1dOptions options_;
  Parameter weight_, bias_;
};

struct ConvTranspose2dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Size2 kernel = 1;
  Size2 stride = 1;
  Size2 pad = 0;
  Size2 output_pad = 0;  // added to the end of the result; below stride or dilation
  Size2 dilation = 1;
  int groups = 1;
  bool bias = true;
  Dtype dtype = f32;
};

// x [N, H, W, in] -> [N, H', W', out], sizes as above; weight [kh, kw, out / groups, in].
class ConvTranspose2d final : public Module {
 public:
  explicit ConvTranspose2d(const ConvTranspose2dOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "ConvTranspose2d"; }
  std::string describe() const override;

  const ConvTranspose2dOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  ConvTranspose2dOptions options_;
  Parameter weight_, bias_;
};

struct ConvTranspose3dOptions {
  std::int64_t in = 0;
  std::int64_t out = 0;
  Size3 kernel = 1;
  Size3 stride = 1;
  Size3 pad = 0;
  Size3 output_pad = 0;  // added to the end of the result; below stride or dilation
  Size3 dilation = 1;
  int groups = 1;
  bool bias = true;
  Dtype dtype = f32;
};

// x [N, D, H, W, in] -> [N, D', H', W', out], sizes as above; weight [kd, kh, kw, out / groups, in].
class ConvTranspose3d final : public Module {
 public:
  explicit ConvTranspose3d(const ConvTranspose3dOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "ConvTranspose3d"; }
  std::string describe() const override;

  const ConvTranspose3dOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }
  const Array& bias() const { return bias_; }  // an empty handle without bias

 private:
  ConvTranspose3dOptions options_;
  Parameter weight_, bias_;
};

}  // namespace samebytes::nn
