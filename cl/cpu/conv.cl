// Convolution over volumes of a CPU device, channels last: x [n,d,h,wd,c], w [kd,kh,kw,c/groups,co], y [n,od,oh,ow,co].
// Images have depth 1 and sequences height 1, too.
//
// Forward and input gradient are one register tile of CONV_MR pixels x CONV_NR channels. A tile's rows are any
// CONV_MR output pixels in a row of the flattened image list, so no pixel is wasted at the end of an image row. Per
// tap each row gets a pointer: its source pixel, or a block of zeros where padding is; then the channels of that pixel
// are contiguous and nothing is gathered or stored (no im2col). Weights are packed once per call in panels
// [tap][ci][CONV_NR], so the inner loop reads one stream.

#define CONV_MR_VW16 14
#define CONV_MR_VW8 6
#define CONV_MR_VW4 8
#define CONV_MR_VW2 4
#define CONV_NR_VW16 32
#define CONV_NR_VW8 16
#define CONV_NR_VW4 8
#define CONV_NR_VW2 4
#define CONV_MR SB_JOIN(CONV_MR_VW, VW)
#define CONV_NR SB_JOIN(CONV_NR_VW, VW)

#define CONV_ACCUMULATE 1
#define CONV_BIAS 2
#define CONV_RELU 4

// s* stride, p* padding, d* dilation of an axis; flags: CONV_ACCUMULATE and so on.
#define CONV_GEOMETRY                                                                                                 \
  const int n, const int d, const int h, const int wd, const int c, const int od, const int oh, const int ow,         \
      const int co, const int kd, const int kh, const int kw, const int sd, const int sh, const int sw, const int pd, \
      const int ph, const int pw, const int dd, const int dh, const int dw, const int groups, const int flags

// Packs w for conv_fwd (transposed 0: columns are output channels, depth the input channels) or conv_bwd_input
// (transposed 1: the reverse). packed [groups/bundle][panels][taps][depth][CONV_NR], missing columns zero, then `depth`
// zeros that stand for padded pixels. ci and co are per group. `bundle` neighbouring groups are packed as one, with
// zeros where a column and a depth belong to different groups: narrow groups then fill a vector, at no more
// multiplications. Groups: x = taps, y = panels = ceil(columns/CONV_NR), z = groups/bundle.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_pack_weights(ARRAY(const real, w),
                                                                               ARRAY(real, packed), const int taps,
                                                                               const int ci, const int co,
                                                                               const int groups, const int bundle,
                                                                               const int transposed) {
  START(w);
  START(packed);
  const int tap = get_group_id(0), panel = get_group_id(1), g = get_group_id(2), panels = get_num_groups(1);
  const int depth_one = transposed ? co : ci, columns_one = transposed ? ci : co;  // of one group
  const int depth = depth_one * bundle, columns = columns_one * bundle;
  const long depth_step = transposed ? 1 : (long)co * groups, column_step = transposed ? (long)co * groups : 1;
  const int first = panel * CONV_NR, there = min(CONV_NR, columns - first);
  __global const real* from = w + (long)tap * ci * co * groups + (long)g * bundle * co;
  __global real* to = packed + (((long)g * panels + panel) * taps + tap) * depth * CONV_NR;
  for (int k = 0; k < depth; ++k) {
    if (bundle == 1 && column_step == 1 && there == CONV_NR) {
      VSTORE(VLOAD(from + k * depth_step + first), to + k * CONV_NR);
      VSTORE(VLOAD(from + k * depth_step + first + VW), to + k * CONV_NR + VW);
    } else {
      const int member = k / depth_one;  // which group of the bundle
      __global const real* group_from = from + member * co + (k - member * depth_one) * depth_step;
      for (int j = 0; j < CONV_NR; ++j) {
        const int column = first + j - member * columns_one;  // of this group
        to[k * CONV_NR + j] = j < there && column >= 0 && column < columns_one ? group_from[column * column_step] : 0;
      }
    }
  }
  if (tap == 0 && panel == 0 && g == 0) {
    __global real* zeros = packed + (long)(groups / bundle) * panels * taps * depth * CONV_NR;
    for (int k = 0; k < depth; ++k) zeros[k] = 0;
  }
}

