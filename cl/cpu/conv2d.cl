// Two-dimensional convolution of a CPU device, channels last: x [n,h,wd,c], w [kh,kw,c/groups,co], y [n,oh,ow,co].
//
// Forward and input gradient are one register tile of CONV2D_MR pixels x CONV2D_NR channels. A tile's rows are any
// CONV2D_MR output pixels in a row of the flattened image list, so no pixel is wasted at the end of an image row. Per
// tap each row gets a pointer: its source pixel, or a block of zeros where padding is; then the channels of that pixel
// are contiguous and nothing is gathered or stored (no im2col). Weights are packed once per call in panels
// [tap][ci][CONV2D_NR], so the inner loop reads one stream. The weight gradient keeps a tile of CONV2D_FILTER_MR input
// channels x CONV2D_NR output channels of one tap in registers and sums over pixels. It walks the images in blocks of a
// few rows that serve all taps and channels before the next rows are read, and a fixed number of partial sums, chosen
// by shape, gives the groups their work.

#define CONV2D_MR_VW16 14
#define CONV2D_MR_VW8 6
#define CONV2D_MR_VW4 8
#define CONV2D_MR_VW2 4
#define CONV2D_NR_VW16 32
#define CONV2D_NR_VW8 16
#define CONV2D_NR_VW4 8
#define CONV2D_NR_VW2 4
#define CONV2D_FILTER_MR_VW16 8
#define CONV2D_FILTER_MR_VW8 4
#define CONV2D_FILTER_MR_VW4 8
#define CONV2D_FILTER_MR_VW2 4
#define CONV2D_MR SB_JOIN(CONV2D_MR_VW, VW)
#define CONV2D_NR SB_JOIN(CONV2D_NR_VW, VW)
#define CONV2D_FILTER_MR SB_JOIN(CONV2D_FILTER_MR_VW, VW)
#define CONV2D_FILTER_PIXELS 192  // output pixels of a block of rows in the weight gradient
#define CONV2D_REDUCE_BLOCK 4096  // values per group of conv2d_bwd_filter_reduce

#define CONV2D_ACCUMULATE 1
#define CONV2D_BIAS 2
#define CONV2D_RELU 4

#define CONV2D_GEOMETRY                                                                                        \
  const int n, const int h, const int wd, const int c, const int oh, const int ow, const int co, const int kh, \
      const int kw, const int sh, const int sw, const int ph, const int pw, const int dh, const int dw,        \
      const int groups, const int flags

// Packs w for conv2d_fwd (transposed 0: columns are output channels, depth the input channels) or conv2d_bwd_input
// (transposed 1: the reverse). packed [groups][panels][taps][depth][CONV2D_NR], missing columns zero, then `depth`
// zeros that stand for padded pixels. ci and co are per group. Groups: x = taps, y = panels = ceil(columns/CONV2D_NR),
// z = groups.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_pack_weights(ARRAY(const real, w),
                                                                                 ARRAY(real, packed), const int taps,
                                                                                 const int ci, const int co,
                                                                                 const int groups,
                                                                                 const int transposed) {
  START(w);
  START(packed);
  const int tap = get_group_id(0), panel = get_group_id(1), g = get_group_id(2), panels = get_num_groups(1);
  const int depth = transposed ? co : ci, columns = transposed ? ci : co;
  const long depth_step = transposed ? 1 : (long)co * groups, column_step = transposed ? (long)co * groups : 1;
  const int first = panel * CONV2D_NR, there = min(CONV2D_NR, columns - first);
  __global const real* from = w + (long)tap * ci * co * groups + g * co + first * column_step;
  __global real* to = packed + (((long)g * panels + panel) * taps + tap) * depth * CONV2D_NR;
  for (int d = 0; d < depth; ++d) {
    if (column_step == 1 && there == CONV2D_NR) {
      VSTORE(VLOAD(from + d * depth_step), to + d * CONV2D_NR);
      VSTORE(VLOAD(from + d * depth_step + VW), to + d * CONV2D_NR + VW);
    } else {
      for (int j = 0; j < CONV2D_NR; ++j)
        to[d * CONV2D_NR + j] = j < there ? from[d * depth_step + j * column_step] : 0;
    }
  }
  if (tap == 0 && panel == 0 && g == 0) {
    __global real* zeros = packed + (long)groups * panels * taps * depth * CONV2D_NR;
    for (int d = 0; d < depth; ++d) zeros[d] = 0;
  }
}

// Where the rows of a tile lie, one lane each: position before the tap's step, and element offsets from the image of
// the first row.
typedef struct {
  int16 row_h, row_w, source;
} conv2d_rows;

