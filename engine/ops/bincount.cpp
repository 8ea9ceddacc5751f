// bincount: how often each number occurs (kernels: cl/*/bincount.cl).
#include <algorithm>
#include <limits>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "ops/dtypes.h"
#include "ops/indexing.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

// Into how many tables the numbers are counted: each takes at least so many numbers, and more than it costs to add up.
constexpr std::int64_t kNumbersOfPart = 16384, kNumbersOfBin = 8, kMostParts = 64;
// Where four tables for each part lie in the first-level cache.
constexpr std::int64_t kMostBinsOfFour = 2048;
constexpr PerPersonality<std::int64_t> kTables{4, 1};

class Bincount final : public Op {
 public:
  std::string_view name() const override { return "bincount"; }
  void hash(Hasher&) const override {}
  void launch(Launch& run) const override {
    const std::int64_t n = run.src_shape(0).size(), bins = run.dst_shape().size();
    const std::int64_t least = std::max(kNumbersOfPart, kNumbersOfBin * bins);
    const std::int64_t parts = std::clamp<std::int64_t>(n / least, 1, kMostParts);
    const std::int64_t tables = bins <= kMostBinsOfFour ? run.pick(kTables) : 1, rows = parts * tables;
    const Operand counts = rows == 1 ? run.dst() : run.temp(rows * bins, i32);
    constexpr int kItems = 256;  // BINCOUNT_ITEMS of cl/gpu/bincount.cl
    run.kernel("bincount_parts")
        .args(run.src(0), counts, n, i32_of(bins), ceil_div(n, parts))
        .cpu_args(i32_of(tables))
        .over_rows(parts, kItems);
    if (rows > 1) run.kernel("bincount_merge").args(counts, run.dst(), rows, bins).over_elements(bins);
  }
  std::vector<Array> gradient(const GradientRequest&) const override { return {}; }
};

}  // namespace
}  // namespace detail

Array bincount(const Input& ids, std::int64_t bins) {
  detail::require(ids.defined() && detail::is_label(ids.dtype()), "bincount", "needs i32, i64 or u8 numbers", ids,
                  "ids");
  if (bins < 0 || bins >= std::numeric_limits<std::int32_t>::max())
    throw ArgumentError("bincount: bins must be 0 or more and fit i32, got " + std::to_string(bins));
  if (bins == 0 || ids.size() == 0) return zeros({bins}, i32);
  const Array inputs[] = {detail::as_i32(ids)};
  return detail::make_array(detail::make_op<detail::Bincount>(), Shape{bins}, i32, inputs);
}

}  // namespace samebytes
