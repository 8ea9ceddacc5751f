// sort, argsort and top_k: one op finds the places, gather moves the values and their gradients. Kernels: cl/*/sort.cl.
#include <string>
#include <utility>
#include <vector>

#include "graph/launch.h"
#include "graph/written.h"
#include "ops/indexing.h"
#include "samebytes/ops.h"
#include "samebytes/ops/sorting.h"

namespace samebytes {

namespace detail {
namespace {

// The places of the first k of a row; equal ones stand as they stood.
void write_places(NodeWriter& w, std::int64_t k, bool descending) {
  const auto made =
      w.put_all("TopK", {w.in(0), w.ints({k})}, {{"axis", std::int64_t{-1}}, {"largest", std::int64_t{descending}}}, 2);
  w.give(w.put("Cast", {made[1]}, {{"to", std::int64_t{6}}}));  // TensorProto's INT32
}

// The kernels of a dtype: what the entries that read the elements end with, the program, and a dtype of the size of a
// key, with whose bits the entries that read keys alone end.
struct SortKernels {
  std::string of_elements, of_keys;
  Dtype program, key;
  explicit SortKernels(Dtype dtype)
      : of_elements(is_floating(dtype) ? "real" : name_of(dtype)),
        of_keys(bytes_of(dtype) == 8 ? "64" : "32"),
        program(real_of(dtype)),
        key(bytes_of(dtype) == 8 ? i64 : i32) {}
};

// src [R, n], f32, f64, i32 or i64 -> i32 [R, n].
class ArgSort final : public Op, public Written {
 public:
  explicit ArgSort(bool descending) : Op({.is_flat = InputSet::all()}), descending_(descending) {}
  std::string_view name() const override { return "argsort"; }
  void hash(Hasher& hasher) const override { hasher.add(std::uint64_t{descending_}); }

  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const std::int64_t rows = shape[0], columns = shape[1];
    const SortKernels kernels(run.src_dtype(0));
    const Dtype real = kernels.program, key = kernels.key;
    const std::int64_t longest = run.constant("sort", "SORT_BLOCK", real);
    const std::int64_t share = run.constant("sort", "SORT_MERGE", real);
    const std::int64_t block = std::min(columns, longest);
    int passes = 0;
    for (std::int64_t width = block; width < columns; width *= 2) ++passes;

    struct Side {
      Operand keys, index;
    };
    Side from{run.temp(shape.size(), key), run.dst()}, to{run.temp(shape.size(), key), run.temp(shape.size(), i32)};
    if (passes % 2 == 1) std::swap(from, to);  // the last pass writes the result
    run.kernel("sort_blocks_" + kernels.of_elements, real)
        .args(run.src(0), from.keys, from.index, static_cast<int>(columns), static_cast<int>(block), int{descending_})
        .cpu_args(to.keys, to.index)
        .over_rows(rows * ((columns + block - 1) / block), block <= 128 ? 64 : 256);
    for (std::int64_t width = block; width < columns; width *= 2) {
      run.kernel("sort_merge_" + kernels.of_keys, real)
          .args(from.keys, from.index, to.keys, to.index, static_cast<int>(columns), static_cast<int>(width))
          .over_rows(rows * ((columns + share - 1) / share), 256);
      std::swap(from, to);
    }
  }
  void write(NodeWriter& w) const override { write_places(w, w.result()[1], descending_); }

 private:
  bool descending_;
};

constexpr std::int64_t kMostFound = 64;  // SORT_TOP_MOST of sort.cl

// src [R, n], f32, f64, i32 or i64 -> i32 [R, k], 1 <= k <= kMostFound: the first k of argsort.
class TopPlaces final : public Op, public Written {
 public:
  TopPlaces(std::int64_t k, bool descending) : k_(k), descending_(descending) {}
  std::string_view name() const override { return "top_places"; }
  void hash(Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(k_));
    hasher.add(std::uint64_t{descending_});
  }

