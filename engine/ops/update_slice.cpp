// A part of a cell overwritten in place. Kernel: cl/*/update_slice.cl.
#include "samebytes/ops/update_slice.h"

#include <algorithm>

#include "graph/launch.h"
#include "ops/host_moves.h"
#include "ops/pointwise.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

// Inputs: the cell, the value; scalar: the start.
class UpdateSlice final : public Op {
 public:
  explicit UpdateSlice(int axis) : Op({.is_state = {0}, .in_place = {.result = 0, .input = 0}}), axis_(axis) {}
  std::string_view name() const override { return "update_slice"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }

  void launch(Launch& run) const override {
    const Shape &cell = run.dst_shape(), &value = run.src_shape(1);
    if (value.size() == 0) return;
    std::int64_t inner = 1;
    for (int i = axis_ + 1; i < cell.rank(); ++i) inner *= cell[i];
    const std::int64_t count = value[axis_] * inner, line = cell[axis_] * inner;
    KernelCall call = run.kernel("update_slice", run.dst_dtype());
    call.args(run.src(1), run.dst(), value.size(), count, line, inner, DynamicBits{0}).over_elements(value.size());
    add_host_update(call, bytes_of(run.dst_dtype()), {value.size() / count, count, line, inner});
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const std::int64_t start = static_cast<std::int64_t>(request.scalars[0].bits);
    return {Array(), slice(request.dy[0], axis_, start, start + request.src[1].shape()[axis_])};
  }

 private:
  int axis_;
};

}  // namespace
}  // namespace detail

Array update_slice(const Input& cell, const Input& value, int axis, std::int64_t start) {
  constexpr const char* kOp = "update_slice";
  detail::require(is_cell(cell) && (cell.dtype() == f32 || cell.dtype() == f64), kOp, "needs a cell of f32 or f64",
                  cell, "cell");
  const int rank = cell.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError(std::string(kOp) + ": axis " + std::to_string(axis) + " is out of range for cell " +
                        detail::describe(cell));
  if (axis < 0) axis += rank;
  bool fits = value.defined() && value.dtype() == cell.dtype() && value.shape().rank() == rank;
  for (int i = 0; fits && i < rank; ++i) fits = i == axis || value.shape()[i] == cell.shape()[i];
  if (!fits)
    throw ArgumentError(std::string(kOp) + ": the value must agree with the cell in all axes but " +
                        std::to_string(axis) + ", cell is " + detail::describe(cell) + ", value is " +
                        detail::describe(value));
  const std::int64_t end = std::min(start, Shape::kMostElements) + value.shape()[axis];
  if (start < 0 || end > cell.shape()[axis])
    throw ArgumentError(std::string(kOp) + ": [" + std::to_string(start) + ", " + std::to_string(end) +
                        ") is not within axis " + std::to_string(axis) + " of cell " + detail::describe(cell));
  const Array inputs[] = {cell, value.node()->base().cell ? detail::copy_of(value) : value.array()};
  return detail::make_array(detail::make_op<detail::UpdateSlice>(axis), cell.shape(), cell.dtype(), inputs,
                            {static_cast<std::uint64_t>(start)});
}

}  // namespace samebytes
