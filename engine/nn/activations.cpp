// Activations with options: their descriptions, and PRelu's slopes.
#include "samebytes/nn/activations.h"

#include "nn/initial.h"

namespace samebytes::nn {
namespace {

// "0.01", without trailing zeros.
std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text += '0';
  return text;
}

std::string axis_text(const char* kind, int axis) {
  return axis == -1 ? kind : std::string(kind) + "(axis=" + std::to_string(axis) + ")";
}

}  // namespace

std::string LeakyRelu::describe() const { return "LeakyRelu(" + number_text(slope_) + ")"; }
std::string Elu::describe() const { return alpha_ == 1.0 ? "Elu" : "Elu(" + number_text(alpha_) + ")"; }
std::string Glu::describe() const { return axis_text("Glu", axis_); }
std::string Softmax::describe() const { return axis_text("Softmax", axis_); }
std::string LogSoftmax::describe() const { return axis_text("LogSoftmax", axis_); }

std::string Softplus::describe() const {
  if (options_.beta == 1.0 && options_.threshold == 20.0) return "Softplus";
  return "Softplus(beta=" + number_text(options_.beta) + ", threshold=" + number_text(options_.threshold) + ")";
}

PRelu::PRelu(const PReluOptions& options) : options_(options) {
  require_positive("PRelu", "features", options.features);
  require_real("PRelu", options.dtype);
  weight_ = Parameter(cell(full({options.features}, options.initial, options.dtype), describe() + ".weight"));
}

std::string PRelu::describe() const { return "PRelu(" + std::to_string(options_.features) + ")"; }

}  // namespace samebytes::nn
