// Weight gradient of the convolutions of conv.cl on a CPU device: x [n,d,h,wd,c], dy [n,od,oh,ow,co] to dw
// [kd,kh,kw,c/groups,co].
//
//   for a block: a few lines of dy, and the lines of x that they meet     conv_filter_bwd
//     for a tap of the group's:
//       find the pixels whose source is inside, copy lines if they must   conv_filter_lines.clh
//       for a panel of output channels:                                   conv_filter_columns
//         for a panel of rows:                                            conv_filter_rows
//           sum a register tile over all pixels, add it to the result     conv_filter_tile.clh
//     add dy up over the block's pixels: the gradient of a bias           conv_filter_add_columns
//
//   copied 0   x is read where it lies       |c channels|c channels|...       a row: an input channel
//   copied 1   of a tap, a group's channels  |ci|ci|ci|...
//   copied 2   all lines that the taps meet  |.pad.|c|c|c|...|.pad.|          a row: a tap's input channel
//                      tap 0 ->               |==|
//                      tap 1 ->                 |==|
//
// Why it is fast. A tile of input x output channels stays in registers while it sums over pixels, and a block of lines
// serves all taps and channels of a group before the next lines are read, so that they come from the first-level cache.
// Where input channels are fewer than a tile is high, the lines that the taps meet are copied with zeros for the
// padding: then all taps are rows of one tile, which reads each output channel once. Their places are read from an
// array, but for 3 x 3 taps of three channels, the first layer of most networks. The groups' work is taps and channels
// where these are enough, else partial sums, as many as the shape says. 16-bit values are widened as lines are copied,
// dy's where many tiles read them, else as they are read.
// Program: convolution
#include "cpu/conv_filter_lines.clh"

#define CONV_FILTER_REDUCE_BLOCK 4096  // values per group of conv_filter_reduce

// ---- the tiles

// Which rows a tile has: from i on as many as `high`, the height of the tile of that number.
typedef struct {
  int first, high, which;
} conv_filter_panel;

SB_INLINE void conv_filter_set_panel(conv_filter_panel* t, const conv_filter_group* g, const int i, const int is_wide) {
  const int left = g->row1 - i;
  t->first = i;
  t->high = CONV_FILTER_MR;
  t->which = 0;
  if (g->share.copied != 0) {
    int highest;
    conv_filter_height(INT_MAX, is_wide, &highest);
    const int tiles = (left + highest - 1) / highest;
    t->which = conv_filter_height((left + tiles - 1) / tiles, is_wide, &t->high);
  } else {
    if (!is_wide && left > CONV_FILTER_MR && g->ci >= CONV_FILTER_MR_NARROW) t->high = CONV_FILTER_MR_NARROW;
    t->first = min(i, g->ci - t->high);
  }
}

// A tile whose rows are read from copies.
SB_INLINE void conv_filter_sum_copied(const conv_filter_group* g, const conv_filter_panel* t, const int rows,
                                      __global const stored* with, const int is_wide, const int is_widened,
                                      const conv_filter_lines* l, const conv_filter_target* o) {
  const int c = g->s.c, kw = g->s.taps.w;
  long at[CONV_FILTER_HIGHEST];
  for (int k = 0; k < t->high; ++k) {
    const int row = min(t->first + k, g->row1 - 1), of = row / c, of_line = of / kw;
    at[k] = g->is_one ? of_line * g->line_size + (of - of_line * kw) * g->s.dilation.w * c + row - of * c : row;
  }
#ifdef SAMEBYTES_STORE_16
  if (is_widened) {
    CONV_FILTER_CALL(t->which, widened, g->source, at, g->widened, g->widened, l, o)
    return;
  }
#endif
  if (is_wide) {
    CONV_FILTER_CALL(t->which, copied, g->source, at, with, g->dy_end, l, o)
  } else if (g->has_runs && rows == g->rows) {
    conv_filter_runs(g->source, at, with, g->dy_end, l, o);
  } else {
    CONV_FILTER_CALL(t->which, copied_narrow, g->source, at, with, g->dy_end, l, o)
  }
}

// All rows of the group's, for a panel of columns; `to` is the panel's first column in the tap's result.
SB_INLINE void conv_filter_rows(const conv_filter_group* g, __global real* to, __global const stored* with,
                                const int is_wide, const int is_widened, const conv_filter_lines* l,
                                conv_filter_target* o) {
  int rows;
  for (int i = g->row0; i < g->row1; i += rows) {
    conv_filter_panel t;
    conv_filter_set_panel(&t, g, i, is_wide);
    rows = min(t.high, g->row1 - i);
    o->row0 = i - t.first;
    o->row1 = i - t.first + rows;
    o->to = to + (long)t.first * g->s.co;
#ifndef SAMEBYTES_STORE_16
    if (g->share.copied == 0) {
      __global const real* from = g->x + t.first;
      if (is_wide)
        conv_filter_wide(from, 0, with, g->dy_end, l, o);
      else if (t.high == CONV_FILTER_MR)
        conv_filter_narrow(from, 0, with, g->dy_end, l, o);
      else
        conv_filter_tall_narrow(from, 0, with, g->dy_end, l, o);
      continue;
    }
#endif
    conv_filter_sum_copied(g, &t, rows, with, is_wide, is_widened, l, o);
  }
}

