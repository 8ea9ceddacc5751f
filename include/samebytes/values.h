// Arrays from values of the host, of every element type; array.h includes this.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// The host writes the values straight into the storage; no staging copy where memory is shared.
Array array(std::span<const float> values, const Shape& shape);
Array array(std::span<const double> values, const Shape& shape);
Array array(std::span<const std::int32_t> values, const Shape& shape);
Array array(std::span<const std::uint8_t> values, const Shape& shape);
Array array(std::span<const bool> values, const Shape& shape);
Array array(const std::vector<bool>& values, const Shape& shape);
Array array(std::span<const half_bits> values, const Shape& shape);
Array array(std::span<const bfloat16_bits> values, const Shape& shape);
// i32, the widest type of whole numbers here: throws ArgumentError, naming the first value that does not fit.
Array array(std::span<const std::int64_t> values, const Shape& shape);
Array array(std::initializer_list<float> values);                      // f32 [n]
Array array(std::initializer_list<float> values, const Shape& shape);  // f32
// Of another type: array<std::int32_t>({2, 0, 3}), array<bool>({true, false}).
template <class T>
Array array(std::initializer_list<std::type_identity_t<T>> values, const Shape& shape) {
  return array(std::span<const T>(values.begin(), values.size()), shape);
}
template <class T>
Array array(std::initializer_list<std::type_identity_t<T>> values) {
  return array<T>(values, Shape{static_cast<std::int64_t>(values.size())});
}

}  // namespace samebytes
