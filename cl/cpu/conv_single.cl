// Forward pass of a convolution of one input channel and few taps on a CPU device: x [n,h,wd], w [kh,kw,co],
// y [n,oh,ow,co], stride and dilation 1, of 3x3 taps or of 3, 5 or 7 along a line.
//
// The sums of a pixel are so short that a register tile of conv.cl is begun and stored for longer than it multiplies.
// Here the weights of two vectors of columns stay in registers while a group goes along a line: a pixel takes one
// broadcast a tap, and nothing else is loaded. Lines are copied with zeros for the padding first.
// Program: convolution

#define CONV_SINGLE_PIXELS 4    // that are summed side by side
#define CONV_SINGLE_BLOCK 1024  // most pixels of a line that are taken in one piece
#define CONV_SINGLE_KERNEL 7    // most taps along a line
#define CONV_SINGLE_LINES 3     // most lines of taps

// Where a piece of a line goes, and what is added and cut: flags as in conv.cl.
typedef struct {
  __global stored* to;
  __global const stored *residual, *gate;
  __global const real* bias;
  int co, flags;
} conv_single_target;

// `pixels` pixels, at least CONV_SINGLE_PIXELS, of COLS vectors of columns. source: LINES lines, `pitch` apart; w: the
// first column. The last pixels go back where they are too few, and are stored twice.
#define CONV_SINGLE(name, LINES, TAPS, COLS)                                                                         \
  static void name(const real* source, const int pitch, __global const stored* w, const int pixels,                  \
                   const conv_single_target* o) {                                                                    \
    enum { rows_ = CONV_SINGLE_PIXELS, cols_ = COLS };                                                               \
    vreal weight[LINES * TAPS][COLS], bias[COLS];                                                                    \
    const int co = o->co, flags = o->flags;                                                                          \
    _Pragma("unroll") for (int j = 0; j < COLS; ++j) {                                                               \
      bias[j] = flags & CONV_BIAS ? VLOAD(o->bias + j * VW) : (vreal)(0);                                            \
      _Pragma("unroll") for (int t = 0; t < LINES * TAPS; ++t) weight[t][j] = VLOAD(w + (long)t * co + j * VW);      \
    }                                                                                                                \
    for (int p = 0; p < pixels; p += CONV_SINGLE_PIXELS) {                                                           \
      const int first = min(p, pixels - CONV_SINGLE_PIXELS);                                                         \
      const real* a = source + first;                                                                                \
      vreal acc[CONV_SINGLE_PIXELS][COLS];                                                                           \
      CONV_EACH(i, j, acc[i][j] = bias[j];)                                                                          \
      _Pragma("unroll") for (int y = 0; y < LINES; ++y) {                                                            \
        _Pragma("unroll") for (int x = 0; x < TAPS; ++x) {                                                           \
          _Pragma("unroll") for (int i = 0; i < CONV_SINGLE_PIXELS; ++i) {                                           \
            const vreal v = (vreal)(a[y * pitch + x + i]);                                                           \
            _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(v, weight[y * TAPS + x][j], acc[i][j]); \
          }                                                                                                          \
        }                                                                                                            \
      }                                                                                                              \
      const long at = (long)first * co;                                                                              \
      if (flags & CONV_RESIDUAL) {                                                                                   \
        __global const stored* more = o->residual + at;                                                              \
        CONV_EACH(i, j, acc[i][j] = VROUND(acc[i][j]) + VLOAD(more + (long)i * co + j * VW);)                        \
      }                                                                                                              \
      if (flags & CONV_RELU) {                                                                                       \
        CONV_EACH(i, j, acc[i][j] = select(acc[i][j], (vreal)(0), acc[i][j] < (vreal)(0));)                          \
      }                                                                                                              \
      if (flags & CONV_ACTIVATION) {                                                                                 \
        CONV_EACH(i, j, acc[i][j] = sb_activated(VROUND(acc[i][j]), flags & CONV_RELU6);)                            \
      }                                                                                                              \
      if (flags & CONV_GATE) {                                                                                       \
        __global const stored* gate = o->gate + at;                                                                  \
        CONV_EACH(i, j, acc[i][j] = conv_kept(acc[i][j], gate + (long)i * co + j * VW);)                             \
      }                                                                                                              \
      __global stored* to = o->to + at;                                                                              \
      CONV_EACH(i, j, VSTORE(acc[i][j], to + (long)i * co + j * VW);)                                                \
    }                                                                                                                \
  }
