#include "reference/pool2d.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace samebytes::reference {
namespace {

using Values = std::vector<double>;

// The number of windows whose start lies at or before the last one that fits; in ceil mode one more may hang over the
// end, if it starts inside the image or the padding before it.
std::int64_t pooled(std::int64_t size, int kernel, int stride, int pad, bool ceil_mode) {
  std::int64_t count = 0;
  for (std::int64_t start = -pad; start + kernel <= size + pad; start += stride) ++count;
  const std::int64_t next = count * stride - pad;
  const bool covers_more = (count - 1) * stride - pad + kernel < size + pad;
  if (ceil_mode && covers_more && next < size) ++count;
  return count;
}

// Calls f(out, places, divisor) for each output element with the positions of its window that lie in the image.
template <class F>
void for_each_window(const Pool2d& p, F f) {
  for (std::int64_t n = 0; n < p.n; ++n)
    for (std::int64_t oy = 0; oy < p.out_h(); ++oy)
      for (std::int64_t ox = 0; ox < p.out_w(); ++ox)
        for (std::int64_t c = 0; c < p.c; ++c) {
          std::vector<std::size_t> places;
          std::int64_t in_padded = 0;
          for (int ky = 0; ky < p.kernel_h; ++ky)
            for (int kx = 0; kx < p.kernel_w; ++kx) {
              const std::int64_t y = oy * p.stride_h - p.pad_h + ky, x = ox * p.stride_w - p.pad_w + kx;
              if (y < p.h + p.pad_h && x < p.w + p.pad_w) ++in_padded;
              if (y >= 0 && y < p.h && x >= 0 && x < p.w)
                places.push_back(static_cast<std::size_t>(((n * p.h + y) * p.w + x) * p.c + c));
            }
          const auto out = static_cast<std::size_t>(((n * p.out_h() + oy) * p.out_w() + ox) * p.c + c);
          const double divisor =
              p.count_include_pad ? static_cast<double>(in_padded) : static_cast<double>(places.size());
          f(out, places, divisor);
        }
}

std::size_t first_largest(const Values& x, const std::vector<std::size_t>& places) {
  std::size_t best = places[0];
  for (std::size_t place : places)
    if (!std::isnan(x[best]) && (x[place] > x[best] || std::isnan(x[place]))) best = place;
  return best;
}

std::size_t out_size(const Pool2d& p) { return static_cast<std::size_t>(p.n * p.out_h() * p.out_w() * p.c); }

}  // namespace

std::int64_t Pool2d::out_h() const { return pooled(h, kernel_h, stride_h, pad_h, ceil_mode); }
std::int64_t Pool2d::out_w() const { return pooled(w, kernel_w, stride_w, pad_w, ceil_mode); }

Values max_pool2d(const Values& x, const Pool2d& pool) {
  Values y(out_size(pool));
  for_each_window(pool, [&](std::size_t out, const auto& places, double) { y[out] = x[first_largest(x, places)]; });
  return y;
}

Values avg_pool2d(const Values& x, const Pool2d& pool) {
  Values y(out_size(pool));
  for_each_window(pool, [&](std::size_t out, const auto& places, double divisor) {
    double sum = 0;
    for (std::size_t place : places) sum += x[place];
    y[out] = sum / divisor;
  });
  return y;
}

Values max_pool2d_gradient(const Values& x, const Values& dy, const Pool2d& pool) {
  Values dx(x.size());
  for_each_window(pool, [&](std::size_t out, const auto& places, double) { dx[first_largest(x, places)] += dy[out]; });
  return dx;
}

Values avg_pool2d_gradient(const Values& dy, const Pool2d& pool) {
  Values dx(static_cast<std::size_t>(pool.n * pool.h * pool.w * pool.c));
  for_each_window(pool, [&](std::size_t out, const auto& places, double divisor) {
    for (std::size_t place : places) dx[place] += dy[out] / divisor;
  });
  return dx;
}

}  // namespace samebytes::reference
