// Elements by their numbers. Moves are one kernel; the gradient of take and embedding sorts the indices (a counting
// sort), then each row of the result sums its own. Kernels: cl/*/indexing.cl. Over 400 lines because all of them share
// how an index stands for a place.
#include "samebytes/ops/indexing.h"

#include <limits>
#include <string>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/indexing.h"
#include "ops/pointwise.h"
#include "ops/rows.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

// clang-format off
extern const PointwiseRow kClipToInts;
const PointwiseRow kClipToInts{"clip_to_ints", 1, 0,
  "SB_WHERE(SB_TRUTH($0 > (SB_TYPE)(2147483647)), (SB_TYPE)(2147483647), SB_WHERE(SB_TRUTH($0 < -(SB_TYPE)(2147483647)), -(SB_TYPE)(2147483647), $0))",
  "Max(Min($0,2147483647),-2147483647)", PointwiseRow::Result::same, nullptr, PointwiseRow::kAllFlat};
// clang-format on

constexpr int kNoIndex = -1;  // no index is left out

// Whether a row of indexing_sum costs as much as the places that it sums; the items of a GPU's group share them.
constexpr PerPersonality<bool> kCountsSums{true, false};
// Whether one work-item adds to a line of its own faster than sorted indices are summed up.
constexpr PerPersonality<bool> kAddsToLines{true, false};

// All bits set is NaN in every floating type; true is 1.
int missing_bits(Dtype dtype) { return dtype == bool_ ? 1 : -1; }

constexpr EntryByWidth kTakeEntries{"indexing_take_8", "indexing_take_16", "indexing_take_32", "indexing_take_64"};
constexpr EntryByWidth kGatherEntries{"indexing_gather_8", "indexing_gather_16", "indexing_gather_32",
                                      "indexing_gather_64"};

// How an index stands for a place along an axis.
struct IndexedAxis {
  int axis = 0;
  bool count_from_end = true;  // negative ones
  int left_out = kNoIndex;     // gets no sums
  bool spoil = false;          // an index outside makes its sums NaN

  void hash(Hasher& hasher) const {
    hasher.add(static_cast<std::uint64_t>(axis) << 2 | std::uint64_t{count_from_end} << 1 | std::uint64_t{spoil});
    hasher.add(static_cast<std::uint64_t>(left_out));
  }
  int from_end(std::int64_t depth) const { return count_from_end ? static_cast<int>(depth) : 0; }
};

Array indexed_sum(const Array& base, const Array& index, const Array& src, const Shape& shape,
                  const IndexedAxis& places);

