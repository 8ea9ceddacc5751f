// Reductions over any axes. The axes of a dense array are merged to alternating kept and reduced blocks; each reduced
// block is one pattern [outer, reduced, inner] and takes one or, where it is long, a few launches. Splits depend on the
// shape alone. Views and narrow whole numbers are read in place (reduce_view.cpp). Over 400 lines because the functions
// of every reduction and their gradients stand beside the one op that they share.
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/as_value.h"
#include "ops/dtypes.h"
#include "ops/host.h"
#include "ops/reduce.h"
#include "ops/rows.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

using What = ReduceWhat;
using Pattern = ReducePattern;

constexpr std::int64_t kElementsPerPart = kReducedInOnePass;
constexpr std::int64_t kColumnTile = 1024;   // cpu: columns of one work-group
constexpr std::int64_t kFoldedWidth = 1024;  // cpu: narrow rows are folded to about this width

// How reductions are cut: how many rows of `inner` values are folded to one, and the columns of a group; lines of
// `outer` of a group; whether the host has the same order of sums.
struct ReduceTiling {
  bool has_host_form;
  std::pair<int, std::int64_t> (*fold)(const Launch& run, std::int64_t inner, std::int64_t most, Dtype dtype);
  std::int64_t (*outer_per_group)(const Pattern& p);
};
std::pair<int, std::int64_t> cpu_fold(const Launch& run, std::int64_t inner, std::int64_t most, Dtype dtype) {
  const std::int64_t width = run.device().vector_width(dtype);
  const std::int64_t unit = width / std::gcd(width, inner);  // rows that fill whole vectors together
  const std::int64_t fold = unit * inner <= most ? unit * std::max<std::int64_t>(1, kFoldedWidth / (unit * inner)) : 1;
  return {static_cast<int>(fold), std::min(inner, kColumnTile)};
}
std::pair<int, std::int64_t> gpu_fold(const Launch&, std::int64_t inner, std::int64_t most, Dtype) {
  return {static_cast<int>(std::max<std::int64_t>(1, most / inner)), std::min(inner, most)};
}
constexpr PerPersonality<ReduceTiling> kReduceTiling{
    {.has_host_form = true,
     .fold = cpu_fold,
     .outer_per_group =
         [](const Pattern& p) { return std::max<std::int64_t>(1, kElementsPerPart / (p.reduced * p.inner)); }},
    {.has_host_form = false, .fold = gpu_fold, .outer_per_group = [](const Pattern&) { return std::int64_t{1}; }}};

