// Chooses the provider of a matrix product and plans the tiles of the packed one (kernels: cl/*/gemm.cl).
#include "ops/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

constexpr int kBias = 2;  // GEMM_BIAS of gemm.cl

// All of it depends on the shape only, so results do not change with the number of threads.
constexpr std::int64_t kEnoughGroups = 16;  // four to eight per core of a small machine
constexpr std::int64_t kEnoughGpuGroups = 128;
constexpr std::int64_t kMostRowTiles = 12;  // of the register tile, per group
constexpr std::int64_t kLeastRowTiles = 2;  // fewer would pack B for too little work
constexpr std::int64_t kSplitFrom = 1024;   // a k below this is not split
constexpr std::int64_t kLeastSplit = 512;
constexpr std::int64_t kSplitStep = 256;  // GEMM_KC: a split keeps the blocks of the whole sum

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct GemmTiles {
  std::int64_t tile_m, tile_n, split_k, splits;
};

GemmTiles plan_tiles(const Launch& run, const GemmProblem& p, Dtype real) {
  GemmTiles t{};
  const std::int64_t batch = p.outer * p.inner;
  const auto groups = [&] { return ceil_div(p.m, t.tile_m) * ceil_div(p.n, t.tile_n) * batch; };
  std::int64_t enough = kEnoughGpuGroups;
  if (run.is_cpu()) {
    enough = kEnoughGroups;
    const std::int64_t mr = run.constant("gemm", "GEMM_MR", real), nr = run.constant("gemm", "GEMM_NR", real);
    t.tile_m = std::min(ceil_div(p.m, mr), kMostRowTiles) * mr;
    t.tile_n = std::min(ceil_div(p.n, nr) * nr, run.constant("gemm", "GEMM_NC", real));
    while (groups() < enough && (t.tile_m > kLeastRowTiles * mr || t.tile_n > nr)) {
      if (t.tile_n > nr && (t.tile_n >= t.tile_m || t.tile_m <= kLeastRowTiles * mr))
        t.tile_n = ceil_div(t.tile_n / nr, 2) * nr;
      else
        t.tile_m = ceil_div(t.tile_m / mr, 2) * mr;
    }
  } else {
    t.tile_m = run.constant("gemm", "GEMM_TILE_M", real);
    t.tile_n = run.constant("gemm", "GEMM_TILE_N", real);
  }
  t.split_k = p.k;
  if (groups() < enough && p.k >= kSplitFrom)
    t.split_k = std::max(kLeastSplit, ceil_div(ceil_div(p.k, enough / groups() + 1), kSplitStep) * kSplitStep);
  t.splits = ceil_div(p.k, t.split_k);
  return t;
}

void launch_reduce(Launch& run, Operand part, Operand bias, Operand c, const GemmProblem& p, std::int64_t splits,
                   int flags, Dtype real) {
  const std::int64_t total = p.outer * p.inner * p.m * p.n;
  run.kernel("gemm_reduce", real)
      .args(part, bias, c, static_cast<int>(p.n), total, static_cast<int>(splits), flags)
      .over_tiles(ceil_div(total, run.constant("gemm", "GEMM_REDUCE_BLOCK", real)), 1, 1, 256, 1);
}

void launch_packed(Launch& run, Operand a, Operand b, Operand bias, Operand c, const GemmProblem& p, int flags,
                   Dtype real) {
  const GemmTiles t = plan_tiles(run, p, real);
  const std::int64_t batch = p.outer * p.inner;
  const bool split = t.splits > 1;
  const Operand to = split ? run.temp(t.splits * batch * p.m * p.n, real) : c;
  run.kernel("gemm", real)
      .args(a, b, bias, to, static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), p.a_row, p.a_col,
            p.b_row, p.b_col, static_cast<int>(p.inner), p.a_outer, p.a_inner, p.b_outer, p.b_inner,
            static_cast<int>(t.tile_m), static_cast<int>(t.tile_n), static_cast<int>(t.split_k), split ? 0 : flags)
      .over_tiles(ceil_div(p.m, t.tile_m) * ceil_div(p.n, t.tile_n), t.splits, batch);
  if (split) launch_reduce(run, to, bias, c, p, t.splits, flags, real);
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

}  // namespace

GemmProvider gemm_provider(const EngineOptions& options) {
  if (options.gemm != GemmProvider::automatic) return options.gemm;
  const char* word = std::getenv("SAMEBYTES_GEMM");
  const std::string_view text = word ? word : "";
  if (text.empty() || text == "automatic") return GemmProvider::automatic;
  if (text == "packed") return GemmProvider::packed;
  if (text == "clblast") return GemmProvider::clblast;
  if (text == "eigen") return GemmProvider::eigen;
  throw ArgumentError("SAMEBYTES_GEMM: needs automatic, packed, clblast or eigen, \"" + std::string(text) + "\" came");
}

bool gemm_is_blas(const GemmProblem& p) {
  const auto holds = [](std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols) {
    return (col == 1 && row >= cols) || (row == 1 && col >= rows);
  };
  return holds(p.a_row, p.a_col, p.m, p.k) && holds(p.b_row, p.b_col, p.k, p.n);
}

void launch_gemm(Launch& run, Operand a, Operand b, Operand bias, Operand c, const GemmProblem& p, Dtype real) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (p.m > most || p.n > most || p.k > most || p.outer * p.inner > most)
    throw ArgumentError("matmul: sizes must fit 31 bits, m, n, k and batch are " + std::to_string(p.m) + ", " +
                        std::to_string(p.n) + ", " + std::to_string(p.k) + ", " + std::to_string(p.outer * p.inner));
  const bool has_bias = bias.kind != Operand::Kind::none;
  const int flags = has_bias ? kBias : 0;
  const GemmProvider provider = gemm_provider(run.node().context->options);
  const bool elsewhere = (provider == GemmProvider::clblast || provider == GemmProvider::eigen) && gemm_is_blas(p);
  if (!elsewhere) {
    launch_packed(run, a, b, bias, c, p, flags, real);
    return;
  }
  const Operand to = has_bias ? run.temp(p.outer * p.inner * p.m * p.n, real) : c;
  if (provider == GemmProvider::clblast)
    launch_gemm_clblast(run, a, b, to, p, real);
  else if (real == Dtype::f64)
    record_native<double>(run, a, b, to, p);
  else
    record_native<float>(run, a, b, to, p);
  if (has_bias) launch_reduce(run, to, bias, c, p, 1, flags, real);
}

}  // namespace samebytes::detail
