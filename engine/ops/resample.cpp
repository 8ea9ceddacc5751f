// An axis as weighted sums of its places, by a table that the host makes: what interpolation, mean pooling and filters
// along an axis have in common. The op is linear, and its gradient is the op with the transposed table. Kernels:
// cl/*/resample.cl.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::require;

std::int64_t results_of(const AxisTaps& t) { return t.taps == 0 ? 0 : std::ssize(t.places) / t.taps; }

// Which places of the result read each place of the source, in ascending order.
AxisTaps transposed_taps(const AxisTaps& t) {
  constexpr const char* kOp = "resample_axis";
  const std::int64_t out = results_of(t);
  detail::require_table(kOp, t.in, 1);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(t.in), 0);
  for (const std::int32_t place : t.places)
    if (place >= 0) ++counts[static_cast<std::size_t>(place)];
  AxisTaps back;
  back.in = out;
  back.taps = 1;
  for (const std::int64_t count : counts) back.taps = std::max(back.taps, count);
  detail::require_table(kOp, t.in, back.taps);
  back.places.assign(static_cast<std::size_t>(t.in * back.taps), -1);
  back.weights.assign(back.places.size(), 0.0);
  std::fill(counts.begin(), counts.end(), 0);
  for (std::int64_t j = 0; j < out; ++j)
    for (std::int64_t k = 0; k < t.taps; ++k) {
      const auto from = static_cast<std::size_t>(j * t.taps + k);
      if (t.places[from] < 0) continue;
      const auto place = static_cast<std::size_t>(t.places[from]);
      const auto to = place * static_cast<std::size_t>(back.taps) + static_cast<std::size_t>(counts[place]++);
      back.places[to] = static_cast<std::int32_t>(j);
      back.weights[to] = t.weights[from];
    }
  return back;
}

Array resampled(const Array& src, int axis, const std::shared_ptr<const AxisTaps>& taps);

// Inputs src, places i32 [OUT, taps] and weights [OUT, taps]; the op keeps the table for its gradient.
class Resample final : public detail::Op, public detail::Written {
 public:
  Resample(int axis, std::shared_ptr<const AxisTaps> taps) : axis_(axis), taps_(std::move(taps)) {}
  std::string_view name() const override { return "resample_axis"; }
  void hash(detail::Hasher& hasher) const override { hasher.add(static_cast<std::uint64_t>(axis_)); }
  void launch(detail::Launch& run) const override {
    const detail::Around at(run.src_shape(0), axis_);
    const std::int64_t out = run.dst_shape()[axis_], taps = run.src_shape(1)[1];
    run.kernel("resample_axis", run.dst_dtype())
        .args(run.src(0), run.src(1), run.src(2), run.dst(), at.outer, at.depth, out, at.inner, static_cast<int>(taps))
        .over_elements(run.dst_shape().size());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return {resampled(request.dy[0], axis_, std::make_shared<const AxisTaps>(transposed_taps(*taps_))), Array(),
            Array()};
  }
  // The table as a matrix, by which the axis is multiplied.
  void write(detail::NodeWriter& w) const override {
    const std::int64_t out = results_of(*taps_);
    detail::require_table("resample_axis", taps_->in, out);
    std::vector<double> matrix(static_cast<std::size_t>(taps_->in * out), 0.0);
    for (std::size_t i = 0; i < taps_->places.size(); ++i)
      if (const std::int64_t place = taps_->places[i]; place >= 0)
        matrix[static_cast<std::size_t>(place * out + static_cast<std::int64_t>(i) / taps_->taps)] += taps_->weights[i];
    detail::NodeWriter::Ints swapped;  // the axis with the last one
    const int rank = w.shape(0).rank();
    for (int i = 0; i < rank; ++i) swapped.push_back(i == axis_ ? rank - 1 : i == rank - 1 ? axis_ : i);
    const auto y = w.put("MatMul", {w.turned(w.in(0), swapped), w.numbers(matrix, {taps_->in, out}, w.result_dtype())});
    w.give(w.turned(y, swapped));
  }

 private:
  int axis_;
  std::shared_ptr<const AxisTaps> taps_;
};

Array resampled(const Array& src, int axis, const std::shared_ptr<const AxisTaps>& taps) {
  const Shape table{results_of(*taps), taps->taps};
  Shape shape = src.shape();
  shape[axis] = table[0];
  const Array weights = src.dtype() == f64
                            ? array(std::span<const double>(taps->weights), table)
                            : array(std::vector<float>(taps->weights.begin(), taps->weights.end()), table);
  const Array inputs[] = {src, array(std::span<const std::int32_t>(taps->places), table), weights};
  return detail::make_array(detail::make_op<Resample>(axis, taps), shape, src.dtype(), inputs);
}

}  // namespace

Array resample_axis(const Input& src, int axis, const AxisTaps& taps) {
  constexpr const char* kOp = "resample_axis";
  require(src.defined() && is_floating(src.dtype()), kOp, "src must be floating", src, "src");
  axis = detail::checked_axis(kOp, src, axis);
  const std::int64_t size = src.shape()[axis];
  if (taps.in != size)
    throw ArgumentError(std::string(kOp) + ": expected a table for an axis of " + std::to_string(size) +
                        " places, got one for " + std::to_string(taps.in) + ", src is " + detail::describe(src));
  const auto n = std::ssize(taps.places);
  if (taps.taps < 1 || n == 0 || n % taps.taps != 0 || taps.weights.size() != taps.places.size() ||
      n > std::numeric_limits<std::int32_t>::max())
    throw ArgumentError(std::string(kOp) + ": expected places and weights of OUT x " + std::to_string(taps.taps) +
                        " taps, got " + std::to_string(n) + " places and " + std::to_string(taps.weights.size()) +
                        " weights, src is " + detail::describe(src));
  for (const std::int32_t place : taps.places)
    if (place < -1 || place >= size)
      throw ArgumentError(std::string(kOp) + ": place " + std::to_string(place) + " is outside an axis of " +
                          std::to_string(size) + " places, src is " + detail::describe(src));
  return resampled(src, axis, std::make_shared<const AxisTaps>(taps));
}

}  // namespace samebytes
