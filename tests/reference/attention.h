// Attention as its definition, in double, with the whole matrix of probabilities.
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::reference {

struct AttentionProblem {
  std::int64_t n = 1, queries = 1, keys = 1, heads = 1, kv_heads = 1, depth = 1;
  bool causal = false;
  std::int64_t offset = 0;  // of causal
  double scale = 1;
  std::vector<std::int32_t> lengths = {};  // of each in the batch, or none
  std::int64_t value_depth = 0;            // of v, y and dv; 0: depth
  std::vector<std::int32_t> offsets = {};  // of causal for each in the batch, instead of offset
  double soft_cap = 0;                     // 0: none
  std::vector<double> mask = {};           // [N, H, T, S] added to the scores, -infinity hides; or none
};
struct AttentionResult {
  std::vector<double> y, dq, dk, dv;
};
// q [N, T, H, D], k and v [N, S, G, D]; the gradients are those of sum(dy * y).
AttentionResult attention(const AttentionProblem& problem, const std::vector<double>& q, const std::vector<double>& k,
                          const std::vector<double>& v, const std::vector<double>& dy);

}  // namespace samebytes::reference