// Where the rows of a tile lie, one lane each: position before the tap's step, and element offsets from the volume of
// the first row.
typedef struct {
  int16 row_d, row_h, row_w, source;
} conv_rows;

// What a tap adds to a row's position: (start + index*step)/divide, the tap being skipped where that is no whole
// number.
typedef struct {
  int count_d, count_h, count_w, start_d, start_h, start_w, step_d, step_h, step_w, divide_d, divide_h, divide_w;
} conv_taps;

// The target places of one launch: (a, b, e) of [grid_d, grid_h, grid_w] lies at (a*mul_d + add_d, ...) in the source
// and at (a*out_mul_d + out_add_d, ...) in the target.
typedef struct {
  int grid_d, grid_h, grid_w, mul_d, mul_h, mul_w, add_d, add_h, add_w;
  int out_mul_d, out_mul_h, out_mul_w, out_add_d, out_add_h, out_add_w;
  int in_d, in_h, in_w, in_c, out_d, out_h, out_w, out_c;
} conv_space;

// One tile: sums over taps and depth of source pixel times packed weights, into tile [CONV_MR][CONV_NR].
#define CONV_MICRO(name, COLS)                                                                                      \
  static void name(__global const real* source, __global const real* zeros, __global const real* panel,             \
                   const conv_rows r, const conv_taps t, const int in_d, const int in_h, const int in_w,            \
                   const int in_c, const int depth, real* tile) {                                                   \
    vreal acc[CONV_MR][COLS];                                                                                       \
    _Pragma("unroll") for (int i = 0; i < CONV_MR; ++i) {                                                           \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = (vreal)(0);                                      \
    }                                                                                                               \
    for (int z = 0; z < t.count_d; ++z) {                                                                           \
      const int at_d = t.start_d + z * t.step_d, add_d = at_d / t.divide_d;                                         \
      if (add_d * t.divide_d != at_d) continue;                                                                     \
      const int16 pos_d = r.row_d + add_d;                                                                          \
      const int16 slice_inside = (pos_d >= 0) & (pos_d < in_d);                                                     \
      for (int y = 0; y < t.count_h; ++y) {                                                                         \
        const int at_h = t.start_h + y * t.step_h, add_h = at_h / t.divide_h;                                       \
        if (add_h * t.divide_h != at_h) continue;                                                                   \
        const int16 pos_h = r.row_h + add_h;                                                                        \
        const int16 row_inside = slice_inside & (pos_h >= 0) & (pos_h < in_h);                                      \
        const int16 row_source = r.source + (pos_d * in_h + pos_h) * in_w * in_c;                                   \
        for (int x = 0; x < t.count_w; ++x) {                                                                       \
          const int at_w = t.start_w + x * t.step_w, add_w = at_w / t.divide_w;                                     \
          if (add_w * t.divide_w != at_w) continue;                                                                 \
          const int16 pos_w = r.row_w + add_w;                                                                      \
          const int16 inside = row_inside & (pos_w >= 0) & (pos_w < in_w);                                          \
          int offset[16];                                                                                           \
          vstore16(select((int16)(-1), row_source + pos_w * in_c, inside), 0, offset);                              \
          __global const real* from[CONV_MR];                                                                       \
          _Pragma("unroll") for (int i = 0; i < CONV_MR; ++i) from[i] = offset[i] < 0 ? zeros : source + offset[i]; \
          __global const real* weights = panel + (long)((z * t.count_h + y) * t.count_w + x) * depth * CONV_NR;     \
          for (int k = 0; k < depth; ++k) {                                                                         \
            vreal b[COLS];                                                                                          \
            _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(weights + k * CONV_NR + j * VW);          \
            _Pragma("unroll") for (int i = 0; i < CONV_MR; ++i) {                                                   \
              const vreal a = (vreal)(from[i][k]);                                                                  \
              _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(a, b[j], acc[i][j]);                 \
            }                                                                                                       \
          }                                                                                                         \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
    _Pragma("unroll") for (int i = 0; i < CONV_MR; ++i) {                                                           \
      _Pragma("unroll") for (int j = 0; j < COLS; ++j) VSTORE(acc[i][j], tile + i * CONV_NR + j * VW);              \
    }                                                                                                               \
  }
CONV_MICRO(conv_micro_wide, 2)
CONV_MICRO(conv_micro_narrow, 1)

// Stores rows x cols of a tile with the epilogue; row i goes to target + offset[i]. NaN passes the ReLU.
static void conv_store(const real* tile, __global real* target, const int16 offsets, const int rows, const int cols,
                       __global const real* bias, const int flags) {
  int offset[16];
  vstore16(offsets, 0, offset);
  for (int i = 0; i < rows; ++i) {
    const real* from = tile + i * CONV_NR;
    __global real* to = target + offset[i];
    int j = 0;
    for (; j + VW <= cols; j += VW) {
      vreal v = VLOAD(from + j);
      if (flags & CONV_ACCUMULATE) v += VLOAD(to + j);
      if (flags & CONV_BIAS) v += VLOAD(bias + j);
      if (flags & CONV_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      VSTORE(v, to + j);
    }
    for (; j < cols; ++j) {
      real v = from[j];
      if (flags & CONV_ACCUMULATE) v += to[j];
      if (flags & CONV_BIAS) v += bias[j];
      if ((flags & CONV_RELU) && v < 0) v = 0;
      to[j] = v;
    }
  }
}

// All tiles of a group: rows row0 <= row < row1 are the target places of all volumes in order.
static void conv_tiles(__global const real* source, __global const real* packed, __global const real* bias,
                       __global real* target, const conv_taps t, const conv_space s, const int row0, const int row1,
                       const int col0, const int col1, const int depth, const int columns, const int g,
                       const int groups, const int flags) {
  const int panels = (columns + CONV_NR - 1) / CONV_NR;
  const long panel_size = (long)t.count_d * t.count_h * t.count_w * depth * CONV_NR;
  const int in_volume = s.in_d * s.in_h * s.in_w * s.in_c, slice = s.grid_h * s.grid_w;
  __global const real* zeros = packed + groups * panels * panel_size;
  packed += (long)g * panels * panel_size;
  for (int col = col0; col < col1; col += CONV_NR) {
    const int cols = min(CONV_NR, col1 - col);
    for (int row = row0; row < row1; row += CONV_MR) {
      const int rows = min(CONV_MR, row1 - row);
      // The first row's place by division, the others by counting on; lanes behind the last row repeat it.
      const int volume0 = row / (slice * s.grid_d);
      const int in_volume0 = row - volume0 * (slice * s.grid_d);
      int a = in_volume0 / slice;
      int b = (in_volume0 - a * slice) / s.grid_w;
      int e = in_volume0 - a * slice - b * s.grid_w;
      int volume = 0;
      int at_d[16], at_h[16], at_w[16], of[16], to_offset[16];
      for (int i = 0; i < 16; ++i) {
        at_d[i] = a * s.mul_d + s.add_d;
        at_h[i] = b * s.mul_h + s.add_h;
        at_w[i] = e * s.mul_w + s.add_w;
        of[i] = volume * in_volume;
        to_offset[i] =
            (((volume * s.out_d + a * s.out_mul_d + s.out_add_d) * s.out_h + b * s.out_mul_h + s.out_add_h) * s.out_w +
             e * s.out_mul_w + s.out_add_w) *
            s.out_c;
        if (i < rows - 1 && ++e == s.grid_w) {
          e = 0;
          if (++b == s.grid_h) {
            b = 0;
            if (++a == s.grid_d) {
              a = 0;
              ++volume;
            }
          }
        }
      }
      conv_rows r;
      r.row_d = vload16(0, at_d);
      r.row_h = vload16(0, at_h);
      r.row_w = vload16(0, at_w);
      r.source = vload16(0, of);
      __global const real* from = source + (long)volume0 * in_volume + g * depth;
      __global real* to = target + (long)volume0 * s.out_d * s.out_h * s.out_w * s.out_c + g * columns + col;
      __global const real* panel = packed + col / CONV_NR * panel_size;
      real tile[CONV_MR * CONV_NR];
      if (cols > VW)
        conv_micro_wide(from, zeros, panel, r, t, s.in_d, s.in_h, s.in_w, s.in_c, depth, tile);
      else
        conv_micro_narrow(from, zeros, panel, r, t, s.in_d, s.in_h, s.in_w, s.in_c, depth, tile);
      conv_store(tile, to, vload16(0, to_offset), rows, cols, bias + g * columns + col, flags);
    }
  }
}

// y = conv(x, w) with the epilogue of `flags` (accumulate 1, bias [co] 2, ReLU 4). w: packed by conv_pack_weights,
// transposed 0. Groups: x = ceil(n*od*oh*ow/tile_m)*ceil((co/groups)/tile_n), column tile fastest; y = 1; z = groups.
// tile_m: a multiple of CONV_MR, tile_n: of CONV_NR. Accumulates in `real`, over taps in order, then input channels.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_fwd(ARRAY(const real, x), ARRAY(const real, w),
                                                                      ARRAY(const real, bias), ARRAY(real, y),
                                                                      CONV_GEOMETRY, const int tile_m,
                                                                      const int tile_n) {
  START(x);
  START(w);
  START(bias);
  START(y);
  const int columns = co / groups, column_tiles = (columns + tile_n - 1) / tile_n;
  const int row_tile = (int)get_group_id(0) / column_tiles,
            column_tile = (int)get_group_id(0) - row_tile * column_tiles;
  const int row0 = row_tile * tile_m, col0 = column_tile * tile_n;
  const conv_taps t = {kd, kh, kw, 0, 0, 0, dd, dh, dw, 1, 1, 1};
  const conv_space s = {od, oh, ow, sd, sh, sw, -pd, -ph, -pw, 1, 1, 1, 0, 0, 0, d, h, wd, c, od, oh, ow, co};
  conv_tiles(x, w, bias, y, t, s, row0, min(n * od * oh * ow, row0 + tile_m), col0, min(columns, col0 + tile_n),
             c / groups, columns, get_group_id(2), groups, flags);
}

// dx = gradient of conv_fwd for x: dx[i] is the sum over the taps that reach input pixel i, with the epilogue of
// `flags` (accumulate 1, bias [c] 2: a transposed convolution has one). w: packed by conv_pack_weights, transposed 1.
// Input pixels are taken by phase (id mod sd, ih mod sh, iw mod sw): all pixels of a phase meet the same taps, so a
// strided convolution wastes no work. Groups: x =
// ceil(n*ceil(d/sd)*ceil(h/sh)*ceil(wd/sw)/tile_m)*ceil((c/groups)/tile_n), column tile fastest; y = sd*sh*sw phases; z
// = groups.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_bwd_input(ARRAY(const real, dy), ARRAY(const real, w),
                                                                            ARRAY(const real, bias), ARRAY(real, dx),
                                                                            CONV_GEOMETRY, const int tile_m,
                                                                            const int tile_n) {
  START(dy);
  START(w);
  START(bias);
  START(dx);
  const int columns = c / groups, column_tiles = (columns + tile_n - 1) / tile_n;
  const int row_tile = (int)get_group_id(0) / column_tiles,
            column_tile = (int)get_group_id(0) - row_tile * column_tiles;
  const int row0 = row_tile * tile_m, col0 = column_tile * tile_n;
  const int phase_dh = (int)get_group_id(1) / sw, phase_w = (int)get_group_id(1) - phase_dh * sw;
  const int phase_d = phase_dh / sh, phase_h = phase_dh - phase_d * sh;
  const int grid_d = (d - phase_d + sd - 1) / sd, grid_h = (h - phase_h + sh - 1) / sh,
            grid_w = (wd - phase_w + sw - 1) / sw;
  if (grid_d <= 0 || grid_h <= 0 || grid_w <= 0) return;
  const conv_taps t = {kd, kh, kw, phase_d + pd, phase_h + ph, phase_w + pw, -dd, -dh, -dw, sd, sh, sw};
  const conv_space s = {grid_d,  grid_h,  grid_w,  1,  1,  1,  0,  0, 0, sd, sh, sw,
                        phase_d, phase_h, phase_w, od, oh, ow, co, d, h, wd, c};
  conv_tiles(dy, w, bias, dx, t, s, row0, min(n * grid_d * grid_h * grid_w, row0 + tile_m), col0,
             min(columns, col0 + tile_n), co / groups, columns, get_group_id(2), groups,
             flags & (CONV_ACCUMULATE | CONV_BIAS));
}
#undef CONV_GEOMETRY
