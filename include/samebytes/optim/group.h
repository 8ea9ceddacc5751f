// Parameter groups: parameters that an optimizer treats alike. What a group leaves open is the optimizer's own option,
// as in PyTorch's param_groups.
//   optim::AdamW adam({{.parameters = weights}, {.parameters = biases, .options = {.weight_decay = 0.0}}}, {.rate =
//   1e-3});
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

// Each has the meaning and the range of the option of that name in the optimizer's own options; one that the optimizer
// does not have is an ArgumentError.
struct GroupOptions {
  std::optional<double> rate = {};  // keeps its proportion to the optimizer's rate under set_rate() and schedules
  std::optional<double> weight_decay = {};
  std::optional<double> momentum = {};
  std::optional<double> dampening = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> alpha = {};
  std::optional<double> rate_decay = {};
  std::optional<double> eps = {};
  std::optional<double> trust = {};  // Lars
  std::optional<bool> adapts = {};   // Lars, Lamb: whether each parameter's rate follows its norms; default: true
};

struct ParameterGroup {
  std::vector<Array> parameters;
  GroupOptions options = {};
};

// Two groups: parameters of two and more axes, and with `options` the others: biases and the weights of norms, which
// are customarily left out of weight decay. An empty group is left away.
std::vector<ParameterGroup> split_vectors(std::span<const Array> parameters, const GroupOptions& options);

}  // namespace samebytes::optim
