// roi_align: the samples of each bin as rows that the host names and weighs, taken and added on the device, as many of
// them at a time as fit into a few megabytes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "ops/dtypes.h"
#include "ops/sizes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

constexpr const char* kRoiAlign = "roi_align";
constexpr int kMostSamples = 4096;                          // along a side of a bin
constexpr std::int64_t kMostTaken = std::int64_t{1} << 22;  // elements of samples at a time

// A sample's place along an axis of n elements: its two neighbours.
struct AxisSample {
  std::int64_t low = 0, high = 0;
  double weight = 0;  // of `high`
  bool is_outside = false;
};

AxisSample around(double at, std::int64_t n) {
  AxisSample sample;
  sample.is_outside = !(at >= -1 && at <= static_cast<double>(n));  // NaN, too
  at = at >= 0 ? std::min(at, static_cast<double>(n)) : 0;
  sample.low = sample.high = std::min(static_cast<std::int64_t>(at), n - 1);
  if (sample.low < n - 1) {
    ++sample.high;
    sample.weight = at - static_cast<double>(sample.low);
  }
  return sample;
}

// The samples of one box: those of each of its bins along an axis, one bin after the other.
struct BoxSamples {
  std::int64_t image = 0;
  int rows = 0, columns = 0;  // of a bin
  std::vector<AxisSample> y, x;
  std::size_t reads() const {
    return std::size_t{4} * static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
};

std::vector<AxisSample> along(double begin, double bin, int bins, int samples, std::int64_t n) {
  std::vector<AxisSample> list;
  list.reserve(static_cast<std::size_t>(bins) * static_cast<std::size_t>(samples));
  for (int i = 0; i < bins; ++i)
    for (int k = 0; k < samples; ++k) list.push_back(around(begin + i * bin + (k + 0.5) * bin / samples, n));
  return list;
}

// Of one of `boxes` boxes.
BoxSamples samples_of(const double* box, std::int64_t image, std::int64_t boxes, const Shape& src,
                      const RoiAlignOptions& o) {
  const double shift = o.aligned ? 0.5 : 0.0, x1 = box[0] * o.spatial_scale - shift,
               y1 = box[1] * o.spatial_scale - shift;
  double width = box[2] * o.spatial_scale - shift - x1, height = box[3] * o.spatial_scale - shift - y1;
  if (!o.aligned) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  const double bin_h = height / o.out_h, bin_w = width / o.out_w;
  const auto samples = [&](double size) {
    return o.sampling_ratio > 0 ? o.sampling_ratio
                                : static_cast<int>(std::ceil(size > 0 ? std::min(size, double{kMostSamples}) : 0.0));
  };
  BoxSamples of_box{.image = image, .rows = samples(bin_h), .columns = samples(bin_w), .y = {}, .x = {}};
  // The table has a row for each bin of all boxes, as long as that of the box with most samples.
  detail::require_table(kRoiAlign, boxes * o.out_h * o.out_w,
                        std::int64_t{4} * std::max(of_box.rows, 1) * std::max(of_box.columns, 1));
  of_box.y = along(y1, bin_h, o.out_h, of_box.rows, src[1]);
  of_box.x = along(x1, bin_w, o.out_w, of_box.columns, src[2]);
  return of_box;
}

// Rows of src [N H W, C] that the bins read, and their weights, [bins, reads]. A bin with fewer samples than others
// repeats its first one for the maximum and adds nothing to the sum.
template <class T>
std::pair<Array, Array> table_of(const std::vector<BoxSamples>& boxes, std::size_t reads, const Shape& src,
                                 const RoiAlignOptions& o) {
  const std::int64_t n = std::ssize(boxes) * o.out_h * o.out_w, count = static_cast<std::int64_t>(reads);
  std::vector<std::int32_t> index;
  std::vector<T> weights;
  index.reserve(static_cast<std::size_t>(n) * reads);
  weights.reserve(static_cast<std::size_t>(n) * reads);
  for (const BoxSamples& box : boxes) {
    const double share = o.mode == RoiAlignMode::mean ? 1.0 / std::max(box.rows * box.columns, 1) : 1.0;
    for (int i = 0; i < o.out_h; ++i)
      for (int j = 0; j < o.out_w; ++j) {
        const std::size_t first = index.size();
        for (int r = 0; r < box.rows; ++r) {
          const AxisSample& y = *(box.y.begin() + std::ptrdiff_t{i} * box.rows + r);
          const std::int64_t low = (box.image * src[1] + y.low) * src[2], high = (box.image * src[1] + y.high) * src[2];
          for (int c = 0; c < box.columns; ++c) {
            const AxisSample& x = *(box.x.begin() + std::ptrdiff_t{j} * box.columns + c);
            const double all = y.is_outside || x.is_outside ? 0.0 : share;
            const auto add = [&](std::int64_t row, double weight) {
              index.push_back(static_cast<std::int32_t>(row));
              weights.push_back(static_cast<T>(weight * all));
            };
            add(low + x.low, (1 - y.weight) * (1 - x.weight));
            add(low + x.high, (1 - y.weight) * x.weight);
            add(high + x.low, y.weight * (1 - x.weight));
            add(high + x.high, y.weight * x.weight);
          }
        }
        const bool has_none = index.size() == first;
        const std::int32_t row = has_none ? 0 : index[first];
        const T weight = has_none || o.mode == RoiAlignMode::mean ? T{0} : weights[first];
        index.resize(first + reads, row);
        weights.resize(first + reads, weight);
      }
  }
  return {array(std::span<const std::int32_t>(index), {n, count}), array(std::span<const T>(weights), {n, count, 1})};
}

void check_rois(const Array& src, const Array& boxes, const Array& batch, const RoiAlignOptions& o) {
  detail::require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == 4, kRoiAlign,
                  "src must be floating [N, H, W, C]", src, "src");
  const Shape& s = src.shape();
  detail::require(s[1] >= 1 && s[2] >= 1 && s[0] * s[1] * s[2] <= std::numeric_limits<std::int32_t>::max(), kRoiAlign,
                  "src must have at least one pixel, and at most 2^31 in all", src, "src");
  detail::require(boxes.defined() && is_floating(boxes.dtype()) && boxes.shape().rank() == 2 && boxes.shape()[1] == 4,
                  kRoiAlign, "boxes must be floating [R, 4]", boxes, "boxes");
  detail::require(
      batch.defined() && (batch.dtype() == i32 || batch.dtype() == i64) && batch.shape() == Shape{boxes.shape()[0]},
      kRoiAlign, "batch must be i32 or i64 [R]", batch, "batch");
  if (o.out_h < 1 || o.out_w < 1 || o.sampling_ratio < 0 || !(o.spatial_scale > 0))
    throw ArgumentError(
        "roi_align: expected out_h, out_w and spatial_scale above 0 and sampling_ratio 0 or more, got " +
        std::to_string(o.out_h) + ", " + std::to_string(o.out_w) + ", " + std::to_string(o.spatial_scale) + " and " +
        std::to_string(o.sampling_ratio));
  if (o.sampling_ratio > kMostSamples)
    throw ArgumentError("roi_align: expected a sampling_ratio of at most " + std::to_string(kMostSamples) + ", got " +
                        std::to_string(o.sampling_ratio));
}

}  // namespace

