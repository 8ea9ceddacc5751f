// pad and roll: axes continued beyond their ends, one launch for each two axes that grow. Kernels: cl/*/pad.cl.
// The gradient gathers: of a constant border it is a slice, of the others a kernel that adds up the places of dy that
// show each element. Arrays padded with zeros are also what the gradients of slices are; where several slices of one
// array meet, their places are joined instead of added, so that each byte is written once.
#include <algorithm>
#include <optional>
#include <string>

#include "graph/launch.h"
#include "graph/written.h"
#include "ops/as_value.h"
#include "ops/host_moves.h"
#include "ops/pointwise.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"
#include "shared/pad.h"

namespace samebytes {
namespace {

using detail::describe;
using detail::GradientRequest;
using detail::Launch;
using detail::Node;
using detail::require;

static_assert(static_cast<int>(PadMode::constant) == detail::PAD_CONSTANT &&
                  static_cast<int>(PadMode::reflect) == detail::PAD_REFLECT &&
                  static_cast<int>(PadMode::replicate) == detail::PAD_REPLICATE &&
                  static_cast<int>(PadMode::circular) == detail::PAD_CIRCULAR,
              "the kernels' words");

// One axis: size n before and d after, `before` of them in front.
struct AxisPad {
  int axis = -1;
  std::int64_t before = 0, n = 1, d = 1;

  void hash(detail::Hasher& hasher) const {
    hasher.add(static_cast<std::uint64_t>(axis));
    hasher.add(static_cast<std::uint64_t>(before));
  }
};
// An axis, and where high.axis >= 0 another one before it, in one pass.
struct AxesPad {
  PadMode mode = PadMode::constant;
  AxisPad low, high = {};

  bool has_high() const { return high.axis >= 0; }
  void hash(detail::Hasher& hasher) const {
    hasher.add(static_cast<std::uint64_t>(mode));
    low.hash(hasher);
    high.hash(hasher);
  }
  // Of an array as it is or as it becomes: rows of the low axis and what lies behind it.
  detail::HostPad sizes(const Shape& shape) const {
    const detail::Around around(shape, low.axis);
    detail::HostPad sizes{.rows = around.outer,
                          .n = low.n,
                          .d = low.d,
                          .inner = around.inner,
                          .before = low.before,
                          .mode = static_cast<int>(mode)};
    if (!has_high()) return sizes;
    sizes.high_n = high.n;
    sizes.high_d = high.d;
    sizes.high_before = high.before;
    for (int axis = high.axis + 1; axis < low.axis; ++axis) sizes.between *= shape[axis];
    return sizes;
  }
};

Array pad_axes(const Array& a, const AxesPad& at, const Array& fill);
Array joined(const Node& a, const Node& b);

// dy -> dx of reflect, replicate and circular.
class PadGradient final : public detail::Op {
 public:
  explicit PadGradient(const AxesPad& at) : at_(at) {}
  std::string_view name() const override { return "pad_gradient"; }
  void hash(detail::Hasher& hasher) const override { at_.hash(hasher); }
  void launch(Launch& run) const override {
    const detail::HostPad s = at_.sizes(run.dst_shape());
    run.kernel("pad_bwd", run.dst_dtype())
        .args(run.src(0), run.dst(), s.rows, s.n, s.d, s.inner, s.before, s.high_n, s.high_d, s.high_before, s.between,
              s.mode)
        .over_elements(run.dst_shape().size());
  }
  std::vector<Array> gradient(const GradientRequest& g) const override { return {pad_axes(g.dy[0], at_, {})}; }

