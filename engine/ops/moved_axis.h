// Views with one axis moved to the end, for ops that work along the last axis.
#pragma once

#include <vector>

#include "samebytes/ops/layout.h"

namespace samebytes::detail {

// Requires: 0 <= axis < rank.
inline Array moved_last(const Array& a, int axis) {
  std::vector<int> order;
  for (int i = 0; i < a.shape().rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return axis + 1 == a.shape().rank() ? a : transpose(a, order);
}
// The last axis back to its place.
inline Array last_moved_to(const Array& a, int axis) {
  const int rank = a.shape().rank();
  std::vector<int> order;
  order.reserve(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  return axis + 1 == rank ? a : transpose(a, order);
}

}  // namespace samebytes::detail
