// unfold and fold: along each axis a table of the places of all windows (resample.cpp), one way and the other.
#include "samebytes/ops/fold.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "ops/dtypes.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

// The windows along one axis of `in` places.
struct FoldAxis {
  std::int64_t in, out, kernel, stride, dilation, pad;

  std::int64_t place(std::int64_t o, std::int64_t t) const {
    const std::int64_t at = o * stride - pad + t * dilation;
    return at >= 0 && at < in ? at : -1;
  }
};

std::vector<FoldAxis> fold_axes(const char* op, const std::vector<std::int64_t>& sizes, const FoldOptions& o) {
  constexpr std::int64_t most = std::int64_t{1} << 30;  // places are i32 in the tables
  const std::size_t axes = sizes.size();
  const auto at = [&](const std::vector<int>& list, const char* name, std::size_t i, int otherwise, int least) {
    if (!list.empty() && list.size() != axes)
      throw ArgumentError(std::string(op) + ": expected " + std::to_string(axes) + " numbers in " + name + ", got " +
                          std::to_string(list.size()));
    const int value = list.empty() ? otherwise : list[i];
    if (value < least)
      throw ArgumentError(std::string(op) + ": " + name + " must be " + std::to_string(least) + " or more, got " +
                          std::to_string(value));
    if (value >= most)
      throw ArgumentError(std::string(op) + ": " + name + " must be below 2^30, got " + std::to_string(value));
    return std::int64_t{value};
  };
  std::vector<FoldAxis> result;
  for (std::size_t i = 0; i < axes; ++i) {
    if (sizes[i] >= most)
      throw ArgumentError(std::string(op) + ": every axis must be below 2^30, got " + std::to_string(sizes[i]));
    const std::int64_t pad = at(o.pad, "pad", i, 0, 0);
    FoldAxis axis{sizes[i],
                  0,
                  at(o.kernel, "kernel", i, 1, 1),
                  at(o.stride, "stride", i, 1, 1),
                  at(o.dilation, "dilation", i, 1, 1),
                  pad};
    const std::int64_t end = at(o.pad_end, "pad_end", i, static_cast<int>(pad), 0),
                       room = axis.in < 1 ? -1 : axis.in + pad + end - axis.dilation * (axis.kernel - 1) - 1;
    if (room < 0)
      throw ArgumentError(std::string(op) + ": the kernel of " + std::to_string(axis.kernel) +
                          " must fit into the padded axis of " + std::to_string(axis.in) + " places");
    axis.out = room / axis.stride + 1;
    result.push_back(axis);
  }
  return result;
}

// [N, OUT kernel, ...] of windows, one behind the other.
AxisTaps windows_of_axis(const char* op, const FoldAxis& a) {
  detail::require_table(op, a.out, a.kernel);
  AxisTaps taps{.in = a.in, .taps = 1, .places = {}, .weights = {}};
  for (std::int64_t o = 0; o < a.out; ++o)
    for (std::int64_t t = 0; t < a.kernel; ++t) taps.places.push_back(static_cast<std::int32_t>(a.place(o, t)));
  taps.weights.assign(taps.places.size(), 1.0);
  return taps;
}

// For each place of the axis, where the windows hold it.
AxisTaps places_of_axis(const char* op, const FoldAxis& a) {
  detail::require_table(op, std::max(a.in, a.out), a.kernel);
  AxisTaps taps{.in = a.out * a.kernel, .taps = a.kernel, .places = {}, .weights = {}};
  for (std::int64_t i = 0; i < a.in; ++i)
    for (std::int64_t t = 0; t < a.kernel; ++t) {
      const std::int64_t start = i + a.pad - t * a.dilation, o = start / a.stride;
      const bool holds = start >= 0 && start % a.stride == 0 && o < a.out;
      taps.places.push_back(holds ? static_cast<std::int32_t>(o * a.kernel + t) : -1);
    }
  taps.weights.assign(taps.places.size(), 1.0);
  return taps;
}

// The order that puts windows [N, OH, kh, OW, kw, C] as [N, OH, OW, kh, kw, C].
std::vector<int> windows_first(std::size_t axes) {
  std::vector<int> order{0};
  for (std::size_t part = 0; part < 2; ++part)
    for (std::size_t i = 0; i < axes; ++i) order.push_back(static_cast<int>(1 + 2 * i + part));
  order.push_back(static_cast<int>(2 * axes + 1));
  return order;
}

}  // namespace

Array unfold(const Input& src, const FoldOptions& options) {
  constexpr const char* kOp = "unfold";
  detail::require(src.defined() && is_floating(src.dtype()) && src.shape().rank() >= 3 && src.shape().rank() <= 5, kOp,
                  "src must be floating [N, one to three axes, C]", src, "src");
  const Shape& s = src.shape();
  const std::vector<FoldAxis> axes = fold_axes(kOp, {s.begin() + 1, s.end() - 1}, options);
  Array y = src;
  Shape apart{s[0]};
  std::int64_t windows = 1, places = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    y = resample_axis(y, static_cast<int>(i) + 1, windows_of_axis(kOp, axes[i]));
    apart.push_back(axes[i].out);
    apart.push_back(axes[i].kernel);
    windows *= axes[i].out;
    places *= axes[i].kernel;
  }
  apart.push_back(s.back());
  return reshape(transpose(reshape(y, apart), windows_first(axes.size())), Shape{s[0], windows, places, s.back()});
}

Array fold(const Input& columns, const std::vector<std::int64_t>& sizes, const FoldOptions& options) {
  constexpr const char* kOp = "fold";
  detail::require(columns.defined() && is_floating(columns.dtype()) && columns.shape().rank() == 4, kOp,
                  "columns must be floating [N, L, T, C]", columns, "columns");
  if (sizes.empty() || sizes.size() > 3)
    throw ArgumentError("fold: expected one to three sizes, got " + std::to_string(sizes.size()));
  const std::vector<FoldAxis> axes = fold_axes(kOp, sizes, options);
  const Shape& s = columns.shape();
  Shape apart{s[0]};
  std::int64_t windows = 1, places = 1;
  for (const FoldAxis& axis : axes) {
    apart.push_back(axis.out);  // throws where the product is too large
    windows *= axis.out;
  }
  for (const FoldAxis& axis : axes) {
    apart.push_back(axis.kernel);
    places *= axis.kernel;
  }
  apart.push_back(s.back());
  detail::require(s[1] == windows && s[2] == places, kOp,
                  ("expected " + std::to_string(windows) + " windows of " + std::to_string(places) + " places").c_str(),
                  columns, "columns");
  const std::vector<int> order = windows_first(axes.size());
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  // Sums are rounded once.
  Array y = detail::as_dtype(transpose(reshape(columns, apart), back), columns.dtype() == f64 ? f64 : f32);
  Shape joined{s[0]};
  for (const FoldAxis& axis : axes) joined.push_back(axis.out * axis.kernel);
  joined.push_back(s.back());
  y = reshape(y, joined);
  for (std::size_t i = 0; i < axes.size(); ++i)
    y = resample_axis(y, static_cast<int>(i) + 1, places_of_axis(kOp, axes[i]));
  return detail::as_dtype(y, columns.dtype());
}

}  // namespace samebytes
