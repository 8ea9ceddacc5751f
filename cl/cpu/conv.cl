// Convolution over volumes of a CPU device, channels last: x [n,d,h,wd,c], w [kd,kh,kw,c/groups,co], y [n,od,oh,ow,co].
// Images have depth 1 and sequences height 1, too. Forward pass and input gradient are one kernel.
//
//   for a chunk of taps (rows: depth x height; columns: width) and channels:     conv_tiles
//     pack the chunk's weights for the group's columns                           conv_pack.clh
//     for a unit: a block of places of one line of the target:                   conv_units
//       find the lines of src that its taps meet, and copy what is not there     conv_meet
//       for a phase of the target (one in the forward pass):
//         for a panel of columns:                                                conv_panels
//           cut the pixels into register tiles, which sum and store              conv_tile.clh
//
//   source   a line of src: |.pad.| position 0 | position 1 | ...    a position has all channels, so the taps of a row
//                              |== run of pixel e ==|                of the kernel meet one run of values; the next
//                                    |== run of pixel e+1 ==|        pixel's begins `line` values later
//   packed   panels of weights [tap][channel][CONV_NR]               a step: one value of each pixel's run, times one
//                                                                    line of the panel
//
// Why it is fast. A pixel of the target meets, per line of taps, a run of source values that is contiguous, so a tile
// of neighbouring pixels x CONV_NR columns is a matrix product that gathers nothing: no im2col. Runs are read where
// they lie, if none of the block's leaves the line; else the lines are copied to private memory with zeros for the
// padding, and kept in a ring while the group goes down an image: the first-level cache has what the taps share. The
// packed weights of a group stay in the second-level cache. In the input gradient the target's pixels are taken by
// phase (position mod stride), since those of one phase meet the same taps: strides do no idle work. There copies are
// planes [channel][position]: neighbouring pixels' values are neighbours, so a tile's addresses are one pointer and
// constants.
// Program: convolution
#include "cpu/conv_points.clh"

// ---- the taps of a chunk

