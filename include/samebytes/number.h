// A number beside an array: what kind it is decides the type of the result.
#pragma once

#include <cstdint>
#include <type_traits>

namespace samebytes {

// A number as ops take it beside an array. Whole numbers and truths are told from floating ones, because they leave the
// type of an array of whole numbers as it is (docs/types.md); those of 64 bits are kept exactly.
class Number {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Number(T value)
      : value_(static_cast<double>(value)),
        whole_(whole_of(value)),
        kind_(std::is_same_v<T, bool> ? Kind::truth
              : std::is_integral_v<T> ? Kind::whole
                                      : Kind::floating) {}
  constexpr double value() const { return value_; }
  constexpr std::int64_t whole() const { return whole_; }  // the same, if is_whole()
  // Whether a 64-bit integer has that value, floating numbers such as 3.0 included.
  constexpr bool is_whole() const { return static_cast<double>(whole_) == value_; }
  constexpr bool is_truth() const { return kind_ == Kind::truth; }
  constexpr bool is_floating() const { return kind_ == Kind::floating; }

 private:
  enum class Kind : std::uint8_t { truth, whole, floating };
  // 0 of a number that no 64-bit integer is near.
  template <class T>
  static constexpr std::int64_t whole_of(T value) {
    if constexpr (std::is_floating_point_v<T>)
      return value >= T{-0x1p63} && value < T{0x1p63} ? static_cast<std::int64_t>(value) : 0;
    else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::uint64_t))
      return value <= static_cast<std::uint64_t>(INT64_MAX) ? static_cast<std::int64_t>(value) : 0;
    else
      return static_cast<std::int64_t>(value);
  }
  double value_;
  std::int64_t whole_;
  Kind kind_;
};

}  // namespace samebytes
