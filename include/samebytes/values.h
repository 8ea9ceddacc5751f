// Arrays from values of the host, of every element type, and arrays of a pattern; array.h includes this.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// The host writes the values straight into the storage; no staging copy where memory is shared.
Array array(std::span<const float> values, const Shape& shape);
Array array(std::span<const double> values, const Shape& shape);
Array array(std::span<const std::int32_t> values, const Shape& shape);
Array array(std::span<const std::int64_t> values, const Shape& shape);
Array array(std::span<const std::uint8_t> values, const Shape& shape);
Array array(std::span<const bool> values, const Shape& shape);
Array array(const std::vector<bool>& values, const Shape& shape);
Array array(std::span<const half_bits> values, const Shape& shape);
Array array(std::span<const bfloat16_bits> values, const Shape& shape);
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

// Of the shape and type of another array.
inline Array zeros_like(const Array& a) { return zeros(a.shape(), a.dtype()); }
inline Array ones_like(const Array& a) { return ones(a.shape(), a.dtype()); }
inline Array full_like(const Array& a, const Number& value) { return full(a.shape(), value, a.dtype()); }

inline Array arange(double stop) { return arange(0, stop); }  // f32 0, 1, ... below stop
// [count] from start to stop, both included, equally spaced. Throws ArgumentError for a count below 0, and for dtypes
// that are not floating.
Array linspace(double start, double stop, std::int64_t count, Dtype dtype = f32);
// [rows, columns] with ones on the diagonal and zeros elsewhere; columns -1: as many as rows. Throws ArgumentError for
// negative sizes.
Array eye(std::int64_t rows, std::int64_t columns = -1, Dtype dtype = f32);

}  // namespace samebytes
