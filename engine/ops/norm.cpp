// The Euclidean norm over the last axes, in one pass that writes no squares.
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/reduce.h"
#include "samebytes/ops.h"

namespace samebytes::detail {
namespace {

// Of the last `axes` axes of a dense input.
class RowNorm final : public Op, public Written {
 public:
  explicit RowNorm(int axes) : axes_(axes) {}
  std::string_view name() const override { return "norm"; }
  void hash(Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axes_)); }
  void launch(Launch& run) const override {
    const std::int64_t rows = run.dst_shape().size();
    launch_pattern(run, ReduceWhat::root_of_squares, run.src(0), run.dst(), {rows, run.src_shape(0).size() / rows, 1},
                   1.0, run.src_dtype(0), run.dst_dtype());
  }
  // d|x| / dx = x / |x|, and 0 at 0.
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Array& x = request.src[0];
    Shape kept = x.shape();
    for (int i = 1; i <= axes_; ++i) kept[kept.rank() - i] = 1;
    const Array y = reshape(request.dst[0], kept), is_zero = equal(y, 0);
    return {x * where(is_zero, 0, reshape(request.dy[0], kept) / where(is_zero, 1, y))};
  }
  void write(NodeWriter& w) const override {
    NodeWriter::Ints axes;
    for (int i = w.shape(0).rank() - axes_; i < w.shape(0).rank(); ++i) axes.push_back(i);
    const auto keeps = std::int64_t{w.result().rank() == w.shape(0).rank()};
    w.give(w.put("ReduceL2", {w.in(0), w.ints(axes)}, {{"keepdims", keeps}}));
  }

 private:
  int axes_;
};

}  // namespace

Array norm_of_rows(const Array& a, std::span<const int> axes, bool keep) {
  const int rank = a.shape().rank(), count = static_cast<int>(axes.size());
  if (axes.empty() || axes[0] != rank - count || !a.node()->is_dense() || a.size() == 0) return {};
  std::int64_t columns = 1;
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    if (i < rank - count) shape.push_back(a.shape()[i]);
    if (i < rank - count) continue;
    columns *= a.shape()[i];
    if (keep) shape.push_back(1);
  }
  if (columns > kReducedInOnePass) return {};
  return make_array(make_op<RowNorm>(count), shape, a.dtype(), {&a, 1});
}

}  // namespace samebytes::detail