// Inputs: index [J], src [O, J, I] and perhaps base [O, D, I] -> base (or zeros) plus the sums of the places of each
// index.
class IndexedSum final : public Op, public Written {
 public:
  explicit IndexedSum(const IndexedAxis& places)
      : Op({.may_overwrite = {.result = 0, .input = 2}}),  // the base, which is as large as a vocabulary's weight
        places_(places) {}
  std::string_view name() const override { return "indexed_sum"; }
  void hash(Hasher& hasher) const override { places_.hash(hasher); }
  void launch(Launch& run) const override {
    const Around at(run.dst_shape(), places_.axis);
    const std::int64_t items = run.src_shape(0).size();
    const int depth = static_cast<int>(at.depth);
    const bool is_line = at.inner == 1 && places_.count_from_end && places_.left_out == kNoIndex;
    if (is_line && run.pick(kAddsToLines) && run.dst_dtype() == real_of(run.dst_dtype())) {
      run.kernel("indexing_scatter_add", run.dst_dtype())
          .args(run.optional_src(2), run.src(0), run.src(1), run.dst(), depth, items, at.inner, std::int64_t{0},
                int{places_.spoil})
          .over_rows(at.outer);
      return;
    }
    const Operand order = run.temp(items, i32), starts = run.temp(at.depth + 2, i32), ranks = run.temp(items, i32);
    constexpr int kSorters = 256;  // INDEXING_ITEMS of cl/gpu/indexing.cl
    run.kernel("indexing_sort", run.dst_dtype())
        .args(run.src(0), order, starts, ranks, static_cast<int>(items), depth, places_.left_out,
              places_.from_end(at.depth))
        .over_rows(1, kSorters);
    const std::int64_t cost = at.inner * (run.pick(kCountsSums) ? 1 + items / at.depth : 1);
    const RowShare share = share_rows(run, at.outer * at.depth, cost);
    run.kernel("indexing_sum", run.dst_dtype())
        .args(order, starts, run.src(1), run.optional_src(2), run.dst(), at.outer, depth, items, at.inner,
              share.rows_per_group, int{places_.spoil})
        .over_rows(share.groups, share.group);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &dy = request.dy[0], &index = request.src[0], &src = request.src[1];
    std::vector<Array> result(request.src.size());
    if (request.wanted[1]) {  // what was left out, or lies outside, was not added
      const auto number = [](std::int64_t n) { return full({}, n, i32); };
      const std::int64_t depth = dy.shape()[places_.axis];
      Array out = maximum(less(index, number(-places_.from_end(depth))), greater_equal(index, number(depth)));
      if (places_.left_out != kNoIndex) out = maximum(out, equal(index, number(places_.left_out)));
      const Array taken = take(dy, where(out, number(0), index), places_.axis);
      Shape beside(std::vector<std::int64_t>(static_cast<std::size_t>(places_.axis), 1));
      for (const std::int64_t size : index.shape()) beside.push_back(size);
      while (beside.rank() < taken.shape().rank()) beside.push_back(1);
      result[1] = reshape(masked_fill(taken, broadcast_to(reshape(out, beside), taken.shape()), 0.0), src.shape());
    }
    if (request.src.size() > 2) result[2] = dy;
    return result;
  }
  void write(NodeWriter& w) const override {
    if (places_.left_out != kNoIndex || !places_.count_from_end)
      w.refuse("ONNX has no sums that leave out an index or count none from the end");
    Shape beside = w.shape(1);
    for (int i = 0; i < beside.rank(); ++i)
      if (i != places_.axis) beside[i] = 1;
    write_scatter(w, places_.axis, "add", w.expanded(w.reshaped(w.in(0), beside), w.shape(1)));
  }
  Array added_to(const Node& node, const Array& other) const override {
    const Node& base = *other.node();
    if (node.inputs.size() > 2 || (base.is_view && !base.is_dense())) return {};
    return indexed_sum(other, Array(node.inputs[0].node), Array(node.inputs[1].node), node.shape, places_);
  }

 private:
  IndexedAxis places_;
};

// base (zeros where it is an empty handle) of `shape` plus the sums of src over the places of each index; f32 or f64.
Array indexed_sum(const Array& base, const Array& index, const Array& src, const Shape& shape,
                  const IndexedAxis& places) {
  if (index.size() == 0 || src.size() == 0) return base.defined() ? base : zeros(shape, src.dtype());
  std::vector<Array> inputs{index, src};
  if (base.defined()) inputs.push_back(base);
  return make_array(make_op<IndexedSum>(places), shape, src.dtype(), inputs);
}

class Take final : public Op, public Written {
 public:
  Take(const char* name, const IndexedAxis& places) : name_(name), places_(places) {}
  std::string_view name() const override { return name_; }
  void hash(Hasher& hasher) const override { places_.hash(hasher); }
  void launch(Launch& run) const override {
    const Around at(run.src_shape(0), places_.axis);
    const std::int64_t items = run.src_shape(1).size();
    const Dtype dtype = run.dst_dtype();
    const int depth = static_cast<int>(at.depth), missing = missing_bits(dtype), from_end = places_.from_end(at.depth);
    run.kernel(kTakeEntries(dtype))
        .args(run.src(0), run.src(1), run.dst(), at.outer, depth, items, at.inner, missing, from_end)
        .over_elements(at.outer * items * at.inner)
        .works_on(at.outer * items * at.inner);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &a = request.src[0], &dy = request.dy[0];
    if (!is_floating(a.dtype())) return {};
    return {indexed_sum(Array(), request.src[1], as_dtype(dy, a.dtype()), a.shape(), places_), Array()};
  }
  void write(NodeWriter& w) const override {
    w.give(w.put("Gather", {w.in(0), w.in(1)}, {{"axis", std::int64_t{places_.axis}}}));
  }

