// Words of generated kernels (pointwise_kernel.cpp): types and names of accessors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "graph/op.h"
#include "samebytes/dtype.h"

namespace samebytes::detail {

inline bool is_real(Dtype dtype) { return is_floating(dtype); }
// The vectors in which a value is held: i32, u8 and bool in ints, i64 in longs, floating ones in reals.
enum class VectorKind : std::uint8_t { ints, longs, reals };
inline VectorKind vector_kind(Dtype dtype) {
  return is_real(dtype) ? VectorKind::reals : dtype == Dtype::i64 ? VectorKind::longs : VectorKind::ints;
}
// Those in which a pointwise node computes: the widest of its operands.
inline VectorKind computed_kind(const Node& node) {
  VectorKind kind = VectorKind::ints;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (!node.op->traits().is_state(static_cast<int>(i)))
      kind = std::max(kind, vector_kind(node.inputs[i].node->dtype));
  return kind;
}
inline bool computes_real(const Node& node) { return computed_kind(node) == VectorKind::reals; }
inline std::string vector_type(VectorKind kind) {
  return kind == VectorKind::reals ? "vreal" : kind == VectorKind::longs ? "sb_long" : "sb_int";
}
inline std::string scalar_type(VectorKind kind) {
  return kind == VectorKind::reals ? "real" : kind == VectorKind::longs ? "long" : "int";
}
inline std::string suffix(Dtype dtype) { return std::string(name_of(dtype)); }
inline std::string storage_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "float";
    case Dtype::f64: return "double";
    case Dtype::f16:
    case Dtype::bf16: return "ushort";
    case Dtype::i32: return "int";
    case Dtype::i64: return "long";
    case Dtype::u8:
    case Dtype::bool_: return "uchar";
  }
  return "float";
}

// A value of kind `from` as kind `to`: whole numbers wrap around.
inline std::string converted(const std::string& value, VectorKind from, VectorKind to) {
  if (from == to) return value;
  return (to == VectorKind::reals   ? "SB_TO_REAL("
          : to == VectorKind::longs ? "SB_TO_LONG("
                                    : "SB_TO_INT(") +
         value + ")";
}

}  // namespace samebytes::detail
