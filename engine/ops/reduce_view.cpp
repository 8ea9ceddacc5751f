// Reductions of what does not lie densely, or is u8 or bool: read in place, in one launch and, where the reduced axes
// are long, one more for their parts. Results along an axis of stride 0 are made once and then spread. Kernels:
// cl/*/reduce_view.cl.
#include <algorithm>
#include <string>
#include <vector>

#include "ops/reduce.h"
#include "ops/sizes.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kMostPerPart = 32768;  // of a result, where there are few results
constexpr std::int64_t kLeastPerPart = 1024;
constexpr int kMostStridedAxes = 4;  // of each kind, as the kernels take them
constexpr int kStridedItems = 64;    // REDUCE_VIEW_ITEMS of cl/gpu/reduce_view.cl

// Results of a group, each of which sums `each` values.
constexpr PerPersonality<std::int64_t (*)(std::int64_t each)> kResultsPerGroup{
    [](std::int64_t each) { return ceil_div(std::max<std::int64_t>(1, kMostPerPart / each), 16) * 16; },
    [](std::int64_t each) -> std::int64_t { return each >= kStridedItems ? 1 : kStridedItems; }};

struct StridedAxis {
  std::int64_t size, stride;
};
using StridedAxes = std::vector<StridedAxis>;

std::int64_t product_of(const StridedAxes& axes) {
  std::int64_t n = 1;
  for (const StridedAxis& axis : axes) n *= axis.size;
  return n;
}

// Neighbours that are walked along as one.
StridedAxes merged_axes(const StridedAxes& axes) {
  StridedAxes result;
  for (const StridedAxis& axis : axes) {
    if (!result.empty() && result.back().stride == axis.stride * axis.size)
      result.back() = {result.back().size * axis.size, axis.stride};
    else
      result.push_back(axis);
  }
  return result;
}

struct StridedReduction {
  StridedAxes kept, reduced;  // reduced: of strides above 0, or 0 of a product, the longest first
  std::int64_t start = 0;     // where the walk begins, in elements
  std::int64_t count = 1;     // of elements of a result
  std::int64_t times = 1;     // of them at the same place
};

StridedReduction strided_reduction(const Shape& shape, const Strides& strides, AxisMask axes, ReduceWhat what) {
  StridedReduction view;
  for (int i = 0; i < shape.rank(); ++i) {
    StridedAxis axis{shape[i], strides[static_cast<std::size_t>(i)]};
    if (axis.size == 1) continue;
    if (!is_reduced(axes, i)) {
      view.kept.push_back(axis);
      continue;
    }
    view.count *= axis.size;
    if (axis.stride == 0 && what != ReduceWhat::product) {
      view.times *= axis.size;
      continue;
    }
    if (axis.stride < 0) {  // the order of what is reduced does not matter
      view.start += (axis.size - 1) * axis.stride;
      axis.stride = -axis.stride;
    }
    view.reduced.push_back(axis);
  }
  std::stable_sort(view.reduced.begin(), view.reduced.end(),
                   [](const StridedAxis& a, const StridedAxis& b) { return a.stride > b.stride; });
  view.kept = merged_axes(view.kept);
  view.reduced = merged_axes(view.reduced);
  return view;
}

struct StridedKernel {
  std::string entry;
  Dtype program;
};
StridedKernel strided_kernel(Dtype src, Dtype dst) {
  const std::string name = "reduce_view";
  if (!is_floating(src)) {
    const std::string suffix = bytes_of(src) == 1 ? "_u8" : "_" + std::string(name_of(src));
    return is_floating(dst) ? StridedKernel{name + "_mean" + suffix, real_of(dst)} : StridedKernel{name + suffix, f32};
  }
  if (src == dst) return {name, src};
  return src == real_of(src) ? StridedKernel{name + "_total", dst} : StridedKernel{name + "_part", src};
}

