// concat: arrays one after the other along an axis; one launch per array that has elements.
#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/host_moves.h"
#include "ops/pointwise.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

class Concat final : public Op, public Written {
 public:
  explicit Concat(int axis) : axis_(axis) {}
  std::string_view name() const override { return "concat"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }

  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    std::int64_t rows = 1, inner = 1, start = 0;
    for (int i = 0; i < axis_; ++i) rows *= shape[i];
    for (int i = axis_ + 1; i < shape.rank(); ++i) inner *= shape[i];
    const std::int64_t dst_stride = shape[axis_] * inner;
    for (int i = 0; i < run.src_count(); ++i) {
      const std::int64_t width = run.src_shape(i)[axis_] * inner;
      if (width > 0) {
        KernelCall call = run.kernel(kConcatRows(run.dst_dtype()));
        call.args(run.src(i), run.dst(), rows, width, dst_stride, start).over_elements(rows * width);
        add_host_concat(call, bytes_of(run.dst_dtype()), rows, width, dst_stride, start);
      }
      start += width;
    }
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> result;
    std::int64_t start = 0;
    for (std::size_t i = 0; i < request.src.size(); ++i) {
      const std::int64_t stop = start + request.src[i].shape()[axis_];
      result.push_back(request.wanted[i] ? slice(request.dy[0], axis_, start, stop) : Array());
      start = stop;
    }
    return result;
  }
  void write(NodeWriter& w) const override {
    std::vector<NodeWriter::Name> inputs;
    for (std::size_t i = 0; i < w.count(); ++i) inputs.push_back(w.in(i));
    w.give(w.put("Concat", inputs, {{"axis", std::int64_t{axis_}}}));
  }

 private:
  int axis_;
};

}  // namespace
}  // namespace detail

const detail::CastRow kConcatCast{"concat", CastRule::widest};
Array concat(const Inputs& arrays, int axis) {
  if (const detail::Casts cast(kConcatCast); cast) return concat(cast(arrays), axis);
  using detail::describe;
  if (arrays.empty()) throw ArgumentError("concat: expected at least one array, got none");
  for (const Array& a : arrays) detail::require(a.defined(), "concat", "needs arrays", a, "src");
  const Array& first = arrays[0];
  const int rank = first.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError("concat: axis " + std::to_string(axis) + " is out of range for src " + describe(first));
  if (axis < 0) axis += rank;
  Shape shape = first.shape();
  Dtype dtype = first.dtype();
  for (std::size_t i = 1; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    bool ok = a.shape().rank() == rank;
    for (int k = 0; ok && k < rank; ++k) ok = k == axis || a.shape()[k] == shape[k];
    if (!ok)
      throw ArgumentError("concat: all sizes but those of axis " + std::to_string(axis) + " must agree, array 0 is " +
                          describe(first) + ", array " + std::to_string(i) + " is " + describe(a));
    shape[axis] = detail::checked_sum("concat", first, shape[axis], a.shape()[axis]);
    dtype = detail::promoted(dtype, a.dtype());
  }
  if (arrays.size() == 1) return first;
  const auto differs = [dtype](const Array& a) { return a.dtype() != dtype; };
  if (std::any_of(arrays.begin(), arrays.end(), differs)) {
    std::vector<Array> converted(arrays.begin(), arrays.end());
    for (Array& a : converted)
      if (differs(a)) a = astype(a, dtype);
    return concat(converted, axis);
  }
  return detail::make_array(detail::make_op<detail::Concat>(axis), shape, dtype, arrays);
}

}  // namespace samebytes
