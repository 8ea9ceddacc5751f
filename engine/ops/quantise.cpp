// Quantises on the host: what a model's matrices become when they are loaded.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "ops/inverse.h"
#include "samebytes/error.h"
#include "samebytes/ops/quantised.h"
#include "shared/quantised.h"

namespace samebytes {
namespace {

using Byte = std::uint8_t;
using detail::inverse_of;

// Bits of the nearest f16, ties to even; of finite values.
std::uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x1p-14f) return static_cast<std::uint16_t>(sign | std::lrintf(magnitude * 0x1p24f));
  const std::uint32_t whole = (bits & 0x7fffffffu) - (112u << 23);
  return static_cast<std::uint16_t>(sign | (whole + 0xfffu + (whole >> 13 & 1u)) >> 13);
}
float half_value(std::uint16_t h) {
  const std::uint32_t magnitude = h & 0x7fffu;
  const float value = magnitude < 0x400u ? static_cast<float>(magnitude) * 0x1p-24f
                                         : std::bit_cast<float>((magnitude << 13) + (112u << 23));
  return h & 0x8000u ? -value : value;
}
void put_half(Byte* b, float value) {
  const std::uint16_t bits = half_bits(value);
  b[0] = static_cast<Byte>(bits & 255);
  b[1] = static_cast<Byte>(bits >> 8);
}
float got_half(const Byte* b) { return half_value(static_cast<std::uint16_t>(b[0] | b[1] << 8)); }
int nearest(float x, int least, int most) {
  return static_cast<int>(std::clamp(std::nearbyintf(x), static_cast<float>(least), static_cast<float>(most)));
}

void q8_0(const float* x, Byte* b) {
  float most = 0;
  for (int i = 0; i < 32; ++i) most = std::max(most, std::fabs(x[i]));
  const float d = most / 127, inverse = inverse_of(d);
  put_half(b, d);
  for (int i = 0; i < 32; ++i)
    b[2 + i] = static_cast<Byte>(static_cast<std::int8_t>(nearest(x[i] * inverse, -127, 127)));
}

void q4_0(const float* x, Byte* b) {
  float most = 0;  // with its sign
  for (int i = 0; i < 32; ++i)
    if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
  const float d = most / -8, inverse = inverse_of(d);
  put_half(b, d);
  const auto level = [&](float v) { return std::min(15, static_cast<int>(v * inverse + 8.5f)); };
  for (int i = 0; i < 16; ++i) b[2 + i] = static_cast<Byte>(level(x[i]) | level(x[i + 16]) << 4);
}

void q4_k(const float* x, Byte* b) {
  std::array<float, 8> scales{}, leasts{};
  float most_scale = 0, most_least = 0;
  for (std::size_t j = 0; j < 8; ++j) {
    const auto [low, high] = std::minmax_element(x + 32 * j, x + 32 * j + 32);
    leasts[j] = std::max(0.0f, -*low);
    scales[j] = (*high + leasts[j]) / 15;
    most_scale = std::max(most_scale, scales[j]);
    most_least = std::max(most_least, leasts[j]);
  }
  put_half(b, most_scale / 63);
  put_half(b + 2, most_least / 63);
  const float d = got_half(b), m = got_half(b + 2);
  Byte* s = b + 4;
  std::memset(s, 0, 12);
  for (int j = 0; j < 8; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const int scale = d > 0 ? nearest(scales[at] / d, 0, 63) : 0, least = m > 0 ? nearest(leasts[at] / m, 0, 63) : 0;
    if (j < 4) {
      s[j] = static_cast<Byte>(s[j] | scale);
      s[j + 4] = static_cast<Byte>(s[j + 4] | least);
    } else {
      s[j + 4] = static_cast<Byte>((scale & 15) | (least & 15) << 4);
      s[j - 4] = static_cast<Byte>(s[j - 4] | (scale >> 4) << 6);
      s[j] = static_cast<Byte>(s[j] | (least >> 4) << 6);
    }
    const float step = d * static_cast<float>(scale), from = m * static_cast<float>(least);
    Byte* low = b + 16 + 32 * (j / 2);
    for (int i = 0; i < 32; ++i) {
      const int q = step > 0 ? nearest((x[32 * j + i] + from) / step, 0, 15) : 0;
      low[i] = static_cast<Byte>(j % 2 == 0 ? q : low[i] | q << 4);
    }
  }
}

constexpr std::array<float, 16> kNf4{QUANTISED_NF4_LEVELS};
void nf4(const float* x, Byte* b) {
  float most = 0;
  for (int i = 0; i < 64; ++i) most = std::max(most, std::fabs(x[i]));
  std::memcpy(b, &most, sizeof most);
  const float inverse = inverse_of(most);
  const auto level = [&](float v) {
    int q = 0;
    for (std::size_t i = 0; i < 15; ++i) q += v * inverse > (kNf4[i] + kNf4[i + 1]) / 2;
    return q;
  };
  for (int i = 0; i < 32; ++i) b[4 + i] = static_cast<Byte>(level(x[i]) | level(x[i + 32]) << 4);
}

}  // namespace

std::vector<std::byte> quantise(std::span<const float> values, std::int64_t columns, QuantisedType type) {
  const QuantisedFormat& format = format_of(type);
  void (*block)(const float*, Byte*) = nullptr;
  switch (type) {
    case QuantisedType::q8_0: block = q8_0; break;
    case QuantisedType::q4_0: block = q4_0; break;
    case QuantisedType::q4_k: block = q4_k; break;
    case QuantisedType::nf4: block = nf4; break;
    case QuantisedType::q5_k:
    case QuantisedType::q6_k: break;
  }
  if (block == nullptr)
    throw ArgumentError("quantise: expected Q8_0, Q4_0, Q4_K or NF4, got " + std::string(format.name));
  if (columns < 1 || columns % format.values != 0 || static_cast<std::int64_t>(values.size()) % columns != 0)
    throw ArgumentError("quantise: rows of " + std::string(format.name) + " have a multiple of " +
                        std::to_string(format.values) + " values, got " + std::to_string(columns) + " of " +
                        std::to_string(values.size()));
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad != values.end())
    throw ArgumentError("quantise: expected finite values, got " + std::to_string(*bad) + " at place " +
                        std::to_string(bad - values.begin()));
  const std::size_t count = values.size() / static_cast<std::size_t>(format.values);
  std::vector<std::byte> result(count * static_cast<std::size_t>(format.bytes));
  for (std::size_t i = 0; i < count; ++i)
    block(values.data() + i * static_cast<std::size_t>(format.values),
          reinterpret_cast<Byte*>(result.data()) + i * static_cast<std::size_t>(format.bytes));
  return result;
}

}  // namespace samebytes
