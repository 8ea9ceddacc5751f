#include "reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace samebytes::reference {

AttentionResult attention(const AttentionProblem& problem, const std::vector<double>& q, const std::vector<double>& k,
                          const std::vector<double>& v, const std::vector<double>& dy) {
  const auto& [n, queries, keys, heads, kv_heads, depth, causal, offset, scale, lengths] = problem;
  AttentionResult r{std::vector<double>(q.size()), std::vector<double>(q.size()), std::vector<double>(k.size()),
                    std::vector<double>(k.size())};
  for (std::int64_t b = 0; b < n; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t g = h / (heads / kv_heads);
        const auto at_q = static_cast<std::size_t>(((b * queries + i) * heads + h) * depth);
        const auto at_k = [&, n_ = b, keys_ = keys, kv_heads_ = kv_heads, depth_ = depth](std::int64_t j) {
          return static_cast<std::size_t>(((n_ * keys_ + j) * kv_heads_ + g) * depth_);
        };
        std::int64_t end = lengths.empty() ? keys : lengths[static_cast<std::size_t>(b)];
        if (causal) end = std::min(end, offset + i + 1);
        if (end <= 0) continue;
        const auto dot = [depth_ = depth](const double* x, const double* y) {
          double sum = 0;
          for (std::int64_t d = 0; d < depth_; ++d) sum += x[d] * y[d];
          return sum;
        };
        std::vector<double> p;
        double largest = -std::numeric_limits<double>::infinity(), total = 0, delta = 0;
        for (std::int64_t j = 0; j < end; ++j) {
          p.push_back(scale * dot(&q[at_q], &k[at_k(j)]));
          largest = std::max(largest, p.back());
        }
        for (double& x : p) total += x = std::exp(x - largest);
        for (double& x : p) x /= total;
        for (std::int64_t j = 0; j < end; ++j) delta += p[static_cast<std::size_t>(j)] * dot(&dy[at_q], &v[at_k(j)]);
        for (std::int64_t j = 0; j < end; ++j) {
          const double pj = p[static_cast<std::size_t>(j)];
          const double ds = scale * pj * (dot(&dy[at_q], &v[at_k(j)]) - delta);
          for (std::size_t d = 0; d < static_cast<std::size_t>(depth); ++d) {
            r.y[at_q + d] += pj * v[at_k(j) + d];
            r.dq[at_q + d] += ds * k[at_k(j) + d];
            r.dk[at_k(j) + d] += ds * q[at_q + d];
            r.dv[at_k(j) + d] += pj * dy[at_q + d];
          }
        }
      }
  return r;
}

}  // namespace samebytes::reference
