// interpolate: one to three axes to another size, each as weighted sums of its places (resample.cpp). Two axes of
// nearest or linear neighbours go to resize, which does both in one pass.
#include <algorithm>
#include <cmath>
#include <string>

#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

constexpr const char* kInterpolate = "interpolate";
constexpr const char* kInterpolateModes[] = {"nearest", "nearest_exact", "linear", "cubic", "area"};

// One axis: its sizes, and how many places of the source a place of the result stands for.
struct AxisScale {
  std::int64_t in = 0, out = 0;
  double step = 1;
};

// The weight of a neighbour at distance d, of Keys's family (1981).
double cubic_weight(double d, double a) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// A table without places yet; throws where it would be too long.
AxisTaps table_for(const AxisScale& axis, std::int64_t taps) {
  detail::require_table(kInterpolate, axis.out, taps);
  return {.in = axis.in, .taps = taps, .places = {}, .weights = {}};
}

void add_tap(AxisTaps& taps, double place, double weight) {
  taps.places.push_back(static_cast<std::int32_t>(std::clamp(place, 0.0, static_cast<double>(taps.in - 1))));
  taps.weights.push_back(weight);
}

// Whole places in f32, as PyTorch counts them.
AxisTaps nearest_taps(const AxisScale& axis, bool is_exact) {
  AxisTaps taps = table_for(axis, 1);
  const auto step = static_cast<float>(axis.step);
  for (std::int64_t o = 0; o < axis.out; ++o)
    add_tap(taps, std::floor((static_cast<float>(o) + (is_exact ? 0.5f : 0.0f)) * step), 1.0);
  return taps;
}

AxisTaps smooth_taps(const AxisScale& axis, bool is_cubic, bool is_aligned) {
  AxisTaps taps = table_for(axis, is_cubic ? 4 : 2);
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const auto place = static_cast<double>(o);
    double at = is_aligned ? place * axis.step : (place + 0.5) * axis.step - 0.5;
    if (!is_cubic) at = std::clamp(at, 0.0, static_cast<double>(axis.in - 1));
    const double base = std::floor(at), t = at - base;
    if (is_cubic) {
      for (int k = -1; k <= 2; ++k) add_tap(taps, base + k, cubic_weight(t - k, -0.75));
    } else {
      add_tap(taps, base, 1 - t);
      add_tap(taps, base + 1, t);
    }
  }
  return taps;
}

AxisTaps antialiased_taps(const AxisScale& axis, bool is_cubic) {
  const double width = std::max(axis.step, 1.0), reach = (is_cubic ? 2 : 1) * width;
  AxisTaps taps = table_for(axis, static_cast<std::int64_t>(std::ceil(reach)) * 2 + 1);
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double center = (static_cast<double>(o) + 0.5) * axis.step;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(center - reach + 0.5)), 0),
               last = std::min(static_cast<std::int64_t>(std::floor(center + reach + 0.5)), axis.in);
    double sum = 0;
    const std::size_t begin = taps.weights.size();
    for (std::int64_t k = 0; k < taps.taps; ++k) {
      const double d = (static_cast<double>(first + k) + 0.5 - center) / width;
      const double weight = is_cubic ? cubic_weight(d, -0.5) : std::max(0.0, 1 - std::abs(d));
      const bool is_inside = first + k < last;
      taps.places.push_back(is_inside ? static_cast<std::int32_t>(first + k) : -1);
      taps.weights.push_back(is_inside ? weight : 0.0);
      sum += taps.weights.back();
    }
    for (std::size_t i = begin; i < taps.weights.size() && sum != 0; ++i) taps.weights[i] /= sum;
  }
  return taps;
}

AxisTaps area_taps(const AxisScale& axis) {
  const auto begin = [&](std::int64_t o) { return o * axis.in / axis.out; };
  const auto end = [&](std::int64_t o) { return detail::ceil_div((o + 1) * axis.in, axis.out); };
  AxisTaps taps = table_for(axis, 1);
  for (std::int64_t o = 0; o < axis.out; ++o) taps.taps = std::max(taps.taps, end(o) - begin(o));
  taps = table_for(axis, taps.taps);
  for (std::int64_t o = 0; o < axis.out; ++o)
    for (std::int64_t k = 0; k < taps.taps; ++k) {
      const std::int64_t place = begin(o) + k, size = end(o) - begin(o);
      taps.places.push_back(k < size ? static_cast<std::int32_t>(place) : -1);
      taps.weights.push_back(k < size ? 1.0 / static_cast<double>(size) : 0.0);
    }
  return taps;
}

