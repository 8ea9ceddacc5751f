// Updates with layer-wise trust ratios over a flat arena. Kernels: cl/*/trust.cl.
#include "ops/trust.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "shared/arena.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kTrustUnit = TRUST_UNIT;
constexpr std::int64_t kChunkElements = 8192;    // a few microseconds of work
constexpr std::int64_t kChunksOfSegment = 1024;  // at most: each chunk adds up the sums of all
constexpr std::int64_t kTableColumns = 4;        // of the table
constexpr int kTrustGroup = 256;                 // TRUST_GROUP

constexpr int kInputs = 5;  // of each op that overwrites cells; control is one more

std::int64_t chunks_of(const Shape& table) { return table[0]; }

std::vector<Array> no_gradient(const char* op) { throw ArgumentError(std::string(op) + " has no gradient"); }

// p and gradient are of the whole arena, of which the table's segments begin at `first`; momentum and moments begin
// there.
class OfShare : public Op {
 public:
  explicit OfShare(std::int64_t first, OpTraits traits = {}) : Op(std::move(traits)), first_(first) {}
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(first_)); }

 protected:
  Operand share(Operand whole) const { return whole.from(first_); }

 private:
  std::int64_t first_;
};

// Inputs 3 and 4 are cells, in which results 1 and 2 lie.
const OpTraits kSecondAndThird{.is_state = {3, 4}, .in_place = {.result = 1, .input = 3}};

// Sums of squares of a and b: inputs a, b, table; result [2, chunks].
class TrustNorms final : public OfShare {
 public:
  using OfShare::OfShare;
  std::string_view name() const override { return "trust_norms"; }
  void launch(Launch& run) const override {
    const std::int64_t chunks = chunks_of(run.src_shape(2));
    run.kernel("trust_norms", run.dst_dtype())
        .args(share(run.src(0)), share(run.src(1)), run.src(2), run.dst(), chunks)
        .over_rows(chunks, kTrustGroup);
  }
};

// Inputs gradient, parts, table and the cells p and b; results ratios [chunks], p and b. Scalars as in LarsStep.
class TrustLars final : public OfShare {
 public:
  TrustLars(std::int64_t first, bool nesterov) : OfShare(first, kSecondAndThird), nesterov_(nesterov) {}
  std::string_view name() const override { return "lars_update"; }
  void hash(Hasher& hasher) const override {
    OfShare::hash(hasher);
    hasher.add(std::uint64_t{nesterov_});
  }
  void launch(Launch& run) const override {
    const std::int64_t chunks = chunks_of(run.src_shape(2));
    run.kernel("trust_lars", run.dst_dtype())
        .args(share(run.src(0)), run.src(1), run.src(2), run.dst(0), share(run.dst(1)), run.dst(2), chunks,
              DynamicReal{0}, DynamicReal{1}, DynamicReal{2}, DynamicReal{3}, DynamicReal{4}, int{nesterov_},
              run.optional_src(kInputs), int{run.src_count() > kInputs})
        .over_rows(chunks, kTrustGroup);
  }
  std::vector<Array> gradient(const GradientRequest&) const override { return no_gradient("lars_update"); }

 private:
  bool nesterov_;
};

// Inputs p, gradient, table and the cells m and v; results parts, m and v.
class TrustLambMoments final : public OfShare {
 public:
  explicit TrustLambMoments(std::int64_t first) : OfShare(first, kSecondAndThird) {}
  std::string_view name() const override { return "lamb_moments"; }
  void launch(Launch& run) const override {
    const std::int64_t chunks = chunks_of(run.src_shape(2));
    run.kernel("trust_lamb_moments", run.dst_dtype())
        .args(share(run.src(0)), share(run.src(1)), run.src(2), run.dst(0), run.dst(1), run.dst(2), chunks,
              DynamicReal{0}, DynamicReal{1}, DynamicReal{2}, DynamicReal{3}, DynamicReal{4}, DynamicReal{5},
              DynamicReal{6}, DynamicReal{7}, run.optional_src(kInputs), int{run.src_count() > kInputs})
        .over_rows(chunks, kTrustGroup);
  }
  std::vector<Array> gradient(const GradientRequest&) const override { return no_gradient("lamb_update"); }
};

// Inputs the cells m and v, parts, table and the cell p; result p. m and v are read as the launch that made the parts
// left them.
class TrustLamb final : public OfShare {
 public:
  explicit TrustLamb(std::int64_t first)
      : OfShare(first, {.is_state = {0, 1, 4}, .in_place = {.result = 0, .input = 4}}) {}
  std::string_view name() const override { return "lamb_update"; }
  void launch(Launch& run) const override {
    const std::int64_t chunks = chunks_of(run.src_shape(3));
    run.kernel("trust_lamb", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.src(3), share(run.dst()), chunks, DynamicReal{0}, DynamicReal{1},
              DynamicReal{2}, DynamicReal{3}, DynamicReal{4}, run.optional_src(kInputs), int{run.src_count() > kInputs})
        .over_rows(chunks, kTrustGroup);
  }
  std::vector<Array> gradient(const GradientRequest&) const override { return no_gradient("lamb_update"); }
};

void require_flat(const char* op, const TrustSegments& segments, const Array& p, std::initializer_list<Array> cells,
                  const Array& gradient) {
  const auto check = [&](const Array& cell, std::int64_t size) {
    require(is_cell(cell) && (cell.dtype() == f32 || cell.dtype() == f64) && cell.shape() == Shape{size} &&
                cell.dtype() == p.dtype(),
            op, "needs flat cells of one type, f32 or f64, as long as the segments", cell, "cell");
  };
  check(p, segments.n());
  for (const Array& cell : cells) check(cell, segments.end() - segments.begin());
  require(gradient.defined() && gradient.shape() == p.shape() && gradient.dtype() == p.dtype(), op,
          "needs a gradient of the shape and type of the cells", gradient, "gradient");
}