// The products of one tap over the lines of a block; they are added where `add` is set.
SB_APART void conv_filter_columns(const conv_filter_group* g, const int tap, const int add, conv_filter_lines* l) {
  const int co = g->s.co, group0 = (int)get_group_id(2) * g->co;
#ifdef SAMEBYTES_STORE_16
  for (int line = 0; line < l->lines; ++line) g->narrow_at[line] = l->dy_at[line];
  int highest;
  conv_filter_height(INT_MAX, 1, &highest);
#endif
  conv_filter_target o;
  o.step = co;
  o.add = add;
  int columns;
  for (int j = g->column0; j < g->column1; j += columns) {
    // A wide tile's columns must be in the array: the last one begins earlier where they end.
    const int is_wide = g->column1 - j > VW && co >= CONV_FILTER_NR;
    const int first = is_wide ? min(j, co - group0 - CONV_FILTER_NR) : j;
    columns = min(is_wide ? CONV_FILTER_NR : VW, g->column1 - j);
    o.column0 = j - first;
    o.column1 = j - first + columns;
    __global const stored* with = g->dy + first;
    int is_widened = 0;
#ifdef SAMEBYTES_STORE_16
    // 16-bit channels that three row tiles and more read are widened once; a copy for fewer costs more than it saves.
    is_widened = is_wide && g->row1 - g->row0 > 2 * highest;
    if (is_widened) {
      conv_filter_widen(with, co, g->narrow_at, l, g->widened);
    } else {
      l->dy_step = co;
      for (int line = 0; line < l->lines; ++line) l->dy_at[line] = g->narrow_at[line];
    }
#endif
    conv_filter_rows(g, g->part + (long)tap * g->rows * co + first, with, is_wide, is_widened, l, &o);
  }
}

// sums [co] (added where add is set) = the sums of dy over `pixels` pixels, columns first to last - 1. Four pixels are
// summed side by side.
SB_APART void conv_filter_add_columns(__global const stored* dy, const long pixels, const int co, const int first,
                                      const int last, const int add, __global real* sums) {
  int j = first;
  for (; j + VW <= last; j += VW) {
    __global const stored* from = dy + j;
    vreal acc[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) acc[q] = (vreal)(0);
    long p = 0;
    for (; p + 4 <= pixels; p += 4, from += 4 * co) {
#pragma unroll
      for (int q = 0; q < 4; ++q) acc[q] += VLOAD(from + q * co);
    }
    for (; p < pixels; ++p, from += co) acc[0] += VLOAD(from);
    const vreal sum = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    VSTORE(add ? VLOAD(sums + j) + sum : sum, sums + j);
  }
  for (; j < last; ++j) {
    real sum = 0;
    for (long p = 0; p < pixels; ++p) sum += LOAD(dy + p * co + j);
    sums[j] = add ? sums[j] + sum : sum;
  }
}

// ---- the group

// The group's share of rows, columns and taps, and what follows from the sizes.
SB_INLINE void conv_filter_set_group(conv_filter_group* g, const conv_sizes s, const conv_filter_shares share) {
  const int taps = s.taps.d * s.taps.h * s.taps.w;
  g->s = s;
  g->share = share;
  g->ci = s.c / s.groups;
  g->co = s.co / s.groups;
  g->is_one = share.copied == 2;
  g->rows = g->is_one ? taps * s.c : g->ci;
  const int column_tiles = (g->co + share.columns - 1) / share.columns,
            row_tiles = (g->rows + share.rows - 1) / share.rows;
  const int tap_row_tile = (int)get_group_id(1) / column_tiles, tap_tile = tap_row_tile / row_tiles;
  g->column0 = ((int)get_group_id(1) - tap_row_tile * column_tiles) * share.columns;
  g->column1 = min(g->co, g->column0 + share.columns);
  g->row0 = (tap_row_tile - tap_tile * row_tiles) * share.rows;
  g->row1 = min(g->rows, g->row0 + share.rows);
  g->tap0 = tap_tile * share.taps;
  g->tap1 = min(g->is_one ? 1 : taps, g->tap0 + share.taps);
  g->strips = (s.out.w + share.strip - 1) / share.strip;
  g->line_size = ((share.strip - 1) * s.stride.w + (s.taps.w - 1) * s.dilation.w + 1) * s.c;
  g->stays = s.taps.d == 1 && s.dilation.h == 1 && g->strips == 1 ? max(0, s.taps.h - s.stride.h) : 0;
  g->has_runs =
      VW == 16 && g->is_one && s.dilation.w == 1 && s.taps.w * s.c == CONV_FILTER_RUN && s.taps.d * s.taps.h == 3;
}