 private:
  const char* name_;
  IndexedAxis places_;
};

// Inputs: index, src and, where `has_base`, base; else base is zeros. All as pattern [O, D or J, I].
class ScatterAdd final : public Op, public Written {
 public:
  ScatterAdd(int axis, bool spoils) : axis_(axis), spoils_(spoils) {}
  std::string_view name() const override { return "scatter_add"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(axis_) << 1 | std::uint64_t{spoils_});
  }
  void launch(Launch& run) const override {
    const Around at(run.dst_shape(), axis_);
    const std::int64_t items = run.src_shape(0)[axis_];
    const std::int64_t tile = run.constant("indexing", "INDEXING_TILE", run.dst_dtype());
    run.kernel("indexing_scatter_add", run.dst_dtype())
        .args(run.optional_src(2), run.src(0), run.src(1), run.dst(), static_cast<int>(at.depth), items, at.inner,
              items * at.inner, int{spoils_})
        .over_rows(at.outer * ((at.inner + tile - 1) / tile), static_cast<int>(tile));
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array& dy = request.dy[0];
    std::vector<Array> result(request.src.size());
    if (request.wanted[1]) result[1] = gather(dy, axis_, request.src[0]);
    if (request.src.size() > 2) result[2] = dy;
    return result;
  }
  void write(NodeWriter& w) const override { write_scatter(w, axis_, "add"); }

 private:
  int axis_;
  bool spoils_;
};

// src added to base (zeros of `shape` where it is an empty handle); index and src are of one shape, which differs from
// `shape` along the axis only. f32 or f64.
Array add_at(const Array& base, const Shape& shape, int axis, const Array& index, const Array& src, bool spoils) {
  if (index.size() == 0 || shape.size() == 0) return base.defined() ? base : zeros(shape, src.dtype());
  const Around at(shape, axis);
  if (at.outer * at.inner == 1) {  // a single line, which one work-item would have to walk
    const Array line = base.defined() ? reshape(base, {-1}) : Array();
    const Array sums = indexed_sum(line, reshape(index, {-1}), reshape(src, {-1}), Shape{at.depth}, {.spoil = spoils});
    return reshape(sums, shape);
  }
  std::vector<Array> inputs{index, src};
  if (base.defined()) inputs.push_back(base);
  return make_array(make_op<ScatterAdd>(axis, spoils), shape, src.dtype(), inputs);
}

// Inputs: index and src [O, J, I], where no index comes twice in a line -> src at its places, zeros elsewhere.
class Put final : public Op {
 public:
  explicit Put(int axis) : axis_(axis) {}
  std::string_view name() const override { return "put"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }
  void launch(Launch& run) const override {
    const Around at(run.dst_shape(), axis_);
    const std::int64_t items = run.src_shape(0)[axis_], n = run.dst_shape().size();
    run.kernel("fill_real", run.dst_dtype()).args(run.dst(), n, 0.0).over_elements(n);
    run.kernel("indexing_put", run.dst_dtype())
        .args(run.src(0), run.src(1), run.dst(), at.outer, static_cast<int>(at.depth), items, at.inner)
        .over_elements(at.outer * items * at.inner);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return {Array(), gather(request.dy[0], axis_, request.src[0])};
  }

 private:
  int axis_;
};

