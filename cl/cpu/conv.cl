// Convolution over volumes of a CPU device, channels last: x [n,d,h,wd,c], w [kd,kh,kw,c/groups,co], y [n,od,oh,ow,co].
// Images have depth 1 and sequences height 1, too.
//
// Forward and input gradient are one kernel. A group works on lines (or on blocks of long lines) of the target. A pixel
// of the target meets, per line of taps, a run of source values that is contiguous: the taps' positions are neighbours
// and channels are last. So a register tile of neighbouring pixels x CONV_NR columns is a product whose rows begin
// stride*channels apart, and a step of it reads one value per pixel and one vector of weights per vector of columns.
// Runs are read where they lie, if none of the block's leaves the line; else the lines are copied to private memory
// with zeros for the padding, and kept in a ring while the group goes down an image. The weights of a group's columns
// are packed once into panels [tap][channel][CONV_NR]. In the input gradient the target's pixels are taken by phase
// (position mod stride), since those of one phase meet the same taps: strides do no idle work. There copies are planes
// [channel][position]: neighbouring pixels' values are neighbours, so a tile's addresses are one pointer and constants.
// Over 400 lines because packing, copying and the tile are of no use to another kernel and all kernels are one program.
// Program: convolution

#define CONV_NR_VW16 32
#define CONV_NR_VW8 16
#define CONV_NR_VW4 8
#define CONV_NR_VW2 4
#define CONV_NR SB_JOIN(CONV_NR_VW, VW)
// Heights of the register tile in pixels, for two vectors of columns and for one: a line is cut into the highest ones
// with a rest of lower ones, so that little overhangs.
#define CONV_TALL_VW16 14
#define CONV_TALL_VW8 6
#define CONV_TALL_VW4 6
#define CONV_TALL_VW2 4
#define CONV_TALL_NARROW_VW16 16
#define CONV_TALL_NARROW_VW8 8
#define CONV_TALL_NARROW_VW4 8
#define CONV_TALL_NARROW_VW2 4
#define CONV_MIDDLE_VW16 8
#define CONV_MIDDLE_VW8 4
#define CONV_MIDDLE_VW4 4
#define CONV_MIDDLE_VW2 2
#define CONV_LOW_VW16 4
#define CONV_LOW_VW8 2
#define CONV_LOW_VW4 2
#define CONV_LOW_VW2 1
#define CONV_TALL SB_JOIN(CONV_TALL_VW, VW)
#define CONV_TALL_NARROW SB_JOIN(CONV_TALL_NARROW_VW, VW)
#define CONV_MIDDLE SB_JOIN(CONV_MIDDLE_VW, VW)
#define CONV_LOW SB_JOIN(CONV_LOW_VW, VW)
#ifndef CONV_SOURCE
#define CONV_SOURCE 12288  // values of source lines in private memory: half of it in the first-level cache
#endif
#ifndef CONV_WEIGHTS
#define CONV_WEIGHTS 65536  // values of packed weights in private memory: a quarter of a second-level cache of 1 MB
#endif
#define CONV_FEW_STEPS 24  // of a sum, for which lower tiles are better: the next one begins while this one is stored
// Whether lines of so many values fall into different sets of a cache of 4 KiB per way.
#define CONV_SPREAD(values) ((values) * (int)sizeof(real) % 4096 != 0)
#define CONV_TAP_ROWS 32  // taps along depth and height, and along width, that are taken at a time
#define CONV_TAP_COLUMNS 64

#define CONV_BIAS 2
#define CONV_RELU 4
#define CONV_RESIDUAL 8
#define CONV_GATE 16

// s* stride, p* padding, d* dilation of an axis; flags: CONV_BIAS and so on.
#define CONV_GEOMETRY                                                                                                 \
  const int n, const int d, const int h, const int wd, const int c, const int od, const int oh, const int ow,         \
      const int co, const int kd, const int kh, const int kw, const int sd, const int sh, const int sw, const int pd, \
      const int ph, const int pw, const int dd, const int dh, const int dw, const int groups, const int flags

// Which weights a group packs: those of `bundle` neighbouring groups as one, with zeros where a column and a depth
// belong to different ones. Narrow groups then fill a vector, at no more products than the empty lanes would cost.
typedef struct {
  int ci, co, co_all;  // per group of the convolution; all output channels
  int bundle, transposed;
} conv_weights;

