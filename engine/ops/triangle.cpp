// tril and triu: matrices on one side of a diagonal (kernels: cl/*/triangle.cl).
#include <algorithm>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/as_value.h"
#include "ops/rows.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace detail {
namespace {

class Triangle final : public Op, public Written {
 public:
  Triangle(bool is_lower, std::int64_t diagonal) : is_lower_(is_lower), diagonal_(diagonal) {}
  std::string_view name() const override { return is_lower_ ? "tril" : "triu"; }
  void hash(Hasher& hasher) const override {
    hasher.add(std::uint64_t{is_lower_});
    hasher.add(static_cast<std::uint64_t>(diagonal_));
  }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const std::int64_t rows = shape[-2], columns = shape[-1], lines = shape.size() / columns;
    const Dtype dtype = run.dst_dtype();
    const RowShare share = share_rows(run, lines, columns);
    run.kernel("triangle_" + std::to_string(bytes_of(dtype) * 8))
        .args(run.src(0), run.dst(), lines, rows, columns, diagonal_ + (is_lower_ ? 1 : 0), int{is_lower_},
              share.rows_per_group)
        .over_rows(share.groups, share.group);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    if (!is_floating(request.src[0].dtype())) return {};
    return {is_lower_ ? tril(request.dy[0], diagonal_) : triu(request.dy[0], diagonal_)};
  }
  void write(NodeWriter& w) const override {
    const auto k = w.reshaped(w.ints({diagonal_}), Shape{});
    w.give(w.put("Trilu", {w.in(0), k}, {{"upper", std::int64_t{!is_lower_}}}));
  }

 private:
  bool is_lower_;
  std::int64_t diagonal_;
};

Array triangle(const char* op, const Array& a, std::int64_t diagonal, bool is_lower) {
  require(a.defined() && a.shape().rank() >= 2, op, "needs two axes or more", a, "src");
  if (a.size() == 0) return as_value(a);
  const std::int64_t furthest = std::max(a.shape()[-2], a.shape()[-1]);  // beyond it nothing changes
  const Array inputs[] = {a};
  return make_array(make_op<Triangle>(is_lower, std::clamp(diagonal, -furthest, furthest)), a.shape(), a.dtype(),
                    inputs);
}

}  // namespace
}  // namespace detail

Array tril(const Input& a, std::int64_t diagonal) { return detail::triangle("tril", a, diagonal, true); }
Array triu(const Input& a, std::int64_t diagonal) { return detail::triangle("triu", a, diagonal, false); }

}  // namespace samebytes
