// What the kernels of convolutions (conv, conv_filter, conv_single, grouped, winograd*) and the code that launches them
// (engine/ops) both say: sizes, flags, and how a CPU device's groups share the work. Read by C++ and by OpenCL C, so
// that it is written once; nothing but ints, which both lay out alike.
#ifdef __cplusplus
#pragma once
#endif
#if defined(__cplusplus) && !defined(SAMEBYTES_KERNEL_TEXT)
namespace samebytes::detail {
#endif

// One number for each axis; an image has depth 1, a sequence height 1, too.
typedef struct {
  int d, h, w;
} conv_axes;

// src [n, in, c], weight [taps, c / groups, co], dst [n, out, co].
typedef struct {
  int n, c, co, groups;
  conv_axes in, out, taps, stride, pad, dilation;
} conv_sizes;

// What a forward pass or input gradient adds and cuts as it stores, in this order: + bias [channels of dst], + residual
// (as dst), ReLU, which NaN passes, or hard swish (of a result of 16 bits, as it is stored), then 0 where gate (as dst)
// is not above 0. An input gradient has no hard swish.
enum {
  CONV_BIAS = 2,
  CONV_RELU = 4,
  CONV_RESIDUAL = 8,
  CONV_GATE = 16,
  CONV_HARD_SWISH = 128,
  CONV_RELU6 = 256,
  CONV_ACTIVATION = CONV_HARD_SWISH | CONV_RELU6
};

// Of winograd*: every group transforms the weights itself; the input gradient instead of the forward pass.
enum { WINOGRAD_OWN = 32, WINOGRAD_TRANSPOSED = 64 };

// How conv_tiles of a CPU device shares a pass. `groups` of the sizes are bundles of `bundle` groups each, taken as
// one. A unit is `block` places of a line of the target (transposed, of each phase); a group takes `units` of them and
// `columns` channels. Sums run over chunks of tap_rows (of depth times height), tap_columns (of width) and `depth`
// channels.
typedef struct {
  int bundle, units, block, columns;
  int tap_rows, tap_columns, depth;
} conv_shares;

// How conv_filter_bwd of a CPU device shares the weight gradient (see there).
typedef struct {
  int strip, strips_per_split, lines, copied, taps, rows, columns;
} conv_filter_shares;

// How a GPU shares a weight gradient: a group sums over `per_group` strips of output lines.
typedef struct {
  int strip, per_group;
} conv_strips;

// How conv_single_fwd of a CPU device shares its work: lines are cut into `blocks` pieces, a group takes `units` of
// them.
typedef struct {
  int blocks, units;
} conv_single_shares;

// The sizes of winograd.cl and winograd_filter.cl: source [n, in_h, in_w, depth], target [n, out_h, out_w, columns].
typedef struct {
  int n, in_h, in_w, depth, out_h, out_w, columns, pad_h, pad_w;
} winograd_sizes;

// How kernels of winograd*.cl of a CPU device share theirs: tiles of a group or part, and tiles that are transformed at
// a time; of winograd_filter_bwd, rows of positions that a group takes.
typedef struct {
  int tiles, block;
} winograd_shares;
typedef struct {
  int tiles, block, rows;
} winograd_filter_shares;

// How the kernels of grouped.cl share their work on a CPU device: a unit is `strip` pixels of a line, a group takes
// `units` of them and `columns` channels.
typedef struct {
  int strip, units, columns;
} grouped_shares;

#if defined(__cplusplus) && !defined(SAMEBYTES_KERNEL_TEXT)
}  // namespace samebytes::detail
#else
#include "shared/activation.clh"

// The short names of the sizes: s* stride, p* padding, d* dilation of an axis.
#define CONV_NAMES(s)                                                                                       \
  const int n = s.n, c = s.c, co = s.co, groups = s.groups;                                                 \
  const int d = s.in.d, h = s.in.h, wd = s.in.w, od = s.out.d, oh = s.out.h, ow = s.out.w;                  \
  const int kd = s.taps.d, kh = s.taps.h, kw = s.taps.w, sd = s.stride.d, sh = s.stride.h, sw = s.stride.w; \
  const int pd = s.pad.d, ph = s.pad.h, pw = s.pad.w, dd = s.dilation.d, dh = s.dilation.h, dw = s.dilation.w
#define WINOGRAD_NAMES(s)                                                                             \
  const int n = s.n, in_h = s.in_h, in_w = s.in_w, depth = s.depth, out_h = s.out_h, out_w = s.out_w, \
            columns = s.columns, pad_h = s.pad_h, pad_w = s.pad_w
#endif