// Packs `depth` values from k0 on, of one tap and of the columns from `first` on, into to [depth][width]; `there`
// columns exist. w points at the tap and the first group of the bundle.
static void conv_pack(__global const stored* w, const conv_weights s, const int k0, const int depth, const int first,
                      const int there, const int width, real* to) {
  if (s.bundle == 1 && !s.transposed && there == width) {
    for (int k = 0; k < depth; ++k) {
      for (int j = 0; j < width; j += VW) VSTORE(VLOAD(w + (long)(k0 + k) * s.co_all + first + j), to + k * width + j);
    }
  } else if (s.bundle == 1 && s.transposed && depth >= VW) {
    for (int k = 0; k < depth; k += VW) {
      const int from = min(k, depth - VW);
      for (int block = 0; block < width; block += VW) {
        vreal r[VW];
#pragma unroll
        for (int i = 0; i < VW; ++i) r[i] = VLOAD(w + (long)(first + min(block + i, there - 1)) * s.co_all + k0 + from);
        sb_transpose(r);
#pragma unroll
        for (int q = 0; q < VW; ++q) VSTORE(r[q], to + (from + q) * width + block);
      }
    }
  } else {
    const int depth_one = s.transposed ? s.co : s.ci, columns_one = s.transposed ? s.ci : s.co;
    const long depth_step = s.transposed ? 1 : s.co_all, column_step = s.transposed ? s.co_all : 1;
    for (int k = 0; k < depth; ++k) {
      const int member = (k0 + k) / depth_one;  // which group of the bundle
      __global const stored* from = w + member * s.co + (k0 + k - member * depth_one) * depth_step;
      for (int j = 0; j < width; ++j) {
        const int column = first + j - member * columns_one;  // of this group
        to[k * width + j] = j < there && column >= 0 && column < columns_one ? LOAD(from + column * column_step) : 0;
      }
    }
  }
}

// Copies `depth` values of the positions lo to lo + count - 1 of a line, as to [count][pitch], where they are inside of
// the line; the others are not written. source: position 0; pixels are in_c apart.
static void conv_copy_line(__global const stored* source, const int in_w, const int in_c, const int depth, const int lo,
                           const int count, const int pitch, real* to) {
  const int first = max(0, -lo), there = min(count, in_w - lo) - first;
  if (there <= 0) return;
  source += (long)(lo + first) * in_c;
  to += first * pitch;
  const int whole = depth == in_c && pitch == depth;  // one run
  const int runs = whole ? 1 : there, run = whole ? there * depth : depth;
  for (int p = 0; p < runs; ++p, source += in_c, to += pitch) {
    int i = 0;
    for (; i + VW <= run; i += VW) VSTORE(VLOAD(source + i), to + i);
    for (; i < run; ++i) to[i] = LOAD(source + i);
  }
}

// The same as planes [depth][pitch], of a line with at least VW values a pixel. Where the line has fewer than VW
// pixels, whole vectors are stored, too, with zeros behind the last one: what follows in the planes is either zero or
// written later, but for what lies behind the last plane.
static void conv_copy_planes(__global const stored* source, const int in_w, const int in_c, const int depth,
                             const int lo, const int count, const int pitch, real* to) {
  const int first = max(0, -lo), there = min(count, in_w - lo) - first;
  if (there <= 0) return;
  source += (long)(lo + first) * in_c;
  to += first;
  const int last_whole = depth * pitch - first - VW;  // where a whole vector may be stored
  for (int block = 0; block < depth; block += VW) {
    const int k = min(block, depth - VW);
    vreal r[VW];
    for (int pixel = 0; pixel < there && there >= VW; pixel += VW) {
      const int p = min(pixel, there - VW);
      __global const stored* from = source + (long)p * in_c + k;
#pragma unroll
      for (int i = 0; i < VW; ++i) r[i] = VLOAD(from + (long)i * in_c);
      sb_transpose(r);
#pragma unroll
      for (int q = 0; q < VW; ++q) VSTORE(r[q], to + (k + q) * pitch + p);
    }
    if (there >= VW) continue;
#pragma unroll
    for (int i = 0; i < VW; ++i) r[i] = i < there ? VLOAD(source + (long)i * in_c + k) : (vreal)(0);
    sb_transpose(r);
    real tile[VW * VW];
#pragma unroll
    for (int q = 0; q < VW; ++q) VSTORE(r[q], tile + q * VW);
    for (int q = 0; q < VW; ++q) {
      real* plane = to + (k + q) * pitch;
      if ((k + q) * pitch <= last_whole) {
        VSTORE(VLOAD(tile + q * VW), plane);
      } else {
        for (int i = 0; i < there; ++i) plane[i] = tile[q * VW + i];
      }
    }
  }
}

// Asks for values that the next unit will read, so that they come from memory while this one is summed.
static void conv_fetch_ahead(__global const stored* p, const long values) {
  for (long i = 0; i < values; i += 64 / (long)sizeof(stored)) SB_FETCH(p + i);
}

// The taps that a line meets: where their values lie from a pixel's first one on, and their panels' first steps. A
// run has `depth` steps; neighbouring pixels begin `line` apart, or the steps of planes do.
typedef struct {
  int rows, columns, depth, line;
  long row_at[CONV_TAP_ROWS];
  int row_step[CONV_TAP_ROWS];
  int column_at[CONV_TAP_COLUMNS], column_step[CONV_TAP_COLUMNS];
} conv_taps;

// Where a tile goes: pixels `step` apart, `columns` of them stored, after adding bias [CONV_NR] and, where has_more is
// set, `more`, which lies as the target does, and so does `gate`; where is_cut is set, what is below zero becomes zero,
// and where has_gate is set, what has a gate that is not above zero.
typedef struct {
  __global stored* to;
  __global const stored *more, *gate;
#ifdef SAMEBYTES_STORE_16
  __global real* sums;  // what earlier chunks came to where `adds`; what all came to until it `is_whole`
  int adds, is_whole;
#endif
  const real* bias;
  int has_more, has_gate, is_cut, step, columns;
} conv_target;

static vreal conv_kept(const vreal v, __global const stored* gate) { return VLOAD(gate) > (vreal)(0) ? v : (vreal)(0); }