Array roi_align(const Input& src, const Input& boxes, const Input& batch, const RoiAlignOptions& o) {
  check_rois(src, boxes, batch, o);
  const Shape& s = src.shape();
  const std::int64_t count = boxes.shape()[0];
  const Shape shape{count, o.out_h, o.out_w, s.back()};  // throws where the product is too large
  const std::int64_t n = count * o.out_h * o.out_w;
  if (n == 0 || src.size() == 0) return zeros(shape, src.dtype());
  const std::vector<double> corners = boxes.array().to_vector<double>();
  const std::vector<std::int64_t> images = batch.array().to_vector<std::int64_t>();
  std::vector<BoxSamples> samples;
  samples.reserve(static_cast<std::size_t>(count));
  std::size_t reads = 1;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t image = images[static_cast<std::size_t>(r)];
    if (image < 0 || image >= s[0])
      throw ArgumentError("roi_align: batch must name images below " + std::to_string(s[0]) + ", got " +
                          std::to_string(image));
    samples.push_back(samples_of(&corners[static_cast<std::size_t>(r) * 4], image, count, s, o));
    reads = std::max(reads, samples.back().reads());
  }
  const Dtype dtype = src.dtype() == f64 ? f64 : f32;
  const auto [index, weights] =
      dtype == f64 ? table_of<double>(samples, reads, s, o) : table_of<float>(samples, reads, s, o);
  const Array rows = reshape(detail::as_dtype(src, dtype), {s[0] * s[1] * s[2], s.back()});
  const std::int64_t all = index.shape()[1], together = std::max<std::int64_t>(kMostTaken / (n * s.back()), 1);
  Array y;
  for (std::int64_t first = 0; first < all; first += together) {
    const std::int64_t last = std::min(all, first + together);
    const Array taken = take(rows, slice(index, 1, first, last), 0) * slice(weights, 1, first, last);
    const bool is_max = o.mode == RoiAlignMode::max;
    const Array part = is_max ? max(taken, {1}) : sum(taken, {1});
    y = !y.defined() ? part : is_max ? maximum(y, part) : y + part;
  }
  return detail::as_dtype(reshape(y, shape), src.dtype());
}

}  // namespace samebytes
