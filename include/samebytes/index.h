// What x[...] of an array takes: numbers, slices, ellipsis, new_axis.
#pragma once

#include <cstdint>
#include <type_traits>

namespace samebytes {

// Which elements of an axis, or which axes, x[...] takes: a number (the axis goes; below 0 it counts from the end),
// slice(), ellipsis, or new_axis.
struct Index {
  enum class Kind : std::uint8_t { number, slice, ellipsis, new_axis };
  static constexpr std::int64_t kOpen = INT64_MIN;  // a bound that is not given
  Kind kind = Kind::slice;
  std::int64_t start = kOpen, stop = kOpen, step = 1;  // start alone for a number

  Index() = default;
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) constexpr Index(T number)
      : kind(Kind::number), start(static_cast<std::int64_t>(number)) {}
  constexpr Index(Kind k, std::int64_t from, std::int64_t to, std::int64_t by)
      : kind(k), start(from), stop(to), step(by) {}
};
// NumPy's start:stop:step, with bounds clamped to the axis; slice() is the whole axis, slice(2, slice_end) all from 2.
inline constexpr std::int64_t slice_end = Index::kOpen;
constexpr Index slice() { return {Index::Kind::slice, Index::kOpen, Index::kOpen, 1}; }
constexpr Index slice(std::int64_t start, std::int64_t stop, std::int64_t step = 1) {
  return {Index::Kind::slice, start, stop, step};
}
inline constexpr Index ellipsis{Index::Kind::ellipsis, 0, 0, 1};  // whole axes, as many as are left
inline constexpr Index new_axis{Index::Kind::new_axis, 0, 0, 1};  // an axis of size 1

}  // namespace samebytes
