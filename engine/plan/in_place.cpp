#include "plan/in_place.h"

#include <algorithm>
#include <numeric>

namespace samebytes::detail {
namespace {

bool is_dense(const PointwiseKernel& kernel, const PointwiseInput& input) {
  std::int64_t step = 1;
  for (std::size_t axis = kernel.sizes.size(); axis-- > 0; step *= kernel.sizes[axis])
    if (kernel.sizes[axis] != 1 && input.strides[axis] != step) return false;
  return true;
}

}  // namespace

std::vector<int> share_in_place(const std::vector<PlanBuffer>& buffers, std::span<const InPlacePair> pairs) {
  std::vector<int> root(buffers.size());
  std::iota(root.begin(), root.end(), 0);
  std::vector<char> given(buffers.size());  // a later result took its bytes
  std::vector<char> taken(buffers.size());  // a pack's part that has taken an input's bytes
  std::vector<InPlacePair> ordered(pairs.begin(), pairs.end());
  std::stable_partition(ordered.begin(), ordered.end(), [](const InPlacePair& pair) { return pair.comes_first; });
  for (const InPlacePair& pair : ordered) {
    const auto input = static_cast<std::size_t>(pair.input), result = static_cast<std::size_t>(pair.result);
    const PlanBuffer &from = buffers[input], &to = buffers[result];
    const bool dies = from.kind == PlanBuffer::Kind::arena && !from.by_parts && from.device == to.device &&
                      from.first >= 0 && from.first < pair.launch && from.last == pair.launch &&
                      to.first == pair.launch && !given[input];
    if (!dies) continue;
    if (to.kind == PlanBuffer::Kind::part) {  // its place is fixed, so the input moves there
      if (root[input] != pair.input || from.bytes > to.bytes || taken[result]) continue;
      given[input] = taken[result] = 1;
      root[input] = pair.result;
      continue;
    }
    const bool fits =
        to.kind == PlanBuffer::Kind::arena && buffers[static_cast<std::size_t>(root[input])].bytes >= to.bytes;
    if (!fits || root[result] != pair.result) continue;
    given[input] = 1;
    root[result] = root[input];
  }
  return root;
}

std::vector<InPlacePair> in_place_pairs(const PointwiseKernel& kernel, int launch, std::span<const int> inputs,
                                        std::span<const std::int64_t> offsets, std::span<const int> results,
                                        const std::vector<PlanBuffer>& buffers) {
  std::vector<InPlacePair> pairs;
  for (std::size_t k = 0; k < results.size() && k < kernel.outputs.size(); ++k)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool fits = inputs[i] >= 0 && results[k] >= 0 && offsets[i] == 0 && is_dense(kernel, kernel.inputs[i]) &&
                        bytes_of(kernel.inputs[i].node->dtype) == bytes_of(kernel.outputs[k]->dtype) &&
                        std::count(inputs.begin(), inputs.end(), inputs[i]) == 1 &&
                        buffers[static_cast<std::size_t>(inputs[i])].kind == PlanBuffer::Kind::arena;
      if (fits) pairs.push_back({launch, inputs[i], results[k]});
    }
  return pairs;
}

}  // namespace samebytes::detail
