// Weight gradient of the convolutions of conv.cl on a CPU device: x [n,d,h,wd,c], dy [n,od,oh,ow,co] to dw
// [kd,kh,kw,c/groups,co].
//
// A tile of CONV_FILTER_MR input channels x CONV_FILTER_NR output channels of one tap stays in registers and sums over
// pixels. It walks the images in blocks of a few lines that serve all taps and channels of a group before the next
// lines are read. Where input channels are fewer than a tile is high, the lines that the taps meet are copied with
// zeros for the padding: then all taps are rows of one tile, which reads each output channel once. Their places are
// read from an array, but for 3 x 3 taps of three channels, the first layer of most networks. The groups' work is
// taps and channels where these are enough, else partial sums, as many as the shape says. 16-bit values are widened as
// lines are copied, dy's where many tiles read them, else as they are read. The sums of dy over all pixels, which are
// the gradient of a bias, are taken on the way, while a block is in the cache.
// Over 400 lines because copying and tiles are of no use to another kernel and all kernels are one program.
// Program: convolution
#include "shared/conv.h"

#define CONV_FILTER_MR_VW16 8
#define CONV_FILTER_MR_VW8 4
#define CONV_FILTER_MR_VW4 4
#define CONV_FILTER_MR_VW2 4
#define CONV_FILTER_MR_NARROW_VW16 16  // where the columns are one vector
#define CONV_FILTER_MR_NARROW_VW8 8
#define CONV_FILTER_MR_NARROW_VW4 8
#define CONV_FILTER_MR_NARROW_VW2 8
// Heights of the tiles of copied lines, for two vectors of columns and for one.
#define CONV_FILTER_HIGH_0_VW16 14
#define CONV_FILTER_HIGH_1_VW16 9
#define CONV_FILTER_HIGH_2_VW16 7
#define CONV_FILTER_HIGH_3_VW16 5
#define CONV_FILTER_HIGH_0_VW8 6
#define CONV_FILTER_HIGH_1_VW8 5
#define CONV_FILTER_HIGH_2_VW8 3
#define CONV_FILTER_HIGH_3_VW8 2
#define CONV_FILTER_HIGH_0_VW4 6
#define CONV_FILTER_HIGH_1_VW4 5
#define CONV_FILTER_HIGH_2_VW4 3
#define CONV_FILTER_HIGH_3_VW4 2
#define CONV_FILTER_HIGH_0_VW2 6
#define CONV_FILTER_HIGH_1_VW2 5
#define CONV_FILTER_HIGH_2_VW2 3
#define CONV_FILTER_HIGH_3_VW2 2
#define CONV_FILTER_HIGH_NARROW_0_VW16 28
#define CONV_FILTER_HIGH_NARROW_1_VW16 14
#define CONV_FILTER_HIGH_NARROW_2_VW16 9
#define CONV_FILTER_HIGH_NARROW_3_VW16 5
#define CONV_FILTER_HIGH_NARROW_0_VW8 12
#define CONV_FILTER_HIGH_NARROW_1_VW8 9
#define CONV_FILTER_HIGH_NARROW_2_VW8 5
#define CONV_FILTER_HIGH_NARROW_3_VW8 3
#define CONV_FILTER_HIGH_NARROW_0_VW4 12
#define CONV_FILTER_HIGH_NARROW_1_VW4 9
#define CONV_FILTER_HIGH_NARROW_2_VW4 5
#define CONV_FILTER_HIGH_NARROW_3_VW4 3
#define CONV_FILTER_HIGH_NARROW_0_VW2 12
#define CONV_FILTER_HIGH_NARROW_1_VW2 9
#define CONV_FILTER_HIGH_NARROW_2_VW2 5
#define CONV_FILTER_HIGH_NARROW_3_VW2 3
#define CONV_FILTER_HIGH_0 SB_JOIN(CONV_FILTER_HIGH_0_VW, VW)
#define CONV_FILTER_HIGH_1 SB_JOIN(CONV_FILTER_HIGH_1_VW, VW)
#define CONV_FILTER_HIGH_2 SB_JOIN(CONV_FILTER_HIGH_2_VW, VW)
#define CONV_FILTER_HIGH_3 SB_JOIN(CONV_FILTER_HIGH_3_VW, VW)
#define CONV_FILTER_HIGH_NARROW_0 SB_JOIN(CONV_FILTER_HIGH_NARROW_0_VW, VW)
#define CONV_FILTER_HIGH_NARROW_1 SB_JOIN(CONV_FILTER_HIGH_NARROW_1_VW, VW)
#define CONV_FILTER_HIGH_NARROW_2 SB_JOIN(CONV_FILTER_HIGH_NARROW_2_VW, VW)
#define CONV_FILTER_HIGH_NARROW_3 SB_JOIN(CONV_FILTER_HIGH_NARROW_3_VW, VW)
#define CONV_FILTER_HIGHEST 28
#define CONV_FILTER_NR_VW16 32
#define CONV_FILTER_NR_VW8 16
#define CONV_FILTER_NR_VW4 8
#define CONV_FILTER_NR_VW2 4
#define CONV_FILTER_MR SB_JOIN(CONV_FILTER_MR_VW, VW)
#define CONV_FILTER_MR_NARROW SB_JOIN(CONV_FILTER_MR_NARROW_VW, VW)
#define CONV_FILTER_NR SB_JOIN(CONV_FILTER_NR_VW, VW)
#ifndef CONV_FILTER_PIXELS
#define CONV_FILTER_PIXELS 512  // output pixels of a block
#endif
#define CONV_FILTER_LINES 64           // of a block, at most
#define CONV_FILTER_STRIP 384          // pixels of an output line that are taken in one piece, at most
#define CONV_FILTER_SOURCE 12288       // values of copied lines
#define CONV_FILTER_REDUCE_BLOCK 4096  // values per group of conv_filter_reduce

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

