// Weight gradient of the convolutions of conv.cl on a CPU device: x [n,d,h,wd,c], dy [n,od,oh,ow,co] to dw
// [kd,kh,kw,c/groups,co].
//
// A tile of CONV_FILTER_MR input channels x CONV_FILTER_NR output channels of one tap stays in registers and sums over
// pixels. It walks the images in blocks of a few lines that serve all taps and channels before the next lines are read,
// and a fixed number of partial sums, chosen by shape, gives the groups their work.

#define CONV_FILTER_MR_VW16 8
#define CONV_FILTER_MR_VW8 4
#define CONV_FILTER_MR_VW4 8
#define CONV_FILTER_MR_VW2 4
#define CONV_FILTER_NR_VW16 32
#define CONV_FILTER_NR_VW8 16
#define CONV_FILTER_NR_VW4 8
#define CONV_FILTER_NR_VW2 4
#define CONV_FILTER_MR SB_JOIN(CONV_FILTER_MR_VW, VW)
#define CONV_FILTER_NR SB_JOIN(CONV_FILTER_NR_VW, VW)
#define CONV_FILTER_PIXELS 192         // output pixels of a block of strips
#define CONV_FILTER_REDUCE_BLOCK 4096  // values per group of conv_filter_reduce

#define CONV_FILTER_ACCUMULATE 1

// s* stride, p* padding, d* dilation of an axis.
#define CONV_FILTER_GEOMETRY                                                                                          \
  const int n, const int d, const int h, const int wd, const int c, const int od, const int oh, const int ow,         \
      const int co, const int kd, const int kh, const int kw, const int sd, const int sh, const int sw, const int pd, \
      const int ph, const int pw, const int dd, const int dh, const int dw, const int groups, const int flags

// Output lines are cut into `strips` pieces of `strip` pixels, so that a long line is cached and shared like short
// ones.
typedef struct {
  int d, h, wd, c, od, oh, ow, co, sd, sh, sw, strip, strips;
} conv_filter_space;

// One tap's tile of the weight gradient, ROWS input channels x (COLS*VW) output channels, summed over output strips
// row0 <= r < row1 into tile [ROWS][CONV_FILTER_NR]. x and dy point at the first channels of the tile; rows and cols
// say how many exist. dy_end is the end of the array that dy lies in: near it the last channels are copied, not read as
// vectors.
#define CONV_FILTER_MICRO(name, ROWS, COLS)                                                                         \
  static void name(__global const real* x, __global const real* dy, __global const real* dy_end, const int row0,    \
                   const int row1, const int rows, const int cols, const conv_filter_space s, const int front,      \
                   const int top, const int left, real* tile) {                                                     \
    vreal acc[ROWS][COLS];                                                                                          \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                              \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                                      \
    }                                                                                                               \
    int lane[ROWS];                                                                                                 \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) lane[i] = min(i, rows - 1);                                    \
    const int begin = max(0, (s.sw - 1 - left) / s.sw);                                                             \
    const int end = min(s.ow, s.wd - 1 - left < 0 ? 0 : (s.wd - 1 - left) / s.sw + 1);                              \
    for (int r = row0; r < row1; ++r) {                                                                             \
      const int line = r / s.strips, first = (r - line * s.strips) * s.strip;                                       \
      const int slice = line / s.oh, at_h = (line - slice * s.oh) * s.sh + top;                                     \
      const int volume = slice / s.od, at_d = (slice - volume * s.od) * s.sd + front;                               \
      if (at_h < 0 || at_h >= s.h || at_d < 0 || at_d >= s.d) continue;                                             \
      const int p0 = max(begin, first), p1 = min(end, first + s.strip);                                             \
      __global const real* from = x + ((((long)volume * s.d + at_d) * s.h + at_h) * s.wd + p0 * s.sw + left) * s.c; \
      __global const real* with = dy + ((long)line * s.ow + p0) * s.co;                                             \
      for (int p = p0; p < p1; ++p, from += s.sw * s.c, with += s.co) {                                             \
        vreal b[COLS];                                                                                              \
        if (dy_end - with >= COLS * VW) {                                                                           \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(with + j * VW);                             \
        } else {                                                                                                    \
          real last[COLS * VW];                                                                                     \
          for (int j = 0; j < COLS * VW; ++j) last[j] = j < cols ? with[j] : 0;                                     \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(last + j * VW);                             \
        }                                                                                                           \
        _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                          \
          const vreal a = (vreal)(from[lane[i]]);                                                                   \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);                     \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                              \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) VSTORE(acc[i][j], tile + i * CONV_FILTER_NR + j * VW);       \
    }                                                                                                               \
  }
CONV_FILTER_MICRO(conv_filter_wide, CONV_FILTER_MR, 2)
CONV_FILTER_MICRO(conv_filter_narrow, CONV_FILTER_MR, 1)
#if CONV_FILTER_MR > 4
CONV_FILTER_MICRO(conv_filter_low, 4, 2)
CONV_FILTER_MICRO(conv_filter_low_narrow, 4, 1)
#else
#define conv_filter_low conv_filter_wide
#define conv_filter_low_narrow conv_filter_narrow
#endif

