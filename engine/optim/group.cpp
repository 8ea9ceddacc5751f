#include "samebytes/optim/group.h"

namespace samebytes::optim {

std::vector<ParameterGroup> split_vectors(std::span<const Array> parameters, const GroupOptions& options) {
  ParameterGroup matrices, vectors{{}, options};
  for (const Array& parameter : parameters)
    (parameter.defined() && parameter.shape().rank() < 2 ? vectors : matrices).parameters.push_back(parameter);
  std::vector<ParameterGroup> groups;
  for (ParameterGroup& group : std::vector<ParameterGroup>{matrices, vectors})
    if (!group.parameters.empty()) groups.push_back(std::move(group));
  return groups;
}

}  // namespace samebytes::optim
