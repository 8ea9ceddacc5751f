// Rotary positions with frequencies of the caller's own: engine/ops/rotary.cpp. attention.h has those of one base.
#pragma once

#include <cstdint>

#include "samebytes/array.h"

namespace samebytes {

struct RotaryTableOptions {
  bool interleaved = false;  // pairs (2 i, 2 i + 1); false: (i, i + R / 2)
  std::int64_t offset = 0;   // position of the first token; may change from step to step without a new plan
  std::int64_t heads = 0;    // rotates only this many heads and copies the others; 0: all
  double scale = 1.0;        // of cosines and sines, the attention factor of YaRN and LongRoPE
};
// x [N, T, H, D]: rotates pair i of the first R values of each head by the angle (offset + t) frequencies[i], and
// multiplies it by `scale`; the other D - R values are copied (partial rotary positions). frequencies [R / 2], 1 to
// D / 2 of them, f32, or f64 for an f64 x; no gradient flows to them. Linear, NTK, YaRN (B. Peng et al., 2023),
// LongRoPE (Y. Ding et al., 2024) and Llama 3's scaling are such tables. Throws ArgumentError.
Array rotary(const Input& x, const Input& frequencies, const RotaryTableOptions& options = {});

}  // namespace samebytes
