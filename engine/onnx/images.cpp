// Convolution, pooling and resizing. They run channels last; values keep that order until an operator needs another.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// Windows along the spatial axes.
struct Windows {
  std::vector<std::int64_t> kernel, stride, dilation, before, after;
};

Windows windows(const Call& call, std::vector<std::int64_t> kernel) {
  const std::size_t axes = static_cast<std::size_t>(call.rank()) - 2;
  Windows w;
  w.kernel = call.integers("kernel_shape", std::move(kernel));
  w.stride = call.integers("strides", std::vector<std::int64_t>(axes, 1));
  w.dilation = call.integers("dilations", std::vector<std::int64_t>(axes, 1));
  std::vector<std::int64_t> pads = call.integers("pads", std::vector<std::int64_t>(2 * axes, 0));
  if (w.kernel.size() != axes || w.stride.size() != axes || w.dilation.size() != axes || pads.size() != 2 * axes)
    call.refuse("kernel, strides, dilations and pads do not fit " + std::to_string(axes) + " axes");
  const std::string automatic = call.text("auto_pad", "NOTSET");
  for (std::size_t i = 0; i < axes; ++i) {
    for (const std::int64_t value : {w.kernel[i], w.stride[i], w.dilation[i]})
      if (value < 1 || value > std::numeric_limits<int>::max())
        call.refuse("a window has the size " + std::to_string(value));
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const std::int64_t size = call.sizes()[i + 2], out = (size + w.stride[i] - 1) / w.stride[i];
      const std::int64_t all =
          std::max<std::int64_t>(0, (out - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1 - size);
      pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
      pads[i + axes] = all - pads[i];
    } else if (automatic == "VALID") {
      pads[i] = pads[i + axes] = 0;
    }
    if (pads[i] < 0 || pads[i + axes] < 0) call.refuse("negative pads are not supported");
  }
  w.before.assign(pads.begin(), pads.begin() + std::ssize(pads) / 2);
  w.after.assign(pads.begin() + std::ssize(pads) / 2, pads.end());
  return w;
}

// Pads [N, ..., C] by what the two sides differ, or by all; w then has what is left.
Array evened(const Array& x, Windows& w, double value, bool all) {
  if (!all && w.before == w.after) return x;
  std::vector<PadWidth> widths(static_cast<std::size_t>(x.shape().rank()));
  for (std::size_t i = 0; i < w.before.size(); ++i) {
    widths[i + 1] = {w.before[i], w.after[i]};
    w.before[i] = w.after[i] = 0;
  }
  return pad(x, widths, PadMode::constant, value);
}

Outputs convolution(const Call& call) {
  if (!call.is_floating() || call.rank() < 3 || call.rank() > 5)
    call.refuse("expected floating [N, C, ...] of 3 to 5 axes");
  const auto rank = static_cast<std::size_t>(call.rank());
  const Sizes of_weight = call.sizes(1);
  if (of_weight.size() != rank) call.refuse("the filter has another rank than the image");
  Windows w = windows(call, {of_weight.begin() + 2, of_weight.end()});
  const Array x = evened(stored(call.at(0), channels_last(rank)), w, 0.0, false);
  const Array weight = stored(call.at(1), taps_first(rank)), bias = call.optional(2);
  const int groups = static_cast<int>(call.integer("group", 1));
  const auto at = [](const std::vector<std::int64_t>& list, std::size_t i) { return static_cast<int>(list[i]); };
  const auto &s = w.stride, &p = w.before, &d = w.dilation;
  Array y;
  if (rank == 3) y = conv1d(x, weight, bias, {at(s, 0), at(p, 0), at(d, 0), groups});
  if (rank == 4) y = conv2d(x, weight, bias, {at(s, 0), at(s, 1), at(p, 0), at(p, 1), at(d, 0), at(d, 1), groups});
  if (rank == 5)
    y = conv3d(x, weight, bias,
               {at(s, 0), at(s, 1), at(s, 2), at(p, 0), at(p, 1), at(p, 2), at(d, 0), at(d, 1), at(d, 2), groups});
  return {ordered(y, channels_last(rank))};
}

