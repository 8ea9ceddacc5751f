#include "samebytes/optim/arena.h"

#include <utility>

#include "ops/cells.h"
#include "samebytes/error.h"
#include "samebytes/ops/update_parts.h"

namespace samebytes::optim {

ParameterArena::ParameterArena(std::span<const Array> parameters, std::string name)
    : parameters_(parameters.begin(), parameters.end()), flat_(flatten_cells(parameters, std::move(name))) {}

void ParameterArena::check(std::span<const Array> gradients) const {
  if (gradients.size() != parameters_.size())
    throw ArgumentError("arena: needs one gradient for each of " + std::to_string(parameters_.size()) +
                        " parameters, got " + std::to_string(gradients.size()));
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].defined() || gradients[i].shape() != parameters_[i].shape())
      throw ArgumentError("arena: the gradient of " + cell_name(parameters_[i]) + " must be " +
                          parameters_[i].shape().to_string() + ", got " +
                          (gradients[i].defined() ? gradients[i].shape().to_string() : "an empty handle"));
}

Array ParameterArena::pack(std::span<const Array> gradients, bool releases) const {
  check(gradients);
  return releases ? detail::pack_to_release(gradients, flat_.offsets, size())
                  : samebytes::pack(gradients, flat_.offsets, size());
}

Array ParameterArena::store(const Array& flat, std::span<const Array> gradients) const {
  check(gradients);
  return update_parts(flat, gradients, flat_.offsets);
}

Array ParameterArena::zeros_like(std::string name, Dtype dtype, MemoryCategory category) const {
  return cell(zeros({size()}, dtype), std::move(name), category);
}

}  // namespace samebytes::optim