struct StridedPass {
  ReduceWhat what;
  StridedAxes kept, reduced;
  std::int64_t parts = 1, per_part = 1, times = 1;
  double divisor = 1;
};

void launch_pass(Launch& run, const StridedPass& pass, Operand src, Operand dst, Dtype src_dtype, Dtype dst_dtype) {
  const std::int64_t results = product_of(pass.kept), reduced = product_of(pass.reduced);
  const std::int64_t each = std::min(reduced, pass.per_part);
  const std::int64_t per_group = run.pick(kResultsPerGroup)(each);
  const auto [entry, program] = strided_kernel(src_dtype, dst_dtype);
  KernelCall call = run.kernel(entry, program);
  call.args(src, dst, static_cast<int>(pass.what), results, reduced, pass.parts, pass.per_part, per_group);
  for (const StridedAxes* axes : {&pass.kept, &pass.reduced}) {
    for (std::size_t i = axes->size(); i < kMostStridedAxes; ++i) call.args(std::int64_t{1}, std::int64_t{0});
    for (const StridedAxis& axis : *axes) call.args(axis.size, axis.stride);
  }
  call.args(pass.times, pass.divisor).over_rows(ceil_div(results, per_group) * pass.parts, kStridedItems);
}

}  // namespace

bool is_reducible_in_place(const Array& a, AxisMask axes, ReduceWhat what) {
  const Node& node = *a.node();
  if (!node.is_view) return true;
  const StridedReduction view = strided_reduction(node.shape, node.strides, axes, what);
  return view.kept.size() <= kMostStridedAxes && view.reduced.size() <= kMostStridedAxes;
}

void launch_view_reduction(Launch& run, ReduceWhat what, bool is_mean, AxisMask axes) {
  const StridedReduction view = strided_reduction(run.src_shape(0), run.src_strides(0), axes, what);
  const Dtype src_dtype = run.src_dtype(0), dst_dtype = run.dst_dtype();
  const Dtype inside = is_floating(dst_dtype) ? real_of(dst_dtype) : dst_dtype;
  const bool is_sum = what == ReduceWhat::sum || what == ReduceWhat::squares;
  const std::int64_t divided = view.count / view.times;
  const double divisor = is_mean ? static_cast<double>(divided) : 1.0;

  StridedPass first{.what = what, .kept = {}, .reduced = view.reduced, .times = is_sum && !is_mean ? view.times : 1};
  for (const StridedAxis& axis : view.kept)
    if (axis.stride != 0) first.kept.push_back(axis);
  const bool spreads = first.kept.size() < view.kept.size();
  const std::int64_t results = product_of(first.kept), reduced = product_of(first.reduced);
  first.per_part = std::max(kLeastPerPart, kMostPerPart / std::min<std::int64_t>(results, 32));
  first.parts = ceil_div(reduced, first.per_part);
  const bool is_whole = first.parts == 1;
  if (is_whole) first.divisor = divisor;

  const Operand made = spreads ? run.temp(results, inside) : run.dst();
  const Dtype made_dtype = spreads ? inside : dst_dtype;
  const Operand part = is_whole ? made : run.temp(results * first.parts, inside);
  launch_pass(run, first, run.src(0).from(view.start), part, src_dtype, is_whole ? made_dtype : inside);
  if (!is_whole)
    launch_pattern(run, what == ReduceWhat::squares ? ReduceWhat::sum : what, part, made, {results, first.parts, 1},
                   divisor, inside, made_dtype);
  if (!spreads) return;
  StridedPass spread{.what = ReduceWhat::sum, .kept = view.kept, .reduced = {}};
  std::int64_t stride = 1;
  for (auto axis = spread.kept.rbegin(); axis != spread.kept.rend(); ++axis) {
    if (axis->stride == 0) continue;
    axis->stride = stride;
    stride *= axis->size;
  }
  launch_pass(run, spread, made, run.dst(), inside, dst_dtype);
}

}  // namespace samebytes::detail
