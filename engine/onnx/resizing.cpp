// Resize and Upsample: each axis as weighted sums of its places, by ONNX's rules for coordinates and filters.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/proto.h"
#include "onnx/registry.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// One axis of a Resize; `length` is the result's size before it is rounded.
struct ResizedAxis {
  std::int64_t in = 0, out = 0;
  double scale = 1, length = 0;
  double start = 0, end = 1;  // the region of tf_crop_and_resize
};

struct ResizeRule {
  std::string mode, coordinates, rounding;
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
};

// The position in the input of element o of an axis.
double coordinate(const Call& call, const ResizeRule& rule, const ResizedAxis& axis, double o) {
  const auto in = static_cast<double>(axis.in);
  const double half = (o + 0.5) / axis.scale - 0.5;
  if (rule.coordinates == "half_pixel") return half;
  if (rule.coordinates == "pytorch_half_pixel") return axis.length > 1 ? half : 0.0;
  if (rule.coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - static_cast<double>(axis.out) / (axis.scale * in)) + half;
  if (rule.coordinates == "align_corners") return axis.length > 1 ? o * (in - 1) / (axis.length - 1) : 0.0;
  if (rule.coordinates == "asymmetric") return o / axis.scale;
  if (rule.coordinates == "tf_crop_and_resize") {
    const double width = axis.end - axis.start;
    return axis.start * (in - 1) + (axis.length > 1 ? o * width * (in - 1) / (axis.length - 1) : width * (in - 1) / 2);
  }
  call.refuse("the coordinates " + rule.coordinates + " are not supported");
}

double nearest(const std::string& rounding, double x) {
  if (rounding == "floor") return std::floor(x);
  if (rounding == "ceil") return std::ceil(x);
  if (rounding == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}

// The weight of a neighbour at distance d.
double weight_at(const ResizeRule& rule, double d) {
  d = std::abs(d);
  if (rule.mode == "linear") return std::max(0.0, 1 - d);
  const double a = rule.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The table of an axis. What tf_crop_and_resize reads outside the input has no places, and `is_inside` 0.
AxisTaps taps_of(const Call& call, const ResizeRule& rule, const ResizedAxis& axis, std::vector<float>& is_inside) {
  const double last = static_cast<double>(axis.in - 1);
  const bool is_nearest = rule.mode == "nearest";
  const double narrow = rule.antialias ? std::min(axis.scale, 1.0) : 1.0;  // of the filter, which reaches 1 / narrow
  const auto reach = static_cast<std::int64_t>(std::ceil((rule.mode == "cubic" ? 2 : 1) / narrow));
  AxisTaps taps{.in = axis.in, .taps = is_nearest ? 1 : 2 * reach, .places = {}, .weights = {}};
  if (axis.in > std::numeric_limits<std::int32_t>::max())
    call.refuse("an axis has " + std::to_string(axis.in) + " places, more than 32 bits can count");
  list_count({axis.out, taps.taps});
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double at = coordinate(call, rule, axis, static_cast<double>(o));
    if (!std::isfinite(at)) call.refuse("its scales or its region give a place that is no finite number");
    const bool is_outside = rule.coordinates == "tf_crop_and_resize" && (at < 0 || at > last);
    is_inside.push_back(is_outside ? 0.0f : 1.0f);
    const double first = is_nearest ? nearest(rule.rounding, at) : std::floor(at) - static_cast<double>(reach - 1);
    double sum = 0;
    const std::size_t begin = taps.weights.size();
    for (std::int64_t k = 0; k < taps.taps; ++k) {
      const double place = first + static_cast<double>(k);
      const bool counts = !is_outside && !(rule.exclude_outside && (place < 0 || place > last));
      taps.places.push_back(counts ? static_cast<std::int32_t>(std::clamp(place, 0.0, last)) : -1);
      taps.weights.push_back(!counts ? 0.0 : is_nearest ? 1.0 : weight_at(rule, (place - at) * narrow));
      sum += taps.weights.back();
    }
    if ((rule.antialias || rule.exclude_outside) && sum != 0)
      for (std::size_t i = begin; i < taps.weights.size(); ++i) taps.weights[i] /= sum;
  }
  return taps;
}

ResizeRule rule_of(const Call& call) {
  ResizeRule rule;
  rule.mode = call.text("mode", "nearest");
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic")
    call.refuse("the mode " + rule.mode + " is not supported");
  rule.coordinates = call.text("coordinate_transformation_mode", call.opset < 11 ? "asymmetric" : "half_pixel");
  rule.rounding = call.text("nearest_mode", call.opset < 11 ? "floor" : "round_prefer_floor");
  rule.cubic_a = call.real("cubic_coeff_a", -0.75);
  rule.antialias = call.integer("antialias", 0) != 0 && rule.mode != "nearest";
  rule.exclude_outside = call.integer("exclude_outside", 0) != 0 && rule.mode != "nearest";
  return rule;
}

// The axes that scales, sizes and the region speak of.
std::vector<std::size_t> named_axes(const Call& call) {
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : call.integers("axes")) axes.push_back(std::size_t(call.axis(axis, call.rank())));
  for (std::size_t i = 0; axes.size() < call.sizes().size() && !call.has_attribute("axes"); ++i) axes.push_back(i);
  return axes;
}

