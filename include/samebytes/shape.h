// Shape of an array: up to eight sizes, stored inline; the last axis varies fastest.
// A value type; rank 0 is a scalar (size 1), a size of 0 makes an empty array. The product of the nonzero sizes is at
// most kMostElements, so no partial product and no number of bytes overflows.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

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

// Axes as functions take them: none, one, a list in braces, or a vector, array or span. Made where it is passed, and
// lives for that call. Negative axes count from the end.
class Axes {
 public:
  Axes() = default;
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Axes(T axis)
      : one_(static_cast<int>(axis)), axes_(&one_, 1) {}
  Axes(std::initializer_list<int> axes) : axes_(axes.begin(), axes.size()) {}
  template <class T>
  requires std::convertible_to<const T&, std::span<const int>> Axes(const T& axes) : axes_(axes) {}
  Axes(const Axes&) = delete;
  Axes& operator=(const Axes&) = delete;
  operator std::span<const int>() const { return axes_; }
  bool empty() const { return axes_.empty(); }
  std::size_t size() const { return axes_.size(); }
  auto begin() const { return axes_.begin(); }
  auto end() const { return axes_.end(); }

 private:
  int one_ = 0;
  std::span<const int> axes_;
};

// NumPy's broadcast of two shapes; throws ArgumentError, naming `op`, if they do not fit.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace samebytes
