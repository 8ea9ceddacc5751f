// cumsum and cumprod. Long sums go in parts whose totals are summed the same way. Kernels: cl/*/scan.cl.
#include <algorithm>
#include <string>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/host.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "samebytes/ops/sorting.h"

namespace samebytes {

namespace detail {
namespace {

// The host has the order of sums of the cpu kernels.
constexpr PerPersonality<bool> kAddsInOrder{true, false};
bool is_small(const Around& at) { return at.outer * at.depth * at.inner <= kMostHostReduced; }

// Each element waits for the one before: as much as a handful of others.
template <class T>
void add_host_scan(KernelCall& call, const HostScan& scan, void (*run)(const HostScan&, const T*, T*)) {
  constexpr double kAsMany = 16;
  const std::int64_t values = scan.outer * scan.depth * scan.inner;
  call.on_host({.steps = static_cast<double>(scan.outer), .values = kAsMany * static_cast<double>(values)},
               [scan, run](void* const* arrays, const double*) {
                 run(scan, static_cast<const T*>(arrays[0]), static_cast<T*>(arrays[1]));
               });
}

void launch_sums(Launch& run, Operand src, Operand dst, const Around& at, bool reversed, bool exclusive, Dtype dtype) {
  const Dtype real = real_of(dtype);
  const std::string suffix = is_floating(dtype) ? "real" : std::string(name_of(dtype));
  const std::int64_t chunk = run.constant("scan", "SCAN_CHUNK", real), tile = run.constant("scan", "SCAN_TILE", real);
  const std::int64_t parts = (at.depth + chunk - 1) / chunk;
  const std::int64_t groups = at.outer * parts * ((at.inner + tile - 1) / tile);
  constexpr std::int64_t kShort = 256;  // gpu: up to here 64 items have enough to do
  const int group = at.inner > 1 || at.depth <= kShort ? 64 : 256;
  const bool is_whole = parts == 1;
  const std::int64_t sums = at.outer * parts * at.inner;
  const Operand totals = is_whole ? Launch::none() : run.temp(sums, dtype);
  KernelCall call = run.kernel("scan_parts_" + suffix, real);
  call.args(src, dst, totals, at.depth, at.inner, int{reversed}, int{exclusive}).over_rows(groups, group);
  const HostScan scan{at.outer, at.depth, at.inner, reversed, exclusive};
  if (is_whole && run.pick(kAddsInOrder) && is_small(at)) {
    if (dtype == f32) add_host_scan<float>(call, scan, host_sums<float>);
    if (dtype == f64) add_host_scan<double>(call, scan, host_sums<double>);
    if (dtype == i32) add_host_scan<std::int32_t>(call, scan, host_sums<std::int32_t>);
    if (dtype == i64) add_host_scan<std::int64_t>(call, scan, host_sums<std::int64_t>);
  }
  if (is_whole) return;
  const Operand offsets = run.temp(sums, dtype);
  Around of_parts = at;
  of_parts.depth = parts;
  launch_sums(run, totals, offsets, of_parts, false, true, dtype);
  run.kernel("scan_offsets_" + suffix, real)
      .args(dst, offsets, at.depth, at.inner, int{reversed})
      .over_rows(groups, group);
}

class Cumsum final : public Op, public Written {
 public:
  Cumsum(int axis, bool reversed) : axis_(axis), reversed_(reversed) {}
  std::string_view name() const override { return "cumsum"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(axis_) << 1 | std::uint64_t{reversed_});
  }
  void launch(Launch& run) const override {
    launch_sums(run, run.src(0), run.dst(), Around(run.dst_shape(), axis_), reversed_, false, run.dst_dtype());
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array& dy = request.dy[0];
    return {make_array(make_op<Cumsum>(axis_, !reversed_), dy.shape(), dy.dtype(), std::span<const Array>(&dy, 1))};
  }
  void write(NodeWriter& w) const override {
    w.give(w.put("CumSum", {w.in(0), w.ints({axis_})}, {{"reverse", std::int64_t{reversed_}}}));
  }

 private:
  int axis_;
  bool reversed_;
};

// Inputs src, the result, dy.
class CumprodBackward final : public Op {
 public:
  explicit CumprodBackward(int axis) : axis_(axis) {}
  std::string_view name() const override { return "cumprod_backward"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }
  void launch(Launch& run) const override {
    const Around at(run.dst_shape(), axis_);
    run.kernel("scan_product_bwd", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.dst(), at.outer, at.depth, at.inner)
        .over_elements(at.outer * at.inner);
  }

 private:
  int axis_;
};

class Cumprod final : public Op {
 public:
  explicit Cumprod(int axis) : axis_(axis) {}
  std::string_view name() const override { return "cumprod"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }
  void launch(Launch& run) const override {
    const Around at(run.dst_shape(), axis_);
    KernelCall call = run.kernel("scan_product", run.dst_dtype());
    call.args(run.src(0), run.dst(), at.outer, at.depth, at.inner).over_elements(at.outer * at.inner);
    const HostScan scan{.outer = at.outer, .depth = at.depth, .inner = at.inner};
    if (!is_small(at)) return;
    if (run.dst_dtype() == f32) add_host_scan<float>(call, scan, host_products<float>);
    if (run.dst_dtype() == f64) add_host_scan<double>(call, scan, host_products<double>);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array inputs[] = {request.src[0], request.dst[0], request.dy[0]};
    return {make_array(make_op<CumprodBackward>(axis_), inputs[0].shape(), inputs[0].dtype(), inputs)};
  }

 private:
  int axis_;
};

int scan_axis(const char* op, const Array& a, int axis) {
  require(a.defined(), op, "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError(std::string(op) + ": axis " + std::to_string(axis) + " is out of range for src " + describe(a));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace
}  // namespace detail

const detail::CastRow kCumsumCast{"cumsum", CastRule::keep_f32};
Array cumsum(const Input& a, int axis) {
  if (const detail::Casts cast(kCumsumCast); cast) return cumsum(cast(a), axis);
  axis = detail::scan_axis("cumsum", a, axis);
  if (a.dtype() == f16 || a.dtype() == bf16) return astype(cumsum(astype(a, f32), axis), a.dtype());
  if (a.dtype() == u8 || a.dtype() == bool_) return cumsum(astype(a, i32), axis);
  return detail::make_array(detail::make_op<detail::Cumsum>(axis, false), a.shape(), a.dtype(),
                            std::span<const Array>(&a.array(), 1));
}

const detail::CastRow kCumprodCast{"cumprod", CastRule::keep_f32};
Array cumprod(const Input& a, int axis) {
  if (const detail::Casts cast(kCumprodCast); cast) return cumprod(cast(a), axis);
  axis = detail::scan_axis("cumprod", a, axis);
  detail::require(is_floating(a.dtype()), "cumprod", "needs a floating array", a, "src");
  if (a.dtype() == f16 || a.dtype() == bf16) return astype(cumprod(astype(a, f32), axis), a.dtype());
  return detail::make_array(detail::make_op<detail::Cumprod>(axis), a.shape(), a.dtype(),
                            std::span<const Array>(&a.array(), 1));
}

}  // namespace samebytes
