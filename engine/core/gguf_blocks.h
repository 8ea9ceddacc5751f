// The quantised blocks of ggml (ggml-quants.c): what their bytes mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace samebytes::detail {

// Whether dequantise() knows the type: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K.
bool can_dequantise(std::string_view type);
// The values of whole blocks. Requires: can_dequantise(type), and as many bytes as dst.size() values take.
void dequantise(std::string_view type, std::span<const std::byte> src, std::span<float> dst);

// The value of an f16.
float half_value(std::uint16_t bits);

}  // namespace samebytes::detail
