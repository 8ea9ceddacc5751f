// Element types of arrays. f16 and bf16 are storage types: arithmetic on them is in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace samebytes {

enum class Dtype : std::uint8_t { f32, f16, bf16, f64, i32, u8, bool_, i64 };

inline constexpr Dtype f32 = Dtype::f32;
inline constexpr Dtype f16 = Dtype::f16;
inline constexpr Dtype bf16 = Dtype::bf16;
inline constexpr Dtype f64 = Dtype::f64;
inline constexpr Dtype i32 = Dtype::i32;
inline constexpr Dtype i64 = Dtype::i64;
inline constexpr Dtype u8 = Dtype::u8;
inline constexpr Dtype bool_ = Dtype::bool_;

// IEEE half and bfloat16 as their bits, for host code.
struct half_bits {
  std::uint16_t bits;
};
struct bfloat16_bits {
  std::uint16_t bits;
};

constexpr std::size_t bytes_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::f64:
    case Dtype::i64: return 8;
    case Dtype::f16:
    case Dtype::bf16: return 2;
    case Dtype::u8:
    case Dtype::bool_: return 1;
  }
  return 0;
}

constexpr bool is_floating(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f64;
}

// "f32", "f16", "bf16", "f64", "i32", "i64", "u8", "bool".
std::string_view name_of(Dtype dtype);

// dtype_of<float> is f32 and so on; defined for the element types above.
template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<half_bits> {
  static constexpr Dtype value = Dtype::f16;
};
template <>
struct DtypeOf<bfloat16_bits> {
  static constexpr Dtype value = Dtype::bf16;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr Dtype value = Dtype::u8;
};
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::bool_;
};
template <class T>
inline constexpr Dtype dtype_of = DtypeOf<T>::value;

}  // namespace samebytes