// What a tap adds to a row's position: (start + index*step)/divide, the tap being skipped where that is no whole
// number.
typedef struct {
  int count_h, count_w, start_h, start_w, step_h, step_w, divide_h, divide_w;
} conv2d_taps;

// One tile: sums over taps and depth of source pixel times packed weights, into tile [CONV2D_MR][CONV2D_NR]. in_h,
// in_w, in_c: the source image.
#define CONV2D_MICRO(name, COLS)                                                                                    \
  static void name(__global const real* source, __global const real* zeros, __global const real* panel,             \
                   const conv2d_rows r, const conv2d_taps t, const int in_h, const int in_w, const int in_c,        \
                   const int depth, real* tile) {                                                                   \
    vreal acc[CONV2D_MR][COLS];                                                                                     \
    _Pragma("unroll") for (int i = 0; i < CONV2D_MR; ++i) {                                                         \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                                      \
    }                                                                                                               \
    for (int y = 0; y < t.count_h; ++y) {                                                                           \
      const int at_h = t.start_h + y * t.step_h, add_h = at_h / t.divide_h;                                         \
      if (add_h * t.divide_h != at_h) continue;                                                                     \
      const int16 pos_h = r.row_h + add_h;                                                                          \
      const int16 row_inside = (pos_h >= 0) & (pos_h < in_h);                                                       \
      for (int x = 0; x < t.count_w; ++x) {                                                                         \
        const int at_w = t.start_w + x * t.step_w, add_w = at_w / t.divide_w;                                       \
        if (add_w * t.divide_w != at_w) continue;                                                                   \
        const int16 pos_w = r.row_w + add_w;                                                                        \
        const int16 inside = row_inside & (pos_w >= 0) & (pos_w < in_w);                                            \
        int offset[16];                                                                                             \
        vstore16(select((int16)(-1), r.source + (pos_h * in_w + pos_w) * in_c, inside), 0, offset);                 \
        __global const real* from[CONV2D_MR];                                                                       \
        _Pragma("unroll") for (int i = 0; i < CONV2D_MR; ++i) from[i] = offset[i] < 0 ? zeros : source + offset[i]; \
        __global const real* weights = panel + (long)(y * t.count_w + x) * depth * CONV2D_NR;                       \
        for (int k = 0; k < depth; ++k) {                                                                           \
          vreal b[COLS];                                                                                            \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(weights + k * CONV2D_NR + j * VW);          \
          _Pragma("unroll") for (int i = 0; i < CONV2D_MR; ++i) {                                                   \
            const vreal a = (vreal)(from[i][k]);                                                                    \
            _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);                   \
          }                                                                                                         \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    _Pragma("unroll") for (int i = 0; i < CONV2D_MR; ++i) {                                                         \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) VSTORE(acc[i][j], tile + i * CONV2D_NR + j * VW);            \
    }                                                                                                               \
  }
CONV2D_MICRO(conv2d_micro_wide, 2)
CONV2D_MICRO(conv2d_micro_narrow, 1)

// Stores rows x cols of a tile with the epilogue; row i goes to target + offset[i]. NaN passes the ReLU.
static void conv2d_store(const real* tile, __global real* target, const int16 offsets, const int rows, const int cols,
                         __global const real* bias, const int flags) {
  int offset[16];
  vstore16(offsets, 0, offset);
  for (int i = 0; i < rows; ++i) {
    const real* from = tile + i * CONV2D_NR;
    __global real* to = target + offset[i];
    int j = 0;
    for (; j + VW <= cols; j += VW) {
      vreal v = VLOAD(from + j);
      if (flags & CONV2D_ACCUMULATE) v += VLOAD(to + j);
      if (flags & CONV2D_BIAS) v += VLOAD(bias + j);
      if (flags & CONV2D_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      VSTORE(v, to + j);
    }
    for (; j < cols; ++j) {
      real v = from[j];
      if (flags & CONV2D_ACCUMULATE) v += to[j];
      if (flags & CONV2D_BIAS) v += bias[j];
      if ((flags & CONV2D_RELU) && v < 0) v = 0;
      to[j] = v;
    }
  }
}

// All tiles of a group: rows row0 <= row < row1 are pixels (image, a, b), a < grid_h, b < grid_w, whose position is
// (a*mul_h + add_h, b*mul_w + add_w) in the source and (a*out_mul_h + out_add_h, b*out_mul_w + out_add_w) in the
// target.
static void conv2d_tiles(__global const real* source, __global const real* packed, __global const real* bias,
                         __global real* target, const conv2d_taps t, const int row0, const int row1, const int col0,
                         const int col1, const int grid_h, const int grid_w, const int mul_h, const int mul_w,
                         const int add_h, const int add_w, const int out_mul_h, const int out_mul_w,
                         const int out_add_h, const int out_add_w, const int in_h, const int in_w, const int in_c,
                         const int out_h, const int out_w, const int out_c, const int depth, const int columns,
                         const int g, const int groups, const int flags) {
  const int panels = (columns + CONV2D_NR - 1) / CONV2D_NR;
  const long panel_size = (long)t.count_h * t.count_w * depth * CONV2D_NR;
  __global const real* zeros = packed + groups * panels * panel_size;
  packed += (long)g * panels * panel_size;
  for (int col = col0; col < col1; col += CONV2D_NR) {
    const int cols = min(CONV2D_NR, col1 - col);
    for (int row = row0; row < row1; row += CONV2D_MR) {
      const int rows = min(CONV2D_MR, row1 - row);
      const int16 lane = min((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), (int16)(rows - 1));
      const int image0 = row / (grid_h * grid_w);
      const int16 pixel = row - image0 * (grid_h * grid_w) + lane;  // counted from the first row's image
      const int16 image = pixel / (grid_h * grid_w), in_image = pixel - image * (grid_h * grid_w);
      const int16 a = in_image / grid_w, b = in_image - a * grid_w;
      conv2d_rows r;
      r.row_h = a * mul_h + add_h;
      r.row_w = b * mul_w + add_w;
      r.source = image * (in_h * in_w * in_c);
      const int16 target_offsets =
          ((image * out_h + a * out_mul_h + out_add_h) * out_w + b * out_mul_w + out_add_w) * out_c;
      __global const real* from = source + (long)image0 * in_h * in_w * in_c + g * depth;
      __global real* to = target + (long)image0 * out_h * out_w * out_c + g * columns + col;
      __global const real* panel = packed + col / CONV2D_NR * panel_size;
      real tile[CONV2D_MR * CONV2D_NR];
      if (cols > VW)
        conv2d_micro_wide(from, zeros, panel, r, t, in_h, in_w, in_c, depth, tile);
      else
        conv2d_micro_narrow(from, zeros, panel, r, t, in_h, in_w, in_c, depth, tile);
      conv2d_store(tile, to, target_offsets, rows, cols, bias + g * columns + col, flags);
    }
  }
}

// y = conv(x, w) with the epilogue of `flags` (accumulate 1, bias [co] 2, ReLU 4). w: packed by conv2d_pack_weights,
// transposed 0. Groups: x = ceil(n*oh*ow/tile_m)*ceil((co/groups)/tile_n), column tile fastest; y = 1; z = groups.
// tile_m: a multiple of CONV2D_MR, tile_n: of CONV2D_NR. Accumulates in `real`, over taps in order, then input
// channels.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_fwd(ARRAY(const real, x), ARRAY(const real, w),
                                                                        ARRAY(const real, bias), ARRAY(real, y),
                                                                        CONV2D_GEOMETRY, const int tile_m,
                                                                        const int tile_n) {
  START(x);
  START(w);
  START(bias);
  START(y);
  const int columns = co / groups, column_tiles = (columns + tile_n - 1) / tile_n;
  const int row_tile = (int)get_group_id(0) / column_tiles,
            column_tile = (int)get_group_id(0) - row_tile * column_tiles;
  const int row0 = row_tile * tile_m, col0 = column_tile * tile_n;
  conv2d_taps t;
  t.count_h = kh;
  t.count_w = kw;
  t.start_h = t.start_w = 0;
  t.step_h = dh;
  t.step_w = dw;
  t.divide_h = t.divide_w = 1;
  conv2d_tiles(x, w, bias, y, t, row0, min(n * oh * ow, row0 + tile_m), col0, min(columns, col0 + tile_n), oh, ow, sh,
               sw, -ph, -pw, 1, 1, 0, 0, h, wd, c, oh, ow, co, c / groups, columns, get_group_id(2), groups, flags);
}

// dx = gradient of conv2d_fwd for x: dx[i] is the sum over the taps that reach input pixel i. w: packed by
// conv2d_pack_weights, transposed 1. Input pixels are taken by phase (ih mod sh, iw mod sw): all pixels of a phase meet
// the same taps, so a strided convolution wastes no work. Groups: x =
// ceil(n*ceil(h/sh)*ceil(wd/sw)/tile_m)*ceil((c/groups)/tile_n), column tile fastest; y = sh*sw phases; z = groups.
// flags: accumulate 1.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_bwd_input(ARRAY(const real, dy),
                                                                              ARRAY(const real, w), ARRAY(real, dx),
                                                                              CONV2D_GEOMETRY, const int tile_m,
                                                                              const int tile_n) {
  START(dy);
  START(w);
  START(dx);
  const int columns = c / groups, column_tiles = (columns + tile_n - 1) / tile_n;
  const int row_tile = (int)get_group_id(0) / column_tiles,
            column_tile = (int)get_group_id(0) - row_tile * column_tiles;
  const int row0 = row_tile * tile_m, col0 = column_tile * tile_n;
  const int phase_h = (int)get_group_id(1) / sw, phase_w = (int)get_group_id(1) - phase_h * sw;
  const int grid_h = (h - phase_h + sh - 1) / sh, grid_w = (wd - phase_w + sw - 1) / sw;
  if (grid_h <= 0 || grid_w <= 0) return;
  conv2d_taps t;
  t.count_h = kh;
  t.count_w = kw;
  t.start_h = phase_h + ph;
  t.start_w = phase_w + pw;
  t.step_h = -dh;
  t.step_w = -dw;
  t.divide_h = sh;
  t.divide_w = sw;
  conv2d_tiles(dy, w, dy, dx, t, row0, min(n * grid_h * grid_w, row0 + tile_m), col0, min(columns, col0 + tile_n),
               grid_h, grid_w, 1, 1, 0, 0, sh, sw, phase_h, phase_w, oh, ow, co, h, wd, c, co / groups, columns,
               get_group_id(2), groups, flags & CONV2D_ACCUMULATE);
}

