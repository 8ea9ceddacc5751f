// Views: other shapes and strides over the same bytes. No kernel; a view is materialised only where a kernel needs
// dense rows.
#include <algorithm>
#include <numeric>

#include "graph/launch.h"
#include "graph/written.h"
#include "ops/as_value.h"
#include "ops/pointwise.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

using Gradient = std::function<Array(const Array& dy, const Array& src)>;

using Writing = std::function<NodeWriter::Name(NodeWriter& w)>;

NodeWriter::Name write_shape(NodeWriter& w) { return w.reshaped(w.in(0), w.result()); }

class View final : public Op, public Written {
 public:
  View(const char* name, Gradient gradient, Writing writing = write_shape)
      : Op({.takes_strides = InputSet::all()}),
        name_(name),
        gradient_(std::move(gradient)),
        writing_(std::move(writing)) {}
  std::string_view name() const override { return name_; }
  void launch(Launch&) const override { throw Error("view: never launched"); }
  std::vector<Array> gradient(const GradientRequest& g) const override { return {gradient_(g.dy[0], g.src[0])}; }
  void write(NodeWriter& w) const override { w.give(writing_(w)); }

 private:
  const char* name_;
  Gradient gradient_;
  Writing writing_;
};

struct Layout {
  std::int64_t offset;
  Strides strides;
};
Layout layout_of(const Array& a) {
  const Node& node = *a.node();
  return node.is_view ? Layout{node.offset, node.strides} : Layout{0, dense_strides(node.shape)};
}

// The gradient of a slice: dy in its place, zeros around it.
Array embed(const Array& dy, const Shape& shape, int axis, std::int64_t start, std::int64_t step) {
  Array body = dy;
  if (step > 1) {  // [.., n, ..] -> [.., n, step, ..] with zeros behind each element -> [.., n * step, ..]
    Array apart = unsqueeze(body, axis + 1);
    Shape gap = apart.shape();
    gap[axis + 1] = step - 1;
    apart = concat({apart, zeros(gap, dy.dtype())}, axis + 1);
    Shape merged = dy.shape();
    merged[axis] *= step;
    body = reshape(apart, merged);
    if (merged[axis] + start > shape[axis]) body = slice(body, axis, 0, shape[axis] - start);
  }
  std::vector<PadWidth> widths(static_cast<std::size_t>(shape.rank()));
  widths[static_cast<std::size_t>(axis)] = {start, shape[axis] - start - body.shape()[axis]};
  return pad(body, widths);
}

}  // namespace

Array as_value(const Array& a) {
  if (a.node()->op || a.node()->is_view) return a;
  static const auto op = make_op<View>("reshape", [](const Array& dy, const Array&) { return dy; });
  return make_view(op, a, a.shape(), 0, dense_strides(a.shape()));
}

}  // namespace detail

using detail::checked_axis;
using detail::describe;
using detail::layout_of;
using detail::make_op;
using detail::Strides;
using detail::View;

Array contiguous(const Input& a) {
  detail::require(a.defined(), "contiguous", "needs an array", a, "src");
  return a.node()->is_dense() ? a.array() : detail::copy_of(a);
}

Array copy(const Input& a) {
  detail::require(a.defined(), "copy", "needs an array", a, "src");
  return detail::copy_of(a);
}

Array reshape(const Input& a, const Shape& shape) {
  detail::require(a.defined(), "reshape", "needs an array", a, "src");
  if (std::find(shape.begin(), shape.end(), -1) != shape.end())
    return reshape(a, std::span<const std::int64_t>(shape.begin(), shape.end()));
  if (shape.size() != a.size())
    throw ArgumentError("reshape: shape " + shape.to_string() + " has " + std::to_string(shape.size()) +
                        " elements, src is " + describe(a));
  if (shape == a.shape()) return detail::as_value(a);
  const Array dense = contiguous(a);
  static const auto op =
      make_op<View>("reshape", [](const Array& dy, const Array& src) { return reshape(dy, src.shape()); });
  return detail::make_view(op, dense, shape, layout_of(dense).offset, detail::dense_strides(shape));
}