AxisTaps taps_of(const AxisScale& axis, const InterpolateOptions& o) {
  const bool is_cubic = o.mode == InterpolateMode::cubic;
  if (o.mode == InterpolateMode::area) return area_taps(axis);
  if (o.mode == InterpolateMode::nearest || o.mode == InterpolateMode::nearest_exact)
    return nearest_taps(axis, o.mode == InterpolateMode::nearest_exact);
  return o.antialias ? antialiased_taps(axis, is_cubic) : smooth_taps(axis, is_cubic, o.align_corners);
}

std::vector<AxisScale> scales_of(const Input& src, const InterpolateOptions& o) {
  const auto axes = static_cast<std::size_t>(src.shape().rank() - 2);
  const std::string is = ", src is " + detail::describe(src);
  if (o.size.empty() == o.scale.empty())
    throw ArgumentError(std::string(kInterpolate) + ": expected either sizes or scales, got " +
                        std::to_string(o.size.size()) + " and " + std::to_string(o.scale.size()) + is);
  if (!(o.size.size() == axes || o.scale.size() == axes || o.scale.size() == 1))
    throw ArgumentError(std::string(kInterpolate) + ": expected one size or scale for each of " + std::to_string(axes) +
                        " axes, got " + std::to_string(std::max(o.size.size(), o.scale.size())) + is);
  constexpr std::int64_t most = std::int64_t{1} << 30;
  std::vector<AxisScale> result(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    AxisScale& axis = result[i];
    axis.in = src.shape()[static_cast<int>(i) + 1];
    detail::require(axis.in < most, kInterpolate, "every axis must be below 2^30", src, "src");
    const double scale = o.scale.empty() ? 0.0 : o.scale[o.scale.size() == 1 ? 0 : i];
    const double out =
        o.scale.empty() ? static_cast<double>(o.size[i]) : std::floor(static_cast<double>(axis.in) * scale);
    if (axis.in < 1 || !(out >= 1 && out < double{most}))
      throw ArgumentError(std::string(kInterpolate) +
                          ": expected axes of at least one place and results of 1 to 2^30 places, " + "axis " +
                          std::to_string(i + 1) + " has " + std::to_string(axis.in) + is);
    axis.out = static_cast<std::int64_t>(out);
    if (o.align_corners)
      axis.step = axis.out > 1 ? static_cast<double>(axis.in - 1) / static_cast<double>(axis.out - 1) : 0.0;
    else
      axis.step = o.scale.empty() ? static_cast<double>(axis.in) / static_cast<double>(axis.out) : 1 / scale;
  }
  return result;
}

}  // namespace

Array interpolate(const Input& src, const InterpolateOptions& o) {
  detail::require(src.defined() && is_floating(src.dtype()) && src.shape().rank() >= 3 && src.shape().rank() <= 5,
                  kInterpolate, "src must be floating [N, one to three axes, C]", src, "src");
  const bool is_smooth = o.mode == InterpolateMode::linear || o.mode == InterpolateMode::cubic;
  const char* mode = kInterpolateModes[static_cast<int>(o.mode)];
  if (o.align_corners && !is_smooth)
    throw ArgumentError(std::string(kInterpolate) + ": align_corners needs mode linear or cubic, got " + mode);
  if (o.antialias && (!is_smooth || src.shape().rank() != 4))
    throw ArgumentError(std::string(kInterpolate) + ": antialias needs images and mode linear or cubic, got " + mode +
                        " and " + detail::describe(src));
  const std::vector<AxisScale> axes = scales_of(src, o);
  if (axes.size() == 2 && !o.antialias && (o.mode == InterpolateMode::nearest || o.mode == InterpolateMode::linear)) {
    ResizeOptions same{.mode = o.mode == InterpolateMode::nearest ? ResizeMode::nearest : ResizeMode::bilinear,
                       .align_corners = o.align_corners};
    if (o.scale.empty()) {
      same.out_h = static_cast<int>(axes[0].out);
      same.out_w = static_cast<int>(axes[1].out);
    } else {
      same.scale_h = o.scale.front();
      same.scale_w = o.scale.back();
    }
    return resize(src, same);
  }
  const bool is_narrow = src.dtype() != f32 && src.dtype() != f64;  // rounded once, behind the last axis
  Array y = is_narrow ? astype(src, f32) : Array(src);
  const bool moves_at_one_size = o.antialias || o.mode == InterpolateMode::cubic;  // by a scale near 1
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].in != axes[i].out || (moves_at_one_size && axes[i].step != 1))
      y = resample_axis(y, static_cast<int>(i) + 1, taps_of(axes[i], o));
  return is_narrow ? astype(y, src.dtype()) : y;
}

}  // namespace samebytes
