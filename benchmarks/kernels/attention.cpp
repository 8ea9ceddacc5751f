// Causal attention at the shapes of GPT nano and small, against the peak alone. Half of the scores are counted. More
// lengths, memory and generation: bench_attention.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "kernels/row.h"
#include "samebytes/ops.h"
#include "samebytes/ops/attention.h"

namespace samebytes::benchmarks {
namespace {

constexpr double kFlopsForward = 4, kFlopsBackward = 10;  // of each score and value of a head; scores are recomputed

Row attention(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t depth, bool is_gradient) {
  const Array qkv = values({batch, length, 3 * heads, depth}), dy = values({batch, length, heads, depth});
  const double scores = 0.5 * static_cast<double>(batch * heads * length * length * depth);
  const auto forward = [=] { return packed_attention(qkv, heads, {.causal = true}); };
  if (is_gradient)
    return {.work = (kFlopsForward + kFlopsBackward) * scores, .make = [=] { return pull_back(forward(), dy, qkv); }};
  const std::vector<float> x = host(qkv);
  const auto at = [=](std::int64_t n, std::int64_t t, std::int64_t head, std::int64_t d) -> double {
    return x[static_cast<std::size_t>(((n * length + t) * 3 * heads + head) * depth + d)];
  };
  return {.work = kFlopsForward * scores, .make = forward, .length = length + depth, .expected = [=](std::int64_t i) {
            const std::int64_t d = i % depth, h = i / depth % heads, t = i / depth / heads % length,
                               n = i / depth / heads / length;
            double sum = 0, weights = 0;
            for (std::int64_t s = 0; s <= t; ++s) {
              double score = 0;
              for (std::int64_t e = 0; e < depth; ++e) score += at(n, t, h, e) * at(n, s, heads + h, e);
              const double weight = std::exp(score / std::sqrt(static_cast<double>(depth)));
              weights += weight;
              sum += weight * at(n, s, 2 * heads + h, d);
            }
            return sum / weights;
          }};
}

}  // namespace

void add_attention(std::vector<Entry>& entries) {
  for (const bool is_gradient : {false, true}) {
    const char* const pass = is_gradient ? "with_gradient" : "forward";
    entries.push_back(
        {"attention", fmt::format("nano/64x64_4x32/{}", pass), [=] { return attention(64, 64, 4, 32, is_gradient); }});
    entries.push_back({"attention", fmt::format("small/4x128_12x64/{}", pass),
                       [=] { return attention(4, 128, 12, 64, is_gradient); }});
  }
}

}  // namespace samebytes::benchmarks
