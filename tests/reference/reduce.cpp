#include "reference/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace samebytes::reference {
namespace {

// The place in the result of each element of `shape`, the reduced axes left out.
std::vector<std::int64_t> targets(const Shape& shape, const std::vector<bool>& is_reduced) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(shape.size()));
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    std::int64_t rest = i, place = 0, stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t index = rest % shape[axis];
      rest /= shape[axis];
      if (is_reduced[static_cast<std::size_t>(axis)]) continue;
      place += index * stride;
      stride *= shape[axis];
    }
    places[static_cast<std::size_t>(i)] = place;
  }
  return places;
}

}  // namespace

std::vector<double> reduce(std::span<const double> src, const Shape& shape, const std::vector<int>& axes, Reduce what) {
  std::vector<bool> is_reduced(static_cast<std::size_t>(shape.rank()), axes.empty());
  for (int axis : axes) is_reduced[static_cast<std::size_t>(axis < 0 ? axis + shape.rank() : axis)] = true;
  std::int64_t results = 1, count = 1;
  for (int i = 0; i < shape.rank(); ++i) (is_reduced[static_cast<std::size_t>(i)] ? count : results) *= shape[i];
  const double first = what == Reduce::max   ? -std::numeric_limits<double>::infinity()
                       : what == Reduce::min ? std::numeric_limits<double>::infinity()
                                             : 0.0;
  std::vector<double> dst(static_cast<std::size_t>(results), first);
  const std::vector<std::int64_t> places = targets(shape, is_reduced);
  for (std::size_t i = 0; i < src.size(); ++i) {
    double& to = dst[static_cast<std::size_t>(places[i])];
    if (what == Reduce::sum || what == Reduce::mean) {
      to += src[i];
    } else if (std::isnan(src[i]) || (what == Reduce::max ? src[i] > to : src[i] < to)) {
      to = src[i];
    }
  }
  if (what == Reduce::mean)
    for (double& value : dst) value /= static_cast<double>(count);
  return dst;
}

std::vector<double> argmax(std::span<const double> src, const Shape& shape, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  std::vector<double> dst;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t c = 0; c < inner; ++c) {
      const auto at = [&](std::int64_t r) { return src[static_cast<std::size_t>((o * shape[axis] + r) * inner + c)]; };
      std::int64_t best = 0;
      for (std::int64_t r = 1; r < shape[axis]; ++r)
        if (at(r) > at(best) || (std::isnan(at(r)) && !std::isnan(at(best)))) best = r;
      dst.push_back(static_cast<double>(best));
    }
  return dst;
}

}  // namespace samebytes::reference
