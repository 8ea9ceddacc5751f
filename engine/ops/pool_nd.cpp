// Pooling over one to three axes by lists of places (pool_nd.h): max pooling is one kernel (cl/*/pool_nd.cl) whose
// gradient puts dy back by the indices in another, mean pooling a weighted sum along each axis (resample.cpp).
#include "ops/pool_nd.h"

#include <algorithm>
#include <string>
#include <vector>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "shared/pool_nd.h"

namespace samebytes {
namespace detail {
namespace {

constexpr const char* kPoolNeeds[] = {"src must be floating [N, L, C]", "src must be floating [N, H, W, C]",
                                      "src must be floating [N, D, H, W, C]"};
constexpr const char* kPooled[] = {"sequence", "image", "volume"};

// The places of src in each window along an axis, [out, taps]; -1 outside of src.
struct AxisWindows {
  std::int64_t in = 1, out = 1, taps = 1;
  std::vector<std::int32_t> places{0};
};

AxisWindows axis_windows(const char* op, const PoolWindows& w, int axis, std::int64_t in) {
  const auto a = static_cast<std::size_t>(axis);
  AxisWindows list{in, pooled_size(w, axis, in), w.kernel[a], {}};
  require_table(op, list.out, list.taps);
  for (std::int64_t o = 0; o < list.out; ++o)
    for (std::int64_t t = 0; t < list.taps; ++t) {
      const std::int64_t place = o * w.stride[a] - w.pad[a] + t * w.dilation[a];
      list.places.push_back(place >= 0 && place < in ? static_cast<std::int32_t>(place) : -1);
    }
  return list;
}

AxisWindows adaptive_windows(const char* op, std::int64_t in, std::int64_t out) {
  require_table(op, out, 1);
  const auto begin = [&](std::int64_t o) { return o * in / out; };
  const auto end = [&](std::int64_t o) { return ceil_div((o + 1) * in, out); };
  AxisWindows list{in, out, 1, {}};
  for (std::int64_t o = 0; o < out; ++o) list.taps = std::max(list.taps, end(o) - begin(o));
  require_table(op, out, list.taps);
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t t = 0; t < list.taps; ++t)
      list.places.push_back(begin(o) + t < end(o) ? static_cast<std::int32_t>(begin(o) + t) : -1);
  return list;
}

// The places that a window spans.
std::int64_t window_span(const PoolWindows& w, std::size_t a) {
  return (w.kernel[a] - std::int64_t{1}) * w.dilation[a] + 1;
}

bool has_place(const PoolWindows& w, std::size_t a, std::int64_t in, std::int64_t o) {
  const std::int64_t first = o * w.stride[a] - w.pad[a], dilation = w.dilation[a];
  const std::int64_t skipped = first < 0 ? ceil_div(-first, dilation) : 0;
  return skipped < w.kernel[a] && first + skipped * dilation < in;
}

// Inputs dy [N, windows, C] and its places in an image; result dx [N, places, C] in the type of sums.
class MaxPoolNdGradient final : public Op {
 public:
  MaxPoolNdGradient() : Op({.is_flat = {1}}) {}
  std::string_view name() const override { return "max_pool_gradient"; }
  void launch(Launch& run) const override {
    const Shape &dy = run.src_shape(0), &dx = run.dst_shape();
    const std::int64_t tile = run.constant("pool_nd", "POOL_ND_TILE", run.dst_dtype());
    run.kernel("pool_nd_max_bwd", run.src_dtype(0))
        .args(run.src(0), run.src(1), run.dst(), dx[1], dy[1], dx[2])
        .over_rows(dx[0] * ceil_div(dx[2], tile), 64);
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    return {as_dtype(gather(request.dy[0], 1, request.src[1]), request.src[0].dtype()), Array()};
  }
};

// Inputs src [N, D, H, W, C] and the lists of the three axes; results y and the places of its values.
class MaxPoolNd final : public Op, public Written {
 public:
  MaxPoolNd(const char* name, const PoolWindows& windows) : name_(name), windows_(windows) {}
  std::string_view name() const override { return name_; }
  void hash(Hasher&) const override {}  // shapes and lists say all
  void launch(Launch& run) const override {
    const Shape &s = run.src_shape(0), &d = run.dst_shape(0);
    const pool_nd_sizes sizes{i32_of(s[0]),
                              i32_of(s[1]),
                              i32_of(s[2]),
                              i32_of(s[3]),
                              i32_of(s[4]),
                              i32_of(d[1]),
                              i32_of(d[2]),
                              i32_of(d[3]),
                              i32_of(run.src_shape(1)[1]),
                              i32_of(run.src_shape(2)[1]),
                              i32_of(run.src_shape(3)[1])};
    run.kernel("pool_nd_max", run.dst_dtype(0))
        .args(run.src(0), run.src(1), run.src(2), run.src(3), run.dst(0), run.dst(1), sizes)
        .over_elements(d.size());
  }
  std::vector<Array> gradient(const GradientRequest& request) const override {
    const Shape& s = request.src[0].shape();
    const Array& dy = request.dy[0];
    const Shape flat{s[0], s[1] * s[2] * s[3], s[4]},
        lines{s[0], dy.size() / std::max<std::int64_t>(s[0] * s[4], 1), s[4]};
    static const OpPtr op = make_op<MaxPoolNdGradient>();
    const Array inputs[] = {reshape(dy, lines), reshape(request.dst[1], lines)};
    const Array dx = make_array(op, flat, real_of(dy.dtype()), inputs);
    return {reshape(as_dtype(dx, dy.dtype()), s), Array(), Array(), Array()};
  }
  void write(NodeWriter& w) const override {
    using Ints = NodeWriter::Ints;
    if (windows_.kernel[0] == 0) w.refuse("adaptive windows of several sizes have no operator");
    Ints kernel, stride, pads, dilation, out{0};
    const auto axes = static_cast<std::size_t>(windows_.axes);
    for (std::size_t i = 0; i < axes; ++i) {
      kernel.push_back(windows_.kernel[i]);
      stride.push_back(windows_.stride[i]);
      pads.push_back(windows_.pad[i]);
      dilation.push_back(windows_.dilation[i]);
    }
    for (std::size_t i = 0; i < axes; ++i) pads.push_back(windows_.pad_end[i]);
    // The axes that are not used have one place, and windows of one.
    kernel.insert(kernel.begin(), 3 - axes, 1);
    stride.insert(stride.begin(), 3 - axes, 1);
    dilation.insert(dilation.begin(), 3 - axes, 1);
    pads.insert(pads.begin(), 3 - axes, 0);
    pads.insert(pads.begin() + 3, 3 - axes, 0);
    const auto y = w.put("MaxPool", {w.turned(w.in(0), {0, 4, 1, 2, 3})},
                         {{"kernel_shape", kernel},
                          {"strides", stride},
                          {"pads", pads},
                          {"dilations", dilation},
                          {"ceil_mode", std::int64_t{windows_.ceil_mode}}});
    w.give(w.turned(y, {0, 2, 3, 4, 1}));
  }