  void launch(Launch& run) const override {
    const std::int64_t rows = run.src_shape(0)[0], columns = run.src_shape(0)[1];
    const SortKernels kernels(run.src_dtype(0));
    const Dtype real = kernels.program;
    const std::int64_t block = std::min(columns, run.constant("sort", "SORT_TOP_BLOCK", real));
    const std::int64_t blocks = (columns + block - 1) / block;
    const Operand keys = run.temp(rows * blocks * k_, kernels.key);
    const Operand places = blocks == 1 ? run.dst() : run.temp(rows * blocks * k_, i32);
    run.kernel("sort_top_" + kernels.of_elements, real)
        .args(run.src(0), keys, places, static_cast<int>(columns), static_cast<int>(block), static_cast<int>(k_),
              int{descending_})
        .over_rows(rows * blocks);
    if (blocks > 1)
      run.kernel("sort_top_merge_" + kernels.of_keys, real)
          .args(keys, places, run.dst(), static_cast<int>(blocks * k_), static_cast<int>(k_))
          .over_rows(rows);
  }
  std::vector<Array> gradient(const GradientRequest&) const override { return {}; }
  void write(NodeWriter& w) const override { write_places(w, k_, descending_); }

 private:
  std::int64_t k_;
  bool descending_;
};

int sort_axis(const char* op, const Array& a, int axis) {
  require(a.defined(), op, "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError(std::string(op) + ": axis " + std::to_string(axis) + " is out of range for src " + describe(a));
  if (axis < 0) axis += rank;
  constexpr std::int64_t kMost = std::int64_t{1} << 29;
  require(a.shape()[axis] <= kMost, op, "sorts at most 2^29 elements at a time", a, "src");
  return axis;
}

// `axis` and the last one exchanged.
Array exchanged(const Array& a, int axis) {
  const int rank = a.shape().rank();
  if (axis == rank - 1) return a;
  if (rank == 2) return transpose(a);
  // transpose() takes a list of known length, so the shape is seen as [outer, D, middle, E].
  std::int64_t outer = 1, middle = 1;
  for (int i = 0; i < axis; ++i) outer *= a.shape()[i];
  for (int i = axis + 1; i + 1 < rank; ++i) middle *= a.shape()[i];
  Shape shape = a.shape();
  std::swap(shape[axis], shape[rank - 1]);
  const Array apart = reshape(a, {outer, a.shape()[axis], middle, a.shape()[rank - 1]});
  return reshape(transpose(apart, {0, 3, 2, 1}), shape);
}

// The places of the first k elements in order.
Array sorted_places(const Array& a, int axis, bool descending, std::int64_t k) {
  if (a.dtype() == f16 || a.dtype() == bf16) return sorted_places(astype(a, f32), axis, descending, k);
  if (a.dtype() == u8 || a.dtype() == bool_) return sorted_places(astype(a, i32), axis, descending, k);
  Shape shape = a.shape();
  shape[axis] = k;
  if (shape.size() == 0) return full(shape, 0, i32);
  const Array moved = exchanged(a, axis);
  const bool is_flat = moved.shape().rank() == 2;
  const Array rows = is_flat ? moved : reshape(moved, {moved.shape().rows(), moved.shape().back()});
  Shape result = moved.shape();
  result[-1] = k;
  const bool is_short = k <= kMostFound && k < rows.shape()[1];
  const OpPtr op = is_short ? make_op<TopPlaces>(k, descending) : make_op<ArgSort>(descending);
  const Array places =
      make_array(op, {rows.shape()[0], is_short ? k : rows.shape()[1]}, i32, std::span<const Array>(&rows, 1));
  if (is_short) return contiguous(exchanged(is_flat ? places : reshape(places, result), axis));
  const Array all = exchanged(is_flat ? places : reshape(places, moved.shape()), axis);
  return k < a.shape()[axis] ? contiguous(slice(all, axis, 0, k)) : all;
}

}  // namespace
}  // namespace detail

SortResult sort(const Input& a, int axis, bool descending) {
  axis = detail::sort_axis("sort", a, axis);
  const Array places = detail::sorted_places(a, axis, descending, a.shape()[axis]);
  return {detail::gather_at(a, axis, places, true), places};
}

Array argsort(const Input& a, int axis, bool descending) {
  axis = detail::sort_axis("argsort", a, axis);
  return detail::sorted_places(a, axis, descending, a.shape()[axis]);
}

SortResult top_k(const Input& a, std::int64_t k, int axis, bool largest) {
  axis = detail::sort_axis("top_k", a, axis);
  if (k < 0 || k > a.shape()[axis])
    throw ArgumentError("top_k: k must be between 0 and the size of axis " + std::to_string(axis) + ", got " +
                        std::to_string(k) + ", src is " + detail::describe(a));
  const Array places = detail::sorted_places(a, axis, largest, k);
  return {detail::gather_at(a, axis, places, true), places};
}

}  // namespace samebytes