// One tap's tile of the weight gradient, ROWS input channels x (COLS*VW) output channels, summed over output rows
// row0 <= r < row1 into tile [ROWS][CONV2D_NR]. x and dy point at the first channels of the tile; rows and cols say how
// many exist. dy_end is the end of the array that dy lies in: near it the last channels are copied, not read as
// vectors.
#define CONV2D_FILTER_MICRO(name, ROWS, COLS)                                                                        \
  static void name(__global const real* x, __global const real* dy, __global const real* dy_end, const int row0,     \
                   const int row1, const int rows, const int cols, const int h, const int wd, const int c,           \
                   const int oh, const int ow, const int co, const int sh, const int sw, const int top,              \
                   const int left, real* tile) {                                                                     \
    vreal acc[ROWS][COLS];                                                                                           \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                               \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                                       \
    }                                                                                                                \
    int lane[ROWS];                                                                                                  \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) lane[i] = min(i, rows - 1);                                     \
    const int begin = max(0, (sw - 1 - left) / sw), end = min(ow, wd - 1 - left < 0 ? 0 : (wd - 1 - left) / sw + 1); \
    for (int r = row0; r < row1; ++r) {                                                                              \
      const int image = r / oh, at_h = (r - image * oh) * sh + top;                                                  \
      if (at_h < 0 || at_h >= h) continue;                                                                           \
      __global const real* from = x + (((long)image * h + at_h) * wd + begin * sw + left) * c;                       \
      __global const real* with = dy + ((long)r * ow + begin) * co;                                                  \
      for (int p = begin; p < end; ++p, from += sw * c, with += co) {                                                \
        vreal b[COLS];                                                                                               \
        if (dy_end - with >= COLS * VW) {                                                                            \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(with + j * VW);                              \
        } else {                                                                                                     \
          real last[COLS * VW];                                                                                      \
          for (int j = 0; j < COLS * VW; ++j) last[j] = j < cols ? with[j] : 0;                                      \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(last + j * VW);                              \
        }                                                                                                            \
        _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                           \
          const vreal a = (vreal)(from[lane[i]]);                                                                    \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);                      \
        }                                                                                                            \
      }                                                                                                              \
    }                                                                                                                \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                               \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) VSTORE(acc[i][j], tile + i * CONV2D_NR + j * VW);             \
    }                                                                                                                \
  }
