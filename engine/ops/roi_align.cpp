// roi_align: the samples of each bin as rows that the host names and weighs, taken and added on the device.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graph/op.h"
#include "ops/dtypes.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

// The elements that one bin reads, four for each of its samples.
struct BinSamples {
  std::vector<std::int32_t> rows;
  std::vector<double> weights;
};

// The two neighbours of a place along an axis of n elements.
struct AxisNeighbours {
  std::int64_t low = 0, high = 0;
  double weight = 0;  // of `high`
};

AxisNeighbours around(double at, std::int64_t n) {
  at = std::max(at, 0.0);
  const auto low = static_cast<std::int64_t>(at);
  if (low >= n - 1) return {n - 1, n - 1, 0};
  return {low, low + 1, at - static_cast<double>(low)};
}

struct RoiSource {
  std::int64_t images, h, w;
};

void add_sample(BinSamples& bin, const RoiSource& src, std::int64_t image, double y, double x) {
  const auto is_outside = [](double at, std::int64_t n) { return at < -1 || at > static_cast<double>(n); };
  const bool is_out = is_outside(y, src.h) || is_outside(x, src.w);
  const AxisNeighbours a = around(y, src.h), b = around(x, src.w);
  const auto add = [&](std::int64_t row, std::int64_t column, double weight) {
    bin.rows.push_back(static_cast<std::int32_t>((image * src.h + row) * src.w + column));
    bin.weights.push_back(is_out ? 0.0 : weight);
  };
  add(a.low, b.low, (1 - a.weight) * (1 - b.weight));
  add(a.low, b.high, (1 - a.weight) * b.weight);
  add(a.high, b.low, a.weight * (1 - b.weight));
  add(a.high, b.high, a.weight * b.weight);
}

// The bins of one box, row by row.
std::vector<BinSamples> bins_of(const double* box, std::int64_t image, const RoiSource& src, const RoiAlignOptions& o) {
  const double shift = o.aligned ? 0.5 : 0.0, x1 = box[0] * o.spatial_scale - shift,
               y1 = box[1] * o.spatial_scale - shift;
  double width = box[2] * o.spatial_scale - shift - x1, height = box[3] * o.spatial_scale - shift - y1;
  if (!o.aligned) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  const double bin_h = height / o.out_h, bin_w = width / o.out_w;
  const auto samples = [&](double size) {
    return o.sampling_ratio > 0 ? o.sampling_ratio : static_cast<int>(std::ceil(std::clamp(size, 0.0, 4096.0)));
  };
  const int rows = samples(bin_h), columns = samples(bin_w);
  std::vector<BinSamples> bins(static_cast<std::size_t>(o.out_h) * static_cast<std::size_t>(o.out_w));
  for (int i = 0; i < o.out_h; ++i)
    for (int j = 0; j < o.out_w; ++j) {
      BinSamples& bin = bins[static_cast<std::size_t>(i * o.out_w + j)];
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
          add_sample(bin, src, image, y1 + i * bin_h + (r + 0.5) * bin_h / rows,
                     x1 + j * bin_w + (c + 0.5) * bin_w / columns);
      if (o.mode == RoiAlignMode::mean)
        for (double& weight : bin.weights) weight /= std::max(rows * columns, 1);
    }
  return bins;
}

void check_rois(const Array& src, const Array& boxes, const Array& batch, const RoiAlignOptions& o) {
  constexpr const char* kOp = "roi_align";
  detail::require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == 4, kOp,
                  "src must be floating [N, H, W, C]", src, "src");
  const Shape& s = src.shape();
  detail::require(s[1] >= 1 && s[2] >= 1 && s[0] * s[1] * s[2] <= std::numeric_limits<std::int32_t>::max(), kOp,
                  "src must have at least one pixel, and at most 2^31 in all", src, "src");
  detail::require(boxes.defined() && is_floating(boxes.dtype()) && boxes.shape().rank() == 2 && boxes.shape()[1] == 4,
                  kOp, "boxes must be floating [R, 4]", boxes, "boxes");
  detail::require(batch.defined() && batch.dtype() == i32 && batch.shape() == Shape{boxes.shape()[0]}, kOp,
                  "batch must be i32 [R]", batch, "batch");
  if (o.out_h < 1 || o.out_w < 1 || o.sampling_ratio < 0 || !(o.spatial_scale > 0))
    throw ArgumentError(
        "roi_align: expected out_h, out_w and spatial_scale above 0 and sampling_ratio 0 or more, got " +
        std::to_string(o.out_h) + ", " + std::to_string(o.out_w) + ", " + std::to_string(o.spatial_scale) + " and " +
        std::to_string(o.sampling_ratio));
}

}  // namespace

Array roi_align(const Input& src, const Input& boxes, const Input& batch, const RoiAlignOptions& o) {
  check_rois(src, boxes, batch, o);
  const Shape& s = src.shape();
  const std::int64_t count = boxes.shape()[0], n = count * o.out_h * o.out_w;
  const Shape shape{count, o.out_h, o.out_w, s.back()};
  if (n == 0 || src.size() == 0) return zeros(shape, src.dtype());
  const std::vector<double> corners = boxes.array().to_vector<double>();
  const std::vector<std::int32_t> images = batch.array().to_vector<std::int32_t>();
  std::vector<BinSamples> bins;
  std::size_t most = 1;
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int32_t image = images[static_cast<std::size_t>(r)];
    if (image < 0 || image >= s[0])
      throw ArgumentError("roi_align: batch must name images below " + std::to_string(s[0]) + ", got " +
                          std::to_string(image));
    for (BinSamples& bin : bins_of(&corners[static_cast<std::size_t>(r) * 4], image, {s[0], s[1], s[2]}, o)) {
      most = std::max(most, bin.rows.size());
      bins.push_back(std::move(bin));
    }
  }
  const bool is_max = o.mode == RoiAlignMode::max;
  const Array rows = reshape(detail::as_dtype(src, src.dtype() == f64 ? f64 : f32), {s[0] * s[1] * s[2], s.back()});
  Array y;
  // A bin with fewer samples than others repeats its first one for the maximum and adds nothing to the sum.
  for (std::size_t k = 0; k < most; ++k) {
    std::vector<std::int32_t> index;
    std::vector<double> weights;
    for (const BinSamples& bin : bins) {
      const bool is_real = k < bin.rows.size();
      index.push_back(is_real ? bin.rows[k] : bin.rows.empty() ? 0 : bin.rows[0]);
      weights.push_back(is_real ? bin.weights[k] : is_max && !bin.rows.empty() ? bin.weights[0] : 0.0);
    }
    const Array weight = detail::as_dtype(array(std::span<const double>(weights), Shape{n, 1}), rows.dtype());
    const Array part = take(rows, array(std::span<const std::int32_t>(index), Shape{n}), 0) * weight;
    y = !y.defined() ? part : is_max ? maximum(y, part) : y + part;
  }
  return detail::as_dtype(reshape(y, shape), src.dtype());
}

}  // namespace samebytes
