#include "samebytes/nn/linear.h"

#include "nn/initial.h"
#include "samebytes/nn/lora.h"

namespace samebytes::nn {

Linear::Linear(const LinearOptions& options) : options_(options) {
  require_positive("Linear", "in", options.in);
  require_positive("Linear", "out", options.out);
  require_real("Linear", options.dtype);
  weight_ = uniform_cell({options.out, options.in}, options.in, options.dtype, describe() + ".weight");
  if (options.bias) bias_ = uniform_cell({options.out}, options.in, options.dtype, describe() + ".bias");
}

Array Linear::forward(const Array& x) { return adapted_linear(x, weight_, bias_, adapter_); }

void Linear::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_, Layout::linear);
  if (bias_.defined()) visitor.parameter("bias", bias_);
  visitor.projection("", weight_, adapter_);
  visitor.quantizable("", weight_);
}

std::string Linear::describe() const {
  return "Linear(" + std::to_string(options_.in) + ", " + std::to_string(options_.out) + ")";
}

}  // namespace samebytes::nn
