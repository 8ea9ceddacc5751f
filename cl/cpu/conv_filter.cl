// Weight gradient of the convolutions of conv.cl on a CPU device: x [n,d,h,wd,c], dy [n,od,oh,ow,co] to dw
// [kd,kh,kw,c/groups,co].
//
// A tile of CONV_FILTER_MR input channels x CONV_FILTER_NR output channels of one tap stays in registers and sums over
// pixels. It walks the images in blocks of a few lines that serve all taps and channels of a group before the next
// lines are read. Where input channels are fewer than a tile is high, the lines are copied with zeros for the padding:
// then the taps along the width are rows of the tile as well, since their values are neighbours. The groups' work is
// taps and channels where these are enough, else partial sums, as many as the shape says.

#define CONV_FILTER_MR_VW16 8
#define CONV_FILTER_MR_VW8 4
#define CONV_FILTER_MR_VW4 4
#define CONV_FILTER_MR_VW2 4
#define CONV_FILTER_MR_NARROW_VW16 16  // where the columns are one vector
#define CONV_FILTER_MR_NARROW_VW8 8
#define CONV_FILTER_MR_NARROW_VW4 8
#define CONV_FILTER_MR_NARROW_VW2 8
#define CONV_FILTER_MR_LOW_VW16 4
#define CONV_FILTER_MR_LOW_VW8 2
#define CONV_FILTER_MR_LOW_VW4 2
#define CONV_FILTER_MR_LOW_VW2 2
#define CONV_FILTER_NR_VW16 32
#define CONV_FILTER_NR_VW8 16
#define CONV_FILTER_NR_VW4 8
#define CONV_FILTER_NR_VW2 4
#define CONV_FILTER_MR SB_JOIN(CONV_FILTER_MR_VW, VW)
#define CONV_FILTER_MR_NARROW SB_JOIN(CONV_FILTER_MR_NARROW_VW, VW)
#define CONV_FILTER_MR_LOW SB_JOIN(CONV_FILTER_MR_LOW_VW, VW)
#define CONV_FILTER_NR SB_JOIN(CONV_FILTER_NR_VW, VW)
#ifndef CONV_FILTER_PIXELS
#define CONV_FILTER_PIXELS 512  // output pixels of a block
#endif
#define CONV_FILTER_LINES 64           // of a block, at most
#define CONV_FILTER_SOURCE 12288       // values of copied lines
#define CONV_FILTER_REDUCE_BLOCK 4096  // values per group of conv_filter_reduce

#define CONV_FILTER_ACCUMULATE 1

// s* stride, p* padding, d* dilation of an axis.
#define CONV_FILTER_GEOMETRY                                                                                          \
  const int n, const int d, const int h, const int wd, const int c, const int od, const int oh, const int ow,         \
      const int co, const int kd, const int kh, const int kw, const int sd, const int sh, const int sw, const int pd, \
      const int ph, const int pw, const int dd, const int dh, const int dw, const int groups, const int flags

// The pixels that meet one tap in the lines of a block: per line the first one in the source and in dy, and how many.
typedef struct {
  int lines, x_step, dy_step;
  int count[CONV_FILTER_LINES];
  long x_at[CONV_FILTER_LINES], dy_at[CONV_FILTER_LINES];
} conv_filter_lines;

// Where a tile goes: rows [row0, row1) and columns [column0, column1) of it, to rows `step` apart; added where add is
// set.
typedef struct {
  __global real* to;
  int row0, row1, column0, column1, step, add;
} conv_filter_target;

static void conv_filter_store_part(const real* tile, const int width, const conv_filter_target* o) {
  for (int i = o->row0; i < o->row1; ++i) {
    for (int j = o->column0; j < o->column1; ++j) {
      __global real* to = o->to + (long)i * o->step + j;
      *to = o->add ? *to + tile[i * width + j] : tile[i * width + j];
    }
  }
}