static int conv_floor_div(const int a, const int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// The taps x0 <= x < x1 in the order of their panels: by the phase whose pixels they meet, then by the position that
// they meet from the least position `lo` on. In the forward pass there is one phase.
typedef struct {
  int slot[CONV_TAP_COLUMNS];  // by x - x0: the place in that order
  int phase[CONV_TAP_COLUMNS], at[CONV_TAP_COLUMNS];
} conv_order;

SB_APART void conv_sort(conv_order* s, const int x0, const int x1, const int transposed, const int padding,
                        const int dilation, const int stride, const int lo) {
  if (!transposed) {
    for (int x = x0; x < x1; ++x) {
      s->slot[x - x0] = x - x0;
      s->phase[x - x0] = 0;
      s->at[x - x0] = (x - x0) * dilation;
    }
    return;
  }
  int slots = 0;
  for (int f = 0; f < stride && slots < x1 - x0; ++f) {
    for (int x = x1 - 1; x >= x0; --x) {
      const int over = f + padding - x * dilation, shift = conv_floor_div(over, stride);
      if (shift * stride != over) continue;
      s->slot[x - x0] = slots;
      s->phase[slots] = f;
      s->at[slots++] = shift - lo;
    }
  }
}

// The taps of phase f, which begin at place `begin` of the order, as columns of t; the place behind them. Runs of
// neighbours are one where `is_dense`. Positions are `pitch` values apart.
static int conv_columns(conv_taps* t, const conv_order* s, const int begin, const int taps, const int f,
                        const int depth, const int pitch, const int is_dense) {
  int end = begin, is_run = is_dense;
  for (; end < taps && s->phase[end] == f; ++end) {
    if (end > begin && s->at[end] != s->at[end - 1] + 1) is_run = 0;
  }
  t->columns = end == begin ? 0 : is_run ? 1 : end - begin;
  t->depth = is_run ? (end - begin) * depth : depth;
  for (int i = 0; i < t->columns; ++i) {
    t->column_at[i] = s->at[begin + i] * pitch;
    t->column_step[i] = (begin + i) * depth;
  }
  return end;
}

// ---- units

// The place of a unit: of a line of the target, the places e0 to e1 - 1.
typedef struct {
  int line, volume, a, b, e0, e1;
} conv_unit;

SB_INLINE void conv_set_unit(conv_unit* u, const conv_group* g, const int index, const int lines, int* block) {
  const int line_first = g->out.d * g->out.h == 1;
  *block = line_first ? index % g->blocks : index / lines;
  u->line = line_first ? index / g->blocks : index - *block * lines;
  u->e0 = *block * g->block;
  u->e1 = min(g->grid, u->e0 + g->block);
  const int slice = u->line / g->out.h;
  u->b = u->line - slice * g->out.h;
  u->volume = slice / g->out.d;
  u->a = slice - u->volume * g->out.d;
}

// How the lines of a unit are read: the source positions `begin` to `last`, or copies of so many positions (with those
// of the last tile's rows that are not stored), `pitch` values apart, `size` values in all.
typedef struct {
  conv_where where;
  int begin, last, positions, pitch, size;
} conv_reading;

SB_INLINE void conv_set_reading(conv_reading* r, const conv_group* g, const conv_chunk* q, const conv_unit* u) {
  const int planes = g->transposed && q->depth >= VW, mul = g->mul.w;
  r->begin = u->e0 * mul + q->lo;
  r->last = (u->e1 - 1) * mul + q->hi;
#ifdef SAMEBYTES_STORE_16
  const int direct = 0;
#else
  const int direct =
      !planes && r->begin >= 0 && r->last < g->in.w && CONV_SPREAD(mul * g->in_c) &&
      r->last + (CONV_LOW - 1) * mul + 1 - g->in.w <= (long)(g->n - 1 - u->volume) * g->in.d * g->in.h * g->in.w;
#endif
  r->where = planes ? CONV_IN_PLANES : direct ? CONV_IN_PLACE : CONV_COPIED;
  r->positions = (u->e1 - u->e0 + CONV_LOW - 2) * q->gap + q->span;
  r->pitch = planes ? 1 : direct ? g->in_c : CONV_SPREAD(q->gap * q->depth) ? q->depth : q->depth + VW;
  r->size = r->positions * (planes ? q->depth : r->pitch);
}

// Copies line `from` of src as r says.
SB_INLINE void conv_copy(const conv_group* g, const conv_chunk* q, const conv_reading* r, const int from, real* to) {
  __global const stored* at = g->src + (long)from * g->in.w * g->in_c + q->k0;
  if (r->where == CONV_IN_PLANES) {
    conv_copy_planes(at, g->in.w, g->in_c, q->depth, r->begin, r->last + 1 - r->begin, r->positions, to);
  } else if (q->gap == g->mul.w) {
    conv_copy_line(at, g->in.w, g->in_c, q->depth, r->begin, r->last + 1 - r->begin, r->pitch, to);
  } else {
    for (int p = r->begin; p <= r->last; p += g->mul.w, to += q->gap * r->pitch)
      conv_copy_line(at, g->in.w, g->in_c, q->depth, p, q->span, r->pitch, to);
  }
}

// Which lines of src a unit's taps meet, in ascending order, as rows of t; copies those that are read from copies and
// are not there yet: tag says which line lies in a slot of `source`. The last line that is new, -1 where none is.
SB_INLINE int conv_meet(const conv_group* g, const conv_chunk* q, const conv_unit* u, const conv_reading* r, int* tag,
                        conv_taps* t) {
  const int sign = g->transposed ? -1 : 1, kh = g->taps.h, first = g->transposed ? q->r1 - 1 : q->r0;
  int newest = -1, z = first / kh, y = first - z * kh;
  t->rows = 0;
  for (int i = q->r0, row = first; i < q->r1; ++i, row += sign) {
    const int up = u->a * g->mul.d + sign * (z * g->dilation.d - g->pad.d),
              over = u->b * g->mul.h + sign * (y * g->dilation.h - g->pad.h);
    const int at_d = g->divide.d == 1 ? up : up / g->divide.d, at_h = g->divide.h == 1 ? over : over / g->divide.h;
    const int tap_z = z;
    y += sign;
    if (y == kh || y < 0) {
      y = y < 0 ? kh - 1 : 0;
      z += sign;
    }
    if (up < 0 || over < 0 || at_d * g->divide.d != up || at_h * g->divide.h != over || at_d >= g->in.d ||
        at_h >= g->in.h)
      continue;
    const int from = (u->volume * g->in.d + at_d) * g->in.h + at_h;
    if (r->where == CONV_IN_PLACE) {
      newest = from;
      t->row_at[t->rows] = ((long)from * g->in.w + r->begin) * g->in_c + q->k0;
    } else {
      const int slot = q->is_ring ? tap_z * kh + at_h % kh : row - q->r0;
      if (tag[slot] != from) {
        tag[slot] = newest = from;
        conv_copy(g, q, r, from, g->source + slot * r->size);
      }
      t->row_at[t->rows] = slot * r->size;
    }
    t->row_step[t->rows++] = (row - q->r0) * (q->x1 - q->x0) * q->depth;
  }
  return newest;
}

// The lines that the unit behind u reads for the first time, where `newest` is the last one that u does.
SB_INLINE void conv_set_ahead(conv_ahead* ahead, const conv_group* g, const conv_chunk* q, const conv_unit* u,
                              const int newest) {
  const int fresh = g->block < g->grid ? 1 : min(g->mul.h, g->taps.h);
  const int is_known = newest >= 0 && q->depth >= g->in_c && g->out.d * g->out.h > 1;
  const long at = is_known ? ((long)(newest + g->mul.h + 1 - fresh) * g->in.w + u->e0 * g->mul.w) * g->in_c : 0;
  const conv_ahead next = {g->src + at, g->mul.w * g->in_c * fresh, is_known ? g->src_end - at : 0};
  *ahead = next;
}

// What a unit leaves for the next one: the block whose lines lie in `source`, and which they are; how many of so many
// pixels go to the highest tiles; the columns whose bias is packed.
typedef struct {
  int block, tag[CONV_TAP_ROWS];
  int pixels, tall, tall_narrow, bias_column;
} conv_before;

// All columns of `pixels` pixels of a line, from value `at` of the target on.
SB_INLINE void conv_panels(const conv_group* g, const conv_chunk* q, const conv_line from, const conv_taps* t,
                           const int pixels, const long at, conv_ahead ahead, conv_before* before) {
  if (pixels != before->pixels) {
    const int few_steps = (q->r1 - q->r0) * (q->x1 - q->x0) * q->depth < CONV_FEW_STEPS;
    before->tall = few_steps ? 0 : conv_tall_pixels(pixels, CONV_TALL);
    before->tall_narrow = conv_tall_pixels(pixels, CONV_TALL_NARROW);
    before->pixels = pixels;
  }
  for (int col = g->col0; col < g->col1; col += CONV_NR) {
    if (col != before->bias_column) conv_bias(g, q, col);
    before->bias_column = col;
    conv_target o;
    conv_aim(&o, g, q, at, col, g->divide.w * g->out_c);
    conv_cut(from, conv_panel(g, q, col), t, &o, pixels, o.columns > VW ? before->tall : before->tall_narrow, ahead);
    ahead.left = 0;  // the first panel has asked for all of them
  }
}

// The units begin to end - 1 of a chunk.
SB_APART void conv_units(const conv_group* g, const conv_chunk* q, const conv_order* order, const int begin,
                         const int end) {
  const int lines = g->n * g->out.d * g->out.h, taps = q->x1 - q->x0;
  conv_taps t;
  conv_before before;
  before.block = before.pixels = before.bias_column = -1;
  for (int unit = begin; unit < end; ++unit) {
    int block;
    conv_unit u;
    conv_set_unit(&u, g, unit, lines, &block);
    conv_reading r;
    conv_set_reading(&r, g, q, &u);
    t.line = r.where == CONV_IN_PLANES ? r.positions : (r.where == CONV_IN_PLACE ? g->mul.w : q->gap) * r.pitch;
    if (r.where != CONV_IN_PLACE && block != before.block) {
      for (int i = 0; i < CONV_TAP_ROWS; ++i) before.tag[i] = -1;
      for (int i = 0; i < (q->r1 - q->r0) * r.size; ++i) g->source[i] = 0;
      before.block = block;
    }
    const int newest = conv_meet(g, q, &u, &r, before.tag, &t);
    const conv_line from = {r.where, g->source, g->src};
    conv_ahead ahead;
    conv_set_ahead(&ahead, g, q, &u, newest);
    int taps_done = 0;
    for (int f = 0; f < g->divide.w; ++f) {
      const int is_dense = r.pitch == q->depth && r.where != CONV_IN_PLANES;
      taps_done = conv_columns(&t, order, taps_done, taps, f, q->depth, r.pitch, is_dense);
      const int pixels = min(u.e1, (g->out.w - f + g->divide.w - 1) / g->divide.w) - u.e0;
      const long at = ((long)u.line * g->out.w + u.e0 * g->divide.w + f) * g->out_c;
      if (pixels > 0) conv_panels(g, q, from, &t, pixels, at, ahead, &before);
      ahead.left = 0;
    }
  }
}

// ---- chunks

// The weights of a chunk for the group's columns; w: its first group of the convolution.
SB_APART void conv_pack_panels(const conv_group* g, const conv_chunk* q, const conv_order* order,
                               __global const stored* w, const conv_weights s) {
  const int taps = q->x1 - q->x0;
  for (int col = g->col0; col < g->col1; col += CONV_NR) {
    const int there = min(CONV_NR, g->col1 - col), width = there > VW ? CONV_NR : VW;
    real* to = g->packed + (col - g->col0) / CONV_NR * q->panel;
    for (int r = q->r0; r < q->r1; ++r) {
      for (int x = q->x0; x < q->x1; ++x)
        conv_pack(w + (long)(r * g->taps.w + x) * s.ci * s.co_all, s, q->k0, q->depth, col, there, width,
                  to + ((r - q->r0) * taps + order->slot[x - q->x0]) * q->depth * width);
    }
  }
}

// The taps of a chunk along the width, and the positions that they meet. Structs come back by pointer: what a call
// returns is noalias, which Oclgrind does not know.
SB_INLINE void conv_set_chunk(conv_chunk* q, const conv_group* g, const int r0, const int x0, const int rows,
                              const int columns) {
  q->r0 = r0;
  q->r1 = min(g->taps.d * g->taps.h, r0 + rows);
  q->x0 = x0;
  q->x1 = min(g->taps.w, x0 + columns);
  const int pad = g->pad.w, dilation = g->dilation.w, divide = g->divide.w;
  q->lo = g->transposed ? conv_floor_div(pad - (q->x1 - 1) * dilation, divide) : x0 * dilation - pad;
  q->hi = g->transposed ? conv_floor_div(divide - 1 + pad - x0 * dilation, divide) : (q->x1 - 1) * dilation - pad;
  q->span = q->hi - q->lo + 1;
  q->gap = min(g->mul.w, q->span);
  q->is_ring = g->dilation.h == 1 && rows >= g->taps.d * g->taps.h;
}

// The sizes of a pass; the caller adds arrays and the group's share.
SB_INLINE void conv_set_group(conv_group* g, const conv_sizes s, const conv_shares share, const int transposed,
                              const int flags) {
  const conv_axes one = {1, 1, 1};
  g->in = transposed ? s.out : s.in;
  g->out = transposed ? s.in : s.out;
  g->taps = s.taps;
  g->mul = transposed ? one : s.stride;
  g->divide = transposed ? s.stride : one;
  g->pad = s.pad;
  g->dilation = s.dilation;
  g->n = s.n;
  g->in_c = transposed ? s.co : s.c;
  g->out_c = transposed ? s.c : s.co;
  g->depth = g->in_c / s.groups;
  g->transposed = transposed;
  g->flags = flags;
  g->grid = (g->out.w + g->divide.w - 1) / g->divide.w;
  g->block = share.block;
  g->blocks = (g->grid + share.block - 1) / share.block;
}

// transposed 0: dst = y = conv(src = x, w). transposed 1: dst = dx, the sum over the taps that reach an input pixel, of
// src = dy. Epilogue by `flags`, units and chunks: shared/conv.h. Units are counted [block][line]. Groups: x =
// ceil(lines*blocks/units)*ceil(columns of a group/share.columns), column tile fastest; y = 1; z = groups. Each chunk
// is added to dst by itself: tap_rows <= CONV_TAP_ROWS, tap_columns <= CONV_TAP_COLUMNS. The packed weights of a chunk
// and share.columns (a multiple of CONV_NR) fit CONV_WEIGHTS, the source lines CONV_SOURCE (engine/ops/conv.cpp).
// Accumulates in `real`, over taps in order, then channels; between chunks a 16-bit dst stands in sums, which is as
// large.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(const stored, gate), ARRAY(stored, dst), ARRAY(real, sums), const conv_sizes s, const conv_shares share,
    const int transposed, const int flags) {
  START(src);
  START(w);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  START(sums);
  real source[CONV_SOURCE] __attribute__((aligned(64)));
  real packed[CONV_WEIGHTS] __attribute__((aligned(64)));
  real bias_panel[CONV_NR] __attribute__((aligned(64)));
  conv_group g;
  conv_set_group(&g, s, share, transposed, flags);
  const int of = get_group_id(2), columns = g.out_c / s.groups, tiles = (columns + share.columns - 1) / share.columns;
  const int unit_tile = (int)get_group_id(0) / tiles, units = g.n * g.out.d * g.out.h * g.blocks;
  const int unit0 = unit_tile * share.units, unit1 = min(units, unit0 + share.units);
  g.col0 = ((int)get_group_id(0) - unit_tile * tiles) * share.columns;
  g.col1 = min(columns, g.col0 + share.columns);
  g.src = src + (long)of * g.depth;
  g.src_end = (long)g.n * g.in.d * g.in.h * g.in.w * g.in_c - (long)of * g.depth;
  g.bias = bias + of * columns;
  g.residual = residual + of * columns;
  g.gate = gate + of * columns;
  g.dst = dst + of * columns;
  g.sums = sums + of * columns;
  g.source = source;
  g.packed = packed;
  g.bias_panel = bias_panel;
  const conv_weights weights = {s.c / (s.groups * share.bundle), s.co / (s.groups * share.bundle), s.co, share.bundle,
                                transposed};
  w += (long)of * share.bundle * weights.co;
  const int taps = s.taps.d * s.taps.h * s.taps.w;
  const int is_points =
      taps == 1 && s.pad.d + s.pad.h + s.pad.w == 0 && s.stride.d * s.stride.h * s.stride.w > 1 && g.blocks == 1;
  conv_order order;
  for (int r0 = 0; r0 < s.taps.d * s.taps.h; r0 += share.tap_rows) {
    for (int x0 = 0; x0 < s.taps.w; x0 += share.tap_columns) {
      conv_chunk q;
      conv_set_chunk(&q, &g, r0, x0, share.tap_rows, share.tap_columns);
      conv_sort(&order, q.x0, q.x1, transposed, s.pad.w, s.dilation.w, g.divide.w, q.lo);
      for (q.k0 = 0; q.k0 < g.depth; q.k0 += share.depth) {
        q.depth = min(share.depth, g.depth - q.k0);
        q.is_first = r0 == 0 && x0 == 0 && q.k0 == 0;
        q.is_last = q.r1 == s.taps.d * s.taps.h && q.x1 == s.taps.w && q.k0 + q.depth == g.depth;
        q.panel = (q.r1 - q.r0) * (q.x1 - q.x0) * q.depth * CONV_NR;
        conv_pack_panels(&g, &q, &order, w, weights);
        if (!is_points)
          conv_units(&g, &q, &order, unit0, unit1);
        else if (transposed)
          conv_points_back(g, q, unit0, unit1);
        else
          conv_points_forward(g, q, unit0, unit1);
      }
    }
  }
}
