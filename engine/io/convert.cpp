#include "io/convert.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace samebytes::io {
namespace {

double half_value(std::uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  const double sign = h & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

std::uint16_t half_bits_of(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  constexpr double kOverflow = 65520;  // halfway from the largest half to the next power
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= kOverflow) return sign | 0x7c00;
  // Round to a multiple of the spacing at this size; a carry into the next power of two gives the right bits, too.
  constexpr double kSmallestNormal = 0x1p-14;
  if (magnitude < kSmallestNormal) return sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  const int exponent = std::ilogb(magnitude);
  const auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return sign | static_cast<std::uint16_t>(((exponent + 15) << 10) + mantissa - 1024);
}

std::uint16_t bfloat16_bits_of(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
T load(const std::byte* src) {
  T value;
  std::memcpy(&value, src, sizeof value);
  return value;
}

template <class T>
void store(std::byte* dst, T value) {
  std::memcpy(dst, &value, sizeof value);
}

}  // namespace

std::vector<std::byte> permuted(std::span<const std::byte> src, const Shape& shape, std::span<const int> axes,
                                std::size_t width) {
  std::vector<std::byte> dst(src.size());
  if (dst.empty()) return dst;
  const auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<std::int64_t> src_stride(rank, 1), sizes(rank), stride(rank), index(rank, 0);
  for (std::size_t axis = rank - 1; axis-- > 0;)
    src_stride[axis] = src_stride[axis + 1] * shape[static_cast<int>(axis) + 1];
  for (std::size_t axis = 0; axis < rank; ++axis) {
    sizes[axis] = shape[axes[axis]];
    stride[axis] = src_stride[static_cast<std::size_t>(axes[axis])];
  }
  std::int64_t from = 0;
  for (std::size_t to = 0; to < dst.size(); to += width) {
    std::memcpy(dst.data() + to, src.data() + static_cast<std::size_t>(from) * width, width);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < sizes[axis]) break;
      from -= stride[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return dst;
}

std::vector<std::byte> converted(std::span<const std::byte> src, Dtype from, Dtype to) {
  if (from == to) return {src.begin(), src.end()};
  const std::size_t src_width = bytes_of(from), dst_width = bytes_of(to), count = src.size() / src_width;
  std::vector<std::byte> dst(count * dst_width);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* in = src.data() + i * src_width;
    double value = 0;
    switch (from) {
      case Dtype::f32: value = load<float>(in); break;
      case Dtype::f64: value = load<double>(in); break;
      case Dtype::f16: value = half_value(load<std::uint16_t>(in)); break;
      default: value = std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(in)} << 16); break;
    }
    std::byte* out = dst.data() + i * dst_width;
    switch (to) {
      case Dtype::f32: store(out, static_cast<float>(value)); break;
      case Dtype::f64: store(out, value); break;
      case Dtype::f16: store(out, half_bits_of(value)); break;
      default: store(out, bfloat16_bits_of(value)); break;
    }
  }
  return dst;
}

}  // namespace samebytes::io
