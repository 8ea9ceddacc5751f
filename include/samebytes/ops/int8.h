// Products and convolutions of 8-bit integers with frozen weights, for inference: engine/ops/int8.cpp. Inputs become
// u8 with a zero point, weights i8 with a scale for each result channel (R. Krishnamoorthi, "Quantizing deep
// convolutional networks for efficient inference", 2018, sections 2.1 and 2.4), and the sums are exact:
//   y[i, n] = s_i w_n (sum over k of q[i, k] W[n, k] - z_i sum over k of W[n, k]) + bias[n]
//   q = clamp(round(x / s) + z, 0, 255),   s = (high - low) / 255,   z = round(-low / s),   low <= 0 <= high
// On CPUs they run on AMX (tdpbusd) or AVX512-VNNI (vpdpbusd) where find_matrix_instructions() (device.h) says that
// they work, else on multiply-adds, with the same integers. nn::quantize() (nn/quantize.h) uses them for whole
// networks. Letters as in matmul.h and conv.h. All throw ArgumentError with the op's name, what it expected and what it
// got.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/ops/conv.h"

namespace samebytes {

struct Int8Weight {
  Array panels;  // u8, the bytes of W in fours of k and sixteens of channels: cl/shared/int8.h
  Array totals;  // i32 [N]: sum over k of W[n, k]
  Array scales;  // f32 [N]: w_n = max over k of |weight[n, k]| / 127
  Shape shape;   // of the weight: [N, K], or [taps..., C, N]
  // How often the weight had been overwritten when this was made.
  std::uint32_t version = 0;
  bool is_of(const Input& weight) const;  // false once the weight was overwritten
  void note(const Input& copy);           // is of a copy of the weight from now on
  Array values() const;                   // what is multiplied in place of the weight: f32, of its shape
};
// From a floating weight [N, K] of linear(), or [kw, C, N] or [kh, kw, C, N] of a convolution without groups. Evaluates
// it and reads it on the host. Throws for other shapes, for sums of more than 65536 products, whose exactness is not
// promised, and for a weight that is not finite.
Int8Weight int8_weight(const Input& weight);
// From integers [N][K] with k in the order of `shape`, and a scale for each row or one for all.
Int8Weight int8_weight(std::span<const std::int8_t> values, std::span<const float> scales, const Shape& shape);

// What the values of an input lie between; values outside are clamped, NaN counts as low.
struct Int8Range {
  float low = 0, high = 0;
};

// x [..., K] -> [..., N] in the floating dtype of x. Without a range each row has its own, which holds its values;
// values that are not finite make the row NaN then. Has no gradient.
Array int8_linear(const Input& x, const Int8Weight& weight, const Input& bias = {},
                  const std::optional<Int8Range>& range = {});
// x [N, L, C] or [N, H, W, C] as conv1d and conv2d have it, groups 1. Without a range each image has its own.
Array int8_conv1d(const Input& x, const Int8Weight& weight, const Input& bias = {}, const Conv1dOptions& options = {},
                  const std::optional<Int8Range>& range = {});
Array int8_conv2d(const Input& x, const Int8Weight& weight, const Input& bias = {}, const Conv2dOptions& options = {},
                  const std::optional<Int8Range>& range = {});

}  // namespace samebytes