// part [splits][kd][kh][kw][c/groups][co]: split s is the weight gradient over strips s*strips_per_split and the next
// strips_per_split - 1 of n*od*oh*ceil(ow/strip); strips are pieces of output lines, so that a long line is cached and
// shared like short ones, and are summed in blocks of `lines`. copied: 0 the source is read where it is (needs
// CONV_FILTER_MR channels, not of 16 bits), 1 the channels of a tap are copied, 2 the lines of all taps are copied (one
// group). Rows of a tap are its input channels, or with copied 2 those of all taps together, which count as one. sums
// [splits][co], where they are there, are those of dy over the split's pixels. Groups: x = splits, y =
// ceil(taps/taps_per_group)*ceil(rows/tile_m)*ceil((co/groups)/tile_n), column tile fastest, z = groups. tile_m: a
// multiple of CONV_FILTER_MR_NARROW, tile_n: of CONV_FILTER_NR. Sums run over pixels in order, block by block.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_bwd(ARRAY(const stored, x),
                                                                             ARRAY(const stored, dy), ARRAY(real, part),
                                                                             ARRAY(real, sums), const conv_sizes sizes,
                                                                             const conv_filter_shares share) {
  START(x);
  START(dy);
  START(part);
  START(sums);
  real source[CONV_FILTER_SOURCE];
#ifdef SAMEBYTES_STORE_16
  real widened[CONV_FILTER_WIDENED] __attribute__((aligned(64)));
  long narrow_at[CONV_FILTER_LINES];
#endif
  conv_filter_group g;
  conv_filter_set_group(&g, sizes, share);
  const int of = get_group_id(2), split = get_group_id(0), ow = sizes.out.w, co = sizes.co;
  const int lines = sizes.n * sizes.out.d * sizes.out.h, taps = sizes.taps.d * sizes.taps.h * sizes.taps.w;
  g.x = x + of * g.ci;
  g.dy = dy + of * g.co;
  g.dy_end = dy + (long)lines * ow * co;
  g.part = part + (long)split * taps * g.ci * co + of * g.co;
  g.source = source;
#ifdef SAMEBYTES_STORE_16
  g.widened = widened;
  g.narrow_at = narrow_at;
#endif
  conv_filter_lines l;
  l.x_step = share.copied == 1 ? g.ci : sizes.stride.w * sizes.c;
  l.dy_step = co;
  const int begin = split * share.strips_per_split, end = min(lines * g.strips, begin + share.strips_per_split);
  const int has_sums = sums != 0 && g.tap0 == 0 && g.row0 == 0;
  for (int block = begin; block < end; block += share.lines) {
    const int block_end = min(end, block + share.lines);
    for (int tap = g.tap0; tap < g.tap1; ++tap) {
      conv_filter_meet(&g, tap, block, block_end, &l);
      conv_filter_columns(&g, tap, block > begin, &l);
    }
    if (has_sums) {
      const int line0 = block / g.strips, line1 = block_end / g.strips;
      const long pixel0 = (long)line0 * ow + (block - line0 * g.strips) * share.strip,
                 pixel1 = (long)line1 * ow + (block_end - line1 * g.strips) * share.strip;
      conv_filter_add_columns(g.dy + pixel0 * co, pixel1 - pixel0, co, g.column0, g.column1, block > begin,
                              sums + (long)split * co + of * g.co);
    }
  }
}

// dw[i] = sum over s, ascending, of part[s*total + i]. Groups: x =
// ceil(total/CONV_FILTER_REDUCE_BLOCK).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_reduce(ARRAY(const real, part),
                                                                                ARRAY(stored, dw), const long total,
                                                                                const int splits) {
  START(part);
  START(dw);
  const long begin = (long)get_group_id(0) * CONV_FILTER_REDUCE_BLOCK,
             end = min(total, begin + CONV_FILTER_REDUCE_BLOCK);
  long i = begin;
  for (; i + VW <= end; i += VW) {
    vreal v = VLOAD(part + i);
    for (int s = 1; s < splits; ++s) v += VLOAD(part + s * total + i);
    VSTORE(v, dw + i);
  }
  for (; i < end; ++i) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    STORE(v, dw + i);
  }
}

// Takes the groups out of bundles: dw [taps][ci][co] = sum over s, ascending, of part [splits][taps][bundle*ci][co],
// where column k of group k/co_group lies in rows (k/co_group mod bundle)*ci and the next ci - 1. Group r: row r of
// taps*ci.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_unbundle(ARRAY(const real, part),
                                                                                  ARRAY(stored, dw), const int taps,
                                                                                  const int ci, const int co,
                                                                                  const int co_group, const int bundle,
                                                                                  const int splits) {
  START(part);
  START(dw);
  const int row = get_group_id(0), tap = row / ci, i = row - tap * ci;
  const long total = (long)taps * bundle * ci * co;
  for (int first = 0, g = 0; first < co; first += co_group, g = g + 1 == bundle ? 0 : g + 1) {
    __global const real* from = part + ((long)(tap * bundle + g) * ci + i) * co + first;
    for (int k = 0; k < co_group; ++k) {
      real v = from[k];
      for (int s = 1; s < splits; ++s) v += from[s * total + k];
      STORE(v, dw + (long)row * co + first + k);
    }
  }
}
