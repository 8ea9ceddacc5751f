// pad and roll: axes continued beyond their ends, one launch for each axis that grows. Kernels: cl/*/pad.cl.
// The gradient gathers: of a constant border it is a slice, of the others a kernel that adds up the places of dy that
// show each element.
#include <string>

#include "graph/launch.h"
#include "ops/pointwise.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::describe;
using detail::GradientRequest;
using detail::Launch;
using detail::require;

// One axis: size n before and d after, `before` of them in front.
struct AxisPad {
  int axis;
  std::int64_t before, n, d;
  PadMode mode;

  void hash(detail::Hasher& hasher) const {
    hasher.add(static_cast<std::uint64_t>(axis));
    hasher.add(static_cast<std::uint64_t>(before));
    hasher.add(static_cast<std::uint64_t>(mode));
  }
};

// Sizes of the axes before and behind one.
struct Around {
  std::int64_t outer = 1, inner = 1;
  Around(const Shape& shape, int axis) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

Array pad_axis(const Array& a, const AxisPad& at, const Array& fill);

// dy -> dx of reflect, replicate and circular.
class PadGradient final : public detail::Op {
 public:
  explicit PadGradient(const AxisPad& at) : at_(at) {}
  std::string_view name() const override { return "pad_gradient"; }
  void hash(detail::Hasher& hasher) const override { at_.hash(hasher); }
  void launch(Launch& run) const override {
    const Around around(run.dst_shape(), at_.axis);
    run.kernel("pad_bwd", run.dst_dtype())
        .args(run.src(0), run.dst(), around.outer, at_.n, at_.d, around.inner, at_.before, static_cast<int>(at_.mode))
        .over_elements(run.dst_shape().size());
  }
  std::vector<Array> gradient(const GradientRequest& g) const override { return {pad_axis(g.dy[0], at_, {})}; }

 private:
  AxisPad at_;
};

// Inputs src and, where a constant is not zero, the constant.
class Pad final : public detail::Op {
 public:
  explicit Pad(const AxisPad& at) : at_(at) {}
  std::string_view name() const override { return "pad"; }
  void hash(detail::Hasher& hasher) const override { at_.hash(hasher); }
  void launch(Launch& run) const override {
    const Around around(run.dst_shape(), at_.axis);
    const bool has_fill = run.src_count() > 1;
    run.kernel("pad_fwd_" + std::to_string(bytes_of(run.dst_dtype()) * 8))
        .args(run.src(0), has_fill ? run.src(1) : Launch::none(), run.dst(), around.outer, at_.n, at_.d, around.inner,
              at_.before, static_cast<int>(at_.mode), int{has_fill})
        .over_elements(run.dst_shape().size());
  }
  std::vector<Array> gradient(const GradientRequest& g) const override {
    const Array& dy = g.dy[0];
    std::vector<Array> result(g.src.size());
    if (at_.mode == PadMode::constant) {
      result[0] = slice(dy, at_.axis, at_.before, at_.before + at_.n);
    } else if (at_.d == at_.n) {
      result[0] = roll(dy, -at_.before, at_.axis);
    } else {
      const Dtype dtype = dy.dtype(), real = detail::real_of(dtype);
      const Array wide = dtype == real ? dy : astype(dy, real);
      const Array dx = detail::make_array(detail::make_op<PadGradient>(at_), g.src[0].shape(), real, {&wide, 1});
      result[0] = dtype == real ? dx : astype(dx, dtype);
    }
    return result;
  }

 private:
  AxisPad at_;
};

Array pad_axis(const Array& a, const AxisPad& at, const Array& fill) {
  Shape shape = a.shape();
  shape[at.axis] = at.d;
  const Array inputs[] = {a, fill};
  return detail::make_array(detail::make_op<Pad>(at), shape, a.dtype(), {inputs, fill ? 2u : 1u});
}

}  // namespace

Array pad(const Array& a, std::span<const PadWidth> widths, PadMode mode, double value) {
  require(static_cast<bool>(a), "pad", "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (widths.size() != static_cast<std::size_t>(rank))
    throw ArgumentError("pad: needs one width for each axis, " + std::to_string(widths.size()) + " came, src is " +
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
    shape[axis] = before + n + after;
  }
  if (shape == a.shape()) return a;
  const bool has_fill = mode == PadMode::constant && value != 0.0;
  const Array fill = has_fill ? full({}, value, a.dtype()) : Array();
  if (a.size() == 0) return full(shape, has_fill ? value : 0.0, a.dtype());
  Array result = a;
  for (int axis = rank - 1; axis >= 0; --axis) {  // the innermost first: what is copied twice is smaller then
    const auto [before, after] = widths[static_cast<std::size_t>(axis)];
    const std::int64_t n = a.shape()[axis];
    if (before + after > 0) result = pad_axis(result, {axis, before, n, before + n + after, mode}, fill);
  }
  return result;
}

Array roll(const Array& a, std::int64_t shift, int axis) {
  require(static_cast<bool>(a), "roll", "needs an array", a, "src");
  const int rank = a.shape().rank();
  if (axis < -rank || axis >= rank)
    throw ArgumentError("roll: axis " + std::to_string(axis) + " is out of range for src " + describe(a));
  if (axis < 0) axis += rank;
  const std::int64_t n = a.shape()[axis];
  if (a.size() == 0 || shift % n == 0) return a;
  return pad_axis(a, {axis, (shift % n + n) % n, n, n, PadMode::circular}, {});
}

}  // namespace samebytes
