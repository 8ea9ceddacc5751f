#include "samebytes/nn/transformer.h"

#include <cmath>

#include "nn/projection.h"
#include "samebytes/nn/lora.h"
#include "samebytes/ops.h"

namespace samebytes::nn {

TransformerBlock::TransformerBlock(const TransformerBlockOptions& options)
    : options_(options),
      norm1_({.features = options.width, .eps = options.eps, .dtype = options.dtype}),
      norm2_({.features = options.width, .eps = options.eps, .dtype = options.dtype}),
      attention_({.width = options.width,
                  .heads = options.heads,
                  .kv_heads = options.kv_heads,
                  .bias = options.bias,
                  .causal = options.causal,
                  .dropout = options.dropout,
                  .rotary = options.rotary,
                  .deviation = options.deviation,
                  .result_deviation = options.result_deviation,
                  .names = options.names,
                  .dtype = options.dtype}) {
  auto& o = options_;
  if (o.hidden == 0) o.hidden = 4 * o.width;
  require_positive("TransformerBlock", "hidden", o.hidden);
  const double bound1 = 1.0 / std::sqrt(static_cast<double>(o.width));
  const double bound2 = 1.0 / std::sqrt(static_cast<double>(o.hidden));
  const auto bias_cell = [&](std::int64_t n, double bound, const char* name) {
    return Parameter(
        cell(o.deviation > 0 ? zeros({n}, o.dtype) : initial_uniform({n}, bound, o.dtype), describe() + name));
  };
  weight1_ = weight_cell({o.hidden, o.width}, o.deviation, bound1, o.dtype, describe() + ".linear1.weight");
  if (o.bias) bias1_ = bias_cell(o.hidden, bound1, ".linear1.bias");
  weight2_ = weight_cell({o.width, o.hidden}, o.result_deviation > 0 ? o.result_deviation : o.deviation, bound2,
                         o.dtype, describe() + ".linear2.weight");
  if (o.bias) bias2_ = bias_cell(o.width, bound2, ".linear2.bias");
}

Array TransformerBlock::network(const Array& x) {
  const Array hidden = gelu(adapted_linear(norm2_(x), weight1_, bias1_, adapter1_), GeluForm::tanh);
  const Array y = adapted_linear(hidden, weight2_, bias2_, adapter2_);
  return x + (is_training() && options_.dropout > 0 ? dropout(y, options_.dropout) : y);
}

Array TransformerBlock::forward(const Array& x) { return network(x + attention_(norm1_(x))); }

Array TransformerBlock::forward(const Input& x, const Input& lengths) {
  return network(x + attention_.forward(norm1_(x), lengths));
}

Array TransformerBlock::forward_all(std::span<const Array> inputs) {
  return inputs.size() == 2 ? forward(inputs[0], inputs[1]) : Module::forward_all(inputs);
}

Array TransformerBlock::forward(const Input& x, KeyValueCache& cache) {
  return network(x + attention_.forward(norm1_(x), cache));
}

void TransformerBlock::visit(Visitor& visitor) {
  const bool gpt2 = options_.names == TransformerNames::gpt2;
  const auto network_parameters = [&] {
    visitor.parameter(gpt2 ? "mlp.c_fc.weight" : "linear1.weight", weight1_, layout_of(options_.names));
    if (bias1_.defined()) visitor.parameter(gpt2 ? "mlp.c_fc.bias" : "linear1.bias", bias1_);
    visitor.projection(gpt2 ? "mlp.c_fc" : "linear1", weight1_, adapter1_);
    visitor.quantizable(gpt2 ? "mlp.c_fc" : "linear1", weight1_);
    visitor.parameter(gpt2 ? "mlp.c_proj.weight" : "linear2.weight", weight2_, layout_of(options_.names));
    if (bias2_.defined()) visitor.parameter(gpt2 ? "mlp.c_proj.bias" : "linear2.bias", bias2_);
    visitor.projection(gpt2 ? "mlp.c_proj" : "linear2", weight2_, adapter2_);
    visitor.quantizable(gpt2 ? "mlp.c_proj" : "linear2", weight2_);
  };
  if (gpt2) visitor.child("ln_1", norm1_);
  visitor.child(gpt2 ? "attn" : "self_attn", attention_);
  if (gpt2) visitor.child("ln_2", norm2_);
  network_parameters();
  if (gpt2) return;
  visitor.child("norm1", norm1_);
  visitor.child("norm2", norm2_);
}

std::string TransformerBlock::describe() const {
  std::string text = "TransformerBlock(" + std::to_string(options_.width) + ", heads=" + std::to_string(options_.heads);
  if (options_.hidden != 0 && options_.hidden != 4 * options_.width)
    text += ", hidden=" + std::to_string(options_.hidden);
  return text + ")";
}

}  // namespace samebytes::nn
