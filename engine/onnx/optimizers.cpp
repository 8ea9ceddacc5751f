// Steps of optimizers in the graph, as a file of training has them: domain ai.onnx.preview.training.
#include <cmath>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// Inputs: the rate, the step's number, then n parameters, n gradients and n of each state. `step` gives the new
// parameter and states of one.
template <class Step>
Outputs stepped(const Call& call, std::size_t states, Step step) {
  const std::size_t n = call.in.size() < 2 ? 0 : (call.in.size() - 2) / (2 + states);
  if (n == 0 || call.in.size() != 2 + n * (2 + states))
    call.refuse("expected a rate, a step and " + std::to_string(2 + states) + " arrays for each parameter");
  const double rate = reals_of(call.at(0)).at(0), t = reals_of(call.at(1)).at(0);
  Outputs result(n * (1 + states));
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<Array> own;
    for (std::size_t k = 0; k < 2 + states; ++k) own.push_back(call.floating(2 + k * n + i));
    own[1] = own[1] + own[0] * call.real("norm_coefficient", 0.0);
    const std::vector<Array> made = step(own, rate, t);
    for (std::size_t k = 0; k < made.size(); ++k) result[k * n + i] = item_of(made[k]);
  }
  return result;
}

// J. Duchi et al., "Adaptive subgradient methods", 2011.
Outputs adagrad(const Call& call) {
  return stepped(call, 1, [&](const std::vector<Array>& a, double rate, double t) -> std::vector<Array> {
    const Array h = a[2] + square(a[1]);
    const double adjusted = rate / (1.0 + t * call.real("decay_factor", 0.0));
    return {a[0] - a[1] / (sqrt(h) + call.real("epsilon", double(1e-6F))) * adjusted, h};
  });
}

// D. Kingma and J. Ba, "Adam", 2015.
Outputs adam(const Call& call) {
  if (!call.has_attribute("epsilon"))
    call.refuse("epsilon is left out; ONNX's text has 10^-6 for it and ONNX's own test 10^-2, so state it");
  return stepped(call, 2, [&](const std::vector<Array>& a, double rate, double t) -> std::vector<Array> {
    const double alpha = call.real("alpha", double(0.9F)), beta = call.real("beta", double(0.999F));
    const Array v = a[2] * alpha + a[1] * (1.0 - alpha), h = a[3] * beta + square(a[1]) * (1.0 - beta);
    const double adjusted = t > 0 ? rate * std::sqrt(1.0 - std::pow(beta, t)) / (1.0 - std::pow(alpha, t)) : rate;
    const Array x = a[0] - v / (sqrt(h) + call.real("epsilon", 0.0)) * adjusted;
    return {x * (1.0 - call.real("norm_coefficient_post", 0.0)), v, h};
  });
}

Outputs momentum(const Call& call) {
  const bool is_nesterov = call.text("mode", "standard") == "nesterov";
  return stepped(call, 1, [&](const std::vector<Array>& a, double rate, double t) -> std::vector<Array> {
    const double alpha = call.real("alpha", 0.0);
    const Array v = a[2] * alpha + a[1] * (t > 0 ? call.real("beta", 0.0) : 1.0);
    return {a[0] - (is_nesterov ? a[1] + v * alpha : v) * rate, v};
  });
}

}  // namespace

void add_optimizers(Registry& registry) {
  registry.insert({{"ai.onnx.preview.training.Adagrad", adagrad},
                   {"ai.onnx.preview.training.Adam", adam},
                   {"ai.onnx.preview.training.Momentum", momentum}});
}

}  // namespace samebytes::onnx
