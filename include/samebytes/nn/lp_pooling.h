// Pooling by p-norms, channels last: (sum of |x|^p over the window)^(1 / p), see lp_pool2d() (ops/pool.h). Layers throw
// what the ops throw.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"
#include "samebytes/nn/size2.h"
#include "samebytes/nn/size3.h"

namespace samebytes::nn {

struct LpPool1dOptions {
  double p = 2;  // above 0
  int kernel = 2;
  int stride = 0;  // 0: the kernel's size
  int pad = 0;
  bool ceil_mode = false;
  int dilation = 1;
  std::optional<int> pad_end{};  // not set: as pad
};

class LpPool1d final : public Module {
 public:
  explicit LpPool1d(const LpPool1dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "LpPool1d"; }
  std::string describe() const override;
  const LpPool1dOptions& options() const { return options_; }

 private:
  LpPool1dOptions options_;
};

struct LpPool2dOptions {
  double p = 2;  // above 0
  Size2 kernel = 2;
  Size2 stride = 0;  // 0: the kernel's size
  Size2 pad = 0;
  bool ceil_mode = false;
  Size2 dilation = 1;
  std::optional<Size2> pad_end{};  // not set: as pad
};

class LpPool2d final : public Module {
 public:
  explicit LpPool2d(const LpPool2dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "LpPool2d"; }
  std::string describe() const override;
  const LpPool2dOptions& options() const { return options_; }

 private:
  LpPool2dOptions options_;
};

struct LpPool3dOptions {
  double p = 2;  // above 0
  Size3 kernel = 2;
  Size3 stride = 0;  // 0: the kernel's size
  Size3 pad = 0;
  bool ceil_mode = false;
  Size3 dilation = 1;
  std::optional<Size3> pad_end{};  // not set: as pad
};

class LpPool3d final : public Module {
 public:
  explicit LpPool3d(const LpPool3dOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "LpPool3d"; }
  std::string describe() const override;
  const LpPool3dOptions& options() const { return options_; }

 private:
  LpPool3dOptions options_;
};

}  // namespace samebytes::nn