Shape reduced_shape(const Shape& shape, AxisMask axes, bool keep) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!is_reduced(axes, i)) {
      result.push_back(shape[i]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

std::int64_t reduced_count(const Shape& shape, AxisMask axes) {
  std::int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (is_reduced(axes, i)) n *= shape[i];
  return n;
}

struct AxisBlock {
  bool reduced;
  std::int64_t size;
};

// Axes of size 1 dropped, neighbours of one kind merged.
std::vector<AxisBlock> blocks_of(const Shape& shape, AxisMask axes) {
  std::vector<AxisBlock> blocks;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (blocks.empty() || blocks.back().reduced != is_reduced(axes, i)) {
      blocks.push_back({is_reduced(axes, i), shape[i]});
    } else {
      blocks.back().size *= shape[i];
    }
  }
  return blocks;
}

// The program, and what an entry's name ends with, for arrays of these types: partial results of 16-bit values are
// f32.
struct Variant {
  Dtype program;
  const char* suffix;
};
Variant variant_of(Dtype src, Dtype dst) {
  if (src == dst) return {src, ""};
  return src == real_of(src) ? Variant{dst, "_total"} : Variant{src, "_part"};
}

HostWork host_work(const Pattern& p) {
  return {.steps = static_cast<double>(p.outer), .values = static_cast<double>(p.outer * p.reduced * p.inner)};
}
bool is_small(const Pattern& p) { return p.outer * p.reduced * p.inner <= kMostHostReduced; }

// A whole reduction in one launch of the cpu personality, whose order of sums the host has.
template <class T>
void add_host_rows(KernelCall& call, const HostRows& rows) {
  call.on_host(host_work({rows.rows, rows.columns, 1}), [rows](void* const* arrays, const double*) {
    host_reduce_rows(rows, static_cast<const T*>(arrays[0]), static_cast<T*>(arrays[1]));
  });
}
template <class T>
void add_host_columns(KernelCall& call, const HostColumns& columns) {
  call.on_host(host_work({columns.outer, columns.reduced, columns.inner}),
               [columns](void* const* arrays, const double*) {
                 host_reduce_columns(columns, static_cast<const T*>(arrays[0]), static_cast<T*>(arrays[1]));
               });
}

template <class T>
void add_host_whole(KernelCall& call, int what, const Pattern& p) {
  call.on_host(host_work(p), [what, p](void* const* arrays, const double*) {
    host_reduce_whole(what, p.outer, p.reduced, p.inner, static_cast<const T*>(arrays[0]), static_cast<T*>(arrays[1]));
  });
}

template <class T>
void add_host_argmax(KernelCall& call, const Pattern& p) {
  call.on_host(host_work(p), [p](void* const* arrays, const double*) {
    host_argmax(p.outer, p.reduced, p.inner, static_cast<const T*>(arrays[0]), static_cast<std::int32_t*>(arrays[1]));
  });
}

}  // namespace

void launch_pattern(Launch& run, What what, Operand src, Operand dst, Pattern p, double divisor, Dtype src_dtype,
                    Dtype dst_dtype) {
  const Dtype dtype = real_of(src_dtype);
  const int code = static_cast<int>(what);
  if (!is_floating(src_dtype)) {
    KernelCall call = run.kernel(src_dtype == i64 ? "reduce_i64" : "reduce_i32");
    call.args(src, dst, code, p.outer, p.reduced, p.inner).over_elements(p.outer * p.inner);
    if (is_small(p) && src_dtype == i64) add_host_whole<std::int64_t>(call, code, p);
    if (is_small(p) && src_dtype == i32) add_host_whole<std::int32_t>(call, code, p);
    return;
  }
  const ReduceTiling& tiling = run.pick(kReduceTiling);
  const bool is_rows = p.inner == 1;
  int fold = 1;
  std::int64_t tile = p.inner;
  if (!is_rows) {
    const std::int64_t most = run.constant("reduce", "REDUCE_ACC", dtype);
    std::tie(fold, tile) = tiling.fold(run, p.inner, most, dtype);
    fold = static_cast<int>(std::min<std::int64_t>(fold, p.reduced));
    if (fold > 1) tile = p.inner;
  }
  const std::int64_t least = 16 * fold;
  const std::int64_t rows_per_part =
      is_rows ? kElementsPerPart : std::max(least, kElementsPerPart / p.inner / least * least);
  const std::int64_t parts = ceil_div(p.reduced, rows_per_part);
  const Operand to = parts == 1 ? dst : run.temp(p.outer * parts * p.inner, dtype);
  const Dtype to_dtype = parts == 1 ? dst_dtype : dtype;
  const Variant variant = variant_of(src_dtype, to_dtype);
  const double divide = parts == 1 ? divisor : 1.0;
  const bool has_host_form =
      tiling.has_host_form && parts == 1 && src_dtype == dtype && to_dtype == dtype && is_small(p);
  const int width = run.device().vector_width(dtype);
  if (is_rows) {
    const RowShare share = share_rows(run, p.outer * parts, std::min(p.reduced, rows_per_part));
    KernelCall call = run.kernel(std::string("reduce_rows") + variant.suffix, variant.program);
    call.args(src, to, code, p.outer, p.reduced, parts, rows_per_part, share.rows_per_group, divide)
        .over_rows(share.groups, share.group);
    const HostRows rows{code, p.outer, p.reduced, share.rows_per_group, divide, width};
    if (has_host_form && dtype == f64) add_host_rows<double>(call, rows);
    if (has_host_form && dtype != f64) add_host_rows<float>(call, rows);
  } else {
    const std::int64_t outer_per_group = tiling.outer_per_group(p);
    const std::int64_t groups = ceil_div(p.inner, tile) * parts * ceil_div(p.outer, outer_per_group);
    KernelCall call = run.kernel(std::string("reduce_columns") + variant.suffix, variant.program);
    call.args(src, to, code, p.outer, p.reduced, p.inner, parts, rows_per_part, fold, tile, outer_per_group, divide)
        .over_rows(groups, fold * tile <= 64 ? 64 : 256);
    const HostColumns columns{code, p.outer, p.reduced, p.inner, fold, tile, divide, width};
    if (has_host_form && dtype == f64) add_host_columns<double>(call, columns);
    if (has_host_form && dtype != f64) add_host_columns<float>(call, columns);
  }
  const What rest = what == What::squares ? What::sum : what;
  if (parts > 1) launch_pattern(run, rest, to, dst, {p.outer, parts, p.inner}, divisor, to_dtype, dst_dtype);
}

