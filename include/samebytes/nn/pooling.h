// Pooling layers, channels last: over sequences x [N, L, C] -> [N, L', C], over images x [N, H, W, C] ->
// [N, H', W', C], global pooling -> [N, C].
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"

namespace samebytes::nn {

struct MaxPool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;     // at most half the kernel
  bool ceil_mode = false;
};

class MaxPool1d final : public Module {
 public:
  explicit MaxPool1d(const MaxPool1dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "MaxPool1d"; }
  std::string describe() const override;
  const MaxPool1dOptions& options() const { return options_; }

 private:
  MaxPool1dOptions options_;
};

struct AvgPool1dOptions {
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;     // at most half the kernel
  bool ceil_mode = false;
  bool count_include_pad = true;
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

// Pooling to a given output size, for x of any size: AdaptiveAvgPool2d({1, 1}), AdaptiveMaxPool1d(8).
class AdaptiveAvgPool1d final : public Module {
 public:
  explicit AdaptiveAvgPool1d(int out) : out_(out) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AdaptiveAvgPool1d"; }
  std::string describe() const override;
  int out() const { return out_; }

 private:
  int out_;
};

class AdaptiveMaxPool1d final : public Module {
 public:
  explicit AdaptiveMaxPool1d(int out) : out_(out) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AdaptiveMaxPool1d"; }
  std::string describe() const override;
  int out() const { return out_; }

 private:
  int out_;
};

class AdaptiveAvgPool2d final : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2 out) : out_(out) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AdaptiveAvgPool2d"; }
  std::string describe() const override;
  Size2 out() const { return out_; }

 private:
  Size2 out_;
};

class AdaptiveMaxPool2d final : public Module {
 public:
  explicit AdaptiveMaxPool2d(Size2 out) : out_(out) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AdaptiveMaxPool2d"; }
  std::string describe() const override;
  Size2 out() const { return out_; }

 private:
  Size2 out_;
};

}  // namespace samebytes::nn