CONV_SINGLE(conv_single_3x3, 3, 3, 2)
CONV_SINGLE(conv_single_3x3_narrow, 3, 3, 1)
CONV_SINGLE(conv_single_3, 1, 3, 2)
CONV_SINGLE(conv_single_3_narrow, 1, 3, 1)
CONV_SINGLE(conv_single_5, 1, 5, 2)
CONV_SINGLE(conv_single_5_narrow, 1, 5, 1)
CONV_SINGLE(conv_single_7, 1, 7, 2)
CONV_SINGLE(conv_single_7_narrow, 1, 7, 1)

// y = x * w, with the epilogue of conv_tiles by `flags`. kh and kw: 3 and 3, or 1 and 3, 5 or 7; co a multiple of VW,
// ow at least CONV_SINGLE_PIXELS. Lines are cut into `blocks` equal pieces. Groups: x = ceil(n*oh*blocks/units).
// Accumulates in `real`, over taps in order, as conv_tiles does.
SB_APART void conv_single_group(SB_AT(const stored, x), SB_AT(const stored, w), SB_AT(const real, bias),
                                SB_AT(const stored, residual), SB_AT(const stored, gate), SB_AT(stored, y), const int n,
                                const int h, const int wd, const int oh, const int ow, const int co, const int kh,
                                const int kw, const int ph, const int pw, const conv_single_shares share,
                                const int flags, const int group) {
  const int blocks = share.blocks, units = share.units;
  real source[CONV_SINGLE_LINES * (CONV_SINGLE_BLOCK + CONV_SINGLE_KERNEL)] __attribute__((aligned(64)));
  const int pitch = CONV_SINGLE_BLOCK + CONV_SINGLE_KERNEL;
  const int begin = group * units, end = min(n * oh * blocks, begin + units);
  for (int unit = begin; unit < end; ++unit) {
    const int line = unit / blocks, block = unit - line * blocks, image = line / oh, top = line - image * oh - ph;
    const int x0 = (int)((long)ow * block / blocks), pixels = (int)((long)ow * (block + 1) / blocks) - x0;
    for (int r = 0; r < kh; ++r) {
      const int is_inside = top + r >= 0 && top + r < h;
      conv_filter_copy(x + ((long)image * h + top + r) * wd, is_inside ? wd : 0, x0 - pw, pixels + kw - 1,
                       source + r * pitch);
    }
    for (int column = 0; column < co; column += 2 * VW) {
      const long at = ((long)line * ow + x0) * co + column;
      const conv_single_target o = {y + at, residual + at, gate + at, bias + column, co, flags};
      const int is_wide = column + 2 * VW <= co;
#define CONV_SINGLE_CALL(name)                   \
  if (is_wide)                                   \
    name(source, pitch, w + column, pixels, &o); \
  else                                           \
    name##_narrow(source, pitch, w + column, pixels, &o);
      if (kh == 3) {
        CONV_SINGLE_CALL(conv_single_3x3)
      } else if (kw == 3) {
        CONV_SINGLE_CALL(conv_single_3)
      } else if (kw == 5) {
        CONV_SINGLE_CALL(conv_single_5)
      } else {
        CONV_SINGLE_CALL(conv_single_7)
      }
#undef CONV_SINGLE_CALL
    }
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_single_fwd(
    ARRAY(const stored, x), ARRAY(const stored, w), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(const stored, gate), ARRAY(stored, y), const int n, const int h, const int wd, const int oh, const int ow,
    const int co, const int kh, const int kw, const int ph, const int pw, const conv_single_shares share,
    const int flags) {
  START(x);
  START(w);
  START(bias);
  START(residual);
  START(gate);
  START(y);
  conv_single_group(x, w, bias, residual, gate, y, n, h, wd, oh, ow, co, kh, kw, ph, pw, share, flags, get_group_id(0));
}