class Gather final : public Op, public Written {
 public:
  Gather(int axis, bool is_distinct) : axis_(axis), is_distinct_(is_distinct) {}
  std::string_view name() const override { return "gather"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(axis_) << 1 | std::uint64_t{is_distinct_});
  }
  void launch(Launch& run) const override {
    const Around at(run.src_shape(0), axis_);
    const std::int64_t items = run.src_shape(1)[axis_];
    const Dtype dtype = run.dst_dtype();
    const int depth = static_cast<int>(at.depth), missing = missing_bits(dtype), from_end = is_distinct_ ? 0 : depth;
    run.kernel(kGatherEntries(dtype))
        .args(run.src(0), run.src(1), run.dst(), at.outer, depth, items, at.inner, missing, from_end)
        .over_elements(at.outer * items * at.inner)
        .works_on(at.outer * items * at.inner);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array &a = request.src[0], &dy = request.dy[0];
    if (!is_floating(a.dtype())) return {};
    const bool is_put = is_distinct_ && dy.size() > 0;  // else sums stand in the result, which may not be rounded
    const Dtype real = is_put ? a.dtype() : real_of(a.dtype());
    const Array inputs[] = {request.src[1], as_dtype(dy, real)};
    const Array da = is_put ? make_array(make_op<Put>(axis_), a.shape(), real, inputs)
                            : add_at(Array(), a.shape(), axis_, inputs[0], inputs[1], false);
    return {as_dtype(da, a.dtype()), Array()};
  }
  void write(NodeWriter& w) const override {
    w.give(w.put("GatherElements", {w.in(0), w.in(1)}, {{"axis", std::int64_t{axis_}}}));
  }

 private:
  int axis_;
  bool is_distinct_;  // no index is negative or comes twice in a line, so no gradients meet
};

Array checked_index(const char* op, const Array& index, const char* name) {
  require(index.defined() && is_label(index.dtype()), op, "needs i32, i64 or u8 indices", index, name);
  return as_i32(index);
}

int countable_axis(const char* op, const Array& a, int axis) {
  require(a.defined(), op, "needs an array", a, "a");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError(std::string(op) + ": axis " + std::to_string(axis) + " is out of range for a " + describe(a));
  if (axis < 0) axis += rank;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() - 2;
  require(a.shape()[axis] <= kMost, op, "needs an axis that i32 can count", a, "a");
  return axis;
}

// Whether `small` fits into `large` in every axis but `axis` (-1: in all).
bool fits_within(const Shape& small, const Shape& large, int axis) {
  if (small.rank() != large.rank()) return false;
  for (int i = 0; i < small.rank(); ++i)
    if (i != axis && small[i] > large[i]) return false;
  return true;
}

// The part of a that has the sizes of `shape`, except along `axis` (-1: along all).
Array corner(Array a, const Shape& shape, int axis) {
  for (int i = 0; i < shape.rank(); ++i)
    if (i != axis && shape[i] < a.shape()[i]) a = slice(a, i, 0, shape[i]);
  return a;
}

Array take_rows(const char* name, const Array& a, const Array& index, const IndexedAxis& places) {
  const int axis = places.axis;
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(a.shape()[i]);
  for (const std::int64_t size : index.shape()) shape.push_back(size);
  for (int i = axis + 1; i < a.shape().rank(); ++i) shape.push_back(a.shape()[i]);
  require(index.size() <= std::numeric_limits<std::int32_t>::max(), name, "needs an index that i32 can count", index,
          "index");
  require(a.size() > 0 || shape.size() == 0, name, "needs elements to take", a, "a");
  const Array inputs[] = {a, index};
  return make_array(make_op<Take>(name, places), shape, a.dtype(), inputs);
}

}  // namespace

void write_scatter(NodeWriter& w, int axis, const char* reduction, const std::string& index) {
  const auto base = w.count() > 2 ? w.in(2) : w.expanded(w.number(0, w.result_dtype()), w.result());
  w.give(w.put("ScatterElements", {base, index.empty() ? w.in(0) : index, w.in(1)},
               {{"axis", std::int64_t{axis}}, {"reduction", std::string(reduction)}}));
}

Array as_i32(const Array& numbers) {
  if (numbers.dtype() != i64) return as_dtype(numbers, i32);
  return astype(apply_row<kClipToInts>({numbers}), i32);
}

Array gather_at(const Array& a, int axis, const Array& index, bool is_distinct) {
  const Array inputs[] = {corner(a, index.shape(), axis), index};
  return make_array(make_op<Gather>(axis, is_distinct), index.shape(), a.dtype(), inputs);
}