CONV2D_FILTER_MICRO(conv2d_filter_wide, CONV2D_FILTER_MR, 2)
CONV2D_FILTER_MICRO(conv2d_filter_narrow, CONV2D_FILTER_MR, 1)
#if CONV2D_FILTER_MR > 4
CONV2D_FILTER_MICRO(conv2d_filter_low, 4, 2)
CONV2D_FILTER_MICRO(conv2d_filter_low_narrow, 4, 1)
#else
#define conv2d_filter_low conv2d_filter_wide
#define conv2d_filter_low_narrow conv2d_filter_narrow
#endif

// part [rows][co] = tile, or += where add is set.
static void conv2d_filter_store(const real* tile, __global real* part, const int co, const int rows, const int cols,
                                const int add) {
  for (int i = 0; i < rows; ++i) {
    const real* from = tile + i * CONV2D_NR;
    __global real* to = part + (long)i * co;
    int j = 0;
    for (; j + VW <= cols; j += VW) VSTORE(add ? VLOAD(to + j) + VLOAD(from + j) : VLOAD(from + j), to + j);
    for (; j < cols; ++j) to[j] = add ? to[j] + from[j] : from[j];
  }
}

// part [splits][kh][kw][c/groups][co]: split s is the weight gradient over output rows (image*oh + row) of
// s*rows_per_split and the next rows_per_split - 1. Groups: x = splits, y =
// ceil((c/groups)/tile_m)*ceil((co/groups)/tile_n), column tile fastest, z = groups. tile_m: a multiple of
// CONV2D_FILTER_MR, tile_n: of CONV2D_NR. Sums run over pixels in order, in blocks of rows that do not depend on the
// tiles.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_bwd_filter(ARRAY(const real, x),
                                                                               ARRAY(const real, dy), ARRAY(real, part),
                                                                               CONV2D_GEOMETRY,
                                                                               const int rows_per_split,
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
  const int begin = split * rows_per_split, end = min(n * oh, begin + rows_per_split);
  const int step = max(1, CONV2D_FILTER_PIXELS / ow);
  __global const real* dy_end = dy + (long)n * oh * ow * co;
  part += (long)split * kh * kw * ci_group * co;
  for (int row = begin; row < end; row += step) {
    const int row_end = min(end, row + step);
    for (int ty = 0; ty < kh; ++ty) {
      for (int tx = 0; tx < kw; ++tx) {
        const int top = ty * dh - ph, left = tx * dw - pw;
        int rows = CONV2D_FILTER_MR;
        for (int i = ci0; i < ci1; i += rows) {
          rows = ci1 - i >= CONV2D_FILTER_MR ? CONV2D_FILTER_MR : min(4, ci1 - i);
          for (int j = co0; j < co1; j += CONV2D_NR) {
            const int cols = min(CONV2D_NR, co1 - j);
            __global const real *from = x + g * ci_group + i, *with = dy + g * co_group + j;
            real tile[CONV2D_FILTER_MR * CONV2D_NR];
            // clang-format off
#define CONV2D_FILTER_ARGUMENTS from, with, dy_end, row, row_end, rows, cols, h, wd, c, oh, ow, co, sh, sw, top, left, tile
            // clang-format on
            if (rows == CONV2D_FILTER_MR && cols > VW)
              conv2d_filter_wide(CONV2D_FILTER_ARGUMENTS);
            else if (rows == CONV2D_FILTER_MR)
              conv2d_filter_narrow(CONV2D_FILTER_ARGUMENTS);
            else if (cols > VW)
              conv2d_filter_low(CONV2D_FILTER_ARGUMENTS);
            else
              conv2d_filter_low_narrow(CONV2D_FILTER_ARGUMENTS);
            conv2d_filter_store(tile, part + ((long)(ty * kw + tx) * ci_group + i) * co + g * co_group + j, co, rows,
                                cols, row > begin);
          }
        }
      }
    }
  }
}

// dw[i] = sum over s, ascending, of part[s*total + i] (flags 1: added to dw). Groups: x =
// ceil(total/CONV2D_REDUCE_BLOCK).
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_bwd_filter_reduce(ARRAY(const real, part),
                                                                                      ARRAY(real, dw), const long total,
                                                                                      const int splits,
                                                                                      const int flags) {
  START(part);
  START(dw);
  const long begin = (long)get_group_id(0) * CONV2D_REDUCE_BLOCK, end = min(total, begin + CONV2D_REDUCE_BLOCK);
  long i = begin;
  for (; i + VW <= end; i += VW) {
    vreal v = VLOAD(part + i);
    for (int s = 1; s < splits; ++s) v += VLOAD(part + s * total + i);
    if (flags & CONV2D_ACCUMULATE) v += VLOAD(dw + i);
    VSTORE(v, dw + i);
  }
  for (; i < end; ++i) {
    real v = part[i];
    for (int s = 1; s < splits; ++s) v += part[s * total + i];
    if (flags & CONV2D_ACCUMULATE) v += dw[i];
    dw[i] = v;
  }
}