// The filter is [C, K / groups, ...]: ours is [..., K / groups, C].
Outputs transposed_convolution(const Call& call) {
  if (!call.is_floating() || call.rank() < 3 || call.rank() > 4)
    call.refuse("expected floating [N, C, ...] of 3 or 4 axes");
  const auto rank = static_cast<std::size_t>(call.rank());
  const Sizes of_weight = call.sizes(1);
  if (call.has_attribute("output_shape") || call.text("auto_pad", "NOTSET") != "NOTSET")
    call.refuse("output_shape and auto_pad are not supported");
  Windows w = windows(call, {of_weight.begin() + 2, of_weight.end()});
  const auto extra = call.integers("output_padding", std::vector<std::int64_t>(rank - 2, 0));
  if (extra.size() != rank - 2) call.refuse("output_padding does not fit");
  const int groups = static_cast<int>(call.integer("group", 1));
  const Array x = stored(call.at(0), channels_last(rank)), weight = stored(call.at(1), taps_first(rank));
  const Array bias = call.optional(2);
  const auto at = [](const std::vector<std::int64_t>& list, std::size_t i) { return static_cast<int>(list[i]); };
  // Without padding; the sides are cut afterwards, as they may differ.
  Array y;
  if (rank == 3)
    y = conv_transpose1d(x, weight, bias, {at(w.stride, 0), 0, at(extra, 0), at(w.dilation, 0), groups});
  else
    y = conv_transpose2d(x, weight, bias,
                         {at(w.stride, 0), at(w.stride, 1), 0, 0, at(extra, 0), at(extra, 1), at(w.dilation, 0),
                          at(w.dilation, 1), groups});
  for (std::size_t i = 0; i < rank - 2; ++i) {
    const int axis = static_cast<int>(i) + 1;
    const std::int64_t size = y.shape()[axis];
    if (w.before[i] + w.after[i] >= size) call.refuse("pads leave nothing");
    if (w.before[i] + w.after[i] > 0) y = slice(y, axis, w.before[i], size - w.after[i]);
  }
  return {ordered(y, channels_last(rank))};
}

// The end's padding that the last window of ceil_mode needs; a window that would start in the end's padding is left
// out.
void round_up(const Call& call, Windows& w, std::vector<std::int64_t>& beyond) {
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const std::int64_t size = call.sizes()[i + 2], whole = size + w.before[i] + w.after[i] - w.kernel[i];
    if (whole < 0) call.refuse("the window is larger than the padded image");
    std::int64_t steps = (whole + w.stride[i] - 1) / w.stride[i];
    if (steps * w.stride[i] >= size + w.before[i]) --steps;
    beyond[i] = std::max<std::int64_t>(0, steps * w.stride[i] - whole);
  }
}

Array pooled(const Array& x, const Windows& w, bool is_max) {
  const auto at = [](const std::vector<std::int64_t>& list, std::size_t i) { return static_cast<int>(list[i]); };
  if (w.kernel.size() == 1) {
    const Pool1dOptions options{at(w.kernel, 0), at(w.stride, 0), 0, false, true};
    return is_max ? max_pool1d(x, options) : avg_pool1d(x, options);
  }
  const Pool2dOptions options{at(w.kernel, 0), at(w.kernel, 1), at(w.stride, 0), at(w.stride, 1), 0, 0, false, true};
  return is_max ? max_pool2d(x, options) : avg_pool2d(x, options);
}

Outputs pooling(const Call& call) {
  if (!call.is_floating() || call.rank() < 3 || call.rank() > 4)
    call.refuse("expected floating [N, C, ...] of 3 or 4 axes");
  const auto rank = static_cast<std::size_t>(call.rank());
  Windows w = windows(call, {});
  for (const std::int64_t step : w.dilation)
    if (step != 1) call.refuse("dilations are not supported");
  const bool is_max = call.op == "MaxPool";
  const bool counts_pad = call.integer("count_include_pad", 0) != 0;
  std::vector<std::int64_t> beyond(w.kernel.size(), 0);
  if (call.integer("ceil_mode", 0) != 0) round_up(call, w, beyond);
  const auto widened = [&](const Array& x, Windows sides, bool with_beyond, double value) {
    for (std::size_t i = 0; i < beyond.size() && with_beyond; ++i) sides.after[i] += beyond[i];
    return evened(x, sides, value, true);
  };
  const Array x = stored(call.at(0), channels_last(rank));
  bool is_padded = false;
  for (std::size_t i = 0; i < beyond.size(); ++i) is_padded |= w.before[i] + w.after[i] + beyond[i] > 0;
  if (is_max) {
    const double lowest = -std::numeric_limits<double>::infinity();
    return {ordered(pooled(is_padded ? widened(x, w, true, lowest) : x, w, true), channels_last(rank))};
  }
  if (!is_padded) return {ordered(pooled(x, w, false), channels_last(rank))};
  // The share of each window that counts, from a pool over ones.
  Shape one = x.shape();
  one[0] = one[-1] = 1;
  Array ones_of = ones(one, x.dtype());
  Windows none = w;
  if (counts_pad) {
    ones_of = widened(ones_of, w, false, 1.0);
    none.before.assign(none.before.size(), 0);
    none.after.assign(none.after.size(), 0);
  }
  const Array share = pooled(widened(ones_of, none, true, 0.0), w, false);
  return {ordered(pooled(widened(x, w, true, 0.0), w, false) / share, channels_last(rank))};
}

Outputs global_pooling(const Call& call) {
  if (!call.is_floating() || call.rank() < 3) call.refuse("expected floating [N, C, ...]");
  const auto rank = static_cast<std::size_t>(call.rank());
  Array y = stored(call.at(0), channels_last(rank));
  std::vector<int> axes;
  for (int axis = 1; axis + 1 < call.rank(); ++axis) axes.push_back(axis);
  if (call.op == "GlobalMaxPool")
    for (const int axis : axes) y = max(y, {axis}, true);
  else {
    double n = 1;
    for (const int axis : axes) n *= static_cast<double>(y.shape()[axis]);
    y = sum(y, std::span<const int>(axes), true) / n;
  }
  return {ordered(y, channels_last(rank))};
}

