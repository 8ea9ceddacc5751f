// Shape of an array: up to eight sizes, stored inline; the last axis varies fastest.
// A value type; rank 0 is a scalar (size 1), a size of 0 makes an empty array. The product of the nonzero sizes is at
// most kMostElements, so no partial product and no number of bytes overflows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace samebytes {

class Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr std::int64_t kMostElements = std::int64_t{1} << 56;

  Shape() = default;
  // Throws ArgumentError for more than eight sizes, negative sizes, and a product above kMostElements.
  Shape(std::initializer_list<std::int64_t> sizes)
      : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const std::int64_t> sizes);

  int rank() const { return rank_; }
  // Number of elements. Throws ArgumentError if an assigned size is negative or the product exceeds kMostElements.
  std::int64_t size() const {
    std::int64_t n = 1;
    bool is_empty = false;
    for (int i = 0; i < rank_; ++i) {
      const std::int64_t size = sizes_[static_cast<std::size_t>(i)];
      is_empty = is_empty || size == 0;
      if (size == 0 || size == 1) continue;
      if (size < 0 || size > kMostElements / n) refuse();
      n *= size;
    }
    return is_empty ? 0 : n;
  }
  // Requires: -rank <= axis < rank; a negative axis counts from the end.
  std::int64_t operator[](int axis) const { return sizes_[axis < 0 ? axis + rank_ : axis]; }
  std::int64_t& operator[](int axis) { return sizes_[axis < 0 ? axis + rank_ : axis]; }
  std::int64_t back() const { return rank_ == 0 ? 1 : sizes_[rank_ - 1]; }
  std::int64_t rows() const { return back() == 0 ? 0 : size() / back(); }  // size() / back()
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }

  void push_back(std::int64_t size);  // throws ArgumentError as the constructor does
  std::string to_string() const;      // "[64, 28, 28, 1]"

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.sizes_[i] != b.sizes_[i]) return false;
    return true;
  }

 private:
  [[noreturn]] void refuse() const;
  std::array<std::int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

// NumPy's broadcast of two shapes; throws ArgumentError, naming `op`, if they do not fit.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace samebytes
