// Attention and rotary positions: engine/ops/attention.cpp, engine/ops/rotary.cpp. Letters: N batch, T queries, S keys,
// H heads, G heads of keys and values, D values of a head. All throw ArgumentError: op, need, what came.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

struct AttentionOptions {
  bool causal = false;                   // query i sees the keys j <= offset + i only
  std::optional<double> scale{};         // of the scores; 1 / sqrt(D)
  Array lengths{};                       // i32 [N]: keys from there on are padding; an empty handle: none are
  std::optional<std::int64_t> offset{};  // of causal: S - T, so that the queries are the last positions. May change
                                         // from step to step without a new plan
};
// softmax(scale q k') v for each head (A. Vaswani et al., "Attention is all you need", 2017): q [N, T, H, D], k and v
// [N, S, G, D] with H a multiple of G (grouped queries: head h reads head h / (H / G) of k and v) -> [N, T, H, D].
// Neither forward nor backward stores a T x S array: memory is linear in T (T. Dao et al., "FlashAttention", 2022). A
// query that sees no key gives 0. Views whose last axis is contiguous are read in place. 16-bit arrays are computed in
// f32.
Array scaled_dot_product_attention(const Array& q, const Array& k, const Array& v,
                                   const AttentionOptions& options = {});
// The same where queries, keys and values come from one product: qkv [N, T, H + 2 G, D] holds the H heads of q, then
// the G of k, then the G of v, with H = `heads`. Its gradient is written into one array.
Array packed_attention(const Array& qkv, std::int64_t heads, const AttentionOptions& options = {});

struct RotaryOptions {
  bool interleaved = false;  // pairs (2 i, 2 i + 1), as RoFormer; else (i, i + D / 2), as GPT-NeoX and Llama
  double base = 10000.0;
  std::int64_t offset = 0;  // position of the first token; may change from step to step without a new plan
  std::int64_t heads = 0;   // only the first ones turn, the others are copied; 0: all
};
// x [N, T, H, D] with D even: pair i of token t is turned by the angle (offset + t) base^(-2 i / D) (J. Su et al.,
// "RoFormer", 2021, section 3.2.2). Angles are computed in the array's type: an f32 position of 10^4 is right to about
// 10^-3.
Array rotary(const Array& x, const RotaryOptions& options = {});

}  // namespace samebytes