namespace {

// An empty array with a line of zeros in each axis that has none: what sums up nothing still depends on it.
Array with_zeros(Array a) {
  for (int axis = 0; axis < a.shape().rank(); ++axis) {
    if (a.shape()[axis] > 0) continue;
    Shape line = a.shape();
    line[axis] = 1;
    a = concat({a, zeros(line, a.dtype())}, axis);
  }
  return a;
}

Array reduce(const Array& a, What what, bool is_mean, AxisMask axes, bool keep);

bool is_dense(const Shape& shape, const Strides& strides) {
  const Strides dense = dense_strides(shape);
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > 1 && strides[static_cast<std::size_t>(i)] != dense[static_cast<std::size_t>(i)]) return false;
  return true;
}

class Reduce final : public Op, public Written {
 public:
  Reduce(What what, bool is_mean, AxisMask axes)
      : Op({.takes_strides = InputSet::all()}), what_(what), is_mean_(is_mean), axes_(axes) {}

  std::string_view name() const override {
    return is_mean_                 ? "mean"
           : what_ == What::sum     ? "sum"
           : what_ == What::max     ? "max"
           : what_ == What::product ? "prod"
                                    : "min";
  }
  void hash(Hasher& hasher) const override { hasher.add(std::uint64_t{axes_}); }

  void launch(Launch& run) const override {
    const Dtype from = run.src_dtype(0);
    const bool is_plain = is_floating(from) || ((from == i32 || from == i64) && !is_mean_);
    if (!is_plain || !is_dense(run.src_shape(0), run.src_strides(0)))
      return launch_view_reduction(run, what_, is_mean_, axes_);
    std::vector<AxisBlock> blocks = blocks_of(run.src_shape(0), axes_);
    const double count = is_mean_ ? static_cast<double>(reduced_count(run.src_shape(0), axes_)) : 1.0;
    int left = 0;
    for (const AxisBlock& block : blocks) left += block.reduced;
    Operand src = run.src(0);
    Dtype src_dtype = run.src_dtype(0);
    const Dtype part_dtype = is_floating(src_dtype) ? real_of(src_dtype) : src_dtype;
    for (; left > 0; --left) {  // the innermost reduced block first
      std::size_t at = blocks.size() - 1;
      while (!blocks[at].reduced) --at;
      Pattern pattern{1, blocks[at].size, 1};
      for (std::size_t i = 0; i < at; ++i) pattern.outer *= blocks[i].size;
      for (std::size_t i = at + 1; i < blocks.size(); ++i) pattern.inner *= blocks[i].size;
      const bool is_last = left == 1;
      const Operand dst = is_last ? run.dst() : run.temp(pattern.outer * pattern.inner, part_dtype);
      launch_pattern(run, what_, src, dst, pattern, is_last ? count : 1.0, src_dtype,
                     is_last ? run.dst_dtype() : part_dtype);
      blocks[at] = {false, 1};
      src = dst;
      src_dtype = part_dtype;
    }
  }

