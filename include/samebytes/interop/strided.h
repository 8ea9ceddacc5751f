// Arrays and bytes of the host with any strides: what exchanges with other libraries are made of (interop/dlpack.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::interop {

// adopt() for elements that lie strides[i] elements apart along axis i; no strides: dense. `pointer` is that of the
// element whose indices are all 0. The array is a view of the bytes between its first and its last element. Throws
// ArgumentError for another number of strides than axes, and for strides that reach further than an array may.
Array adopt_strided(void* pointer, const Shape& shape, std::span<const std::int64_t> strides, Dtype dtype,
                    std::function<void()> deleter = {}, Adoption* verdict = nullptr);

enum class HostAccess : std::uint8_t { read, write };

// The bytes of any array, views with gaps too, for as long as this lives: evaluates, waits for the last writer and
// borrows from the first byte to the last as a HostView does. Throws as Array::host and Array::mutable_host do, but not
// for views with gaps.
class StridedView {
 public:
  StridedView(const Array& array, HostAccess access, const char* file = __builtin_FILE(), int line = __builtin_LINE());
  StridedView(StridedView&&) noexcept;
  StridedView& operator=(StridedView&&) noexcept;
  ~StridedView();
  void* data() const { return data_; }  // of the element whose indices are all 0; null for an empty array
  const std::vector<std::int64_t>& strides() const { return strides_; }  // in elements

 private:
  struct State;
  std::unique_ptr<State> state_;
  void* data_ = nullptr;
  std::vector<std::int64_t> strides_;
};

}  // namespace samebytes::interop
