// Words of generated kernels (pointwise_kernel.cpp): types and names of accessors.
#pragma once

#include <string>

#include "graph/op.h"
#include "samebytes/dtype.h"

namespace samebytes::detail {

inline bool is_real(Dtype dtype) { return is_floating(dtype); }
// Whether a pointwise node computes in vectors of `real`: it reads a floating value.
inline bool computes_real(const Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (is_real(node.inputs[i].node->dtype) && !node.op->traits().is_state(static_cast<int>(i))) return true;
  return false;
}
inline std::string suffix(Dtype dtype) { return std::string(name_of(dtype)); }
inline std::string storage_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "float";
    case Dtype::f64: return "double";
    case Dtype::f16:
    case Dtype::bf16: return "ushort";
    case Dtype::i32: return "int";
    case Dtype::u8:
    case Dtype::bool_: return "uchar";
  }
  return "float";
}

// A value of kind `from` (real or int vector) as kind `to`.
inline std::string converted(const std::string& value, bool from_real, bool to_real) {
  if (from_real == to_real) return value;
  return (to_real ? "SB_TO_REAL(" : "SB_TO_INT(") + value + ")";
}

}  // namespace samebytes::detail