// part [rows][co] = tile, or += where add is set.
static void conv_filter_store(const real* tile, __global real* part, const int co, const int rows, const int cols,
                              const int add) {
  for (int i = 0; i < rows; ++i) {
    const real* from = tile + i * CONV_FILTER_NR;
    __global real* to = part + (long)i * co;
    int j = 0;
    for (; j + VW <= cols; j += VW) VSTORE(add ? VLOAD(to + j) + VLOAD(from + j) : VLOAD(from + j), to + j);
    for (; j < cols; ++j) to[j] = add ? to[j] + from[j] : from[j];
  }
}

// part [splits][kd][kh][kw][c/groups][co]: split s is the weight gradient over strips s*strips_per_split and the next
// strips_per_split - 1 of n*od*oh*ceil(ow/strip). Groups: x = splits, y =
// ceil((c/groups)/tile_m)*ceil((co/groups)/tile_n), column tile fastest, z = groups. tile_m: a multiple of
// CONV_FILTER_MR, tile_n: of CONV_FILTER_NR. Sums run over pixels in order, in blocks of strips that do not depend on
// the tiles.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_bwd(ARRAY(const real, x),
                                                                             ARRAY(const real, dy), ARRAY(real, part),
                                                                             CONV_FILTER_GEOMETRY, const int strip,
                                                                             const int strips_per_split,
                                                                             const int tile_m, const int tile_n) {
  START(x);
  START(dy);
  START(part);
  const int ci_group = c / groups, co_group = co / groups, g = get_group_id(2), split = get_group_id(0);
  const int column_tiles = (co_group + tile_n - 1) / tile_n;
  const int row_tile = (int)get_group_id(1) / column_tiles,
            column_tile = (int)get_group_id(1) - row_tile * column_tiles;
  const int ci0 = row_tile * tile_m, ci1 = min(ci_group, ci0 + tile_m);
  const int co0 = column_tile * tile_n, co1 = min(co_group, co0 + tile_n);
  const conv_filter_space s = {d, h, wd, c, od, oh, ow, co, sd, sh, sw, strip, (ow + strip - 1) / strip};
  const int begin = split * strips_per_split, end = min(n * od * oh * s.strips, begin + strips_per_split);
  const int step = max(1, CONV_FILTER_PIXELS / strip);
  __global const real* dy_end = dy + (long)n * od * oh * ow * co;
  part += (long)split * kd * kh * kw * ci_group * co;
  for (int row = begin; row < end; row += step) {
    const int row_end = min(end, row + step);
    for (int tz = 0; tz < kd; ++tz) {
      for (int ty = 0; ty < kh; ++ty) {
        for (int tx = 0; tx < kw; ++tx) {
          const int front = tz * dd - pd, top = ty * dh - ph, left = tx * dw - pw;
          int rows = CONV_FILTER_MR;
          for (int i = ci0; i < ci1; i += rows) {
            rows = ci1 - i >= CONV_FILTER_MR ? CONV_FILTER_MR : min(4, ci1 - i);
            for (int j = co0; j < co1; j += CONV_FILTER_NR) {
              const int cols = min(CONV_FILTER_NR, co1 - j);
              __global const real *from = x + g * ci_group + i, *with = dy + g * co_group + j;
              real tile[CONV_FILTER_MR * CONV_FILTER_NR];
#define CONV_FILTER_ARGUMENTS from, with, dy_end, row, row_end, rows, cols, s, front, top, left, tile
              if (rows == CONV_FILTER_MR && cols > VW)
                conv_filter_wide(CONV_FILTER_ARGUMENTS);
              else if (rows == CONV_FILTER_MR)
                conv_filter_narrow(CONV_FILTER_ARGUMENTS);
              else if (cols > VW)
                conv_filter_low(CONV_FILTER_ARGUMENTS);
              else
                conv_filter_low_narrow(CONV_FILTER_ARGUMENTS);
              conv_filter_store(tile, part + ((long)((tz * kh + ty) * kw + tx) * ci_group + i) * co + g * co_group + j,
                                co, rows, cols, row > begin);
            }
          }
        }
      }
    }
  }
}

// dw[i] = sum over s, ascending, of part[s*total + i] (flags 1: added to dw). Groups: x =
// ceil(total/CONV_FILTER_REDUCE_BLOCK).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_reduce(ARRAY(const real, part),
                                                                                ARRAY(real, dw), const long total,
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
    if (flags & CONV_FILTER_ACCUMULATE) v += dw[i];
    dw[i] = v;
  }
}

// Takes the groups out of bundles: dw [taps][ci][co] = sum over s, ascending, of part [splits][taps][bundle*ci][co],
// where column k of group k/co_group lies in rows (k/co_group mod bundle)*ci and the next ci - 1. Group r: row r of
// taps*ci.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_filter_unbundle(ARRAY(const real, part),
                                                                                  ARRAY(real, dw), const int taps,
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
      dw[(long)row * co + first + k] = v;
    }
  }
}
#undef CONV_FILTER_GEOMETRY