Array reshape(const Input& a, std::span<const std::int64_t> sizes) {
  detail::require(a.defined(), "reshape", "needs an array", a, "src");
  std::vector<std::int64_t> known(sizes.begin(), sizes.end());
  std::int64_t product = 1;
  int open = -1;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] >= 0) {
      if (known[i] != 0 && product > Shape::kMostElements / known[i])
        throw ArgumentError("reshape: expected at most 2^56 elements, src is " + describe(a));
      product *= known[i];
    } else if (known[i] == -1 && open < 0) {
      open = static_cast<int>(i);
    } else {
      throw ArgumentError("reshape: one size may be -1, the others 0 or more; src is " + describe(a));
    }
  }
  if (open >= 0) {
    if (product == 0 || a.size() % product != 0)
      throw ArgumentError("reshape: the size -1 has no solution, the others give " + std::to_string(product) +
                          ", src is " + describe(a));
    known[static_cast<std::size_t>(open)] = a.size() / product;
  }
  return reshape(a, Shape(std::span<const std::int64_t>(known)));
}

Array transpose(const Input& a, const Axes& axes) {
  detail::require(a.defined() && static_cast<int>(axes.size()) == a.shape().rank(), "transpose",
                  "needs one axis per axis of src", a, "src");
  std::array<int, Shape::kMaxRank> order{}, back{};
  std::array<bool, Shape::kMaxRank> seen{};
  const auto layout = layout_of(a);
  Shape shape = a.shape();
  Strides strides{};
  int i = 0;
  for (int axis : axes) {
    axis = checked_axis("transpose", a, axis);
    if (seen[axis])
      throw ArgumentError("transpose: axis " + std::to_string(axis) + " is named twice, src is " + describe(a));
    seen[axis] = true;
    order[i] = axis;
    back[axis] = i;
    shape[i] = a.shape()[axis];
    strides[i] = layout.strides[axis];
    ++i;
  }
  const int rank = a.shape().rank();
  const auto gradient = [back, rank](const Array& dy, const Array&) {
    return rank < 2 ? dy : transpose(dy, std::span<const int>(back.data(), static_cast<std::size_t>(rank)));
  };
  const auto op = make_op<View>("transpose", gradient, [order, rank](detail::NodeWriter& w) {
    return w.turned(w.in(0), {order.begin(), order.begin() + rank});
  });
  return detail::make_view(op, a, shape, layout.offset, strides);
}