#define CONV_EACH(i, j, statement)                                  \
  _Pragma("unroll") for (int i = 0; i < rows_; ++i) {               \
    _Pragma("unroll") for (int j = 0; j < cols_; ++j) { statement } \
  }

// What a 16-bit result comes to between the chunks of its sum.
#ifdef SAMEBYTES_STORE_16
#define CONV_BETWEEN(i, j, value, at)                            \
  if (o->adds) {                                                 \
    CONV_EACH(i, j, if (i < rows) value += VLOAD(o->sums + at);) \
  }                                                              \
  if (!o->is_whole) {                                            \
    CONV_EACH(i, j, if (i < rows) VSTORE(value, o->sums + at);)  \
    return;                                                      \
  }
#else
#define CONV_BETWEEN(i, j, value, at)
#endif

// A tile's pixels are APART: eight of them share a pointer, and where lines are read, their distances are hidden from
// the compiler, so that they are operands of the loads; planes have constant ones.
#define CONV_LINES(p) SB_HIDE(p)
#define CONV_PLANES(p)
#define CONV_PIXEL(i, apart) ((i) < 8 ? a : a_8)[CONV_DISTANCE((i) % 8, apart)]
#define CONV_DISTANCE(i, apart) \
  ((i) == 3 ? by_3 : (i) == 4 ? by_4 : (i) == 5 ? by_5 : (i) == 6 ? 2 * by_3 : (i) == 7 ? by_7 : (i) * (apart))

// One tile of ROWS pixels, `rows` of them stored. source: the first pixel's place; panel: [step][COLS*VW]. Pixels are
// APART values apart, a step's values NEXT. Not inlined, so that the program takes a third of the time to compile.
#define CONV_MICRO(name, SPACE, ROWS, COLS, APART, NEXT, HIDE)                                                \
  __attribute__((noinline)) static void name(SPACE const real* source, const real* panel, const conv_taps* t, \
                                             const conv_target* o, const int rows) {                          \
    enum { rows_ = ROWS, cols_ = COLS };                                                                      \
    vreal acc[ROWS][COLS];                                                                                    \
    CONV_EACH(i, j, acc[i][j] = VLOAD(o->bias + j * VW);)                                                     \
    const int depth = t->depth;                                                                               \
    const long line = t->line;                                                                                \
    long by_3 = 3 * (APART), by_4 = 4 * (APART), by_5 = 5 * (APART), by_7 = 7 * (APART);                      \
    HIDE(by_3);                                                                                               \
    HIDE(by_4);                                                                                               \
    HIDE(by_5);                                                                                               \
    HIDE(by_7);                                                                                               \
    for (int y = 0; y < t->rows; ++y) {                                                                       \
      for (int x = 0; x < t->columns; ++x) {                                                                  \
        SPACE const real *a = source + t->row_at[y] + t->column_at[x], *a_8 = a + 8 * (APART);                \
        const real* w = panel + (t->row_step[y] + t->column_step[x]) * (COLS * VW);                           \
        for (int k = 0; k < depth; ++k, w += COLS * VW) {                                                     \
          vreal b[COLS];                                                                                      \
          _Pragma("unroll") for (int j = 0; j < COLS; ++j) b[j] = VLOAD(w + j * VW);                          \
          _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                                  \
            const vreal v = (vreal)(CONV_PIXEL(i, APART));                                                    \
            _Pragma("unroll") for (int j = 0; j < COLS; ++j) acc[i][j] = FMA(v, b[j], acc[i][j]);             \
          }                                                                                                   \
          a += NEXT;                                                                                          \
          HIDE(a);                                                                                            \
          a_8 += NEXT;                                                                                        \
          if (ROWS > 8) HIDE(a_8);                                                                            \
        }                                                                                                     \
      }                                                                                                       \
    }                                                                                                         \
    const int step = o->step;                                                                                 \
    if (o->columns >= COLS * VW) {                                                                            \
      CONV_BETWEEN(i, j, acc[i][j], (long)i* step + j * VW)                                                   \
      __global stored* to = o->to;                                                                            \
      if (o->has_more) {                                                                                      \
        __global const stored* more = o->more;                                                                \
        CONV_EACH(i, j, if (i < rows) acc[i][j] = VROUND(acc[i][j]) + VLOAD(more + (long)i * step + j * VW);) \
      }                                                                                                       \
      if (o->is_cut) {                                                                                        \
        CONV_EACH(i, j, acc[i][j] = acc[i][j] < (vreal)(0) ? (vreal)(0) : acc[i][j];)                         \
      }                                                                                                       \
      if (o->has_gate) {                                                                                      \
        __global const stored* gate = o->gate;                                                                \
        CONV_EACH(i, j, if (i < rows) acc[i][j] = conv_kept(acc[i][j], gate + (long)i * step + j * VW);)      \
      }                                                                                                       \
      CONV_EACH(i, j, if (i < rows) VSTORE(acc[i][j], to + (long)i * step + j * VW);)                         \
    } else {                                                                                                  \
      real tile[ROWS * COLS * VW];                                                                            \
      CONV_EACH(i, j, VSTORE(acc[i][j], tile + (i * COLS + j) * VW);)                                         \
      conv_store_part(tile, COLS* VW, o, rows);                                                               \
    }                                                                                                         \
  }