ScatterParts scatter_parts(const char* op, const Array& a, int axis, const Array& index, const Array& src) {
  ScatterParts parts;
  parts.axis = countable_axis(op, a, axis);
  parts.a = a;
  require(src.defined() && src.dtype() == a.dtype(), op, ("needs src of " + std::string(name_of(a.dtype()))).c_str(),
          src, "src");
  parts.index = checked_index(op, index, "index");
  const Shape& at = parts.index.shape();
  if (!fits_within(at, a.shape(), parts.axis) || !fits_within(at, src.shape(), -1))
    throw ArgumentError(std::string(op) + ": index must fit into src, and into a in every axis but " +
                        std::to_string(parts.axis) + ", a is " + describe(a) + ", index is " + describe(index) +
                        ", src is " + describe(src));
  require(at.size() <= std::numeric_limits<std::int32_t>::max(), op, "needs an index that i32 can count", index,
          "index");
  parts.src = corner(src, at, -1);
  for (int i = 0; i < at.rank() && parts.beyond < 0; ++i)
    if (i != parts.axis && at[i] < a.shape()[i]) parts.beyond = i;
  return parts;
}

}  // namespace detail

const detail::CastRow kEmbeddingCast{"embedding", CastRule::lower};
Array embedding(const Input& ids, const Input& table, std::optional<std::int32_t> padding_index) {
  if (const detail::Casts cast(kEmbeddingCast); cast) return embedding(ids, cast(table), padding_index);
  constexpr const char* kOp = "embedding";
  detail::require(table.defined() && is_floating(table.dtype()) && table.shape().rank() == 2, kOp,
                  "needs a floating table of two axes", table, "table");
  const Array index = detail::checked_index(kOp, ids, "ids");
  detail::countable_axis(kOp, table, 0);
  if (padding_index && (*padding_index < 0 || *padding_index >= table.shape()[0]))
    throw ArgumentError("embedding: padding_index must be a row of the table, got " + std::to_string(*padding_index) +
                        ", table is " + detail::describe(table));
  return detail::take_rows(kOp, table, index,
                           {.count_from_end = false, .left_out = padding_index.value_or(detail::kNoIndex)});
}

Array take(const Input& a, const Input& index, int axis) {
  axis = detail::countable_axis("take", a, axis);
  return detail::take_rows("take", a, detail::checked_index("take", index, "index"), {.axis = axis});
}

Array gather(const Input& a, int axis, const Input& index) {
  axis = detail::countable_axis("gather", a, axis);
  const Array at = detail::checked_index("gather", index, "index");
  if (!detail::fits_within(at.shape(), a.shape(), axis))
    throw ArgumentError("gather: index must fit into a in every axis but " + std::to_string(axis) + ", a is " +
                        detail::describe(a) + ", index is " + detail::describe(index));
  detail::require(a.size() > 0 || at.size() == 0, "gather", "needs elements to take", a, "a");
  return detail::gather_at(a, axis, at, false);
}

Array scatter_add(const Input& a, int axis, const Input& index, const Input& src) {
  const detail::ScatterParts parts = detail::scatter_parts("scatter_add", a, axis, index, src);
  detail::require(is_floating(a.dtype()), "scatter_add", "needs a floating array", a, "a");
  if (a.dtype() == f16 || a.dtype() == bf16)
    return astype(scatter_add(astype(a, f32), parts.axis, parts.index, astype(src, f32)), a.dtype());
  if (const int i = parts.beyond; i >= 0) {
    const std::int64_t reached = parts.index.shape()[i];
    return concat(
        {scatter_add(slice(a, i, 0, reached), parts.axis, parts.index, parts.src), slice(a, i, reached, a.shape()[i])},
        i);
  }
  return detail::add_at(a, a.shape(), parts.axis, parts.index, parts.src, true);
}

Array one_hot(const Input& ids, std::int64_t classes, Dtype dtype) {
  const Array index = detail::checked_index("one_hot", ids, "ids");
  if (classes < 1 || classes > std::numeric_limits<std::int32_t>::max())
    throw ArgumentError("one_hot: classes must be at least 1 and fit i32, got " + std::to_string(classes));
  return astype(equal(unsqueeze(index, -1), arange(0, static_cast<double>(classes), 1, i32)), dtype);
}

}  // namespace samebytes
