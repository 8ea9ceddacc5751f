#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace samebytes::reference {

AttentionResult attention(const AttentionProblem& problem, const std::vector<double>& q, const std::vector<double>& k,
                          const std::vector<double>& v, const std::vector<double>& dy) {
  const auto& [n, queries, keys, heads, kv_heads, depth, causal, offset, scale, lengths, own_depth, offsets, soft_cap,
               mask] = problem;
  const std::int64_t value_depth = own_depth > 0 ? own_depth : depth;
  AttentionResult r{std::vector<double>(dy.size()), std::vector<double>(q.size()), std::vector<double>(k.size()),
                    std::vector<double>(v.size())};
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t g = h / (heads / kv_heads);
        const auto at_q = static_cast<std::size_t>(((b * queries + i) * heads + h) * depth);
        const auto at_y = static_cast<std::size_t>(((b * queries + i) * heads + h) * value_depth);
        const auto at_v = [&, n_ = b, keys_ = keys, kv_heads_ = kv_heads](std::int64_t j) {
          return static_cast<std::size_t>(((n_ * keys_ + j) * kv_heads_ + g) * value_depth);
        };
        const auto at_k = [&, n_ = b, keys_ = keys, kv_heads_ = kv_heads, depth_ = depth](std::int64_t j) {
          return static_cast<std::size_t>(((n_ * keys_ + j) * kv_heads_ + g) * depth_);
        };
        std::int64_t end = lengths.empty() ? keys : lengths[static_cast<std::size_t>(b)];
        if (causal) end = std::min(end, (offsets.empty() ? offset : offsets[static_cast<std::size_t>(b)]) + i + 1);
        if (end <= 0) continue;
        const auto dot = [](const double* x, const double* y, std::int64_t count) {
          double sum = 0;
          for (std::int64_t d = 0; d < count; ++d) sum += x[d] * y[d];
          return sum;
        };
        std::vector<double> p, slope;  // of a score, and of its cap
        double largest = -std::numeric_limits<double>::infinity(), total = 0, delta = 0;
        for (std::int64_t j = 0; j < end; ++j) {
          const double score = scale * dot(&q[at_q], &k[at_k(j)], depth);
          const double capped = soft_cap > 0 ? std::tanh(score / soft_cap) : 0;
          slope.push_back(1 - capped * capped);
          p.push_back(soft_cap > 0 ? soft_cap * capped : score);
          if (!mask.empty()) p.back() += mask[static_cast<std::size_t>(((b * heads + h) * queries + i) * keys + j)];
          largest = std::max(largest, p.back());
        }
        if (largest == -std::numeric_limits<double>::infinity()) continue;
        for (double& x : p) total += x = std::exp(x - largest);
        for (double& x : p) x /= total;
        for (std::int64_t j = 0; j < end; ++j)
          delta += p[static_cast<std::size_t>(j)] * dot(&dy[at_y], &v[at_v(j)], value_depth);
        for (std::int64_t j = 0; j < end; ++j) {
          const double pj = p[static_cast<std::size_t>(j)];
          const double ds =
              scale * pj * slope[static_cast<std::size_t>(j)] * (dot(&dy[at_y], &v[at_v(j)], value_depth) - delta);
          for (std::size_t d = 0; d < static_cast<std::size_t>(depth); ++d) {
            r.dq[at_q + d] += ds * k[at_k(j) + d];
            r.dk[at_k(j) + d] += ds * q[at_q + d];
          }
          for (std::size_t d = 0; d < static_cast<std::size_t>(value_depth); ++d) {
            r.y[at_y + d] += pj * v[at_v(j) + d];
            r.dv[at_v(j) + d] += pj * dy[at_y + d];
          }
        }
      }
  return r;
}

}  // namespace samebytes::reference
