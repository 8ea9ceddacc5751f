// What batch norm needs of a product in int8 before it.
#pragma once

#include <optional>
#include <vector>

#include "graph/op.h"

namespace samebytes::detail {

// The call that made an array: inputs are x, panels, totals, scales f32 [N] and perhaps bias f32 [N].
struct Int8Call {
  OpPtr op;
  Shape shape;
  std::vector<Array> inputs;
  Array with(const Array& scales, const Array& bias) const;
};
// As replaceable_conv() (conv.h).
std::optional<Int8Call> replaceable_int8(const Array& a);

}  // namespace samebytes::detail