// One tile of ROWS rows x (COLS*VW) output channels, summed over the lines. Row i's value of the pixel at `from` is
// VALUE(i): rows are neighbours, or where `at` says, or with RUNS three runs of CONV_FILTER_RUN neighbours, a pointer
// for each. dy points at the first channel, DY being what its elements are and READ what reads one. Near dy_end, the
// end of the array that dy lies in, a narrow tile's channels are copied, not read as a vector; a wide tile's are all
// there.
#define CONV_FILTER_MICRO(...) CONV_FILTER_MICRO_(__VA_ARGS__)
#define CONV_FILTER_MICRO_(name, SPACE, VALUE, RUNS, DY, READ, ROWS, COLS)                              \
  __attribute__((noinline)) static void name(SPACE const real* x, const long* at, DY* dy, DY* dy_end,   \
                                             const conv_filter_lines* l, const conv_filter_target* o) { \
    vreal acc[ROWS][COLS];                                                                              \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                  \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                          \
    }                                                                                                   \
    const int lines = l->lines, x_step = l->x_step, dy_step = l->dy_step;                               \
    const long at_1 = RUNS ? at[CONV_FILTER_RUN] : 0, at_2 = RUNS ? at[2 * CONV_FILTER_RUN] : 0;        \
    for (int line = 0; line < lines; ++line) {                                                          \
      SPACE const real *from = x + l->x_at[line], *from_1 = from + at_1, *from_2 = from + at_2;         \
      DY* with = dy + l->dy_at[line];                                                                   \
      const int count = l->count[line];                                                                 \
      for (int p = 0; p < count; ++p, from += x_step, with += dy_step) {                                \
        vreal b[COLS];                                                                                  \
        if (COLS > 1 || dy_end - with >= VW) {                                                          \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(with + j * VW);                 \
        } else {                                                                                        \
          real last[VW];                                                                                \
          for (int j = 0; j < VW; ++j) last[j] = j < o->column1 ? READ(with + j) : 0;                   \
          b[0] = VLOAD(last);                                                                           \
        }                                                                                               \
        _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                              \
          const vreal a = (vreal)(VALUE(i));                                                            \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);         \
        }                                                                                               \
        if (RUNS) {                                                                                     \
          from_1 += x_step;                                                                             \
          SB_HIDE(from_1);                                                                              \
          from_2 += x_step;                                                                             \
          SB_HIDE(from_2);                                                                              \
        }                                                                                               \
      }                                                                                                 \
    }                                                                                                   \
    if (o->column1 - o->column0 == COLS * VW) {                                                         \
      __global real* to = o->to;                                                                        \
      const int row0 = o->row0, row1 = o->row1, step = o->step, add = o->add;                           \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                \
        if (i >= row0 && i < row1) {                                                                    \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) {                                            \
            __global real* place = to + (long)i * step + j * VW;                                        \
            VSTORE(add ? VLOAD(place) + acc[i][j] : acc[i][j], place);                                  \
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
#define CONV_FILTER_NEXT_VALUE(i) from[i]
#define CONV_FILTER_NEXT CONV_FILTER_NEXT_VALUE, 0
#define CONV_FILTER_GATHERED_VALUE(i) from[at[i]]
#define CONV_FILTER_GATHERED CONV_FILTER_GATHERED_VALUE, 0
#define CONV_FILTER_RUN 9  // values of three channels that three taps meet
#define CONV_FILTER_RUNS_VALUE(i) \
  ((i) < CONV_FILTER_RUN ? from : (i) < 2 * CONV_FILTER_RUN ? from_1 : from_2)[(i) % CONV_FILTER_RUN]
#define CONV_FILTER_RUNS CONV_FILTER_RUNS_VALUE, 1
#define CONV_FILTER_STORED __global const stored, LOAD
#define CONV_FILTER_PLAIN(p) (*(p))
#ifndef SAMEBYTES_STORE_16  // then lines are always copied, and widened
CONV_FILTER_MICRO(conv_filter_wide, __global, CONV_FILTER_NEXT, CONV_FILTER_STORED, CONV_FILTER_MR, 2)
CONV_FILTER_MICRO(conv_filter_narrow, __global, CONV_FILTER_NEXT, CONV_FILTER_STORED, CONV_FILTER_MR, 1)
CONV_FILTER_MICRO(conv_filter_tall_narrow, __global, CONV_FILTER_NEXT, CONV_FILTER_STORED, CONV_FILTER_MR_NARROW, 1)
#endif
CONV_FILTER_MICRO(conv_filter_copied_0, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED, CONV_FILTER_HIGH_0, 2)
CONV_FILTER_MICRO(conv_filter_copied_1, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED, CONV_FILTER_HIGH_1, 2)
CONV_FILTER_MICRO(conv_filter_copied_2, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED, CONV_FILTER_HIGH_2, 2)
CONV_FILTER_MICRO(conv_filter_copied_3, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED, CONV_FILTER_HIGH_3, 2)
CONV_FILTER_MICRO(conv_filter_copied_narrow_0, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED,
                  CONV_FILTER_HIGH_NARROW_0, 1)
CONV_FILTER_MICRO(conv_filter_copied_narrow_1, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED,
                  CONV_FILTER_HIGH_NARROW_1, 1)
CONV_FILTER_MICRO(conv_filter_copied_narrow_2, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED,
                  CONV_FILTER_HIGH_NARROW_2, 1)
CONV_FILTER_MICRO(conv_filter_copied_narrow_3, __private, CONV_FILTER_GATHERED, CONV_FILTER_STORED,
                  CONV_FILTER_HIGH_NARROW_3, 1)
CONV_FILTER_MICRO(conv_filter_runs, __private, CONV_FILTER_RUNS, CONV_FILTER_STORED, 3 * CONV_FILTER_RUN, 1)
#ifdef SAMEBYTES_STORE_16
CONV_FILTER_MICRO(conv_filter_widened_0, __private, CONV_FILTER_GATHERED, const real, CONV_FILTER_PLAIN,
                  CONV_FILTER_HIGH_0, 2)
CONV_FILTER_MICRO(conv_filter_widened_1, __private, CONV_FILTER_GATHERED, const real, CONV_FILTER_PLAIN,
                  CONV_FILTER_HIGH_1, 2)
CONV_FILTER_MICRO(conv_filter_widened_2, __private, CONV_FILTER_GATHERED, const real, CONV_FILTER_PLAIN,
                  CONV_FILTER_HIGH_2, 2)
CONV_FILTER_MICRO(conv_filter_widened_3, __private, CONV_FILTER_GATHERED, const real, CONV_FILTER_PLAIN,
                  CONV_FILTER_HIGH_3, 2)

// A block has CONV_FILTER_PIXELS pixels or one strip.
#if CONV_FILTER_PIXELS > CONV_FILTER_STRIP
#define CONV_FILTER_WIDENED (CONV_FILTER_PIXELS * CONV_FILTER_NR)
#else
#define CONV_FILTER_WIDENED (CONV_FILTER_STRIP * CONV_FILTER_NR)
#endif

// Copies and widens CONV_FILTER_NR channels of dy of all pixels of the lines, which begin at from[line], and makes the
// lines point there.
static void conv_filter_widen(__global const stored* dy, const int co, const long* from, conv_filter_lines* l,
                              real* to) {
  long at = 0;
  l->dy_step = CONV_FILTER_NR;
  for (int line = 0; line < l->lines; ++line) {
    __global const stored* with = dy + from[line];
    l->dy_at[line] = at;
    for (int p = 0; p < l->count[line]; ++p, with += co, at += CONV_FILTER_NR) {
      VSTORE(VLOAD(with), to + at);
      VSTORE(VLOAD(with + VW), to + at + VW);
    }
  }
}
#endif

// Of the heights of tiles of copied lines, the least that has `rows`, else the highest: its number, and itself.
static int conv_filter_height(const int rows, const int is_wide, int* height) {
  const int high[4] = {is_wide ? CONV_FILTER_HIGH_0 : CONV_FILTER_HIGH_NARROW_0,
                       is_wide ? CONV_FILTER_HIGH_1 : CONV_FILTER_HIGH_NARROW_1,
                       is_wide ? CONV_FILTER_HIGH_2 : CONV_FILTER_HIGH_NARROW_2,
                       is_wide ? CONV_FILTER_HIGH_3 : CONV_FILTER_HIGH_NARROW_3};
  int i = 3;
  while (i > 0 && high[i] < rows) --i;
  *height = high[i];
  return i;
}

// Copies `size` values of a line that begin at value `first` of its `there` ones; zeros before and behind them.
static void conv_filter_copy(__global const stored* line, const long there, const long first, const int size,
                             real* to) {
  const int begin = (int)clamp(-first, 0L, (long)size), end = (int)clamp(there - first, (long)begin, (long)size);
  int i = 0;
  for (; i < begin; ++i) to[i] = 0;
  for (; i + VW <= end; i += VW) VSTORE(VLOAD(line + first + i), to + i);
  if (i < end && end - begin >= VW) {
    VSTORE(VLOAD(line + first + end - VW), to + end - VW);
    i = end;
  }
  for (; i < end; ++i) to[i] = LOAD(line + first + i);
  for (; i < size; ++i) to[i] = 0;
}

// sums [co] (added where add is set) = the sums of dy over `pixels` pixels, columns first to last - 1. Four pixels are
// summed side by side.
static void conv_filter_add_columns(__global const stored* dy, const long pixels, const int co, const int first,
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
  CONV_NAMES(sizes);
  const int strip = share.strip, strips_per_split = share.strips_per_split, lines = share.lines, copied = share.copied;
  const int taps_per_group = share.taps, tile_m = share.rows, tile_n = share.columns;
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2), split = get_group_id(0);
  const int is_one = copied == 2, row_taps = kd * kh * kw;
  const int rows_all = is_one ? row_taps * c : ci_group, taps_all = is_one ? 1 : row_taps;
  const int column_tiles = (co_group + tile_n - 1) / tile_n, row_tiles = (rows_all + tile_m - 1) / tile_m;
  const int tap_row_tile = (int)get_group_id(1) / column_tiles, tap_tile = tap_row_tile / row_tiles;
  const int co0 = ((int)get_group_id(1) - tap_row_tile * column_tiles) * tile_n, co1 = min(co_group, co0 + tile_n);
  const int row0 = (tap_row_tile - tap_tile * row_tiles) * tile_m, row1 = min(rows_all, row0 + tile_m);
  const int tap0 = tap_tile * taps_per_group, tap1 = min(taps_all, tap0 + taps_per_group);
  const int strips = (ow + strip - 1) / strip;
  const int begin = split * strips_per_split, end = min(n * od * oh * strips, begin + strips_per_split);
  __global const stored* dy_end = dy + (long)n * od * oh * ow * co;
#ifdef SAMEBYTES_STORE_16
  real widened[CONV_FILTER_WIDENED] __attribute__((aligned(64)));
  long narrow_at[CONV_FILTER_LINES];  // of dy where it lies
#endif
  part += (long)split * kd * kh * kw * ci_group * co + g * co_group;

  real source[CONV_FILTER_SOURCE];
  conv_filter_lines l;
  l.x_step = copied == 1 ? ci_group : sw * c;
  l.dy_step = co;
  const int line_size = ((strip - 1) * sw + (kw - 1) * dw + 1) * c;  // of a copy, with is_one
  // Source lines that an output line and the next one both meet.
  const int shared = kd == 1 && dh == 1 && strips == 1 ? max(0, kh - sh) : 0;
  const int has_runs = VW == 16 && is_one && dw == 1 && kw * c == CONV_FILTER_RUN && kd * kh == 3;
  const int has_sums = sums != 0 && tap0 == 0 && row0 == 0;
  for (int block = begin; block < end; block += lines) {
    const int block_end = min(end, block + lines);
    for (int tap = tap0; tap < tap1; ++tap) {
      const int tap_line = tap / kw, tz = tap_line / kh;
      const int front = tz * dd - pd, top = (tap_line - tz * kh) * dh - ph, left = (tap - tap_line * kw) * dw - pw;
      // Only the pixels whose source is inside; with is_one those outside are zeros.
      const int inside0 = is_one ? 0 : max(0, (sw - 1 - left) / sw);
      const int inside1 = is_one ? ow : min(ow, wd - 1 - left < 0 ? 0 : (wd - 1 - left) / sw + 1);
      l.lines = 0;
      int used = 0;
      for (int r = block; r < block_end; ++r) {
        const int line = r / strips, first = (r - line * strips) * strip;
        const int slice = line / oh, at_h = (line - slice * oh) * sh + top;
        const int volume = slice / od, at_d = (slice - volume * od) * sd + front;
        const int p0 = max(inside0, first), p1 = min(inside1, min(ow, first + strip));
        if (p0 >= p1) continue;
        l.count[l.lines] = p1 - p0;
        l.dy_at[l.lines] = ((long)line * ow + p0) * co;
        l.x_at[l.lines] = used;
        if (is_one) {
          // The upper ones of the lines that the taps meet stand already, as lower ones of the output line before.
          const int stands = l.lines > 0 && line > slice * oh ? shared : 0;
          l.x_at[l.lines] = used - stands * line_size;
          for (int z = 0; z < kd; ++z) {
            for (int y = stands; y < kh; ++y, used += line_size) {
              const int in_d = at_d + z * dd, in_h = at_h + y * dh;
              const int is_inside = in_d >= 0 && in_d < d && in_h >= 0 && in_h < h;
              conv_filter_copy(x + (((long)volume * d + in_d) * h + in_h) * wd * c, is_inside ? (long)wd * c : 0,
                               ((long)p0 * sw + left) * c, line_size, source + used);
            }
          }
        } else {
          if (at_h < 0 || at_h >= h || at_d < 0 || at_d >= d) continue;
          const long from = (((long)volume * d + at_d) * h + at_h) * wd;
          if (copied == 0) {
            l.x_at[l.lines] = (from + p0 * sw + left) * c;
          } else {
            __global const stored* at = x + (from + p0 * sw + left) * c + g * ci_group;
            for (int p = p0; p < p1; ++p, at += sw * c, used += ci_group)
              conv_filter_copy(at, ci_group, 0, ci_group, source + used);
          }
        }
        ++l.lines;
      }
#ifdef SAMEBYTES_STORE_16
      for (int line = 0; line < l.lines; ++line) narrow_at[line] = l.dy_at[line];
#endif
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
#ifdef SAMEBYTES_STORE_16
        // 16-bit channels that three row tiles and more read are widened once; a copy for fewer costs more than it
        // saves.
        const int is_widened = is_wide && row1 - row0 > 2 * CONV_FILTER_HIGH_0;
        if (is_widened) {
          conv_filter_widen(with, co, narrow_at, &l, widened);
        } else {
          l.dy_step = co;
          for (int line = 0; line < l.lines; ++line) l.dy_at[line] = narrow_at[line];
        }
#endif
        int rows;
        for (int i = row0; i < row1; i += rows) {
          const int left_rows = row1 - i;
          int high = CONV_FILTER_MR, which = 0;
          if (copied != 0) {
            const int highest = is_wide ? CONV_FILTER_HIGH_0 : CONV_FILTER_HIGH_NARROW_0;
            const int tiles = (left_rows + highest - 1) / highest;
            which = conv_filter_height((left_rows + tiles - 1) / tiles, is_wide, &high);
          } else if (!is_wide && left_rows > CONV_FILTER_MR && ci_group >= CONV_FILTER_MR_NARROW) {
            high = CONV_FILTER_MR_NARROW;
          }
          rows = min(high, left_rows);
          const int i0 = copied == 0 ? min(i, ci_group - high) : i;
          o.row0 = i - i0;
          o.row1 = i - i0 + rows;
          o.to = part + ((long)tap * rows_all + i0) * co + j0;
#define CONV_FILTER_CALL(name) name(from, at, with, dy_end, &l, &o);
          long at[CONV_FILTER_HIGHEST];
#ifndef SAMEBYTES_STORE_16
          if (copied == 0) {
            __global const real* from = x + g * ci_group + i0;
            if (is_wide)
              CONV_FILTER_CALL(conv_filter_wide)
            else if (high == CONV_FILTER_MR)
              CONV_FILTER_CALL(conv_filter_narrow)
            else
              CONV_FILTER_CALL(conv_filter_tall_narrow)
          } else
#endif
          {
            const real* from = source;
            for (int k = 0; k < high; ++k) {
              const int row = min(i0 + k, row1 - 1), of = row / c, of_line = of / kw;
              at[k] = is_one ? of_line * line_size + (of - of_line * kw) * dw * c + row - of * c : row;
            }
#ifdef SAMEBYTES_STORE_16
            if (is_widened) {
#define CONV_FILTER_CALL_WIDENED(name) name(from, at, widened, widened, &l, &o);
              if (which == 0)
                CONV_FILTER_CALL_WIDENED(conv_filter_widened_0)
              else if (which == 1)
                CONV_FILTER_CALL_WIDENED(conv_filter_widened_1)
              else if (which == 2)
                CONV_FILTER_CALL_WIDENED(conv_filter_widened_2)
              else
                CONV_FILTER_CALL_WIDENED(conv_filter_widened_3)
#undef CONV_FILTER_CALL_WIDENED
            } else
#endif
                if (is_wide) {
              if (which == 0)
                CONV_FILTER_CALL(conv_filter_copied_0)
              else if (which == 1)
                CONV_FILTER_CALL(conv_filter_copied_1)
              else if (which == 2)
                CONV_FILTER_CALL(conv_filter_copied_2)
              else
                CONV_FILTER_CALL(conv_filter_copied_3)
            } else {
              if (has_runs && rows == rows_all)
                CONV_FILTER_CALL(conv_filter_runs)
              else if (which == 0)
                CONV_FILTER_CALL(conv_filter_copied_narrow_0)
              else if (which == 1)
                CONV_FILTER_CALL(conv_filter_copied_narrow_1)
              else if (which == 2)
                CONV_FILTER_CALL(conv_filter_copied_narrow_2)
              else
                CONV_FILTER_CALL(conv_filter_copied_narrow_3)
            }
          }
#undef CONV_FILTER_CALL
        }
      }
    }
    if (has_sums) {
      const int line0 = block / strips, line1 = block_end / strips;
      const long pixel0 = (long)line0 * ow + (block - line0 * strips) * strip,
                 pixel1 = (long)line1 * ow + (block_end - line1 * strips) * strip;
      conv_filter_add_columns(dy + pixel0 * co + g * co_group, pixel1 - pixel0, co, co0, co1, block > begin,
                              sums + (long)split * co + g * co_group);
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
