// Pooling in double, as plain loops over [N, H, W, C].
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::reference {

struct Pool2d {
  std::int64_t n, h, w, c;  // of the source
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  bool ceil_mode = false, count_include_pad = true;

  std::int64_t out_h() const;
  std::int64_t out_w() const;
};

std::vector<double> max_pool2d(const std::vector<double>& x, const Pool2d& pool);
std::vector<double> avg_pool2d(const std::vector<double>& x, const Pool2d& pool);
// Scatter form: each window adds its dy to the place of its first largest value, or shares it.
std::vector<double> max_pool2d_gradient(const std::vector<double>& x, const std::vector<double>& dy,
                                        const Pool2d& pool);
std::vector<double> avg_pool2d_gradient(const std::vector<double>& dy, const Pool2d& pool);

}  // namespace samebytes::reference