  void write(NodeWriter& w) const override {
    NodeWriter::Ints axes;
    for (int i = 0; i < w.shape(0).rank(); ++i)
      if (axes_ >> i & 1) axes.push_back(i);
    const char* type = is_mean_                 ? "ReduceMean"
                       : what_ == What::sum     ? "ReduceSum"
                       : what_ == What::max     ? "ReduceMax"
                       : what_ == What::product ? "ReduceProd"
                                                : "ReduceMin";
    const auto result = w.put(type, {w.cast(w.in(0), w.dtype(0), w.result_dtype()), w.ints(axes)},
                              {{"keepdims", std::int64_t{w.result().rank() == w.shape(0).rank()}}});
    w.give(result);
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array& src = request.src[0];
    if (!is_floating(src.dtype())) return {Array()};
    const Shape kept = reduced_shape(src.shape(), axes_, true);
    Array dy = as_dtype(reshape(request.dy[0], kept), src.dtype());
    if (what_ == What::sum) {
      if (is_mean_) dy = dy / static_cast<double>(reduced_count(src.shape(), axes_));
      return {broadcast_to(dy, src.shape())};
    }
    if (what_ == What::product) return {product_gradient(src, dy, axes_)};
    // Ties share the gradient equally, as PyTorch's amax has it.
    const Array is_extreme = astype(equal(src, reshape(request.dst[0], kept)), src.dtype());
    return {is_extreme * (dy / reduce(is_extreme, What::sum, false, axes_, true))};
  }

 private:
  What what_;
  bool is_mean_;
  AxisMask axes_;
};

AxisMask all_axes(const Shape& shape) { return (AxisMask{1} << shape.rank()) - 1; }

// All of src, floating, to one element. The squares are never written.
class SumOfSquares final : public Op {
 public:
  SumOfSquares() : Op({.takes_strides = InputSet::all()}) {}
  std::string_view name() const override { return "sum_of_squares"; }
  void launch(Launch& run) const override {
    if (!is_dense(run.src_shape(0), run.src_strides(0)))
      return launch_view_reduction(run, What::squares, false, all_axes(run.src_shape(0)));
    launch_pattern(run, What::squares, run.src(0), run.dst(), {1, run.src_shape(0).size(), 1}, 1.0, run.src_dtype(0),
                   run.dst_dtype());
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return {request.src[0] * (request.dy[0] * 2.0)};
  }
};

Array reduce(const Array& a, What what, bool is_mean, AxisMask axes, bool keep) {
  const Shape shape = reduced_shape(a.shape(), axes, keep);
  const std::int64_t count = reduced_count(a.shape(), axes);
  const bool is_narrow = a.dtype() == bool_ || a.dtype() == u8;
  const bool grows = what == What::sum || what == What::product;
  const Dtype dtype = is_mean && !is_floating(a.dtype()) ? f32 : is_narrow && grows ? i32 : a.dtype();
  if (a.size() == 0 && what == What::product) return ones(shape, dtype);
  if (a.size() == 0 && shape.size() > 0) {
    if (what != What::sum)
      throw ArgumentError(std::string(what == What::max ? "max" : "min") + ": an empty array has none, src is " +
                          describe(a));
    if (!is_floating(a.dtype())) return full(shape, 0.0, dtype);
    const Array zero = reduce(with_zeros(a), What::sum, false, axes, keep);
    return is_mean ? zero + std::numeric_limits<double>::quiet_NaN() : zero;
  }
  if (count == 1) return reshape(as_dtype(a, dtype), shape);
  const Dtype inside = is_narrow && !is_mean ? i32 : dtype;
  // Few whole numbers are widened by the launch that makes them, and may be added up by the host.
  constexpr std::int64_t kMostWidened = 1 << 16;
  const bool is_few = a.size() <= kMostWidened && a.node()->is_dense() && !is_floating(a.dtype());
  const Array src = is_few ? as_dtype(a, inside) : is_reducible_in_place(a, axes, what) ? a : contiguous(a);
  return as_dtype(make_array(make_op<Reduce>(what, is_mean, axes), shape, inside, std::span<const Array>(&src, 1)),
                  dtype);
}