 private:
  AxesPad at_;
};

// Inputs src and, where a constant is not zero, the constant.
class Pad final : public detail::Op, public detail::Written {
 public:
  explicit Pad(const AxesPad& at) : at_(at) {}
  std::string_view name() const override { return "pad"; }
  void hash(detail::Hasher& hasher) const override { at_.hash(hasher); }
  void launch(Launch& run) const override {
    const detail::HostPad s = at_.sizes(run.dst_shape());
    const bool has_fill = run.src_count() > 1;
    const std::size_t bytes = bytes_of(run.dst_dtype());
    constexpr detail::EntryByWidth entry{"pad_fwd_8", "pad_fwd_16", "pad_fwd_32", "pad_fwd_64"};
    detail::KernelCall call = run.kernel(entry(run.dst_dtype()));
    call.args(run.src(0), has_fill ? run.src(1) : Launch::none(), run.dst(), s.rows, s.n, s.d, s.inner, s.before,
              s.high_n, s.high_d, s.high_before, s.between, s.mode, int{has_fill})
        .over_elements(run.dst_shape().size());
    detail::add_host_pad(call, bytes, s);
  }
  std::vector<Array> gradient(const GradientRequest& g) const override {
    const Array& dy = g.dy[0];
    std::vector<Array> result(g.src.size());
    const AxisPad &low = at_.low, &high = at_.high;
    if (at_.mode == PadMode::constant) {
      result[0] = slice(dy, low.axis, low.before, low.before + low.n);
      if (at_.has_high()) result[0] = slice(result[0], high.axis, high.before, high.before + high.n);
    } else if (low.d == low.n) {
      result[0] = roll(dy, -low.before, low.axis);
    } else {
      result[0] = detail::make_array(detail::make_op<PadGradient>(at_), g.src[0].shape(), dy.dtype(), {&dy, 1});
    }
    return result;
  }
  Array added_to(const Node& node, const Array& other) const override { return joined(node, *other.node()); }
  void write(detail::NodeWriter& w) const override {
    if (at_.mode == PadMode::circular) {
      detail::NodeWriter::Name turned = w.in(0);
      for (const AxisPad& at : {at_.low, at_.high}) {
        detail::NodeWriter::Ints from;
        for (std::int64_t i = 0; i < at.d; ++i) from.push_back(((i - at.before) % at.n + at.n) % at.n);
        if (at.axis >= 0) turned = w.put("Gather", {turned, w.ints(from)}, {{"axis", std::int64_t{at.axis}}});
      }
      return w.give(turned);
    }
    const char* mode = at_.mode == PadMode::reflect ? "reflect" : at_.mode == PadMode::replicate ? "edge" : "constant";
    const auto fill = w.count() > 1 ? w.reshaped(w.in(1), Shape{}) : w.number(0, w.dtype(0));
    // For all axes: ONNX Runtime moves transposes through a Pad as if it named none.
    const auto rank = static_cast<std::size_t>(w.shape(0).rank());
    detail::NodeWriter::Ints pads(2 * rank, 0);
    for (const AxisPad& at : {at_.low, at_.high}) {
      if (at.axis < 0) continue;
      const auto axis = static_cast<std::size_t>(at.axis);
      pads[axis] = at.before;
      pads[rank + axis] = at.d - at.n - at.before;
    }
    w.give(w.put("Pad", {w.in(0), w.ints(pads), fill}, {{"mode", std::string(mode)}}));
  }
  const AxesPad& at() const { return at_; }

 private:
  AxesPad at_;
};

// Several floating arrays in their places along an axis, zeros between them.
class Placed final : public detail::Op {
 public:
  Placed(int axis, std::vector<std::int64_t> starts) : axis_(axis), starts_(std::move(starts)) {}
  std::string_view name() const override { return "placed"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(static_cast<std::uint64_t>(axis_));
    for (const std::int64_t start : starts_) hasher.add(static_cast<std::uint64_t>(start));
  }
  void launch(Launch& run) const override {
    const Shape& shape = run.dst_shape();
    const detail::Around around(shape, axis_);
    run.kernel("fill_real", run.dst_dtype()).args(run.dst(), shape.size(), 0.0).over_elements(shape.size());
    for (int i = 0; i < run.src_count(); ++i) {
      const std::int64_t width = run.src_shape(i)[axis_] * around.inner;
      run.kernel(detail::kConcatRows(run.dst_dtype()))
          .args(run.src(i), run.dst(), around.outer, width, shape[axis_] * around.inner,
                starts_[static_cast<std::size_t>(i)] * around.inner)
          .over_elements(around.outer * width);
    }
  }
  std::vector<Array> gradient(const GradientRequest& g) const override {
    std::vector<Array> result;
    for (std::size_t i = 0; i < g.src.size(); ++i)
      result.push_back(slice(g.dy[0], axis_, starts_[i], starts_[i] + g.src[i].shape()[axis_]));
    return result;
  }
  Array added_to(const Node& node, const Array& other) const override { return joined(node, *other.node()); }
  int axis() const { return axis_; }
  const std::vector<std::int64_t>& starts() const { return starts_; }

