#include "reference/matmul.h"

namespace samebytes::testing {

std::vector<double> reference_matmul(std::span<const double> a, const Shape& a_shape, std::span<const double> b,
                                     const Shape& b_shape) {
  const std::int64_t m = a_shape[-2], k = a_shape[-1], n = b_shape[-1];
  Shape batch_a, batch_b;
  for (int i = 0; i + 2 < a_shape.rank(); ++i) batch_a.push_back(a_shape[i]);
  for (int i = 0; i + 2 < b_shape.rank(); ++i) batch_b.push_back(b_shape[i]);
  const Shape batch = broadcast_shapes("reference", batch_a, batch_b);
  // The index of a matrix of `part`, the batch of one operand, at a position of the whole batch.
  const auto matrix = [&batch](std::int64_t z, const Shape& part) {
    std::int64_t index = 0, step = 1;
    for (int i = batch.rank() - 1; i >= 0; --i) {
      const std::int64_t at = z % batch[i];
      z /= batch[i];
      const int own = i - (batch.rank() - part.rank());
      if (own < 0) continue;
      if (part[own] > 1) index += at * step;
      step *= part[own];
    }
    return index;
  };
  std::vector<double> c(static_cast<std::size_t>(batch.size() * m * n), 0.0);
  for (std::int64_t z = 0; z < batch.size(); ++z) {
    const double* from_a = a.data() + matrix(z, batch_a) * m * k;
    const double* from_b = b.data() + matrix(z, batch_b) * k * n;
    double* to = c.data() + z * m * n;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t p = 0; p < k; ++p)
        for (std::int64_t j = 0; j < n; ++j) to[i * n + j] += from_a[i * k + p] * from_b[p * n + j];
  }
  return c;
}

std::vector<double> reference_transpose(std::span<const double> a, std::int64_t m, std::int64_t n) {
  std::vector<double> b(a.size());
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      b[static_cast<std::size_t>(j * m + i)] = a[static_cast<std::size_t>(i * n + j)];
  return b;
}

ReferenceConv2d reference_conv2d(std::span<const double> src, const Shape& src_shape, std::span<const double> weight,
                                 const Shape& weight_shape, const Conv2dOptions& o, std::span<const double> dy) {
  const std::int64_t n = src_shape[0], h = src_shape[1], w = src_shape[2], c = src_shape[3];
  const std::int64_t kh = weight_shape[0], kw = weight_shape[1], ci = weight_shape[2], k = weight_shape[3],
                     co = k / o.groups;
  const std::int64_t oh = (h + 2 * o.pad_h - o.dilation_h * (kh - 1) - 1) / o.stride_h + 1;
  const std::int64_t ow = (w + 2 * o.pad_w - o.dilation_w * (kw - 1) - 1) / o.stride_w + 1;
  ReferenceConv2d r;
  r.shape = Shape{n, oh, ow, k};
  // Sums are longer than double, so that kernels in double have something to be compared with.
  std::vector<long double> y_sum(static_cast<std::size_t>(r.shape.size())), d_src(dy.empty() ? 0 : src.size()),
      d_weight(dy.empty() ? 0 : weight.size());
  for (std::int64_t image = 0; image < n; ++image)
    for (std::int64_t a = 0; a < oh; ++a)
      for (std::int64_t b = 0; b < ow; ++b)
        for (std::int64_t i = 0; i < kh; ++i)
          for (std::int64_t j = 0; j < kw; ++j) {
            const std::int64_t at_h = a * o.stride_h - o.pad_h + i * o.dilation_h,
                               at_w = b * o.stride_w - o.pad_w + j * o.dilation_w;
            if (at_h < 0 || at_h >= h || at_w < 0 || at_w >= w) continue;
            for (std::int64_t out = 0; out < k; ++out)
              for (std::int64_t in = 0; in < ci; ++in) {
                const auto x = static_cast<std::size_t>(((image * h + at_h) * w + at_w) * c + out / co * ci + in);
                const auto f = static_cast<std::size_t>(((i * kw + j) * ci + in) * k + out);
                const auto y = static_cast<std::size_t>(((image * oh + a) * ow + b) * k + out);
                const long double s = src[x], v = weight[f];
                y_sum[y] += s * v;
                if (dy.empty()) continue;
                d_src[x] += dy[y] * v;
                d_weight[f] += dy[y] * s;
              }
          }
  r.y.assign(y_sum.begin(), y_sum.end());
  r.d_src.assign(d_src.begin(), d_src.end());
  r.d_weight.assign(d_weight.begin(), d_weight.end());
  return r;
}

}  // namespace samebytes::testing