// Of truths: all is their least, of nothing true; any their greatest, of nothing false. Zero alone is not true.
Array reduce_truths(const Array& a, What what, AxisMask axes, bool keep) {
  const Shape shape = reduced_shape(a.shape(), axes, keep);
  if (a.size() == 0) return full(shape, what == What::min ? 1.0 : 0.0, bool_);
  return reduce(astype(a, bool_), what, false, axes, keep);
}

AxisMask mask_of(const char* op, const Array& a, std::span<const int> axes) {
  require(a.defined(), op, "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axes.empty()) return all_axes(a.shape());
  AxisMask mask = 0;
  for (int axis : axes) {
    if (axis < -rank || axis >= rank)
      throw ArgumentError(std::string(op) + ": axis " + std::to_string(axis) + " is out of range for src " +
                          describe(a));
    const AxisMask bit = AxisMask{1} << (axis < 0 ? axis + rank : axis);
    if ((mask & bit) != 0)
      throw ArgumentError(std::string(op) + ": axis " + std::to_string(axis) + " is named twice, src is " +
                          describe(a));
    mask |= bit;
  }
  return mask;
}

class Argmax final : public Op, public Written {
 public:
  explicit Argmax(int axis) : Op({.is_flat = InputSet::all()}), axis_(axis) {}
  std::string_view name() const override { return "argmax"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }

  void launch(Launch& run) const override {
    const Shape& shape = run.src_shape(0);
    std::int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis_; ++i) outer *= shape[i];
    for (int i = axis_ + 1; i < shape.rank(); ++i) inner *= shape[i];
    const std::int64_t reduced = shape[axis_];
    const Pattern pattern{outer, reduced, inner};
    if (!is_floating(run.src_dtype(0))) {
      run.kernel("reduce_argmax_" + std::string(name_of(run.src_dtype(0))))
          .args(run.src(0), run.dst(), outer, reduced, inner)
          .over_elements(outer * inner);
      return;
    }
    const std::int64_t outer_per_group = run.pick(kReduceTiling).outer_per_group(pattern);
    KernelCall call = run.kernel("reduce_argmax", run.src_dtype(0));
    call.args(run.src(0), run.dst(), outer, reduced, inner, outer_per_group)
        .over_rows(ceil_div(outer, outer_per_group), 64);
    if (is_small(pattern) && run.src_dtype(0) == f32) add_host_argmax<float>(call, pattern);
    if (is_small(pattern) && run.src_dtype(0) == f64) add_host_argmax<double>(call, pattern);
  }
  void write(NodeWriter& w) const override {
    const auto places = w.put("ArgMax", {w.in(0)}, {{"axis", std::int64_t{axis_}}, {"keepdims", std::int64_t{0}}});
    w.give(w.put("Cast", {places}, {{"to", std::int64_t{6}}}));  // TensorProto's INT32
  }

 private:
  int axis_;
};

}  // namespace

Array mean_over(const Array& a, AxisMask axes) { return reduce(a, What::sum, true, axes, false); }

Array column_sums(const Array& a) {
  const std::int64_t columns = a.shape().back(), rows = a.size() / columns;
  const Dtype dtype = real_of(a.dtype());
  if (rows == 1) return as_dtype(reshape(a, {columns}), dtype);
  const AxisMask above = all_axes(a.shape()) >> 1;
  const Array src = is_reducible_in_place(a, above) ? a : contiguous(a);
  return make_array(make_op<Reduce>(What::sum, false, above), {columns}, dtype, std::span<const Array>(&src, 1));
}