 private:
  const char* name_;
  PoolWindows windows_;  // a kernel of 0: adaptive
};

// [N, axes..., C] with axes of one place in front of the spatial ones.
Shape volumes(const Shape& s) {
  Shape shape{s[0]};
  for (int i = s.rank(); i < 5; ++i) shape.push_back(1);
  for (int i = 1; i < s.rank(); ++i) shape.push_back(s[i]);
  return shape;
}

PoolResult max_pool_by(const char* op, const Array& src, const std::vector<AxisWindows>& lists,
                       const PoolWindows& windows) {
  Shape shape = src.shape();
  std::vector<Array> inputs{reshape(src, volumes(src.shape()))};
  for (std::size_t i = lists.size(); i < 3; ++i) inputs.push_back(array(std::vector<std::int32_t>{0}, {1, 1}));
  for (std::size_t i = 0; i < lists.size(); ++i) {
    shape[static_cast<int>(i) + 1] = lists[i].out;
    inputs.push_back(array(std::span<const std::int32_t>(lists[i].places), {lists[i].out, lists[i].taps}));
  }
  const Result results[] = {{volumes(shape), src.dtype()}, {volumes(shape), i32}};
  const std::vector<Array> made = make_arrays(make_op<MaxPoolNd>(op, windows), results, inputs);
  return {reshape(made[0], shape), reshape(made[1], shape)};
}

void check_source(const char* op, const Array& src, int axes) {
  require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == axes + 2, op, kPoolNeeds[axes - 1], src,
          "src");
  const Shape& s = src.shape();
  std::int64_t places = 1;
  for (int i = 1; i <= axes; ++i) places = checked_product(op, src, places, s[i]);
  require(std::all_of(s.begin(), s.end(), [](std::int64_t size) { return size < std::int64_t{1} << 30; }) &&
              places < std::int64_t{1} << 31,
          op, "every side must be below 2^30, and the places of all axes below 2^31", src, "src");
}

// The volumes' adaptive windows, checked.
std::vector<AxisWindows> adaptive_volumes(const char* op, const Array& src, const std::array<int, 3>& out) {
  check_source(op, src, 3);
  std::vector<AxisWindows> lists;
  for (int i = 0; i < 3; ++i) {
    require(out[static_cast<std::size_t>(i)] >= 1 && src.shape()[i + 1] >= 1, op,
            "src and the result must have at least one place along each axis", src, "src");
    lists.push_back(adaptive_windows(op, src.shape()[i + 1], out[static_cast<std::size_t>(i)]));
  }
  return lists;
}

// A table of windows along an axis, all places of which weigh the same.
AxisTaps taps_of(const AxisWindows& list, const std::vector<double>& shares) {
  AxisTaps taps{.in = list.in, .taps = list.taps, .places = list.places, .weights = {}};
  taps.weights.reserve(list.places.size());
  for (const double share : shares) taps.weights.insert(taps.weights.end(), static_cast<std::size_t>(list.taps), share);
  return taps;
}

// Two neighbouring axes as one.
AxisTaps joint(const AxisTaps& outer, const AxisTaps& inner) {
  AxisTaps both{.in = outer.in * inner.in, .taps = outer.taps * inner.taps, .places = {}, .weights = {}};
  both.places.reserve(outer.places.size() * inner.places.size());
  both.weights.reserve(both.places.capacity());
  for (auto high = outer.places.begin(); high != outer.places.end(); high += outer.taps)
    for (auto low = inner.places.begin(); low != inner.places.end(); low += inner.taps) {
      const double weight = outer.weights[static_cast<std::size_t>(high - outer.places.begin())] *
                            inner.weights[static_cast<std::size_t>(low - inner.places.begin())];
      both.weights.insert(both.weights.end(), static_cast<std::size_t>(both.taps), weight);
      for (auto at = high; at != high + outer.taps; ++at)
        for (auto within = low; within != low + inner.taps; ++within)
          both.places.push_back(*at < 0 || *within < 0 ? -1 : i32_of(*at * inner.in + *within));
    }
  return both;
}

// The means of windows as weighted sums, of several axes at once where their table is small; `share(axis, o)` is the
// weight of the places of window o.
template <class Share>
Array weighted_windows(const Array& src, const std::vector<AxisWindows>& lists, const Share& share) {
  constexpr std::size_t kMostJoint = 512;
  Array y = as_dtype(src, src.dtype() == f64 ? f64 : f32);
  Shape shape = src.shape();
  std::int64_t outer = shape[0];
  for (std::size_t i = 0; i < lists.size();) {
    const auto taps_at = [&](std::size_t axis) {
      std::vector<double> shares;
      for (std::int64_t o = 0; o < lists[axis].out; ++o) shares.push_back(share(axis, o));
      return taps_of(lists[axis], shares);
    };
    AxisTaps taps = taps_at(i);
    const std::size_t first = i++;
    for (; i < lists.size() && taps.places.size() * lists[i].places.size() <= kMostJoint; ++i)
      taps = joint(taps, taps_at(i));
    for (std::size_t axis = first; axis < i; ++axis) shape[static_cast<int>(axis) + 1] = lists[axis].out;
    if (i == first + 1) {
      y = resample_axis(y, static_cast<int>(first) + 1, taps);
    } else {
      std::int64_t inner = 1;
      for (int axis = static_cast<int>(i) + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
      y = reshape(resample_axis(reshape(y, {outer, taps.in, inner}), 1, taps), shape);
    }
    for (std::size_t axis = first; axis < i; ++axis) outer *= lists[axis].out;
  }
  return as_dtype(y, src.dtype());
}

}  // namespace

std::string describe_sides(const PoolWindows& windows, const std::array<int, 3>& sides) {
  std::string text;
  for (int i = 0; i < windows.axes; ++i) text += (i ? " x " : "") + std::to_string(sides[static_cast<std::size_t>(i)]);
  return text;
}

std::int64_t pooled_size(const PoolWindows& w, int axis, std::int64_t in) {
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t room = in + w.pad[a] + w.pad_end[a] - window_span(w, a), stride = w.stride[a];
  if (room < 0) return 0;
  const std::int64_t out = (room + (w.ceil_mode ? stride - 1 : 0)) / stride + 1;
  // No window starts in the padding at the end.
  return w.ceil_mode && (out - 1) * stride >= in + w.pad[a] ? out - 1 : out;
}

void check_pooling(const char* op, const Array& src, const PoolWindows& w) {
  check_source(op, src, w.axes);
  std::int64_t window = 1;
  for (int i = 0; i < w.axes; ++i) {
    const auto a = static_cast<std::size_t>(i);
    require(w.kernel[a] >= 1 && w.stride[a] >= 1 && w.dilation[a] >= 1, op,
            "kernel, stride and dilation must be at least 1", src, "src");
    require(w.pad[a] >= 0 && w.pad_end[a] >= 0 && w.divisor >= 0, op, "pad and divisor must be at least 0", src, "src");
    // Places and sums of two of them are ints in the kernels; steps end within the padded side.
    constexpr std::int64_t most_side = std::int64_t{1} << 30, most_places = std::int64_t{1} << 31;
    window *= w.kernel[a];
    require(src.shape()[i + 1] + w.pad[a] + w.pad_end[a] < most_side && window_span(w, a) < most_side &&
                window < most_places,
            op, "padded sides and windows must be below 2^30, and the places of a window below 2^31", src, "src");
  }
  const auto kernel = [&] { return "kernel " + describe_sides(w, w.kernel); };
  const auto pad = [&] { return "pad " + describe_sides(w, w.pad); };
  for (int i = 0; i < w.axes; ++i) {
    const auto a = static_cast<std::size_t>(i);
    const std::int64_t in = src.shape()[i + 1], out = pooled_size(w, i, in);
    if (out < 1)
      require(false, op, (kernel() + " must fit in the " + kPooled[w.axes - 1] + " with " + pad()).c_str(), src, "src");
    if (w.has_gaps()) require_table(op, out, w.kernel[a]);  // each of them is looked at
    // Without gaps the outermost windows are the ones that may miss src.
    const std::int64_t next = w.dilation[a] == 1 ? std::max<std::int64_t>(out - 1, 1) : 1;
    for (std::int64_t o = 0; o < out; o += next)
      if (!has_place(w, a, in, o))
        require(false, op,
                ("every window must have a place of src, with " + kernel() + " and " + pad() + " window " +
                 std::to_string(o) + " of axis " + std::to_string(i + 1) + " has none")
                    .c_str(),
                src, "src");
  }
}

PoolResult max_pool_nd(const char* op, const Array& src, const PoolWindows& windows) {
  check_pooling(op, src, windows);
  std::vector<AxisWindows> lists;
  lists.reserve(static_cast<std::size_t>(windows.axes));
  for (int i = 0; i < windows.axes; ++i) lists.push_back(axis_windows(op, windows, i, src.shape()[i + 1]));
  return max_pool_by(op, src, lists, windows);
}

Array avg_pool_nd(const char* op, const Array& src, const PoolWindows& w) {
  check_pooling(op, src, w);
  std::vector<AxisWindows> lists;
  lists.reserve(static_cast<std::size_t>(w.axes));
  for (int i = 0; i < w.axes; ++i) lists.push_back(axis_windows(op, w, i, src.shape()[i + 1]));
  return weighted_windows(src, lists, [&](std::size_t a, std::int64_t o) {
    if (w.divisor > 0) return a == 0 ? 1.0 / w.divisor : 1.0;
    const std::int64_t first = w.count_include_pad ? -w.pad[a] : 0,
                       last = lists[a].in + (w.count_include_pad ? w.pad_end[a] : 0);
    int count = 0;
    for (int t = 0; t < w.kernel[a]; ++t) {
      const std::int64_t place = o * w.stride[a] - w.pad[a] + std::int64_t{t} * w.dilation[a];
      count += place >= first && place < last;
    }
    return 1.0 / count;
  });
}

Array adaptive_avg_pool_nd(const char* op, const Array& src, const std::array<int, 3>& out) {
  const std::vector<AxisWindows> lists = adaptive_volumes(op, src, out);
  return weighted_windows(src, lists, [&](std::size_t a, std::int64_t o) {
    const std::int64_t in = lists[a].in, begin = o * in / lists[a].out;
    return 1.0 / static_cast<double>(ceil_div((o + 1) * in, lists[a].out) - begin);
  });
}

Array adaptive_max_pool_nd(const char* op, const Array& src, const std::array<int, 3>& out) {
  return max_pool_by(op, src, adaptive_volumes(op, src, out), {.axes = 3}).values;
}

}  // namespace detail
}  // namespace samebytes