static void conv_store_part(const real* tile, const int width, const conv_target* o, const int rows) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < o->columns; ++j) {
      real v = tile[i * width + j];
      const long at = (long)i * o->step + j;
#ifdef SAMEBYTES_STORE_16
      if (o->adds) v += o->sums[at];
      if (!o->is_whole) {
        o->sums[at] = v;
        continue;
      }
#endif
      if (o->has_more) v = ROUND(v) + LOAD(o->more + at);
      if (o->is_cut && v < 0) v = 0;
      if (o->has_gate && !(LOAD(o->gate + at) > 0)) v = 0;
      STORE(v, o->to + at);
    }
  }
}
#define CONV_MICROS(kind, SPACE, APART, NEXT, HIDE)                                    \
  CONV_MICRO(conv_##kind##_tall, SPACE, CONV_TALL, 2, APART, NEXT, HIDE)               \
  CONV_MICRO(conv_##kind##_middle, SPACE, CONV_MIDDLE, 2, APART, NEXT, HIDE)           \
  CONV_MICRO(conv_##kind##_low, SPACE, CONV_LOW, 2, APART, NEXT, HIDE)                 \
  CONV_MICRO(conv_##kind##_tall_narrow, SPACE, CONV_TALL_NARROW, 1, APART, NEXT, HIDE) \
  CONV_MICRO(conv_##kind##_middle_narrow, SPACE, CONV_MIDDLE, 1, APART, NEXT, HIDE)    \
  CONV_MICRO(conv_##kind##_low_narrow, SPACE, CONV_LOW, 1, APART, NEXT, HIDE)
CONV_MICROS(copied, __private, line, 1, CONV_LINES)
CONV_MICROS(planes, __private, 1, line, CONV_PLANES)
#ifndef SAMEBYTES_STORE_16  // then lines are always copied, and widened
CONV_MICROS(direct, __global, line, 1, CONV_LINES)
#endif

// How many of `pixels` the highest tiles should take, so that the fewest rows overhang.
static int conv_tall_pixels(const int pixels, const int tall) {
  int best = (pixels + tall - 1) / tall, least = best * tall;
  for (int i = pixels / tall; i >= 0; --i) {
    const int rest = pixels - i * tall, part = rest % CONV_MIDDLE;
    const int rows = i * tall + rest - part + (part == 0 ? 0 : part <= CONV_LOW ? CONV_LOW : CONV_MIDDLE);
    if (rows < least) {
      least = rows;
      best = i;
    }
  }
  return best * tall;
}

// Tiles of `pixels` copied pixels of one chunk, for the columns of o, whose places are those of the first pixel.
static void conv_copied(const real* source, const real* panel, const conv_taps* t, conv_target* o, const int pixels) {
  const int is_wide = o->columns > VW, is_short = t->depth < CONV_FEW_STEPS;
  const int high = is_wide && is_short ? 0 : conv_tall_pixels(pixels, is_wide ? CONV_TALL : CONV_TALL_NARROW);
  int height;
  for (int e = 0; e < pixels; e += height) {
    const int is_high = e<high, is_middle = pixels - e> CONV_LOW;
    height = is_high ? (is_wide ? CONV_TALL : CONV_TALL_NARROW) : is_middle ? CONV_MIDDLE : CONV_LOW;
    const int rows = min(height, pixels - e);
#define CONV_CALL(size)                                          \
  if (is_wide)                                                   \
    conv_copied_##size(source + e * t->line, panel, t, o, rows); \
  else                                                           \
    conv_copied_##size##_narrow(source + e * t->line, panel, t, o, rows);
    if (is_high) {
      CONV_CALL(tall)
    } else if (is_middle) {
      CONV_CALL(middle)
    } else {
      CONV_CALL(low)
    }
#undef CONV_CALL
    const long on = (long)height * o->step;
    o->to += on;
    o->more += on;
    o->gate += on;
#ifdef SAMEBYTES_STORE_16
    o->sums += on;
#endif
  }
}

// Convolutions of one tap, strided and without padding: where they read and write, for the columns col0 to col1 - 1 of
// the target and the channels k0 to k0 + depth - 1. s* as in the geometry; src, dst and what lies as dst begin at the
// group's first channel.
typedef struct {
  __global const stored *src, *residual, *gate;
  __global const real* bias;
  __global stored* dst;
#ifdef SAMEBYTES_STORE_16
  __global real* sums;
#endif
  const real* packed;
  real *source, *bias_panel;
  int in_d, in_h, in_w, in_c, out_d, out_h, out_w, out_c, sd, sh, sw;
  int flags, is_first, is_last, col0, col1, k0, depth;
} conv_points;

// The products of `pixels` copied pixels, `pitch` apart, for all columns; the target's pixels begin at value `at` and
// are `step` values apart.
static void conv_points_tiles(const conv_points* q, const int pixels, const int pitch, const long at, const int step) {
  conv_taps t;
  t.rows = t.columns = 1;
  t.row_at[0] = t.row_step[0] = t.column_at[0] = t.column_step[0] = 0;
  t.depth = q->depth;
  t.line = pitch;
  for (int col = q->col0; col < q->col1; col += CONV_NR) {
    conv_target o;
    o.columns = min(CONV_NR, q->col1 - col);
    o.bias = q->bias_panel;
    for (int j = 0; j < CONV_NR; ++j)
      q->bias_panel[j] = q->is_first && (q->flags & CONV_BIAS) && j < o.columns ? q->bias[col + j] : 0;
    o.to = q->dst + at + col;
    o.gate = q->gate + at + col;
    o.is_cut = q->is_last && (q->flags & CONV_RELU);
    o.has_gate = q->is_last && (q->flags & CONV_GATE);
    o.step = step;
#ifdef SAMEBYTES_STORE_16
    o.more = q->residual + at + col;
    o.sums = q->sums + at + col;
    o.has_more = q->flags & CONV_RESIDUAL;
    o.adds = !q->is_first;
    o.is_whole = q->is_last;
#else
    o.more = q->is_first ? q->residual + at + col : q->dst + at + col;
    o.has_more = !q->is_first || (q->flags & CONV_RESIDUAL);
#endif
    conv_copied(q->source, q->packed + (col - q->col0) / CONV_NR * q->depth * CONV_NR, &t, &o, pixels);
  }
}

// What the pixels of a line that no source meets become, from value `at` of the target on; those that a source meets,
// too, before their tiles are stored. Without a bias all columns of all pixels are one run of values.
static void conv_points_rest(const conv_points* q, const long at) {
  const int is_one = !(q->flags & CONV_BIAS) && q->col0 == 0 && q->col1 == q->out_c;
  const int runs = is_one ? 1 : q->out_w, run = is_one ? q->out_w * q->out_c : q->col1 - q->col0;
  const int is_zero = !(q->flags & (CONV_BIAS | CONV_RESIDUAL | CONV_GATE));
  for (int p = 0; p < runs; ++p) {
    const long begin = at + (long)p * q->out_c + q->col0;
    __global stored* to = q->dst + begin;
    int i = 0;
    for (; is_zero && i + VW <= run; i += VW) VSTORE((vreal)(0), to + i);
    for (; i < run; i += VW) {
      const int left = run - i;
      vreal v = q->flags & CONV_BIAS ? sb_load(q->bias + q->col0 + i, left, left, 0) : (vreal)(0);
      if (q->flags & CONV_RESIDUAL) v = VROUND(v) + sb_load(q->residual + begin + i, left, left, 0);
      if (q->flags & CONV_RELU) v = select(v, (vreal)(0), v < (vreal)(0));
      if (q->flags & CONV_GATE) v = select((vreal)(0), v, sb_load(q->gate + begin + i, left, left, 0) > (vreal)(0));
      sb_store(v, to + i, left);
    }
  }
}

// Forward, lines begin to end - 1 of the target: pixels that stand alone are copied side by side, so that tiles go on
// from one line to the next.
static void conv_points_forward(const conv_points* q, const int begin, const int end) {
  const int pitch = CONV_SPREAD(q->depth) ? q->depth : q->depth + VW;
  const int room = CONV_SOURCE / 2 / pitch, most = max(q->out_w, room - room % CONV_TALL);
  const int pixels = (end - begin) * q->out_w;
  int line = begin, x = 0;
  for (int p0 = 0; p0 < pixels; p0 += most) {
    const int count = min(most, pixels - p0);
    real* to = q->source;
    for (int p = 0; p < count;) {
      const int slice = line / q->out_h, b = line - slice * q->out_h, volume = slice / q->out_d,
                a = slice - volume * q->out_d;
      const long from = ((long)(volume * q->in_d + a * q->sd) * q->in_h + b * q->sh) * q->in_w + x * q->sw;
      __global const stored* at = q->src + from * q->in_c + q->k0;
      const int run = min(count - p, q->out_w - x);
      for (int i = 0; i < run; ++i, at += q->sw * q->in_c, to += pitch) {
        int k = 0;
        for (; k + VW <= q->depth; k += VW) VSTORE(VLOAD(at + k), to + k);
        for (; k < q->depth; ++k) to[k] = LOAD(at + k);
      }
      p += run;
      x += run;
      if (x == q->out_w) {
        x = 0;
        ++line;
      }
    }
    for (int i = 0; i < (CONV_LOW - 1) * pitch; ++i) to[i] = 0;  // of rows that are not stored
    conv_points_tiles(q, count, pitch, ((long)begin * q->out_w + p0) * q->out_c, q->out_c);
  }
}

// The input gradient, lines begin to end - 1 of the target, those that no source meets too.
static void conv_points_back(const conv_points* q, const int begin, const int end) {
  const int pitch = CONV_SPREAD(q->depth) ? q->depth : q->depth + VW;
  const int pixels = min(q->in_w, (q->out_w - 1) / q->sw + 1);
  for (int line = begin; line < end; ++line) {
    const int slice = line / q->out_h, b = line - slice * q->out_h, volume = slice / q->out_d,
              a = slice - volume * q->out_d;
    const int at_d = a / q->sd, at_h = b / q->sh;
    const long at = (long)line * q->out_w * q->out_c;
    if (q->is_first) conv_points_rest(q, at);
    if (at_d * q->sd != a || at_h * q->sh != b || at_d >= q->in_d || at_h >= q->in_h) continue;
    const long from = ((long)(volume * q->in_d + at_d) * q->in_h + at_h) * q->in_w;
    conv_copy_line(q->src + from * q->in_c + q->k0, q->in_w, q->in_c, q->depth, 0, pixels, pitch, q->source);
    for (int i = 0; i < (CONV_LOW - 1) * pitch; ++i) q->source[pixels * pitch + i] = 0;
    conv_points_tiles(q, pixels, pitch, at, q->sw * q->out_c);
  }
}

static int conv_floor_div(const int a, const int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

// The taps x0 <= x < x1 in the order of their panels: by the phase whose pixels they meet, then by the position that
// they meet from the least position `lo` on. In the forward pass there is one phase.
typedef struct {
  int slot[CONV_TAP_COLUMNS];  // by x - x0: the place in that order
  int phase[CONV_TAP_COLUMNS], at[CONV_TAP_COLUMNS];
} conv_order;

static void conv_sort(conv_order* s, const int x0, const int x1, const int transposed, const int padding,
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

// transposed 0: dst = y = conv(src = x, w). transposed 1: dst = dx, the sum over the taps that reach an input pixel, of
// src = dy. Epilogue by `flags`: + bias [channels of dst] 2, + residual (as dst) 8, then ReLU 4, which NaN passes,
// then 0 where gate (as dst) is not above 0, 16.
// `groups` of the geometry are bundles of `bundle` groups each. A unit is `block` places of a line of dst (of each
// phase, transposed); units are counted [block][line]. Groups: x = ceil(lines*blocks/units)*ceil(columns/tile_n),
// column tile fastest; y = 1; z = groups. Taps and depth are summed in chunks, each added to dst by itself: chunk_rows
// (of kd*kh) <= CONV_TAP_ROWS, chunk_columns (of kw) <= CONV_TAP_COLUMNS, chunk_depth. The packed weights of a chunk
// and tile_n (a multiple of CONV_NR) fit CONV_WEIGHTS, the source lines CONV_SOURCE (engine/ops/conv.cpp). Accumulates
// in `real`, over taps in order, then channels; between chunks a 16-bit dst stands in sums, which is as large.
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv_tiles(
    ARRAY(const stored, src), ARRAY(const stored, w), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(const stored, gate), ARRAY(stored, dst), ARRAY(real, sums), CONV_GEOMETRY, const int transposed,
    const int bundle, const int units, const int block, const int tile_n, const int chunk_rows, const int chunk_columns,
    const int chunk_depth) {
  START(src);
  START(w);
  START(bias);
  START(residual);
  START(gate);
  START(dst);
  START(sums);
  const int in_d = transposed ? od : d, in_h = transposed ? oh : h, in_w = transposed ? ow : wd;
  const int out_d = transposed ? d : od, out_h = transposed ? h : oh, out_w = transposed ? wd : ow;
  const int in_c = transposed ? co : c, out_c = transposed ? c : co;
  const int depth_all = in_c / groups, columns_all = out_c / groups, g = get_group_id(2);
  const int sign = transposed ? -1 : 1;
  const int mul_d = transposed ? 1 : sd, mul_h = transposed ? 1 : sh, mul_w = transposed ? 1 : sw;
  const int divide_d = transposed ? sd : 1, divide_h = transposed ? sh : 1, divide_w = transposed ? sw : 1;
  const int column_tiles = (columns_all + tile_n - 1) / tile_n;
  const int unit_tile = (int)get_group_id(0) / column_tiles;
  const int col0 = ((int)get_group_id(0) - unit_tile * column_tiles) * tile_n, col1 = min(columns_all, col0 + tile_n);
  const int lines = n * out_d * out_h, grid_w = (out_w + divide_w - 1) / divide_w;
  const int unit0 = unit_tile * units, unit1 = min(lines * ((grid_w + block - 1) / block), unit0 + units);
  const conv_weights s = {c / (groups * bundle), co / (groups * bundle), co, bundle, transposed};
  w += (long)g * bundle * s.co;
  src += (long)g * depth_all;
  const long src_end = (long)n * in_d * in_h * in_w * in_c - (long)g * depth_all;

  real source[CONV_SOURCE] __attribute__((aligned(64)));
  real packed[CONV_WEIGHTS] __attribute__((aligned(64)));
  real bias_panel[CONV_NR] __attribute__((aligned(64)));
  conv_taps t;
  conv_order order;
  int tag[CONV_TAP_ROWS];  // which line of src lies in a slot of `source`
  const int blocks = (grid_w + block - 1) / block, line_first = out_d * out_h == 1;
  const int is_points = kd * kh * kw == 1 && pd + ph + pw == 0 && sd * sh * sw > 1 && blocks == 1;
  conv_points points;
  if (is_points) {
    points.src = src;
    points.bias = bias + g * columns_all;
    points.residual = residual + g * columns_all;
    points.gate = gate + g * columns_all;
    points.dst = dst + g * columns_all;
#ifdef SAMEBYTES_STORE_16
    points.sums = sums + g * columns_all;
#endif
    points.packed = packed;
    points.source = source;
    points.bias_panel = bias_panel;
    points.in_d = in_d;
    points.in_h = in_h;
    points.in_w = in_w;
    points.in_c = in_c;
    points.out_d = out_d;
    points.out_h = out_h;
    points.out_w = out_w;
    points.out_c = out_c;
    points.sd = sd;
    points.sh = sh;
    points.sw = sw;
    points.flags = flags;
    points.col0 = col0;
    points.col1 = col1;
  }
  int is_first = 1;
  for (int r0 = 0; r0 < kd * kh; r0 += chunk_rows) {
    const int r1 = min(kd * kh, r0 + chunk_rows);
    const int ring = dh == 1 && chunk_rows >= kd * kh;
    for (int x0 = 0; x0 < kw; x0 += chunk_columns) {
      const int x1 = min(kw, x0 + chunk_columns);
      // A pixel at place e meets tap x at position e*mul_w + its shift, lo <= shift <= hi.
      const int lo = transposed ? conv_floor_div(pw - (x1 - 1) * dw, divide_w) : x0 * dw - pw;
      const int hi = transposed ? conv_floor_div(divide_w - 1 + pw - x0 * dw, divide_w) : (x1 - 1) * dw - pw;
      // Copied pixels are `gap` positions apart: what lies between their runs is left out.
      const int span = hi - lo + 1, gap = min(mul_w, span);
      conv_sort(&order, x0, x1, transposed, pw, dw, divide_w, lo);
      for (int k0 = 0; k0 < depth_all; k0 += chunk_depth) {
        const int depth = min(chunk_depth, depth_all - k0),
                  is_last = r1 == kd * kh && x1 == kw && k0 + depth == depth_all;
        const int panel_size = (r1 - r0) * (x1 - x0) * depth * CONV_NR;
        for (int col = col0; col < col1; col += CONV_NR) {
          const int there = min(CONV_NR, col1 - col), width = there > VW ? CONV_NR : VW;
          real* to = packed + (col - col0) / CONV_NR * panel_size;
          for (int r = r0; r < r1; ++r) {
            for (int x = x0; x < x1; ++x)
              conv_pack(w + (long)(r * kw + x) * s.ci * co, s, k0, depth, col, there, width,
                        to + ((r - r0) * (x1 - x0) + order.slot[x - x0]) * depth * width);
          }
        }
        if (is_points) {
          points.is_first = is_first;
          points.is_last = is_last;
          points.k0 = k0;
          points.depth = depth;
          if (transposed)
            conv_points_back(&points, unit0, unit1);
          else
            conv_points_forward(&points, unit0, unit1);
          is_first = 0;
          continue;
        }
        const int planes = transposed && depth >= VW;
        const int few_steps = (r1 - r0) * (x1 - x0) * depth < CONV_FEW_STEPS;
        int block_before = -1, pixels_before = -1, tall = 0, tall_narrow = 0, bias_column = -1;
        for (int unit = unit0; unit < unit1; ++unit) {
          const int block_index = line_first ? unit % blocks : unit / lines;
          const int line = line_first ? unit / blocks : unit - block_index * lines;
          const int e0 = block_index * block, e1 = min(grid_w, e0 + block);
          const int slice = line / out_h, b = line - slice * out_h, volume = slice / out_d, a = slice - volume * out_d;
          // Positions of this block, with those of the last tile's rows that are not stored.
          const int begin = e0 * mul_w + lo, last = (e1 - 1) * mul_w + hi;
#ifdef SAMEBYTES_STORE_16
          const int direct = 0;
#else
          const int direct = !planes && begin >= 0 && last < in_w && CONV_SPREAD(mul_w * in_c) &&
                             last + (CONV_LOW - 1) * mul_w + 1 - in_w <= (long)(n - 1 - volume) * in_d * in_h * in_w;
#endif
          const int positions = (e1 - e0 + CONV_LOW - 2) * gap + span;  // of a copy
          const int pitch = planes ? 1 : direct ? in_c : CONV_SPREAD(gap * depth) ? depth : depth + VW;
          const int line_size = positions * (planes ? depth : pitch);
          t.line = planes ? positions : (direct ? mul_w : gap) * pitch;
          if (!direct && block_index != block_before) {
            for (int i = 0; i < CONV_TAP_ROWS; ++i) tag[i] = -1;
            for (int i = 0; i < (r1 - r0) * line_size; ++i) source[i] = 0;
            block_before = block_index;
          }
          t.rows = 0;
          int newest = -1;
          // Lines of the source in ascending order.
          const int step = transposed ? -1 : 1, from_tap = transposed ? r1 - 1 : r0;
          int z = from_tap / kh, y = from_tap - z * kh;
          for (int i = r0, r = from_tap; i < r1; ++i, r += step) {
            const int up = a * mul_d + sign * (z * dd - pd), over = b * mul_h + sign * (y * dh - ph);
            const int at_d = divide_d == 1 ? up : up / divide_d, at_h = divide_h == 1 ? over : over / divide_h;
            const int tap_z = z;
            y += step;
            if (y == kh || y < 0) {
              y = y < 0 ? kh - 1 : 0;
              z += step;
            }
            if (up < 0 || over < 0 || at_d * divide_d != up || at_h * divide_h != over || at_d >= in_d || at_h >= in_h)
              continue;
            const int from = (volume * in_d + at_d) * in_h + at_h;
            if (direct) {
              newest = from;
              t.row_at[t.rows] = ((long)from * in_w + begin) * in_c + k0;
            } else {
              const int slot = ring ? tap_z * kh + at_h % kh : r - r0;
              if (tag[slot] != from) {
                tag[slot] = from;
                newest = from;
                __global const stored* at = src + (long)from * in_w * in_c + k0;
                real* to = source + slot * line_size;
                if (planes) {
                  conv_copy_planes(at, in_w, in_c, depth, begin, last + 1 - begin, positions, to);
                } else if (gap == mul_w) {
                  conv_copy_line(at, in_w, in_c, depth, begin, last + 1 - begin, pitch, to);
                } else {
                  for (int p = begin; p <= last; p += mul_w, to += gap * pitch)
                    conv_copy_line(at, in_w, in_c, depth, p, span, pitch, to);
                }
              }
              t.row_at[t.rows] = slot * line_size;
            }
            t.row_step[t.rows++] = (r - r0) * (x1 - x0) * depth;
          }
          // The lines that the next unit reads for the first time: a tile asks for its share of them.
          const int fresh = block < grid_w ? 1 : min(mul_h, kh), ahead_step = mul_w * in_c * fresh;
          const long ahead = newest < 0 || depth < in_c || line_first
                                 ? src_end
                                 : ((long)(newest + mul_h + 1 - fresh) * in_w + e0 * mul_w) * in_c;
          int taps_done = 0;
          for (int f = 0; f < divide_w; ++f) {
            taps_done = conv_columns(&t, &order, taps_done, x1 - x0, f, depth, pitch, pitch == depth && !planes);
            const int pixels = min(e1, (out_w - f + divide_w - 1) / divide_w) - e0;
            if (pixels <= 0) continue;
            if (pixels != pixels_before) {
              tall = few_steps ? 0 : conv_tall_pixels(pixels, CONV_TALL);
              tall_narrow = conv_tall_pixels(pixels, CONV_TALL_NARROW);
              pixels_before = pixels;
            }
            const long place = ((long)line * out_w + e0 * divide_w + f) * out_c + (long)g * columns_all;
            for (int col = col0; col < col1; col += CONV_NR) {
              const real* panel = packed + (col - col0) / CONV_NR * panel_size;
              conv_target o;
              o.columns = min(CONV_NR, col1 - col);
              o.bias = bias_panel;
              if (col != bias_column) {
                bias_column = col;
                for (int j = 0; j < CONV_NR; ++j)
                  bias_panel[j] =
                      is_first && (flags & CONV_BIAS) && j < o.columns ? bias[g * columns_all + col + j] : 0;
              }
#ifdef SAMEBYTES_STORE_16
              o.has_more = flags & CONV_RESIDUAL;
              o.adds = !is_first;
              o.is_whole = is_last;
#else
              o.has_more = !is_first || (flags & CONV_RESIDUAL);
#endif
              o.step = divide_w * out_c;
              o.is_cut = is_last && (flags & CONV_RELU);
              o.has_gate = is_last && (flags & CONV_GATE);
              const int is_wide = o.columns > VW, high = is_wide ? tall : tall_narrow;
              int height;
              for (int e = 0; e < pixels; e += height) {
                const int left = pixels - e;
                o.to = dst + place + col + (long)e * o.step;
                o.gate = gate + place + col + (long)e * o.step;
#ifdef SAMEBYTES_STORE_16
                o.more = residual + place + col + (long)e * o.step;
                o.sums = sums + place + col + (long)e * o.step;
#else
                o.more = is_first ? residual + place + col + (long)e * o.step : o.to;
#endif
#ifdef SAMEBYTES_STORE_16
#define CONV_CALL(size)                                               \
  if (planes)                                                         \
    conv_planes_##size(source + e, panel, &t, &o, min(height, left)); \
  else                                                                \
    conv_copied_##size(source + e * t.line, panel, &t, &o, min(height, left));
#else
#define CONV_CALL(size)                                                           \
  if (planes)                                                                     \
    conv_planes_##size(source + e, panel, &t, &o, min(height, left));             \
  else if (direct)                                                                \
    conv_direct_##size(src + (long)e * t.line, panel, &t, &o, min(height, left)); \
  else                                                                            \
    conv_copied_##size(source + e * t.line, panel, &t, &o, min(height, left));
#endif
                if (e < high) {
                  height = is_wide ? CONV_TALL : CONV_TALL_NARROW;
                  if (is_wide) {
                    CONV_CALL(tall)
                  } else {
                    CONV_CALL(tall_narrow)
                  }
                } else if (left > CONV_LOW) {
                  height = CONV_MIDDLE;
                  if (is_wide) {
                    CONV_CALL(middle)
                  } else {
                    CONV_CALL(middle_narrow)
                  }
                } else {
                  height = CONV_LOW;
                  if (is_wide) {
                    CONV_CALL(low)
                  } else {
                    CONV_CALL(low_narrow)
                  }
                }
#undef CONV_CALL
                if (col == col0 && f == 0 && ahead + (long)(e + height) * ahead_step < src_end)
                  conv_fetch_ahead(src + ahead + (long)e * ahead_step, (long)height * ahead_step);
              }
            }
          }
        }
        is_first = 0;
      }
    }
  }
}
#undef CONV_GEOMETRY
