// Products with frozen matrices of quantised rows: engine/ops/quantised.cpp. The blocks are those of GGUF files, used
// where they lie, and NF4 (T. Dettmers et al., "QLoRA", 2023, section 3); they are dequantised while a product packs
// its panels, so that no wider copy of a matrix is made. cl/shared/quantised.h has their layouts.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "samebytes/array.h"

namespace samebytes {

enum class QuantisedType : std::uint8_t { q8_0, q4_0, q4_k, q5_k, q6_k, nf4 };
struct QuantisedFormat {
  std::string_view name;  // "Q4_K", as in GGUF files; "NF4"
  std::int64_t values;    // of a block
  std::int64_t bytes;     // of a block
};
const QuantisedFormat& format_of(QuantisedType type);

// x W^T + bias in the floating dtype of x: x [..., K], blocks u8 [N, bytes of a row of K values], bias [N] or an empty
// handle; K is a multiple of a block's values. Gradients go to x and bias alone. Sums are f32 (f64 for f64). Throws
// ArgumentError.
Array quantised_linear(const Input& x, const Input& blocks, QuantisedType type, const Input& bias = Array{});
// The values of such a matrix, f32 [N, K]; without gradients.
Array dequantise(const Input& blocks, QuantisedType type);

// On the host: quantises rows of `columns` values into whole blocks, as [rows][bytes of a row]. Q8_0 and Q4_0 as
// ggml-quants.c does, Q4_K with the scales of minimum and maximum, NF4 by the nearest of its values to x / max|x|.
// Throws ArgumentError for other types, for columns that are no multiple of a block's values, and for values that are
// not finite.
std::vector<std::byte> quantise(std::span<const float> values, std::int64_t columns, QuantisedType type);

}  // namespace samebytes
