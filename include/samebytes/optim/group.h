// Parameter groups: parameters with common options. Options that a group does not set are the optimizer's, as in
// PyTorch's param_groups.
//   optim::AdamW adam({{.parameters = weights}, {.parameters = biases, .options = {.weight_decay = 0.0}}}, {.rate =
//   1e-3});
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::optim {

// Each option has the meaning and range of the optimizer's option with that name; setting one that the optimizer does
// not have throws ArgumentError.
struct GroupOptions {
  std::optional<double> rate = {};  // keeps its ratio to the optimizer's rate under set_rate() and schedules
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

// Returns two groups: parameters with two or more axes, and, with `options`, the others: biases and weights of norms,
// which usually get no weight decay. Omits an empty group.
std::vector<ParameterGroup> split_vectors(std::span<const Array> parameters, const GroupOptions& options);

}  // namespace samebytes::optim
