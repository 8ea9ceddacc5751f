// Activations as modules, for Sequential; each applies the op with the same name (ops.h) to an input of any shape.
// Softmax and LogSoftmax run over an axis, by default the last.
#pragma once

#include "samebytes/nn/module.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

class Relu final : public Module {
 public:
  Array forward(const Array& x) override { return relu(x); }
  std::string kind() const override { return "Relu"; }
};

class Gelu final : public Module {
 public:
  explicit Gelu(GeluForm form = GeluForm::exact) : form_(form) {}
  Array forward(const Array& x) override { return gelu(x, form_); }
  std::string kind() const override { return "Gelu"; }
  std::string describe() const override { return form_ == GeluForm::exact ? "Gelu" : "Gelu(tanh)"; }

 private:
  GeluForm form_;
};

class Silu final : public Module {
 public:
  Array forward(const Array& x) override { return silu(x); }
  std::string kind() const override { return "Silu"; }
};

class Sigmoid final : public Module {
 public:
  Array forward(const Array& x) override { return sigmoid(x); }
  std::string kind() const override { return "Sigmoid"; }
};

class Tanh final : public Module {
 public:
  Array forward(const Array& x) override { return tanh(x); }
  std::string kind() const override { return "Tanh"; }
};

class Softmax final : public Module {
 public:
  explicit Softmax(int axis = -1) : axis_(axis) {}
  Array forward(const Array& x) override { return softmax(x, axis_); }
  std::string kind() const override { return "Softmax"; }
  std::string describe() const override;

 private:
  int axis_;
};

class LogSoftmax final : public Module {
 public:
  explicit LogSoftmax(int axis = -1) : axis_(axis) {}
  Array forward(const Array& x) override { return log_softmax(x, axis_); }
  std::string kind() const override { return "LogSoftmax"; }
  std::string describe() const override;

 private:
  int axis_;
};

class LeakyRelu final : public Module {
 public:
  explicit LeakyRelu(double slope = 0.01) : slope_(slope) {}
  Array forward(const Array& x) override { return leaky_relu(x, slope_); }
  std::string kind() const override { return "LeakyRelu"; }
  std::string describe() const override;

 private:
  double slope_;
};

struct PReluOptions {
  std::int64_t features = 1;  // 1: one slope for all channels; C: one for each channel (the last axis)
  double initial = 0.25;
  Dtype dtype = f32;
};

// x > 0 ? x : weight * x with weight [features] learned (K. He et al., "Delving deep into rectifiers", 2015).
class PRelu final : public Module {
 public:
  explicit PRelu(const PReluOptions& options = {});
  Array forward(const Array& x) override { return prelu(x, weight_); }
  void visit(Visitor& visitor) override { visitor.parameter("weight", weight_); }
  std::string kind() const override { return "PRelu"; }
  std::string describe() const override;

  const PReluOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }

 private:
  PReluOptions options_;
  Parameter weight_;
};

class Elu final : public Module {
 public:
  explicit Elu(double alpha = 1.0) : alpha_(alpha) {}
  Array forward(const Array& x) override { return elu(x, alpha_); }
  std::string kind() const override { return "Elu"; }
  std::string describe() const override;

 private:
  double alpha_;
};

class Selu final : public Module {
 public:
  Array forward(const Array& x) override { return selu(x); }
  std::string kind() const override { return "Selu"; }
};

struct SoftplusOptions {
  double beta = 1.0;
  double threshold = 20.0;
};

class Softplus final : public Module {
 public:
  explicit Softplus(const SoftplusOptions& options = {}) : options_(options) {}
  Array forward(const Array& x) override { return softplus(x, options_.beta, options_.threshold); }
  std::string kind() const override { return "Softplus"; }
  std::string describe() const override;

 private:
  SoftplusOptions options_;
};

class Mish final : public Module {
 public:
  Array forward(const Array& x) override { return mish(x); }
  std::string kind() const override { return "Mish"; }
};

class Relu6 final : public Module {
 public:
  Array forward(const Array& x) override { return relu6(x); }
  std::string kind() const override { return "Relu6"; }
};

class HardSigmoid final : public Module {
 public:
  Array forward(const Array& x) override { return hard_sigmoid(x); }
  std::string kind() const override { return "HardSigmoid"; }
};

class HardSwish final : public Module {
 public:
  Array forward(const Array& x) override { return hard_swish(x); }
  std::string kind() const override { return "HardSwish"; }
};

class LogSigmoid final : public Module {
 public:
  Array forward(const Array& x) override { return log_sigmoid(x); }
  std::string kind() const override { return "LogSigmoid"; }
};

class Glu final : public Module {
 public:
  explicit Glu(int axis = -1) : axis_(axis) {}
  Array forward(const Array& x) override { return glu(x, axis_); }
  std::string kind() const override { return "Glu"; }
  std::string describe() const override;

 private:
  int axis_;
};

}  // namespace samebytes::nn
