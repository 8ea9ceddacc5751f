// Activations as modules, for Sequential; each is the op of the same name (ops.h). Any shape; the soft-maxes run over
// the last axis.
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
  Array forward(const Array& x) override { return softmax(x); }
  std::string kind() const override { return "Softmax"; }
};

class LogSoftmax final : public Module {
 public:
  Array forward(const Array& x) override { return log_softmax(x); }
  std::string kind() const override { return "LogSoftmax"; }
};

}  // namespace samebytes::nn