// One tile of ROWS input channels x (COLS*VW) output channels, summed over the lines. x and dy point at the first
// channels. Near dy_end, the end of the array that dy lies in, a narrow tile's channels are copied, not read as a
// vector; a wide tile's are all there.
#define CONV_FILTER_MICRO(name, SPACE, ROWS, COLS)                                                      \
  static void name(SPACE const real* x, __global const stored* dy, __global const stored* dy_end,       \
                   const conv_filter_lines* l, const conv_filter_target* o) {                           \
    vreal acc[ROWS][COLS];                                                                              \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                  \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                          \
    }                                                                                                   \
    const int lines = l->lines, x_step = l->x_step, dy_step = l->dy_step;                               \
    for (int line = 0; line < lines; ++line) {                                                          \
      SPACE const real* from = x + l->x_at[line];                                                       \
      __global const stored* with = dy + l->dy_at[line];                                                \
      const int count = l->count[line];                                                                 \
      for (int p = 0; p < count; ++p, from += x_step, with += dy_step) {                                \
        vreal b[COLS];                                                                                  \
        if (COLS > 1 || dy_end - with >= VW) {                                                          \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(with + j * VW);                 \
        } else {                                                                                        \
          real last[VW];                                                                                \
          for (int j = 0; j < VW; ++j) last[j] = j < o->column1 ? LOAD(with + j) : 0;                   \
          b[0] = VLOAD(last);                                                                           \
        }                                                                                               \
        _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                              \
          const vreal a = (vreal)(from[i]);                                                             \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);         \
        }                                                                                               \
      }                                                                                                 \
    }                                                                                                   \
    if (o->column1 - o->column0 == COLS * VW) {                                                         \
      __global real* to = o->to;                                                                        \
      const int row0 = o->row0, row1 = o->row1, step = o->step, add = o->add;                           \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                \
        if (i >= row0 && i < row1) {                                                                    \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) {                                            \
            __global real* at = to + (long)i * step + j * VW;                                           \
            VSTORE(add ? VLOAD(at) + acc[i][j] : acc[i][j], at);                                        \
          }                                                                                             \
        }                                                                                               \
      }                                                                                                 \
    } else {                                                                                            \
      real tile[ROWS * COLS * VW];                                                                      \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                \
        _Pragma("unroll") for (int j = 0; j < COLS; ++j) VSTORE(acc[i][j], tile + (i * COLS + j) * VW); \
      }                                                                                                 \
      conv_filter_store_part(tile, COLS* VW, o);                                                        \
    }                                                                                                   \
  }
#ifndef SAMEBYTES_STORE_16  // then lines are always copied, and widened
CONV_FILTER_MICRO(conv_filter_wide, __global, CONV_FILTER_MR, 2)
CONV_FILTER_MICRO(conv_filter_narrow, __global, CONV_FILTER_MR, 1)
CONV_FILTER_MICRO(conv_filter_tall_narrow, __global, CONV_FILTER_MR_NARROW, 1)
#endif
CONV_FILTER_MICRO(conv_filter_copied, __private, CONV_FILTER_MR, 2)
CONV_FILTER_MICRO(conv_filter_copied_low, __private, CONV_FILTER_MR_LOW, 2)
CONV_FILTER_MICRO(conv_filter_copied_narrow, __private, CONV_FILTER_MR, 1)
CONV_FILTER_MICRO(conv_filter_copied_low_narrow, __private, CONV_FILTER_MR_LOW, 1)

// Copies `size` values of a line that begin at value `first` of its `there` ones; zeros before and behind them.
static void conv_filter_copy(__global const stored* line, const long there, const long first, const int size, real* to) {
  const int begin = (int)clamp(-first, 0L, (long)size), end = (int)clamp(there - first, (long)begin, (long)size);
  int i = 0;
  for (; i < begin; ++i) to[i] = 0;
  for (; i + VW <= end; i += VW) VSTORE(VLOAD(line + first + i), to + i);
  for (; i < end; ++i) to[i] = LOAD(line + first + i);
  for (; i < size; ++i) to[i] = 0;
}