std::vector<double> scales_of(const Call& call, std::size_t at_scales) {
  if (call.has(at_scales) && count(call.sizes(at_scales)) > 0) return reals_of(call.at(at_scales));
  if (!call.has_attribute("scales")) return {};
  const auto& floats = call.attributes.at("scales")->floats();
  return {floats.begin(), floats.end()};
}

// Sizes that keep the ratio of the axes, within the given ones or around them.
void keep_ratio(const Call& call, const Sizes& sizes, const std::vector<std::size_t>& axes, Sizes& wanted) {
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || wanted.empty()) return;
  const auto ratio = [&](std::size_t i) { return double(wanted[i]) / double(sizes[axes[i]]); };
  double scale = ratio(0);
  for (std::size_t i = 1; i < wanted.size(); ++i)
    scale = policy == "not_larger" ? std::min(scale, ratio(i)) : std::max(scale, ratio(i));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = truncated(std::floor(scale * double(sizes[axes[i]]) + 0.5));
}

std::vector<ResizedAxis> resized_axes(const Call& call, const std::vector<std::size_t>& axes) {
  const Sizes sizes = call.sizes();
  const bool is_early = call.op == "Upsample" || call.opset < 11;
  const std::vector<double> scales = scales_of(call, is_early ? 1 : 2);
  Sizes wanted;
  if (scales.empty()) wanted = ints_of(call.at(3));
  if (std::max(scales.size(), wanted.size()) != axes.size()) call.refuse("expected one scale or size for each axis");
  const bool has_region = !is_early && call.text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  const std::vector<double> region = has_region ? reals_of(call.at(1)) : std::vector<double>();
  if (has_region && region.size() != 2 * axes.size()) call.refuse("expected a start and an end for each axis");
  for (const std::size_t axis : axes)
    if (sizes[axis] == 0) call.refuse("an empty image is not supported");
  if (scales.empty()) keep_ratio(call, sizes, axes, wanted);
  std::vector<ResizedAxis> result(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis& axis = result[i];
    axis.in = sizes[axes[i]];
    const auto in = static_cast<double>(axis.in);
    axis.length = scales.empty() ? static_cast<double>(wanted[i]) : in * scales[i];
    if (!(axis.length >= 1 && axis.length < 1e9)) call.refuse("a scale or size is outside");
    axis.out = static_cast<std::int64_t>(std::floor(axis.length));
    axis.scale = scales.empty() ? axis.length / in : scales[i];
    if (has_region) {
      axis.start = region[i];
      axis.end = region[axes.size() + i];
    }
  }
  return result;
}

Outputs resized(const Call& call) {
  if (!call.is_floating()) call.refuse("integers are not supported");
  const ResizeRule rule = rule_of(call);
  const std::vector<std::size_t> axes = named_axes(call);
  const std::vector<ResizedAxis> sizes = resized_axes(call, axes);
  const Order& order = call.at(0).order;
  Array x = call.at(0).array, inside;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ResizedAxis& axis = sizes[i];
    if (axis.out == axis.in && axis.scale == 1 && axis.start == 0 && axis.end == 1) continue;
    const int place = order.empty() ? static_cast<int>(axes[i]) : inverse(order)[axes[i]];
    std::vector<float> is_inside;
    x = resample_axis(x, place, taps_of(call, rule, axis, is_inside));
    if (std::find(is_inside.begin(), is_inside.end(), 0.0f) == is_inside.end()) continue;
    Shape line(std::vector<std::int64_t>(static_cast<std::size_t>(x.shape().rank()), 1));
    line[place] = axis.out;
    const Array along = array(is_inside, line);
    inside = inside.defined() ? inside * along : along;
  }
  if (inside.defined()) x = where(greater(inside, 0.5), x, call.real("extrapolation_value", 0.0));
  return {ordered(x, order)};
}

}  // namespace

void add_resizing(Registry& registry) { registry.insert({{"Resize", resized}, {"Upsample", resized}}); }

}  // namespace samebytes::onnx
