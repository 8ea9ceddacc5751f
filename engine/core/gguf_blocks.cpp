#include "core/gguf_blocks.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace samebytes::detail {
namespace {

using Byte = std::uint8_t;

std::uint16_t two(const Byte* p) { return static_cast<std::uint16_t>(p[0] | p[1] << 8); }

float half_of(std::uint16_t bits) {
  const std::uint32_t h = bits, sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) {  // below the normal numbers
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

float half(const Byte* p) { return half_of(two(p)); }
float brain(const Byte* p) { return std::bit_cast<float>(static_cast<std::uint32_t>(two(p)) << 16); }

float number(const Byte* p) {
  float value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

void q8_0(const Byte* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<std::int8_t>(b[2 + i]));
}

void q4_0(const Byte* b, float* y) {
  const float d = half(b);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((b[2 + i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((b[2 + i] >> 4) - 8);
  }
}

// The scale and the minimum, six bits each, of eight groups in twelve bytes.
struct Group {
  float scale, least;
};
Group group_of(const Byte* s, int j, float d, float least) {
  const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
  const int minimum = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
  return {d * static_cast<float>(scale), least * static_cast<float>(minimum)};
}

// d, least, scales, [high bits,] low bits; `high`: null for Q4_K.
void q45_k(const Byte* b, const Byte* high, const Byte* low, float* y) {
  const float d = half(b), least = half(b + 2);
  for (int pair = 0; pair < 4; ++pair) {
    const Group first = group_of(b + 4, 2 * pair, d, least), second = group_of(b + 4, 2 * pair + 1, d, least);
    for (int i = 0; i < 32; ++i) {
      const int more = high != nullptr ? high[i] >> (2 * pair) & 3 : 0;
      y[i] = first.scale * static_cast<float>((low[i] & 15) + (more & 1) * 16) - first.least;
      y[i + 32] = second.scale * static_cast<float>((low[i] >> 4) + (more >> 1) * 16) - second.least;
    }
    y += 64;
    low += 32;
  }
}
void q4_k(const Byte* b, float* y) { q45_k(b, nullptr, b + 16, y); }
void q5_k(const Byte* b, float* y) { q45_k(b, b + 16, b + 48, y); }

void q6_k(const Byte* b, float* y) {
  const Byte *low = b, *high = b + 128, *scales = b + 192;
  const float d = half(b + 208);
  for (int part = 0; part < 2; ++part) {
    for (int i = 0; i < 32; ++i)
      for (int quarter = 0; quarter < 4; ++quarter) {
        const int nibble = quarter < 2 ? low[i + 32 * quarter] & 15 : low[i + 32 * (quarter - 2)] >> 4;
        const int value = (nibble | (high[i] >> (2 * quarter) & 3) << 4) - 32;
        const auto scale = static_cast<std::int8_t>(scales[i / 16 + 2 * quarter]);
        y[i + 32 * quarter] = d * static_cast<float>(scale) * static_cast<float>(value);
      }
    y += 128;
    low += 64;
    high += 32;
    scales += 8;
  }
}

struct BlockRow {
  std::string_view type;
  std::size_t values, bytes;
  void (*read)(const Byte*, float*);
};
constexpr BlockRow kBlockRows[] = {{"F32", 1, 4, [](const Byte* b, float* y) { *y = number(b); }},
                                   {"F16", 1, 2, [](const Byte* b, float* y) { *y = half(b); }},
                                   {"BF16", 1, 2, [](const Byte* b, float* y) { *y = brain(b); }},
                                   {"Q8_0", 32, 34, q8_0},
                                   {"Q4_0", 32, 18, q4_0},
                                   {"Q4_K", 256, 144, q4_k},
                                   {"Q5_K", 256, 176, q5_k},
                                   {"Q6_K", 256, 210, q6_k}};

const BlockRow* row_of(std::string_view type) {
  for (const BlockRow& row : kBlockRows)
    if (row.type == type) return &row;
  return nullptr;
}

}  // namespace

float half_value(std::uint16_t bits) { return half_of(bits); }

bool can_dequantise(std::string_view type) { return row_of(type) != nullptr; }

void dequantise(std::string_view type, std::span<const std::byte> src, std::span<float> dst) {
  const BlockRow& row = *row_of(type);
  const auto* bytes = reinterpret_cast<const Byte*>(src.data());
  for (std::size_t i = 0; i + row.values <= dst.size(); i += row.values, bytes += row.bytes)
    row.read(bytes, dst.data() + i);
}

}  // namespace samebytes::detail
