// What the kernels of attention and the code that launches them (engine/ops/attention.cpp) both say: sizes, places and
// flags. Read by C++ and by OpenCL C.
#ifdef __cplusplus
#pragma once

namespace samebytes::detail {
#endif

// The bits of `flags`: what a query may see, whether sequences have lengths, whether a mask is added to the scores.
enum { ATTENTION_CAUSAL = 1, ATTENTION_LENGTHS = 2, ATTENTION_MASK = 4 };

// Letters of attention.cl: T queries, S keys, H heads, G kv_heads, D depth.
typedef struct {
  int queries, keys, heads, kv_heads, depth, flags;
} attention_sizes;

// Where an array's values lie: from element `start` on, the next sequence, row and head so many elements later. Values
// of a head are neighbours.
typedef struct {
  long start, n, t, h;
} attention_view;

// The same of a mask [N, H, T, S], and how far apart the keys of a query are; broadcast axes have the stride 0.
typedef struct {
  long start, n, t, h, s;
} attention_mask_view;

#ifdef __cplusplus
}  // namespace samebytes::detail
#else
// Moves x to row `row` of head `head` of sequence n.
#define ATTENTION_MOVE(x, row, head) x += x##_view.start + n * x##_view.n + (row)*x##_view.t + (head)*x##_view.h

// Where the mask's values for row `row` and column `col` of a head's scores lie, sequence n.
#define ATTENTION_MASK_AT(row, col, head) \
  (mask + mask_offset + mask_view.start + n * mask_view.n + (head)*mask_view.h + (row)*mask_view.t + (col)*mask_view.s)

// How many keys of sequence n exist, and how many of them the queries before `end` see.
static inline int attention_visible(const attention_sizes s, __global const int* lengths, const long n) {
  return (s.flags & ATTENTION_LENGTHS) ? clamp(lengths[n], 0, s.keys) : s.keys;
}
static inline int attention_reach(const int flags, const int visible, const long end) {
  return (flags & ATTENTION_CAUSAL) ? (int)clamp(end, 0L, (long)visible) : visible;
}
#endif