void launch_column_sums(Launch& run, Operand src, Operand dst, std::int64_t rows, std::int64_t columns, Dtype src_dtype,
                        Dtype dst_dtype) {
  launch_pattern(run, What::sum, src, dst, {1, rows, columns}, 1.0, src_dtype, dst_dtype);
}

}  // namespace detail

using detail::What;

const detail::CastRow kSumCast{"sum", CastRule::keep_f32};
Array sum(const Input& a, const Axes& axes, bool keep) {
  if (const detail::Casts cast(kSumCast); cast) return sum(cast(a), axes, keep);
  return detail::reduce(a, What::sum, false, detail::mask_of("sum", a, axes), keep);
}

Array sum_of_squares(const Input& a) {
  detail::require(a.defined() && is_floating(a.dtype()), "sum_of_squares", "needs a floating array", a, "src");
  if (a.size() < 2) return sum(square(a));
  static const detail::OpPtr op = detail::make_op<detail::SumOfSquares>();
  const Array src = detail::is_reducible_in_place(a, detail::all_axes(a.shape())) ? a.array() : contiguous(a);
  return detail::make_array(op, {}, a.dtype(), std::span<const Array>(&src, 1));
}

const detail::CastRow kMeanCast{"mean", CastRule::keep_f32};
Array mean(const Input& a, const Axes& axes, bool keep) {
  if (const detail::Casts cast(kMeanCast); cast) return mean(cast(a), axes, keep);
  return detail::reduce(a, What::sum, true, detail::mask_of("mean", a, axes), keep);
}

Array max(const Input& a, const Axes& axes, bool keep) {
  return detail::reduce(a, What::max, false, detail::mask_of("max", a, axes), keep);
}

Array min(const Input& a, const Axes& axes, bool keep) {
  return detail::reduce(a, What::min, false, detail::mask_of("min", a, axes), keep);
}

Array prod(const Input& a, const Axes& axes, bool keep) {
  return detail::reduce(a, What::product, false, detail::mask_of("prod", a, axes), keep);
}

Array all(const Input& a, const Axes& axes, bool keep) {
  return detail::reduce_truths(a, What::min, detail::mask_of("all", a, axes), keep);
}

Array any(const Input& a, const Axes& axes, bool keep) {
  return detail::reduce_truths(a, What::max, detail::mask_of("any", a, axes), keep);
}

Array argmax(const Input& a, int axis) {
  detail::require(a.defined(), "argmax", "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError("argmax: axis " + std::to_string(axis) + " is out of range for src " + detail::describe(a));
  if (axis < 0) axis += rank;
  Shape shape;
  for (int i = 0; i < rank; ++i)
    if (i != axis) shape.push_back(a.shape()[i]);
  detail::require(a.shape()[axis] > 0 || shape.size() == 0, "argmax", "an empty axis has none", a, "src");
  Array src = a;
  if (a.dtype() == u8 || a.dtype() == bool_) src = astype(a, i32);
  return detail::make_array(detail::make_op<detail::Argmax>(axis), shape, i32, std::span<const Array>(&src, 1));
}

Array sum_to(const Input& a, const Shape& shape) {
  detail::require(a.defined(), "sum_to", "needs an array", a, "src");
  if (a.shape() == shape) return detail::as_value(a);
  const int extra = a.shape().rank() - shape.rank();
  bool ok = extra >= 0;
  detail::AxisMask axes = 0;
  for (int i = 0; ok && i < a.shape().rank(); ++i) {
    if (i < extra || (shape[i - extra] == 1 && a.shape()[i] != 1)) {
      axes |= detail::AxisMask{1} << i;
    } else {
      ok = shape[i - extra] == a.shape()[i];
    }
  }
  if (!ok)
    throw ArgumentError("sum_to: shape " + shape.to_string() + " does not broadcast to src " + detail::describe(a));
  return reshape(detail::reduce(a, What::sum, false, axes, true), shape);
}

}  // namespace samebytes
