#include "samebytes/shape.h"

#include <algorithm>

#include "samebytes/dtype.h"
#include "samebytes/error.h"

namespace samebytes {

Shape::Shape(std::span<const std::int64_t> sizes) {
  if (sizes.size() > kMaxRank)
    throw ArgumentError("shape: expected at most 8 axes, got " + std::to_string(sizes.size()));
  for (std::int64_t size : sizes) sizes_[static_cast<std::size_t>(rank_++)] = size;
  size();
}

void Shape::refuse() const {
  for (const std::int64_t size : *this)
    if (size < 0) throw ArgumentError("shape: sizes must be 0 or more, got " + std::to_string(size));
  throw ArgumentError("shape: expected at most 2^56 elements, got " + to_string());
}

void Shape::push_back(std::int64_t size) {
  if (rank_ == kMaxRank) throw ArgumentError("shape: expected at most 8 axes, got a ninth after " + to_string());
  sizes_[static_cast<std::size_t>(rank_++)] = size;
  this->size();
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(sizes_[i]);
  return text + "]";
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t na = ia < 0 ? 1 : a[ia], nb = ib < 0 ? 1 : b[ib];
    if (na != nb && na != 1 && nb != 1)
      throw ArgumentError(std::string(op) + ": shapes do not broadcast: a is " + a.to_string() + ", b is " +
                          b.to_string());
    result.push_back(na == 1 ? nb : na);
  }
  return result;
}

std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "f32";
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::f64: return "f64";
    case Dtype::i32: return "i32";
    case Dtype::i64: return "i64";
    case Dtype::u8: return "u8";
    case Dtype::bool_: return "bool";
  }
  return "?";
}

}  // namespace samebytes