Array transpose(const Input& a) {
  detail::require(a.defined() && a.shape().rank() >= 2, "transpose", "needs rank 2 or more", a, "src");
  const auto layout = layout_of(a);
  const int last = a.shape().rank() - 1;
  Shape shape = a.shape();
  Strides strides = layout.strides;
  std::swap(shape[last], shape[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  static const auto op = make_op<View>(
      "transpose", [](const Array& dy, const Array&) { return transpose(dy); },
      [](detail::NodeWriter& w) {
        detail::NodeWriter::Ints order(static_cast<std::size_t>(w.result().rank()));
        std::iota(order.begin(), order.end(), 0);
        std::swap(order.back(), order[order.size() - 2]);
        return w.turned(w.in(0), order);
      });
  return detail::make_view(op, a, shape, layout.offset, strides);
}

Array slice(const Input& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  axis = checked_axis("slice", a, axis);
  const auto place = static_cast<std::size_t>(axis);
  const std::int64_t n = a.shape()[axis];
  if (step == 0) throw ArgumentError("slice: step must not be 0, src is " + describe(a));
  // Bounds as places between elements, clamped: the first element taken and the place where it ends, -1 before
  // element 0.
  const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? n : n - 1;
  const auto counted = [n](std::int64_t bound) { return bound < 0 ? std::max(bound, -n - 1) + n : bound; };
  const std::int64_t from = std::clamp(counted(start), least, most);
  const std::int64_t to = step > 0 ? std::max(std::clamp(counted(stop), least, most), from)
                                   : std::min(std::clamp(counted(stop), least, most), from);
  const auto layout = layout_of(a);
  step = std::clamp(step, -std::max<std::int64_t>(n, 1), std::max<std::int64_t>(n, 1));  // longer ones take one element
  const std::int64_t width = step > 0 ? step : -step;
  Shape shape = a.shape();
  Strides strides = layout.strides;
  shape[axis] = ((step > 0 ? to - from : from - to) + width - 1) / width;
  strides[place] *= step;
  const std::int64_t first = shape[axis] > 0 ? from : 0;
  const auto gradient = [axis, first, step](const Array& dy, const Array& src) {
    if (step > 0) return detail::embed(dy, src.shape(), axis, first, step);
    const std::int64_t last = first + (dy.shape()[axis] - 1) * step;
    return detail::embed(flip(dy, {axis}), src.shape(), axis, std::max<std::int64_t>(last, 0), -step);
  };
  const std::int64_t end = step > 0 ? to : to < 0 ? -n - 1 : to;
  const auto op = make_op<View>("slice", gradient, [axis, first, end, step](detail::NodeWriter& w) {
    return w.put("Slice", {w.in(0), w.ints({first}), w.ints({end}), w.ints({axis}), w.ints({step})});
  });
  return detail::make_view(op, a, shape, layout.offset + first * layout.strides[place], strides);
}

Array broadcast_to(const Input& a, const Shape& shape) {
  detail::require(a.defined(), "broadcast_to", "needs an array", a, "src");
  if (a.shape() == shape) return detail::as_value(a);
  const int extra = shape.rank() - a.shape().rank();
  const auto layout = layout_of(a);
  Strides strides{};
  bool ok = extra >= 0;
  for (int i = std::max(extra, 0); ok && i < shape.rank(); ++i) {
    const std::int64_t n = a.shape()[i - extra];
    ok = n == shape[i] || n == 1;
    strides[i] = n == 1 ? 0 : layout.strides[i - extra];
  }
  if (!ok) throw ArgumentError("broadcast_to: src " + describe(a) + " does not broadcast to " + shape.to_string());
  static const auto op = make_op<View>(
      "broadcast_to", [](const Array& dy, const Array& src) { return sum_to(dy, src.shape()); },
      [](detail::NodeWriter& w) { return w.expanded(w.in(0), w.result()); });
  return detail::make_view(op, a, shape, layout.offset, strides);
}

Array squeeze(const Input& a, int axis) {
  axis = checked_axis("squeeze", a, axis);
  detail::require(a.shape()[axis] == 1, "squeeze", "the axis must have size 1", a, "src");
  const auto layout = layout_of(a);
  Shape shape;
  Strides strides{};
  for (int i = 0; i < a.shape().rank(); ++i) {
    if (i == axis) continue;
    strides[shape.rank()] = layout.strides[i];
    shape.push_back(a.shape()[i]);
  }
  static const auto op =
      make_op<View>("squeeze", [](const Array& dy, const Array& src) { return reshape(dy, src.shape()); });
  return detail::make_view(op, a, shape, layout.offset, strides);
}

Array unsqueeze(const Input& a, int axis) {
  axis = checked_axis("unsqueeze", a, axis, 1);
  const auto layout = layout_of(a);
  Shape shape;
  Strides strides{};
  for (int i = 0; i <= a.shape().rank(); ++i) {
    const bool fresh = i == axis;
    strides[i] = fresh ? 0 : layout.strides[i > axis ? i - 1 : i];
    shape.push_back(fresh ? 1 : a.shape()[i > axis ? i - 1 : i]);
  }
  static const auto op =
      make_op<View>("unsqueeze", [](const Array& dy, const Array& src) { return reshape(dy, src.shape()); });
  return detail::make_view(op, a, shape, layout.offset, strides);
}

Array flatten(const Input& a, int start_axis) {
  start_axis = checked_axis("flatten", a, start_axis);
  Shape shape;
  std::int64_t rest = 1;
  for (int i = 0; i < a.shape().rank(); ++i) {
    if (i < start_axis)
      shape.push_back(a.shape()[i]);
    else
      rest *= a.shape()[i];
  }
  shape.push_back(rest);
  return reshape(a, shape);
}

}  // namespace samebytes
