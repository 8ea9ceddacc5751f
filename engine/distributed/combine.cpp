#include "distributed/combine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

namespace samebytes::distributed::detail {
namespace {

constexpr std::size_t kBlock = 1024;  // elements that stay in the first cache while all ranks are added

float widened(float value) { return value; }
double widened(double value) { return value; }
std::int32_t widened(std::int32_t value) { return value; }
std::int64_t widened(std::int64_t value) { return value; }
float widened(bfloat16_bits value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
float widened(half_bits value) {
  // Exponent and mantissa moved to their places in f32, then the exponent's bias made right by a multiplication, which
  // is exact, also for what is subnormal in f16.
  const auto magnitude = static_cast<std::uint32_t>(value.bits & 0x7fff) << 13;
  const auto sign = static_cast<std::uint32_t>(value.bits & 0x8000) << 16;
  const bool is_finite = magnitude < 0x0f800000;
  const std::uint32_t bits =
      is_finite ? std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f) : magnitude | 0x7f800000;
  return std::bit_cast<float>(bits | sign);
}

template <class T>
T narrowed(float value);
template <>
bfloat16_bits narrowed<bfloat16_bits>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
template <>
half_bits narrowed<half_bits>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return {0x7e00};
  constexpr float kOverflow = 65520;  // halfway from the largest half to the next power
  if (magnitude >= kOverflow) return {static_cast<std::uint16_t>(sign | 0x7c00)};
  if (magnitude < 0x1p-14f)
    return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24f)))};
  const auto rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);  // to nearest, ties to even
  return {static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112 << 10)))};
}

// Whole numbers are added as unsigned ones of their size, since their sums wrap around.
template <class T, class Sum>
void add_up(std::span<const double> weights, std::span<const std::byte* const> sources, std::byte* dst,
            std::size_t elements) {
  Sum sums[kBlock];
  for (std::size_t begin = 0; begin < elements; begin += kBlock) {
    const std::size_t count = std::min(kBlock, elements - begin);
    std::fill_n(sums, count, Sum{0});
    for (std::size_t rank = 0; rank < sources.size(); ++rank) {
      if (weights[rank] == 0) continue;
      const T* const src = reinterpret_cast<const T*>(sources[rank]) + begin;
      const auto weight = static_cast<Sum>(weights[rank]);
      for (std::size_t i = 0; i < count; ++i) sums[i] += weight * static_cast<Sum>(widened(src[i]));
    }
    T* const out = reinterpret_cast<T*>(dst) + begin;
    if constexpr (std::is_arithmetic_v<T>)
      for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(sums[i]);
    else
      for (std::size_t i = 0; i < count; ++i) out[i] = narrowed<T>(sums[i]);
  }
}

// NaN of any rank stays.
template <class T>
void take_extreme(bool is_max, std::span<const std::byte* const> sources, std::byte* dst, std::size_t elements) {
  T* const out = reinterpret_cast<T*>(dst);
  for (std::size_t i = 0; i < elements; ++i) {
    T best = reinterpret_cast<const T*>(sources[0])[i];
    for (const std::byte* const source : sources.subspan(1)) {
      const T other = reinterpret_cast<const T*>(source)[i];
      const auto a = widened(best), b = widened(other);
      const bool is_better = is_max ? b > a : b < a;
      if (is_better || b != b) best = other;
    }
    out[i] = best;
  }
}

template <class T, class Sum>
void combine_as(const Combining& how, std::span<const std::byte* const> sources, std::byte* dst, std::size_t elements) {
  if (how.kind == Combining::Kind::weighted) return add_up<T, Sum>(how.weights, sources, dst, elements);
  take_extreme<T>(how.kind == Combining::Kind::max, sources, dst, elements);
}

}  // namespace

void combine(Dtype dtype, const Combining& how, std::span<const std::byte* const> sources, std::byte* dst,
             std::size_t elements) {
  switch (dtype) {
    case Dtype::f32: return combine_as<float, float>(how, sources, dst, elements);
    case Dtype::f64: return combine_as<double, double>(how, sources, dst, elements);
    case Dtype::f16: return combine_as<half_bits, float>(how, sources, dst, elements);
    case Dtype::bf16: return combine_as<bfloat16_bits, float>(how, sources, dst, elements);
    case Dtype::i32: return combine_as<std::int32_t, std::uint32_t>(how, sources, dst, elements);
    case Dtype::i64: return combine_as<std::int64_t, std::uint64_t>(how, sources, dst, elements);
    case Dtype::u8:
    case Dtype::bool_: break;
  }
  throw ArgumentError("distributed: " + std::string(name_of(dtype)) + " cannot be reduced");
}

}  // namespace samebytes::distributed::detail