// part [splits][kd][kh][kw][c/groups][co]: split s is the weight gradient over strips s*strips_per_split and the next
// strips_per_split - 1 of n*od*oh*ceil(ow/strip); strips are pieces of output lines, so that a long line is cached and
// shared like short ones, and are summed in blocks of `lines`. copied: 0 the source is read where it is (needs
// CONV_FILTER_MR channels, not of 16 bits), 1 the channels of a tap are copied, 2 a line is copied and serves all taps along the width
// (one group, dilation 1). Rows of a tap are its input channels, or with copied 2 those of the kw taps together.
// Groups: x = splits, y = ceil(taps/taps_per_group)*ceil(rows/tile_m)*ceil((co/groups)/tile_n), column tile fastest, z
// = groups. tile_m: a multiple of CONV_FILTER_MR_NARROW, tile_n: of CONV_FILTER_NR. Sums run over pixels in order,
// block by block.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_bwd(
    ARRAY(const stored, x), ARRAY(const stored, dy), ARRAY(real, part), CONV_FILTER_GEOMETRY, const int strip,
    const int strips_per_split, const int lines, const int copied, const int taps_per_group, const int tile_m,
    const int tile_n) {
  START(x);
  START(dy);
  START(part);
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2), split = get_group_id(0);
  const int taps_w = copied == 2 ? 1 : kw, rows_all = copied == 2 ? kw * c : ci_group, taps_all = kd * kh * taps_w;
  const int column_tiles = (co_group + tile_n - 1) / tile_n, row_tiles = (rows_all + tile_m - 1) / tile_m;
  const int tap_row_tile = (int)get_group_id(1) / column_tiles, tap_tile = tap_row_tile / row_tiles;
  const int co0 = ((int)get_group_id(1) - tap_row_tile * column_tiles) * tile_n, co1 = min(co_group, co0 + tile_n);
  const int row0 = (tap_row_tile - tap_tile * row_tiles) * tile_m, row1 = min(rows_all, row0 + tile_m);
  const int tap0 = tap_tile * taps_per_group, tap1 = min(taps_all, tap0 + taps_per_group);
  const int strips = (ow + strip - 1) / strip;
  const int begin = split * strips_per_split, end = min(n * od * oh * strips, begin + strips_per_split);
  __global const stored* dy_end = dy + (long)n * od * oh * ow * co;
  part += (long)split * kd * kh * kw * ci_group * co + g * co_group;

  real source[CONV_FILTER_SOURCE + CONV_FILTER_MR];
  conv_filter_lines l;
  l.x_step = copied == 1 ? ci_group : sw * c;
  l.dy_step = co;
  for (int block = begin; block < end; block += lines) {
    const int block_end = min(end, block + lines);
    for (int tap = tap0; tap < tap1; ++tap) {
      const int tap_line = tap / taps_w, tz = tap_line / kh;
      const int front = tz * dd - pd, top = (tap_line - tz * kh) * dh - ph, left = (tap - tap_line * taps_w) * dw - pw;
      const int whole_line = copied == 2;  // else only the pixels whose source is inside
      const int inside0 = whole_line ? 0 : max(0, (sw - 1 - left) / sw);
      const int inside1 = whole_line ? ow : min(ow, wd - 1 - left < 0 ? 0 : (wd - 1 - left) / sw + 1);
      l.lines = 0;
      int used = 0;
      for (int r = block; r < block_end; ++r) {
        const int line = r / strips, first = (r - line * strips) * strip;
        const int slice = line / oh, at_h = (line - slice * oh) * sh + top;
        const int volume = slice / od, at_d = (slice - volume * od) * sd + front;
        const int p0 = max(inside0, first), p1 = min(inside1, min(ow, first + strip));
        if (at_h < 0 || at_h >= h || at_d < 0 || at_d >= d || p0 >= p1) continue;
        const long from = (((long)volume * d + at_d) * h + at_h) * wd;
        l.count[l.lines] = p1 - p0;
        l.dy_at[l.lines] = ((long)line * ow + p0) * co;
        l.x_at[l.lines] = used;
        if (copied == 0) {
          l.x_at[l.lines] = (from + p0 * sw + left) * c;
        } else if (copied == 1) {
          __global const stored* at = x + (from + p0 * sw + left) * c + g * ci_group;
          for (int p = p0; p < p1; ++p, at += sw * c, used += ci_group)
            conv_filter_copy(at, ci_group, 0, ci_group, source + used);
        } else {
          const int size = ((p1 - p0 - 1) * sw + kw) * c;
          conv_filter_copy(x + from * c, (long)wd * c, ((long)p0 * sw + left) * c, size, source + used);
          used += size;
        }
        ++l.lines;
      }
      if (copied != 0) {  // what a tile reads behind its last row
        for (int i = 0; i < CONV_FILTER_MR; ++i) source[used + i] = 0;
      }
      conv_filter_target o;
      o.step = co;
      o.add = block > begin;
      int columns;
      for (int j = co0; j < co1; j += columns) {
        // A wide tile's columns must be in the array: the last one begins earlier where they end.
        const int is_wide = co1 - j > VW && co >= CONV_FILTER_NR;
        const int j0 = is_wide ? min(j, co - g * co_group - CONV_FILTER_NR) : j;
        columns = min(is_wide ? CONV_FILTER_NR : VW, co1 - j);
        o.column0 = j - j0;
        o.column1 = j - j0 + columns;
        __global const stored* with = dy + g * co_group + j0;
        int rows;
        for (int i = row0; i < row1; i += rows) {
          const int left_rows = row1 - i;
          int high = CONV_FILTER_MR;
          if (copied != 0 && left_rows <= CONV_FILTER_MR_LOW) high = CONV_FILTER_MR_LOW;
          if (copied == 0 && !is_wide && left_rows > CONV_FILTER_MR && ci_group >= CONV_FILTER_MR_NARROW)
            high = CONV_FILTER_MR_NARROW;
          rows = min(high, left_rows);
          const int i0 = copied == 0 ? min(i, ci_group - high) : i;
          o.row0 = i - i0;
          o.row1 = i - i0 + rows;
          o.to = part + ((long)tap * rows_all + i0) * co + j0;
#define CONV_FILTER_ARGUMENTS with, dy_end, &l, &o
#ifndef SAMEBYTES_STORE_16
          if (copied == 0) {
            __global const real* from = x + g * ci_group + i0;
            if (is_wide)
              conv_filter_wide(from, CONV_FILTER_ARGUMENTS);
            else if (high == CONV_FILTER_MR)
              conv_filter_narrow(from, CONV_FILTER_ARGUMENTS);
            else
              conv_filter_tall_narrow(from, CONV_FILTER_ARGUMENTS);
          } else
#endif
          {
            const real* from = source + i0;
            if (is_wide && high == CONV_FILTER_MR)
              conv_filter_copied(from, CONV_FILTER_ARGUMENTS);
            else if (is_wide)
              conv_filter_copied_low(from, CONV_FILTER_ARGUMENTS);
            else if (high == CONV_FILTER_MR)
              conv_filter_copied_narrow(from, CONV_FILTER_ARGUMENTS);
            else
              conv_filter_copied_low_narrow(from, CONV_FILTER_ARGUMENTS);
          }
        }
      }
    }
  }
}

// dw[i] = sum over s, ascending, of part[s*total + i] (flags 1: added to dw). Groups: x =
// ceil(total/CONV_FILTER_REDUCE_BLOCK).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_reduce(ARRAY(const real, part),
                                                                                ARRAY(stored, dw), const long total,
                                                                                const int splits, const int flags) {
  START(part);
  START(dw);
  const long begin = (long)get_group_id(0) * CONV_FILTER_REDUCE_BLOCK,
             end = min(total, begin + CONV_FILTER_REDUCE_BLOCK);
  long i = begin;
  for (; i + VW <= end; i += VW) {
    vreal v = VLOAD(part + i);
    for (int s = 1; s < splits; ++s) v += VLOAD(part + s * total + i);
    if (flags & CONV_FILTER_ACCUMULATE) v += VLOAD(dw + i);
    VSTORE(v, dw + i);
  }
  for (; i < end; ++i) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    if (flags & CONV_FILTER_ACCUMULATE) v += LOAD(dw + i);
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
#undef CONV_FILTER_GEOMETRY
