// HostArray: shape, dtype and values in ordinary host memory, dense, last axis fastest. File readers return it and
// in-memory data sets hold it; it is independent of devices. A value type. (For the host's view of an Array see
// HostView.)
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "samebytes/dtype.h"
#include "samebytes/error.h"
#include "samebytes/shape.h"

namespace samebytes {

struct HostArray {
  Shape shape{0};
  Dtype dtype = f32;
  std::vector<std::byte> bytes;

  HostArray() = default;
  // All zeros.
  HostArray(const Shape& shape_, Dtype dtype_)
      : shape(shape_), dtype(dtype_), bytes(static_cast<std::size_t>(shape_.size()) * bytes_of(dtype_)) {}
  // A copy of `values`. Throws ArgumentError if their number is not shape_.size().
  template <class T>
  HostArray(const Shape& shape_, std::span<const T> values) : HostArray(shape_, dtype_of<T>) {
    if (values.size() * sizeof(T) != bytes.size())
      throw ArgumentError("host array: shape " + shape.to_string() + " wants " + std::to_string(shape.size()) +
                          " values, got " + std::to_string(values.size()));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  template <class T>
  HostArray(const Shape& shape_, const std::vector<T>& values) : HostArray(shape_, std::span<const T>(values)) {}

  std::int64_t size() const { return shape.size(); }
  // The values; throws ArgumentError if T is not the dtype.
  template <class T>
  std::span<const T> as() const {
    check_type(dtype_of<T>);
    return {reinterpret_cast<const T*>(bytes.data()), static_cast<std::size_t>(size())};
  }
  template <class T>
  std::span<T> as() {
    check_type(dtype_of<T>);
    return {reinterpret_cast<T*>(bytes.data()), static_cast<std::size_t>(size())};
  }

 private:
  void check_type(Dtype asked) const {
    if (asked != dtype)
      throw ArgumentError("host array: holds " + std::string(name_of(dtype)) + ", read as " +
                          std::string(name_of(asked)));
  }
};

}  // namespace samebytes
