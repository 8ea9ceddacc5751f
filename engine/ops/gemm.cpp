// Chooses the provider of a matrix product and plans the tiles of the packed one (kernels: cl/*/gemm.cl).
// Over 400 lines because products with plain and with quantised matrices share tiles and epilogues.
#include "ops/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "ops/host.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "shared/gemm.h"

namespace samebytes::detail {
namespace {

// Everything depends only on the shape and the tuner's choices, so results do not change with the number of threads.
constexpr std::int64_t kSplitFrom = 1024;  // a k below this is not split
constexpr std::int64_t kLeastSplit = 512;  // if the tuner has no choice
constexpr std::int64_t kMostSplits = 64;
constexpr std::int64_t kGpuSplitFrom = 256, kGpuLeastSplit = 128, kGpuSplitStep = 64;
constexpr std::int64_t kEnoughLarge = 128;  // tiles of 128 x 128 that keep a large GPU busy

// What a group costs, in cycles of one vector FMA each; measured on one core of an AMD EPYC (Zen 4).
constexpr double kReadRows = 0.1;       // per value of A read in place, contiguous along k
constexpr double kReadColumns = 0.2;    // ... along m
constexpr double kPackRows = 1;         // per value of A packed, contiguous along k
constexpr double kCopyColumns = 0.5;    // ... along m
constexpr double kKeepColumns = 0.4;    // per value of B that the first tile packs while it computes
constexpr double kPackColumns = 1;      // per value of B transposed before
constexpr double kStore = 0.75;         // per vector of C read or written
constexpr double kStart = 500;          // of a group
constexpr double kReduce = 4;           // per value of a split's partial sum
constexpr double kStartReduce = 20000;  // of the launch that adds them up

// With pairs of bf16 (gemm_pack.clh), as a part of the above: what a multiply-add takes of a value of k, and what is
// read or packed.
constexpr double kPairProduct = 0.55, kPairPack = 0.5;
// The same with tiles of them (gemm_amx.clh); measured on one core of an Intel Xeon (Emerald Rapids).
constexpr double kTileProduct = 0.06, kTilePack = 0.5;

// gemm_dot: lines of the smaller operand up to which nothing is packed, and vectors of products that are worth a group.
constexpr std::int64_t kDotLines = 32;
constexpr std::int64_t kDotWork = 8192;
constexpr std::int64_t kMostDotGroups = 64;

// Cycles of one core below which a product is one group: while a second core is woken, the first has done it.
constexpr double kOneGroup = 20000;

// gemm_small_row: values of B from which it pays, and columns or a sum that give enough groups. gemm_small_batch: rows
// of a product, products from which it pays, and multiply-adds that are worth a group.
constexpr std::int64_t kRowValues = 1 << 16, kRowColumns = 512, kRowSum = 4096;
constexpr std::int64_t kTinyRows = 32, kTinyProducts = 16, kTinyWork = 32768;

gemm_sizes sizes_of(const GemmProblem& p) {
  return {p.a_row,   p.a_col,   p.b_row,     p.b_col,     p.a_outer,   p.a_inner,
          p.b_outer, p.b_inner, i32_of(p.m), i32_of(p.n), i32_of(p.k), i32_of(p.inner)};
}

struct GemmTiles {
  std::int64_t rows = 1, columns = 1, split_k = 0, splits = 1;
  const char* entry = "gemm";
  int items_x = 16, items_y = 16;  // of a group of a GPU
};

// What the packed product multiplies in an instruction; that with quantised rows has single values always.
enum class Multiplies { values, pairs, tiles };
Multiplies multiplies(const Launch& run, Dtype real) {
  if (real != bf16) return Multiplies::values;
  return run.device().has_bf16_tiles()  ? Multiplies::tiles
         : run.device().has_bf16_dots() ? Multiplies::pairs
                                        : Multiplies::values;
}

// The panels of a CPU device: rows and columns of one, most of a group, values of k in a block; and what a value of k
// costs there, beside single values.
struct GemmPanels {
  std::int64_t rows, columns, vector, most_rows, most_columns, k;
  double product, pack;
};
GemmPanels panels_of(const Launch& run, Dtype real, Multiplies multiplied) {
  if (multiplied == Multiplies::tiles)
    return {GEMM_AMX_ROWS,          GEMM_AMX_COLUMNS, 16,           GEMM_AMX_ROW_PANELS,
            GEMM_AMX_COLUMN_PANELS, GEMM_AMX_KC,      kTileProduct, kTilePack};
  const bool are_pairs = multiplied == Multiplies::pairs;
  const std::int64_t nr = run.constant("gemm", "GEMM_NR", real);
  return {run.constant("gemm", "GEMM_MR", real),
          nr,
          nr / run.constant("gemm", "GEMM_COLS", real),
          run.constant("gemm", "GEMM_ROW_PANELS", real),
          run.constant("gemm", "GEMM_COLUMN_PANELS", real),
          run.constant("gemm", "GEMM_KC", real),
          are_pairs ? kPairProduct : 1,
          are_pairs ? kPairPack : 1};
}

// Pack A if too many of its lines would map to the same cache sets. If A is contiguous along k, a tile's rows are
// reused from the first level: there a stride of (nearly) a multiple of 4 KiB is too much. If it is contiguous along m,
// every step of k takes two lines, more than the first level holds; packing helps if the lines are 1 KiB or more apart
// and many columns use what was packed. Otherwise only a long sum of lines a large power of two apart suffers from the
// sets of the second level: measured, sums that need more than four times the space.
bool reads_a_in_place(const GemmProblem& p, Dtype real, Multiplies multiplied) {
  // 16-bit values are widened or paired as they are packed, unless they lie in pairs.
  if (real != real_of(real) && (multiplied == Multiplies::values || p.a_col != 1)) return false;
  const auto bytes = static_cast<std::int64_t>(bytes_of(real));
  constexpr std::int64_t page = 4096, near = 128;
  if (p.a_col == 1) {
    const std::int64_t stride = p.a_row * bytes;
    return stride < page / 4 || (stride % page >= near && stride % page <= page - near);
  }
  constexpr std::int64_t room = std::int64_t{1} << 20, few_columns = 128;
  const std::int64_t stride = p.a_col * bytes, power = stride & -stride;
  return p.a_row == 1 && (stride < page / 4 || p.n <= few_columns) && power <= 2 * room / p.k;
}

// How much longer than evenly dealt equal groups these take; estimated as a mean over 2, 4 and 8 cores.
double rounded(std::int64_t groups) {
  const auto on = [&](std::int64_t cores) { return static_cast<double>(ceil_div(groups, cores) * cores); };
  return (4 * on(2) + 2 * on(4) + on(8)) / 7;
}

std::int64_t least_split(const Launch& run, std::string_view shapes, std::int64_t built_in = kLeastSplit) {
  return shapes == "deep" || shapes == "thin" ? run.choice("gemm", shapes, "least_split") : built_in;
}

// Tries all tiles that fit the packed blocks of a group, and splits of a long k, to minimise the total time of all
// groups plus the loss from uneven distribution.
GemmTiles plan_cpu_tiles(const Launch& run, const GemmProblem& p, Dtype real, Multiplies multiplied) {
  const GemmPanels panels = panels_of(run, real, multiplied);
  const std::int64_t mr = panels.rows, nr = panels.columns, vector = panels.vector, step = panels.k;
  const std::string_view shapes = gemm_shape_class(p);
  const std::int64_t least_k = least_split(run, shapes);
  // At the end one core waits for another, half a group on average.
  const auto last_groups = static_cast<double>(run.choice("gemm", shapes, "last_groups"));
  const std::int64_t row_panels = ceil_div(p.m, mr), column_panels = ceil_div(p.n, nr);
  const std::int64_t most_rows = std::min(row_panels, panels.most_rows);
  const std::int64_t most_columns = std::min(column_panels, panels.most_columns);
  const bool direct = reads_a_in_place(p, real, multiplied), rows_of_a = p.a_row != 1;
  const double product = panels.product, pack = panels.pack;
  const double read_a = pack * (direct ? (rows_of_a ? kReadRows : kReadColumns) : rows_of_a ? kPackRows : kCopyColumns);
  // No strides: B lies in panels.
  const double read_b = p.b_row == 0 && p.b_col == 0 ? 0 : pack * (p.b_col == 1 ? kKeepColumns : kPackColumns);
  const std::int64_t batch = p.outer * p.inner;
  const auto whole_m = static_cast<double>(p.m), whole_n = static_cast<double>(ceil_div(p.n, vector) * vector);
  if (product * whole_m * whole_n / static_cast<double>(vector) * static_cast<double>(p.k * batch) <= kOneGroup &&
      most_rows == row_panels && most_columns == column_panels)
    return {1, 1, p.k, 1};
  GemmTiles best;
  double least = std::numeric_limits<double>::max();
  for (std::int64_t wanted = 1; wanted <= kMostSplits; wanted *= 2) {
    const std::int64_t split_k = wanted == 1 ? p.k : ceil_div(ceil_div(p.k, wanted), step) * step;
    if (wanted > 1 && (p.k < kSplitFrom || split_k < least_k)) break;
    const std::int64_t splits = ceil_div(p.k, split_k);
    const auto k = static_cast<double>(split_k), blocks = static_cast<double>(ceil_div(split_k, step));
    for (std::int64_t rows = most_rows; rows >= 1; --rows) {
      for (std::int64_t columns = most_columns; columns >= 1; --columns) {
        const GemmTiles tiles{ceil_div(row_panels, rows), ceil_div(column_panels, columns), split_k, splits};
        const auto m = static_cast<double>(tiles.rows == 1 ? p.m : ceil_div(row_panels, tiles.rows) * mr);
        const auto n = tiles.columns == 1 ? whole_n : static_cast<double>(ceil_div(column_panels, tiles.columns) * nr);
        const double vectors = product * k + 2 * kStore * blocks;  // for one vector of C
        const double group = m * n / static_cast<double>(vector) * vectors + read_a * m * k + read_b * n * k + kStart;
        const std::int64_t per_product = tiles.rows * tiles.columns, groups = per_product * splits * batch;
        const double all =
            (whole_m * whole_n / static_cast<double>(vector) * vectors +
             read_a * whole_m * k * static_cast<double>(tiles.columns) +
             read_b * whole_n * k * static_cast<double>(tiles.rows) + kStart * static_cast<double>(per_product)) *
            static_cast<double>(splits * batch);
        // Tiles differ in the last panel, so take the mean of the two estimates.
        double time = (all + std::max(all, group * rounded(groups)) + last_groups * group) / 2;
        if (splits > 1) time += kReduce * static_cast<double>(p.m * p.n * splits * batch) + kStartReduce;
        if (time < least) {
          least = time;
          best = tiles;
        }
      }
    }
  }
  return best;
}

// Tiles of a GPU; where they are too few, a long k is split.
GemmTiles gpu_tiles(const Launch& run, const GemmProblem& p, std::int64_t rows, std::int64_t columns) {
  GemmTiles t{ceil_div(p.m, rows), ceil_div(p.n, columns), p.k, 1};
  const std::int64_t groups = t.rows * t.columns * p.outer * p.inner;
  const std::string_view shapes = gemm_shape_class(p);
  const std::int64_t enough = run.choice("gemm", shapes, "enough_groups");
  if (groups < enough && p.k >= kGpuSplitFrom)
    t.split_k = std::max(least_split(run, shapes, kGpuLeastSplit),
                         ceil_div(ceil_div(p.k, enough / groups + 1), kGpuSplitStep) * kGpuSplitStep);
  t.splits = ceil_div(p.k, t.split_k);
  return t;
}
GemmTiles plan_gpu_tiles(const Launch& run, const GemmProblem& p, Dtype real, Multiplies) {
  return gpu_tiles(run, p, run.constant("gemm", "GEMM_TILE_M", real), run.constant("gemm", "GEMM_TILE_N", real));
}

// What a launch stores in addition to the product.
struct Epilogues {
  Operand bias, residual;
  int flags = 0;
};

void launch_reduce(Launch& run, Operand part, const Epilogues& e, Operand c, const GemmProblem& p, std::int64_t splits,
                   Dtype real) {
  const std::int64_t total = p.outer * p.inner * p.m * p.n;
  run.kernel("gemm_reduce", real)
      .args(part, e.bias, e.residual, c, static_cast<int>(p.n), total, static_cast<int>(splits), e.flags)
      .over_tiles(ceil_div(total, run.constant("gemm", "GEMM_REDUCE_BLOCK", real)), 1, 1, 256, 1);
}

// The same of one row, whose columns are shared by the threads that help.
template <class T>
void add_host_row(KernelCall& call, const HostProduct& product) {
  constexpr std::int64_t each = 64;  // columns of a unit
  call.on_host({.steps = 1, .products = static_cast<double>(product.n * product.k)}, ceil_div(product.n, each),
               [product](void* const* arrays, const double*, std::int64_t begin, std::int64_t end) {
                 const std::int64_t first = begin * each;
                 HostProduct part = product;
                 part.n = std::min(product.n, end * each) - first;
                 const auto at = [&](std::size_t i) {
                   return arrays[i] ? static_cast<T*>(arrays[i]) + first : nullptr;
                 };
                 host_product(part, static_cast<const T*>(arrays[0]),
                              static_cast<const T*>(arrays[1]) + first * product.b_col, at(2), at(3), at(4), 0, 1);
               });
}

// The host form of a small product of a cpu kernel, in one block of k; arrays are a, b, bias, residual, c.
template <class T>
void add_host_product(KernelCall& call, const HostProduct& product) {
  if (product.m * product.outer * product.inner == 1) return add_host_row<T>(call, product);
  const std::int64_t batch = product.outer * product.inner;
  const double rows = static_cast<double>(product.m * batch);
  call.on_host({.steps = rows, .products = rows * static_cast<double>(product.n * product.k)}, batch,
               [product](void* const* arrays, const double*, std::int64_t begin, std::int64_t end) {
                 host_product(product, static_cast<const T*>(arrays[0]), static_cast<const T*>(arrays[1]),
                              static_cast<const T*>(arrays[2]), static_cast<const T*>(arrays[3]),
                              static_cast<T*>(arrays[4]), begin, end);
               });
}
void offer_host_form(Launch& run, KernelCall& call, const Epilogues& e, const GemmProblem& p, Dtype real,
                     bool by_lanes) {
  const bool is_small = p.m * p.n <= kMostHostProducts && p.m * p.n * p.k <= kMostHostProducts &&
                        p.m * p.n * p.k * p.outer * p.inner <= kMostHostProducts;
  const bool is_row = by_lanes && p.m == 1 && p.outer * p.inner == 1 && p.n * p.k <= kMostHostRow;
  if (real != real_of(real) || (!is_small && !is_row)) return;
  HostProduct product{p.m,     p.n,     p.k,       p.a_row,   p.a_col,   p.b_row,  p.b_col,
                      p.outer, p.inner, p.a_outer, p.a_inner, p.b_outer, p.b_inner};
  product.accumulates = (e.flags & GEMM_ACCUMULATE) != 0;
  product.relu = (e.flags & GEMM_RELU) != 0;
  product.hard_swish = (e.flags & GEMM_HARD_SWISH) != 0;
  product.relu6 = (e.flags & GEMM_RELU6) != 0;
  product.by_lanes = by_lanes;
  product.width = run.device().vector_width(real);
  if (real == Dtype::f64)
    add_host_product<double>(call, product);
  else
    add_host_product<float>(call, product);
}

bool wants_dot(const GemmProblem& p) { return p.a_col == 1 && p.b_row == 1 && std::min(p.m, p.n) <= kDotLines; }

// A product whose kernel has been chosen.
struct GemmCase {
  Operand a, b, c;
  Epilogues e;
  GemmProblem p;
  Dtype real;
  std::int64_t batch() const { return p.outer * p.inner; }
};

// Adds the arguments behind the sizes, and the groups.
using GemmAdd = void (*)(Launch& run, KernelCall& call, const GemmCase& x);

// How each personality divides the work; host forms produce the same bytes as cpu kernels.
struct GemmTiling {
  GemmAdd dot, row, tiny;
  GemmTiles (*plan)(const Launch& run, const GemmProblem& p, Dtype real, Multiplies multiplied);
  void (*packed)(Launch& run, KernelCall& call, const GemmCase& x, const GemmTiles& t);
  // The kernel for a product with matrices of one type: another one than `gemm`, with tiles of its own.
  GemmTiles (*best)(const Launch& run, const GemmCase& x);
  bool has_panels;  // multiplies a B that was packed before
};

void add_dot(KernelCall& call, const GemmCase& x, std::int64_t rows, std::int64_t columns) {
  call.args(gemm_dot_tiles{i32_of(rows), i32_of(columns)}, x.e.flags).over_tiles(rows * columns, 1, x.batch(), 64, 1);
}
void cpu_dot(Launch& run, KernelCall& call, const GemmCase& x) {
  const GemmProblem& p = x.p;
  const std::int64_t vectors = ceil_div(p.k, run.device().vector_width(x.real));
  const std::int64_t rows = ceil_div(p.m, 4), columns = ceil_div(p.n, 4);
  const std::int64_t groups = std::clamp<std::int64_t>(p.m * p.n * x.batch() * vectors / kDotWork, 1, kMostDotGroups);
  const std::int64_t tiles = std::min(std::max(rows, columns), ceil_div(groups, x.batch()));
  const bool by_rows = rows > columns;
  add_dot(call, x, by_rows ? tiles : 1, by_rows ? 1 : tiles);
  offer_host_form(run, call, x.e, p, x.real, true);
}
void gpu_dot(Launch&, KernelCall& call, const GemmCase& x) { add_dot(call, x, ceil_div(x.p.m, 4), ceil_div(x.p.n, 4)); }

void cpu_row(Launch& run, KernelCall& call, const GemmCase& x) {
  // A value does not depend on the width, so it may follow from the cores.
  const std::int64_t vector = run.device().vector_width(x.real);
  const std::int64_t few = run.constant("gemm_small", "GEMM_ROW_FEW", x.real) * vector;
  const std::int64_t share = ceil_div(ceil_div(x.p.n, static_cast<std::int64_t>(run.cores())), few) * few;
  const std::int64_t width = std::min(share, run.constant("gemm_small", "GEMM_ROW_VECTORS", x.real) * vector);
  call.args(i32_of(width), x.e.flags).over_tiles(ceil_div(x.p.n, width), 1, x.batch());
}
void gpu_row(Launch& run, KernelCall& call, const GemmCase& x) {
  const std::int64_t items = run.constant("gemm_small", "GEMM_ROW_ITEMS", x.real);
  call.args(x.e.flags).over_tiles(ceil_div(x.p.n, items), 1, x.batch(), i32_of(items), 1);
}

void cpu_tiny(Launch&, KernelCall& call, const GemmCase& x) {
  const std::int64_t each = std::max<std::int64_t>(1, kTinyWork / (x.p.m * x.p.n * x.p.k));
  call.args(i32_of(x.batch()), i32_of(each), x.e.flags).over_tiles(ceil_div(x.batch(), each));
}
void gpu_tiny(Launch& run, KernelCall& call, const GemmCase& x) {
  const std::int64_t items = run.constant("gemm_small", "GEMM_ROW_ITEMS", x.real);
  call.args(i32_of(x.batch()), x.e.flags)
      .over_tiles(ceil_div(x.batch() * x.p.m * x.p.n, items), 1, 1, i32_of(items), 1);
}

void cpu_packed(Launch& run, KernelCall& call, const GemmCase& x, const GemmTiles& t) {
  const int flags = x.e.flags | (reads_a_in_place(x.p, x.real, multiplies(run, x.real)) ? GEMM_DIRECT_A : 0);
  call.args(gemm_shares{i32_of(t.rows), i32_of(t.columns), i32_of(t.split_k)}, flags);
  if (t.splits == 1 && x.p.k <= run.constant("gemm", "GEMM_KC", x.real) && (x.e.flags & GEMM_PANELS_B) == 0)
    offer_host_form(run, call, x.e, x.p, x.real, false);
}
void gpu_packed(Launch&, KernelCall& call, const GemmCase& x, const GemmTiles& t) {
  call.args(gemm_strips{i32_of(t.columns), i32_of(t.split_k)}, x.e.flags);
}

GemmTiles cpu_best(const Launch& run, const GemmCase& x) {
  return plan_cpu_tiles(run, x.p, x.real, multiplies(run, x.real));
}

// Rows and columns of at most so many values, by shape alone.
std::int64_t tiles_of(const GemmProblem& p, std::int64_t tile) {
  return ceil_div(p.m, tile) * ceil_div(p.n, tile) * p.outer * p.inner;
}

// By matrix units: the large tiles, where there are enough for a large GPU, else the small ones.
GemmTiles plan_matrix_tiles(const Launch& run, const GemmCase& x) {
  constexpr const char* kLarge[2][2] = {{"gemm_matrix_ll", "gemm_matrix_ld"}, {"gemm_matrix_dl", "gemm_matrix_dd"}};
  constexpr const char* kSmall[2][2] = {{"gemm_matrix_small_ll", "gemm_matrix_small_ld"},
                                        {"gemm_matrix_small_dl", "gemm_matrix_small_dd"}};
  const GemmProblem& p = x.p;
  const std::int64_t large = run.constant("gemm_matrix", "GEMM_MATRIX_TILE", x.real);
  const bool is_large = tiles_of(p, large) >= kEnoughLarge;
  const std::int64_t tile = is_large ? large : run.constant("gemm_matrix", "GEMM_MATRIX_SMALL_TILE", x.real);
  const std::size_t a_deep = p.a_col == 1 ? 1 : 0, b_deep = p.b_col == 1 ? 0 : 1;
  GemmTiles t = gpu_tiles(run, p, tile, tile);
  t.entry = (is_large ? kLarge : kSmall)[a_deep][b_deep];
  t.items_x = i32_of(run.constant("gemm_matrix", "GEMM_MATRIX_ITEMS", x.real));
  t.items_y = 1;
  return t;
}

GemmTiles gpu_best(const Launch& run, const GemmCase& x) {
  const GemmProblem& p = x.p;
  const bool has_rows = (p.a_row == 1 || p.a_col == 1) && (p.b_row == 1 || p.b_col == 1);
  if (has_rows && x.real != real_of(x.real) && run.device().has_ptx_mma()) return plan_matrix_tiles(run, x);
  GemmTiles t = plan_gpu_tiles(run, p, x.real, Multiplies::values);
  // Larger tiles where there are enough of them; the sums are the same.
  const std::int64_t tile = run.constant("gemm_wide", "GEMM_WIDE_TILE", x.real);
  if (2 * std::min(p.m, p.n) <= tile || tiles_of(p, tile) * t.splits < kEnoughLarge) return t;
  t.rows = ceil_div(p.m, tile);
  t.columns = ceil_div(p.n, tile);
  t.entry = "gemm_wide";
  return t;
}

constexpr PerPersonality<GemmTiling> kGemmTiling{
    {cpu_dot, cpu_row, cpu_tiny, plan_cpu_tiles, cpu_packed, cpu_best, true},
    {gpu_dot, gpu_row, gpu_tiny, plan_gpu_tiles, gpu_packed, gpu_best, false}};

// One row of A times lines of B that are contiguous.
bool wants_row(const GemmProblem& p) {
  return p.m == 1 && p.b_col == 1 && p.n * p.k >= kRowValues && (p.n >= kRowColumns || p.k <= kRowSum);
}

// The problem of the transposed result, which has the same layout if one of its sizes is 1.
GemmProblem transposed(const GemmProblem& p) {
  GemmProblem t = p;
  std::swap(t.m, t.n);
  t.a_row = p.b_col;
  t.a_col = p.b_row;
  t.b_row = p.a_col;
  t.b_col = p.a_row;
  std::swap(t.a_outer, t.b_outer);
  std::swap(t.a_inner, t.b_inner);
  return t;
}

bool wants_tiny(const Launch& run, const GemmProblem& p, Dtype real) {
  return p.outer * p.inner >= kTinyProducts && p.m <= kTinyRows &&
         p.n <= run.constant("gemm_small", "GEMM_TINY_COLUMNS", real) &&
         p.k <= run.constant("gemm_small", "GEMM_TINY_DEPTH", real) &&
         p.outer * p.inner * p.m * p.n * p.k > kMostHostProducts;
}

void launch_unpacked(Launch& run, const char* entry, const GemmCase& x, GemmAdd add) {
  KernelCall call = run.kernel(entry, x.real);
  call.args(x.a, x.b, x.e.bias, x.e.residual, x.c, sizes_of(x.p));
  add(run, call, x);
}

void launch_packed(Launch& run, const GemmCase& x) {
  const GemmTiling& tiling = run.pick(kGemmTiling);
  const GemmProblem& p = x.p;
  const GemmTiles t = tiling.best(run, x);
  const bool split = t.splits > 1;
  GemmCase one = x;
  if (split) one.e.flags &= GEMM_PANELS_B;
  const Operand part = split ? run.temp(t.splits * x.batch() * p.m * p.n, real_of(x.real)) : Launch::none();
  KernelCall call = run.kernel(t.entry, x.real);
  call.args(x.a, x.b, x.e.bias, x.e.residual, split ? Launch::none() : x.c, part, sizes_of(p));
  tiling.packed(run, call, one, t);
  call.over_tiles(t.rows * t.columns, t.splits, x.batch(), t.items_x, t.items_y);
  if (split) launch_reduce(run, part, x.e, x.c, p, t.splits, x.real);
}

void cpu_quantised(KernelCall& call, const GemmCase& x, const GemmTiles& t) {
  const int flags = x.e.flags | (reads_a_in_place(x.p, x.real, Multiplies::values) ? GEMM_DIRECT_A : 0);
  call.args(gemm_shares{i32_of(t.rows), i32_of(t.columns), i32_of(t.split_k)}, flags);
}
void gpu_quantised(KernelCall& call, const GemmCase& x, const GemmTiles& t) {
  call.args(gemm_strips{i32_of(t.columns), i32_of(t.split_k)}, x.e.flags);
}
constexpr PerPersonality<void (*)(KernelCall& call, const GemmCase& x, const GemmTiles& t)> kQuantised{cpu_quantised,
                                                                                                       gpu_quantised};

// quantised_few: rows of A up to which it pays (the GPU's kernel has as many sums), and columns that a group is worth.
constexpr std::int64_t kFewRows = 8, kFewColumns = 16, kFewGroupsOfACore = 4;

void cpu_few(Launch& run, KernelCall& call, const GemmCase& x) {
  // A value does not depend on the groups, so they may follow from the cores.
  const std::int64_t groups = kFewGroupsOfACore * static_cast<std::int64_t>(run.cores());
  const std::int64_t width = ceil_div(ceil_div(x.p.n, groups), kFewColumns) * kFewColumns;
  call.args(i32_of(width), x.e.flags).over_tiles(ceil_div(x.p.n, width));
}
void gpu_few(Launch& run, KernelCall& call, const GemmCase& x) {
  const std::int64_t items = run.constant("quantised", "QUANTISED_FEW_ITEMS", x.real);
  call.args(x.e.flags).over_tiles(x.p.n, 1, 1, i32_of(items), 1);
}
constexpr PerPersonality<void (*)(Launch& run, KernelCall& call, const GemmCase& x)> kQuantisedFew{cpu_few, gpu_few};

void require_sizes(const char* op, const GemmProblem& p) {
  require_ints(op, "m, n, k and batch", {p.m, p.n, p.k, p.outer * p.inner});
}

Epilogues epilogues_of(const Launch& run, Operand bias) {
  const Epilogue& asked = run.epilogue();
  Epilogues e{bias, asked.residual,
              (asked.relu ? GEMM_RELU : 0) | (asked.hard_swish ? GEMM_HARD_SWISH : 0) | (asked.relu6 ? GEMM_RELU6 : 0)};
  if (bias.kind != Operand::Kind::none) e.flags |= GEMM_BIAS;
  if (asked.residual.kind != Operand::Kind::none) e.flags |= GEMM_RESIDUAL;
  return e;
}

template <class T>
void record_native(Launch& run, Operand a, Operand b, Operand c, const GemmProblem& p) {
  run.host_call("gemm_eigen", {a, b}, {c}, [a, b, c, p](const std::function<void*(Operand)>& pointer) {
    const T* a0 = static_cast<const T*>(pointer(a));
    const T* b0 = static_cast<const T*>(pointer(b));
    T* c0 = static_cast<T*>(pointer(c));
    for (std::int64_t o = 0; o < p.outer; ++o)
      for (std::int64_t i = 0; i < p.inner; ++i)
        gemm_native(a0 + o * p.a_outer + i * p.a_inner, b0 + o * p.b_outer + i * p.b_inner,
                    c0 + (o * p.inner + i) * p.m * p.n, p);
  });
}

// PoCL's name: gemm_pack.clh says why it alone.
constexpr std::string_view kHasPanels = "Portable Computing Language";

// b [K, N] -> its packed panels, as one line
class Panels final : public Op {
 public:
  Panels() : Op({.takes_strides = {0}}) {}
  std::string_view name() const override { return "gemm_panels"; }
  void launch(Launch& run) const override {
    const Shape& b = run.src_shape(0);
    const Strides strides = run.src_strides(0);
    GemmProblem p;
    p.m = 1;
    p.k = b[0];
    p.n = b[1];
    p.b_row = strides[0];
    p.b_col = strides[1];
    const Dtype real = run.dst_dtype();
    run.kernel("gemm_panels", real)
        .args(run.src(0), run.dst(), sizes_of(p))
        .over_tiles(ceil_div(p.n, run.constant("gemm", "GEMM_NR", real)));
  }
};

}  // namespace

GemmProvider gemm_provider(const EngineOptions& options) {
  if (options.gemm != GemmProvider::automatic) return options.gemm;
  const char* word = std::getenv("SAMEBYTES_GEMM");
  const std::string_view text = word ? word : "";
  if (text.empty() || text == "automatic") return GemmProvider::automatic;
  if (text == "packed") return GemmProvider::packed;
  if (text == "clblast") return GemmProvider::clblast;
  if (text == "eigen") return GemmProvider::eigen;
  throw ArgumentError("SAMEBYTES_GEMM: expected automatic, packed, clblast or eigen, got \"" + std::string(text) +
                      "\"");
}

bool gemm_takes_panels(const Launch& run, const GemmProblem& p, Dtype real) {
  constexpr std::int64_t kLeastRows = 8, kMostRows = 256;  // packing takes 16 / m of a product's time or less
  return run.pick(kGemmTiling).has_panels && real == real_of(real) && p.m >= kLeastRows && p.m <= kMostRows &&
         p.n > kDotLines && p.outer * p.inner == 1 && run.device().info().platform == kHasPanels &&
         gemm_provider(run.node().context->options) == GemmProvider::automatic &&
         (real != f32 || run.choice("gemm", gemm_shape_class(p), "provider") != 1);
}

Array gemm_panels(const Launch& run, const Array& b) {
  const Dtype real = b.dtype();
  const std::int64_t columns = run.constant("gemm", "GEMM_NR", real);
  const Shape shape{ceil_div(b.shape()[1], columns) * b.shape()[0] * columns};
  static const OpPtr op = make_op<Panels>();
  return make_array(op, shape, real, std::span(&b, 1));
}

void launch_gemm_panels(Launch& run, Operand a, Operand panels, Operand bias, Operand c, const GemmProblem& p,
                        Dtype real) {
  require_sizes("matmul", p);
  Epilogues e = epilogues_of(run, bias);
  e.flags |= GEMM_PANELS_B;
  GemmProblem own = p;
  own.b_row = own.b_col = 0;
  launch_packed(run, {a, panels, c, e, own, real});
}

std::string_view gemm_shape_class(const GemmProblem& p) {
  constexpr std::int64_t kThin = 32, kSmall = std::int64_t{1} << 24;
  if (p.outer * p.inner > 1) return "batched";
  if (std::min(p.m, p.n) <= kThin) return "thin";
  if (p.k >= 2 * std::max(p.m, p.n)) return "deep";
  return p.m * p.n <= kSmall / p.k ? "small" : "large";
}

bool gemm_is_blas(const GemmProblem& p) {
  const auto holds = [](std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols) {
    return (col == 1 && row >= cols) || (row == 1 && col >= rows);
  };
  return holds(p.a_row, p.a_col, p.m, p.k) && holds(p.b_row, p.b_col, p.k, p.n);
}

void launch_gemm(Launch& run, Operand a, Operand b, Operand bias, Operand c, const GemmProblem& p, Dtype real,
                 bool accumulates) {
  require_sizes("matmul", p);
  Epilogues e = epilogues_of(run, bias);
  if (accumulates) e.flags |= GEMM_ACCUMULATE;
  GemmProvider provider = gemm_provider(run.node().context->options);
  if (provider == GemmProvider::automatic && real == f32 && run.choice("gemm", gemm_shape_class(p), "provider") == 1)
    provider = GemmProvider::clblast;
  const bool elsewhere = (provider == GemmProvider::clblast || provider == GemmProvider::eigen) && gemm_is_blas(p) &&
                         real == real_of(real);
  if (!elsewhere) {
    const GemmCase x{a, b, c, e, p, real}, flipped{b, a, c, e, transposed(p), real};
    const GemmTiling& tiling = run.pick(kGemmTiling);
    if (wants_tiny(run, p, real))
      launch_unpacked(run, "gemm_small_batch", x, tiling.tiny);
    else if (wants_dot(p))
      launch_unpacked(run, "gemm_dot", x, tiling.dot);
    else if (wants_row(p))
      launch_unpacked(run, "gemm_small_row", x, tiling.row);
    else if (wants_row(flipped.p) && bias.kind == Operand::Kind::none)
      launch_unpacked(run, "gemm_small_row", flipped, tiling.row);
    else
      launch_packed(run, x);
    return;
  }
  const Operand to = e.flags != 0 ? run.temp(p.outer * p.inner * p.m * p.n, real) : c;
  if (provider == GemmProvider::clblast)
    launch_gemm_clblast(run, a, b, to, p, real);
  else if (real == Dtype::f64)
    record_native<double>(run, a, b, to, p);
  else
    record_native<float>(run, a, b, to, p);
  if (e.flags != 0) launch_reduce(run, to, e, c, p, 1, real);
}

void launch_gemm_quantised(Launch& run, Operand a, Operand blocks, Operand bias, Operand c, const GemmProblem& p,
                           Dtype real, const quantised_rows& rows) {
  require_sizes("quantised_linear", p);
  const GemmCase whole{a, blocks, c, epilogues_of(run, bias), p, real};
  if (p.m <= kFewRows && p.a_col == 1 && real == f32 && rows.is_transposed == 0) {
    KernelCall call = run.kernel("quantised_few", real);
    call.args(a, blocks, bias, whole.e.residual, c, rows, sizes_of(p));
    run.pick(kQuantisedFew)(run, call, whole);
    return;
  }
  const GemmTiles t = run.pick(kGemmTiling).plan(run, p, real, Multiplies::values);
  const bool split = t.splits > 1;
  GemmCase one = whole;
  if (split) one.e.flags = 0;
  const Operand part = split ? run.temp(t.splits * p.m * p.n, real_of(real)) : Launch::none();
  KernelCall call = run.kernel("quantised_product", real);
  call.args(a, blocks, bias, whole.e.residual, split ? Launch::none() : c, part, rows, sizes_of(p));
  run.pick(kQuantised)(call, one, t);
  call.over_tiles(t.rows * t.columns, t.splits);
  if (split) launch_reduce(run, part, whole.e, c, p, t.splits, real);
}

}  // namespace samebytes::detail