// The position in the input of element o of an axis, by ONNX's coordinate_transformation_mode.
double coordinate(const Call& call, const std::string& mode, double o, double scale, double in, double out) {
  if (mode == "half_pixel") return (o + 0.5) / scale - 0.5;
  if (mode == "pytorch_half_pixel") return out > 1 ? (o + 0.5) / scale - 0.5 : 0.0;
  if (mode == "align_corners") return out > 1 ? o * (in - 1) / (out - 1) : 0.0;
  if (mode == "asymmetric") return o / scale;
  call.refuse("the coordinates " + mode + " are not supported");
}

double nearest(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

// Resizes one axis by rows of the input: nearest takes one, linear mixes two, cubic four.
Array resized_axis(const Call& call, const Array& x, int axis, std::int64_t out, double scale, double length) {
  const std::int64_t n = x.shape()[axis];
  const std::string mode = call.text("mode", "nearest");
  const std::string where_from =
      call.text("coordinate_transformation_mode", call.opset < 11 ? "asymmetric" : "half_pixel");
  const std::string rounding = call.text("nearest_mode", call.opset < 11 ? "floor" : "round_prefer_floor");
  const double a = call.real("cubic_coeff_a", -0.75);
  const int taps = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(taps));
  std::vector<std::vector<float>> weights(rows.size());
  for (std::int64_t o = 0; o < out; ++o) {
    const double at = coordinate(call, where_from, double(o), scale, double(n), length);
    const double base = taps == 1 ? nearest(rounding, at) : std::floor(at), t = at - base;
    for (int tap = 0; tap < taps; ++tap) {
      const double d = std::abs(tap - 1 - t);
      double share = 1;
      if (taps == 2) share = tap == 0 ? 1 - t : t;
      if (taps == 4) share = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      const double row = base + tap - (taps == 4 ? 1 : 0);
      rows[std::size_t(tap)].push_back(static_cast<std::int64_t>(std::clamp(row, 0.0, double(n - 1))));
      weights[std::size_t(tap)].push_back(static_cast<float>(share));
    }
  }
  Array y;
  for (std::size_t tap = 0; tap < rows.size(); ++tap) {
    Array part = take(x, plain(ints_item(rows[tap], {out})), axis);
    if (taps > 1) {
      Shape shape;
      for (int i = 0; i < x.shape().rank(); ++i) shape.push_back(i == axis ? out : 1);
      part = part * astype(samebytes::array(std::span<const float>(weights[tap]), shape), x.dtype());
    }
    y = y.defined() ? y + part : part;
  }
  return y;
}

Outputs resized(const Call& call) {
  if (!call.is_floating()) call.refuse("integers are not supported");
  if (call.integer("antialias", 0) != 0 || call.integer("exclude_outside", 0) != 0 || call.has_attribute("axes"))
    call.refuse("antialias, exclude_outside and axes are not supported");
  if (call.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    call.refuse("keep_aspect_ratio_policy is not supported");
  const Sizes sizes = call.sizes();
  const std::size_t at_scales = call.op == "Upsample" || call.opset < 11 ? 1 : 2;
  std::vector<double> scales;
  Sizes result = sizes;
  const bool has_scales = call.has(at_scales) && count(call.sizes(at_scales)) > 0;
  if (has_scales)
    scales = reals_of(call.at(at_scales));
  else if (call.has_attribute("scales"))
    call.refuse("scales as an attribute are not supported");
  else
    result = ints_of(call.at(3));
  if (result.size() != sizes.size() || (has_scales && scales.size() != sizes.size()))
    call.refuse("expected one scale or size for each axis");
  const Order& order = call.at(0).order;
  Array x = call.at(0).array;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (has_scales) {
      const double size = std::floor(static_cast<double>(sizes[i]) * scales[i]);
      if (!(size >= 0 && size < 1e9)) call.refuse("a scale is outside");
      result[i] = static_cast<std::int64_t>(size);
    }
    const double scale = has_scales ? scales[i] : static_cast<double>(result[i]) / static_cast<double>(sizes[i]);
    if (sizes[i] == 0 || result[i] == 0) call.refuse("an empty image is not supported");
    if (result[i] == sizes[i] && scale == 1) continue;
    const int place = order.empty() ? static_cast<int>(i) : inverse(order)[i];
    const double length = has_scales ? static_cast<double>(sizes[i]) * scales[i] : static_cast<double>(result[i]);
    x = resized_axis(call, x, place, result[i], scale, length);
  }
  return {ordered(x, order)};
}

}  // namespace

void add_images(Registry& registry) {
  registry.insert({{"Conv", convolution}, {"ConvTranspose", transposed_convolution}});
  registry.insert({{"MaxPool", pooling}, {"AveragePool", pooling}, {"Resize", resized}, {"Upsample", resized}});
  registry.insert({{"GlobalAveragePool", global_pooling}, {"GlobalMaxPool", global_pooling}});
}

}  // namespace samebytes::onnx