void require_control(const char* op, const Array& control, std::int64_t size, Dtype dtype) {
  const std::string need = "needs control of the cells' type and " + std::to_string(size) + " elements";
  if (control.defined())
    require(control.shape() == Shape{size} && control.dtype() == dtype, op, need.c_str(), control, "control");
}

// The inputs of an op, followed by control if it is defined.
std::vector<Array> with_control(std::initializer_list<Array> inputs, const Array& control) {
  std::vector<Array> all(inputs);
  if (control.defined()) all.push_back(control);
  return all;
}

}  // namespace

TrustSegments::TrustSegments(std::span<const std::int64_t> offsets, std::span<const std::int64_t> sizes, std::int64_t n)
    : TrustSegments(offsets, sizes, n, 0, n) {}

TrustSegments::TrustSegments(std::span<const std::int64_t> offsets, std::span<const std::int64_t> sizes, std::int64_t n,
                             std::int64_t begin, std::int64_t end)
    : n_(n), begin_(begin), end_(end) {
  if (begin < 0 || end < begin || end > n || begin % kTrustUnit != 0 || end % kTrustUnit != 0)
    throw ArgumentError("trust_segments: a share must begin and end at multiples of 16 within " + std::to_string(n) +
                        " elements, got [" + std::to_string(begin) + ", " + std::to_string(end) + ")");
  if (offsets.empty() || offsets.size() != sizes.size() || n % kTrustUnit != 0)
    throw ArgumentError("trust_segments: expected one size per offset and a length that is a multiple of 16, got " +
                        std::to_string(offsets.size()) + " offsets, " + std::to_string(sizes.size()) +
                        " sizes and length " + std::to_string(n));
  std::vector<std::int32_t> table;
  std::int64_t before = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t units = ceil_div(sizes[i], kTrustUnit);
    if (offsets[i] < before || offsets[i] % kTrustUnit != 0 || sizes[i] < 0 || offsets[i] + sizes[i] > n)
      throw ArgumentError("trust_segments: segments must rise without overlap in steps of 16 within " +
                          std::to_string(n) + " elements, got " + std::to_string(offsets[i]));
    before = offsets[i] + units * kTrustUnit;
    if (before <= begin || offsets[i] >= end) continue;
    if (offsets[i] < begin || before > end)
      throw ArgumentError("trust_segments: the share [" + std::to_string(begin) + ", " + std::to_string(end) +
                          ") cuts the segment at " + std::to_string(offsets[i]));
    const std::int64_t length = std::max(kChunkElements / kTrustUnit, ceil_div(units, kChunksOfSegment));
    const auto first = static_cast<std::int32_t>(table.size() / kTableColumns);
    const auto count = static_cast<std::int32_t>(ceil_div(units, length));
    for (std::int64_t at = 0; at < units; at += length)
      table.insert(table.end(), {static_cast<std::int32_t>((offsets[i] - begin) / kTrustUnit + at),
                                 static_cast<std::int32_t>(std::min(length, units - at)), first, count});
  }
  const auto chunks = static_cast<std::int64_t>(table.size()) / kTableColumns;
  table_ = array(std::span<const std::int32_t>(table), Shape{chunks, kTableColumns});
}

Array lars_update(const Array& p, const Array& momentum_buffer, const Array& gradient, const TrustSegments& segments,
                  const LarsStep& step, const Array& control) {
  require_flat("lars_update", segments, p, {momentum_buffer}, gradient);
  require_control("lars_update", control, 1, p.dtype());
  const Array& table = segments.table();
  if (table.size() == 0) return zeros({0}, p.dtype());
  const Array read[] = {p, gradient, table};
  const Array parts = make_array(make_op<TrustNorms>(segments.begin()), Shape{2, table.shape()[0]}, p.dtype(), read);
  const std::vector<Array> inputs = with_control({gradient, parts, table, p, momentum_buffer}, control);
  const Result results[] = {
      {Shape{table.shape()[0]}, p.dtype()}, {p.shape(), p.dtype()}, {momentum_buffer.shape(), p.dtype()}};
  return make_arrays(make_op<TrustLars>(segments.begin(), step.nesterov), results, inputs,
                     {step.rate, step.momentum, step.weight_decay, step.trust, step.eps})[0];
}

Array lamb_update(const Array& p, const Array& moment1, const Array& moment2, const Array& gradient,
                  const TrustSegments& segments, const LambStep& step, const Array& control) {
  require_flat("lamb_update", segments, p, {moment1, moment2}, gradient);
  require_control("lamb_update", control, 3, p.dtype());
  const Array& table = segments.table();
  if (table.size() == 0) return p;
  const double scale1 = 1.0 / step.correction1, scale2 = 1.0 / std::sqrt(step.correction2);
  const Result flat{moment1.shape(), p.dtype()};
  const Result results[] = {{Shape{2, table.shape()[0]}, p.dtype()}, flat, flat};
  const std::vector<Array> inputs = with_control({p, gradient, table, moment1, moment2}, control);
  const Array parts = make_arrays(
      make_op<TrustLambMoments>(segments.begin()), results, inputs,
      {step.beta1, 1.0 - step.beta1, step.beta2, 1.0 - step.beta2, scale1, scale2, step.eps, step.weight_decay})[0];
  const std::vector<Array> read = with_control({moment1, moment2, parts, table, p}, control);
  return make_array(make_op<TrustLamb>(segments.begin()), p.shape(), p.dtype(), read,
                    {step.rate, scale1, scale2, step.eps, step.weight_decay});
}

}  // namespace samebytes::detail
