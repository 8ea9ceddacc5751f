// A number beside an array: what kind it is decides the type of the result.
#pragma once

#include <cstdint>
#include <type_traits>

namespace samebytes {

// A number as ops take it beside an array. Whole numbers and truths are told from floating ones, because they leave the
// type of an array of whole numbers as it is (docs/types.md).
class Number {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Number(T value)
      : value_(static_cast<double>(value)),
        kind_(std::is_same_v<T, bool> ? Kind::truth
              : std::is_integral_v<T> ? Kind::whole
                                      : Kind::floating) {}
  constexpr double value() const { return value_; }
  constexpr bool is_truth() const { return kind_ == Kind::truth; }
  constexpr bool is_floating() const { return kind_ == Kind::floating; }

 private:
  enum class Kind : std::uint8_t { truth, whole, floating };
  double value_;
  Kind kind_;
};

}  // namespace samebytes
