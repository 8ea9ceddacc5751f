// Reductions made of other ops: variance, norms, products, log-sum-exp, quantiles, counts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graph/autocast.h"
#include "graph/op.h"
#include "ops/as_value.h"
#include "ops/dtypes.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/sizes.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::as_floating;
using detail::checked_axis;
using detail::describe;
using detail::require;

// The axes from the front, in their order; all of them where none is named.
std::vector<int> named_axes(const char* op, const Array& a, std::span<const int> axes) {
  require(a.defined(), op, "needs an array", a, "src");
  std::vector<int> named;
  for (int i = 0; i < a.shape().rank(); ++i) {
    int times = axes.empty() ? 1 : 0;
    for (const int axis : axes) times += checked_axis(op, a, axis) == i;
    if (times > 1)
      throw ArgumentError(std::string(op) + ": axis " + std::to_string(i) + " is named twice, src is " + describe(a));
    if (times == 1) named.push_back(i);
  }
  return named;
}

std::int64_t count_along(const Array& a, std::span<const int> axes) {
  std::int64_t n = 1;
  for (const int axis : axes) n *= a.shape()[axis];
  return n;
}

// A result that kept its axes, without them unless they are wanted.
Array without(const Array& kept, std::span<const int> axes, bool keep) {
  Array result = kept;
  if (!keep)
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) result = squeeze(result, *axis);
  return result;
}

// The gradient of a root is infinite at 0; that of a norm is taken to be 0 there.
Array root_of(const Array& squares) {
  const Array is_zero = equal(squares, 0);
  return where(is_zero, 0, sqrt(where(is_zero, 1, squares)));
}

}  // namespace

Array var(const Input& a, const Axes& axes, bool keep, double correction) {
  const std::vector<int> along = named_axes("var", a, axes);
  const Array x = as_floating(a);
  if (along.empty()) return x * std::numeric_limits<double>::quiet_NaN();
  const Array centred = square(x - mean(x, along, true));
  const double n = static_cast<double>(count_along(x, along));
  return sum(centred, along, keep) / std::max(0.0, n - correction);
}

Array std(const Input& a, const Axes& axes, bool keep, double correction) {
  return sqrt(var(a, axes, keep, correction));
}

const detail::CastRow kNormCast{"norm", CastRule::keep_f32};
Array norm(const Input& a, double p, const Axes& axes, bool keep) {
  if (const detail::Casts cast(kNormCast); cast) return norm(cast(a), p, axes, keep);
  const std::vector<int> along = named_axes("norm", a, axes);
  if (std::isnan(p)) throw ArgumentError("norm: p must be a number, got nan");
  const Array x = as_floating(a);
  if (along.empty()) return p == 0 ? astype(not_equal(x, 0), x.dtype()) : abs(x);
  if (p == 2.0)
    if (Array rows = detail::norm_of_rows(x, along, keep); rows.defined()) return rows;
  if (p == 2.0) return root_of(sum(square(x), along, keep));
  if (p == 1.0) return sum(abs(x), along, keep);
  if (p == 0.0) return sum(astype(not_equal(x, 0), x.dtype()), along, keep);
  if (std::isinf(p)) return p > 0 ? max(abs(x), along, keep) : min(abs(x), along, keep);
  return pow(sum(pow(abs(x), p), along, keep), 1.0 / p);
}

Array logsumexp(const Input& a, const Axes& axes, bool keep) {
  const std::vector<int> along = named_axes("logsumexp", a, axes);
  const Array x = as_floating(a);
  if (along.empty()) return detail::as_value(x);
  if (count_along(x, along) == 0) return log(sum(exp(x), along, keep));  // of nothing: -infinity
  const Array highest = stop_gradient(max(x, along, true));
  const Array shift = where(isfinite(highest), highest, 0);
  return without(log(sum(exp(x - shift), along, true)) + shift, along, keep);
}

Array argmin(const Input& a, int axis) {
  axis = checked_axis("argmin", a, axis);
  require(a.shape()[axis] > 0 || a.size() == 0, "argmin", "an empty axis has none", a, "src");
  if (is_floating(a.dtype())) return argmax(-a.array(), axis);
  return argmax(-1 - detail::as_dtype(a, a.dtype() == i64 ? i64 : i32), axis);  // -1 - a does not overflow
}

Array quantile(const Input& a, double q, int axis, bool keep) {
  axis = checked_axis("quantile", a, axis);
  const std::int64_t n = a.shape()[axis];
  if (!(q >= 0.0 && q <= 1.0))
    throw ArgumentError("quantile: q must be between 0 and 1, got " + std::to_string(q) + ", src is " + describe(a));
  require(n > 0, "quantile", "an empty axis has none", a, "src");
  const Array sorted = sort(as_floating(a), axis).values;
  const double place = q * static_cast<double>(n - 1);
  const auto below = static_cast<std::int64_t>(place);
  const double weight = place - static_cast<double>(below);
  const Array low = slice(sorted, axis, below, below + 1), last = slice(sorted, axis, n - 1, n);  // NaN is last
  Array result = low;
  if (weight > 0) result = low + (slice(sorted, axis, below + 1, below + 2) - low) * weight;
  const int along[] = {axis};
  return without(where(isnan(last), last, result), along, keep);
}

Array median(const Input& a, int axis, bool keep) { return quantile(a, 0.5, axis, keep); }

Array histogram(const Input& a, std::int64_t bins, double low, double high) {
  require(a.defined(), "histogram", "needs an array", a, "src");
  if (bins < 1 || !(low < high) || !std::isfinite(high - low))
    throw ArgumentError("histogram: expected 1 part or more and low below high, got " + std::to_string(bins) +
                        " parts of " + std::to_string(low) + " to " + std::to_string(high));
  const Array x = stop_gradient(as_floating(a));
  const Array part = floor((x - low) * (static_cast<double>(bins) / (high - low)));
  const Array is_inside = logical_and(greater_equal(x, low), less_equal(x, high));
  const double last = static_cast<double>(bins - 1);
  return bincount(astype(where(is_inside, minimum(part, last), -1), i32), bins);
}

}  // namespace samebytes
