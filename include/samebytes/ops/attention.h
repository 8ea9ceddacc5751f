// Attention and rotary positions: engine/ops/attention.cpp, engine/ops/rotary.cpp. Letters: N batch, T queries, S keys,
// H heads, G heads of keys and values, D values of a head. All throw ArgumentError with the op's name, what it expected
// and what it got.
#pragma once

#include <cstdint>
#include <optional>

#include "samebytes/array.h"

namespace samebytes {

struct AttentionOptions {
  bool causal = false;                   // query i attends only to keys j <= offset + i
  std::optional<double> scale{};         // of the scores; default 1 / sqrt(D)
  Array lengths{};                       // i32 or i64 [N]: keys from this index on are padding; an empty handle: none
  std::optional<std::int64_t> offset{};  // for causal; default S - T: the queries are the last positions; 0 aligns the
                                         // first query with the first key, as PyTorch's is_causal and ONNX do. May be
                                         // negative, and change from step to step without a new plan
  // For causal: i32 or i64 [N], an offset for each of the batch, instead of `offset`.
  Array offsets{};
  Array mask{};         // bool, true where a query may attend, or floating, added to the scores; broadcasts to
                        // [N, H, T, S]. An added -infinity hides a key. An empty handle: none
  double soft_cap = 0;  // c > 0: scores become c tanh(scores / c) before masks (Gemma Team, "Gemma 2", 2024); 0: off
};
// softmax(scale q k') v for each head (A. Vaswani et al., "Attention is all you need", 2017): q [N, T, H, D], k and v
// [N, S, G, D] with H a multiple of G (grouped queries: head h reads head h / (H / G) of k and v) -> [N, T, H, D].
// Neither forward nor backward stores a T x S array: memory is linear in T (T. Dao et al., "FlashAttention", 2022). A
// query without keys gives 0. Views with a contiguous last axis are read in place. 16-bit arrays are computed in f32.
// v may have another depth, [N, S, G, E] -> [N, T, H, E]; the shorter of D and E is then padded. With offsets or a soft
// cap it is composed of matrix products and a softmax, which do store N H T S scores, and so does the gradient of a
// mask where it is asked for.
Array scaled_dot_product_attention(const Input& q, const Input& k, const Input& v,
                                   const AttentionOptions& options = {});
// The same for queries, keys and values from one matrix product: qkv [N, T, H + 2 G, D] holds the H heads of q, then
// the G of k, then the G of v, with H = `heads`. The gradient is one array, too.
Array packed_attention(const Input& qkv, std::int64_t heads, const AttentionOptions& options = {});

struct RotaryOptions {
  bool interleaved = false;  // pairs (2 i, 2 i + 1), as in RoFormer; false: (i, i + D / 2), as in GPT-NeoX and Llama
  double base = 10000.0;
  std::int64_t offset = 0;  // position of the first token; may change from step to step without a new plan
  std::int64_t heads = 0;   // rotates only this many heads and copies the others; 0: all
};
// x [N, T, H, D] with D even: rotates pair i of token t by the angle (offset + t) base^(-2 i / D) (J. Su et al.,
// "RoFormer", 2021, section 3.2.2). Angles are computed in the array's dtype: at position 10^4 an f32 angle is accurate
// to about 10^-3.
Array rotary(const Input& x, const RotaryOptions& options = {});

}  // namespace samebytes
