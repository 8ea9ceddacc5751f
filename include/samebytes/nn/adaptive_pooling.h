// Pooling to a given output size, channels last, for x of any size: AdaptiveAvgPool2d({1, 1}), AdaptiveMaxPool1d(8).
// The windows are those of adaptive_avg_pool2d() and its like (ops/pool.h); layers throw what the ops throw.
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"
#include "samebytes/nn/size3.h"

namespace samebytes::nn {

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

class AdaptiveAvgPool3d final : public Module {
 public:
  explicit AdaptiveAvgPool3d(Size3 out) : out_(out) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AdaptiveAvgPool3d"; }
  std::string describe() const override;
  Size3 out() const { return out_; }

 private:
  Size3 out_;
};

class AdaptiveMaxPool3d final : public Module {
 public:
  explicit AdaptiveMaxPool3d(Size3 out) : out_(out) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "AdaptiveMaxPool3d"; }
  std::string describe() const override;
  Size3 out() const { return out_; }

 private:
  Size3 out_;
};

}  // namespace samebytes::nn