 private:
  int axis_;
  std::vector<std::int64_t> starts_;
};

struct Piece {
  std::int64_t start;
  Array array;
};
struct Pieces {
  int axis = 0;
  std::vector<Piece> list;
};

// What a node of zeros with arrays among them consists of.
std::optional<Pieces> pieces_of(const Node& node) {
  const bool is_open = node.op && !node.has_value && !node.is_view && node.output < 0;
  if (!is_open || (node.dtype != f32 && node.dtype != f64)) return std::nullopt;
  if (const auto* pad = dynamic_cast<const Pad*>(node.op.get())) {
    const AxesPad& at = pad->at();
    if (at.mode != PadMode::constant || at.has_high() || node.inputs.size() != 1) return std::nullopt;
    return Pieces{at.low.axis, {{at.low.before, Array(node.inputs[0].node)}}};
  }
  if (const auto* placed = dynamic_cast<const Placed*>(node.op.get())) {
    Pieces pieces{placed->axis(), {}};
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      pieces.list.push_back({placed->starts()[i], Array(node.inputs[i].node)});
    return pieces;
  }
  return std::nullopt;
}

// The sum of two such nodes as one of them, or an empty handle where their places overlap.
Array joined(const Node& a, const Node& b) {
  std::optional<Pieces> pieces = pieces_of(a), more = pieces_of(b);
  if (!pieces || !more || pieces->axis != more->axis || a.shape != b.shape || a.dtype != b.dtype) return {};
  const int axis = pieces->axis;
  std::vector<Piece>& list = pieces->list;
  list.insert(list.end(), more->list.begin(), more->list.end());
  std::sort(list.begin(), list.end(), [](const Piece& x, const Piece& y) { return x.start < y.start; });
  std::vector<Array> arrays;
  std::vector<std::int64_t> starts;
  std::int64_t end = 0, covered = 0;
  for (const Piece& piece : list) {
    if (piece.start < end) return {};
    end = piece.start + piece.array.shape()[axis];
    covered += piece.array.shape()[axis];
    arrays.push_back(piece.array);
    starts.push_back(piece.start);
  }
  if (covered == a.shape[axis]) return concat(arrays, axis);
  return detail::make_array(detail::make_op<Placed>(axis, std::move(starts)), a.shape, a.dtype, arrays);
}

Array pad_axes(const Array& a, const AxesPad& at, const Array& fill) {
  Shape shape = a.shape();
  shape[at.low.axis] = at.low.d;
  if (at.has_high()) shape[at.high.axis] = at.high.d;
  const Array inputs[] = {a, fill};
  return detail::make_array(detail::make_op<Pad>(at), shape, a.dtype(), {inputs, fill.defined() ? 2u : 1u});
}

}  // namespace

Array pad(const Input& a, std::span<const PadWidth> widths, PadMode mode, double value) {
  require(a.defined(), "pad", "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (widths.size() != static_cast<std::size_t>(rank))
    throw ArgumentError("pad: expected one width for each axis, got " + std::to_string(widths.size()) + ", src is " +
                        describe(a));
  Shape shape = a.shape();
  for (int axis = 0; axis < rank; ++axis) {
    const auto [before, after] = widths[static_cast<std::size_t>(axis)];
    const std::int64_t n = a.shape()[axis], widest = std::max(before, after);
    const bool ok = before >= 0 && after >= 0 &&
                    (mode == PadMode::constant || widest == 0 || (mode == PadMode::reflect && widest < n) ||
                     (mode == PadMode::circular && widest <= n) || (mode == PadMode::replicate && n > 0));
    if (!ok)
      throw ArgumentError(std::string("pad: widths must be 0 or more") +
                          (mode == PadMode::reflect     ? " and below the size of the axis"
                           : mode == PadMode::circular  ? " and at most the size of the axis"
                           : mode == PadMode::replicate ? " and the axis not empty"
                                                        : "") +
                          ", axis " + std::to_string(axis) + " has " + std::to_string(before) + " and " +
                          std::to_string(after) + ", src is " + describe(a));
    shape[axis] = detail::checked_sum("pad", a, detail::checked_sum("pad", a, before, n), after);
  }
  if (shape == a.shape()) return detail::as_value(a);
  const bool has_fill = mode == PadMode::constant && value != 0.0;
  const Array fill = has_fill ? full({}, value, a.dtype()) : Array();
  if (a.size() == 0) return full(shape, has_fill ? value : 0.0, a.dtype());
  Array result = a;
  AxesPad at{.mode = mode, .low = {}};
  for (int axis = rank - 1; axis >= 0; --axis) {  // the innermost first: what is copied twice is smaller then
    const auto [before, after] = widths[static_cast<std::size_t>(axis)];
    const std::int64_t n = a.shape()[axis];
    if (before + after == 0) continue;
    const AxisPad one{axis, before, n, before + n + after};
    if (at.low.axis < 0) {
      at.low = one;
      continue;
    }
    at.high = one;
    result = pad_axes(result, at, fill);
    at = {.mode = mode, .low = {}};
  }
  return at.low.axis < 0 ? result : pad_axes(result, at, fill);
}

Array roll(const Input& a, std::int64_t shift, int axis) {
  require(a.defined(), "roll", "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError("roll: axis " + std::to_string(axis) + " is out of range for src " + describe(a));
  if (axis < 0) axis += rank;
  const std::int64_t n = a.shape()[axis];
  if (a.size() == 0 || shift % n == 0) return detail::as_value(a);
  return pad_axes(a, {.mode = PadMode::circular, .low = {axis, (shift % n + n) % n, n, n}}, {});
}

}  // namespace samebytes
