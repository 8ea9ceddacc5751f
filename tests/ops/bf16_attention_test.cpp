// Attention of bf16 against double, with the CPU's instruction for pairs of bf16 and without: depths and lengths that
// are no whole pairs, vectors or tiles, causal and not, padded, grouped heads.
//
// The bounds follow from what is computed. With the instruction the probabilities p and the slopes ds = p (dp - delta)
// are rounded to bf16 before the products with v, dy, k and q, by 2^-8 of each; delta = dy y takes y as it is stored,
// rounded by 2^-8; a result is rounded once more. All else is f32, whose part of a bound is the last factor.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

constexpr double kStep = 0x1p-8, kRest = 1.01;

struct Case {
  std::int64_t batch, queries, keys, heads, groups, depth;
  bool causal = false;
  std::vector<std::int32_t> lengths = {};
};

struct Values {
  Array array;
  std::vector<double> values;
};

Values values(const Shape& shape, std::uint64_t seed) {
  Values made;
  made.array = astype(real_array(random_values(shape.size(), seed), shape, f32), bf16);
  made.values = astype(made.array, f32).to_vector<double>();
  return made;
}

// A result in exact arithmetic, and the sum of the magnitudes that are rounded on its way.
struct Wanted {
  std::vector<double> value, rounded;
  explicit Wanted(std::size_t n) : value(n, 0.0), rounded(n, 0.0) {}
  void add(std::size_t at, double x, double part) {
    value[at] += x;
    rounded[at] += part;
  }
};

void expect_within(const Array& came, const Wanted& want, const char* what) {
  const auto got = astype(came, f32).to_vector<double>();
  ASSERT_EQ(got.size(), want.value.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want.value[i]),
              kRest * kStep * (std::abs(want.value[i]) + want.rounded[i]) + 0x1p-20 * (1 + want.rounded[i]))
        << what << " at " << i << ": " << got[i] << ", wanted " << want.value[i];
}

struct Results {
  Wanted y, dq, dk, dv;
};

// By the definition; dy is the gradient of y.
Results reference(const Case& c, const Values& q, const Values& k, const Values& v, const Values& dy) {
  const auto at = [&](std::int64_t n, std::int64_t t, std::int64_t length, std::int64_t h, std::int64_t heads) {
    return static_cast<std::size_t>(((n * length + t) * heads + h) * c.depth);
  };
  const auto depth = static_cast<std::size_t>(c.depth);
  Results r{Wanted(q.values.size()), Wanted(q.values.size()), Wanted(k.values.size()), Wanted(k.values.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(c.depth));
  for (std::int64_t n = 0; n < c.batch; ++n) {
    const std::int64_t visible = c.lengths.empty() ? c.keys : c.lengths[static_cast<std::size_t>(n)];
    for (std::int64_t h = 0; h < c.heads; ++h) {
      const std::int64_t g = h / (c.heads / c.groups);
      for (std::int64_t t = 0; t < c.queries; ++t) {
        const std::size_t of_q = at(n, t, c.queries, h, c.heads);
        const std::int64_t end = c.causal ? std::min(visible, c.keys - c.queries + t + 1) : visible;
        std::vector<double> p, dp;
        double largest = -INFINITY, sum = 0, delta = 0, rounded_delta = 0;
        for (std::int64_t s = 0; s < end; ++s) {
          const std::size_t of_k = at(n, s, c.keys, g, c.groups);
          double score = 0, slope = 0;
          for (std::size_t d = 0; d < depth; ++d) {
            score += q.values[of_q + d] * k.values[of_k + d] * scale;
            slope += dy.values[of_q + d] * v.values[of_k + d];
          }
          p.push_back(score);
          dp.push_back(slope);
          largest = std::max(largest, score);
        }
        for (double& one : p) sum += one = std::exp(one - largest);
        for (std::size_t s = 0; s < p.size(); ++s) {
          p[s] /= sum;
          delta += p[s] * dp[s];
          const std::size_t of_k = at(n, static_cast<std::int64_t>(s), c.keys, g, c.groups);
          for (std::size_t d = 0; d < depth; ++d)
            r.y.add(of_q + d, p[s] * v.values[of_k + d], std::abs(p[s] * v.values[of_k + d]));
        }
        for (std::size_t d = 0; d < depth; ++d)
          rounded_delta += std::abs(dy.values[of_q + d]) * (std::abs(r.y.value[of_q + d]) + r.y.rounded[of_q + d]);
        for (std::size_t s = 0; s < p.size(); ++s) {
          const std::size_t of_k = at(n, static_cast<std::int64_t>(s), c.keys, g, c.groups);
          const double ds = p[s] * (dp[s] - delta) * scale, rounded = std::abs(ds) + p[s] * rounded_delta * scale;
          for (std::size_t d = 0; d < depth; ++d) {
            r.dq.add(of_q + d, ds * k.values[of_k + d], rounded * std::abs(k.values[of_k + d]));
            r.dk.add(of_k + d, ds * q.values[of_q + d], rounded * std::abs(q.values[of_q + d]));
            r.dv.add(of_k + d, p[s] * dy.values[of_q + d], std::abs(p[s] * dy.values[of_q + d]));
          }
        }
      }
    }
  }
  return r;
}

class Bf16AttentionTest : public OnDevice {
 protected:
  static void expect_right(const Case& c) {
    const Values q = values({c.batch, c.queries, c.heads, c.depth}, 1),
                 k = values({c.batch, c.keys, c.groups, c.depth}, 2),
                 v = values({c.batch, c.keys, c.groups, c.depth}, 3),
                 dy = values({c.batch, c.queries, c.heads, c.depth}, 4);
    const Results want = reference(c, q, k, v, dy);
    AttentionOptions options{.causal = c.causal};
    if (!c.lengths.empty()) options.lengths = array(c.lengths, {c.batch});
    const Array a = cell(q.array, "q"), b = cell(k.array, "k"), e = cell(v.array, "v");
    const Array y = scaled_dot_product_attention(a, b, e, options);
    const std::vector<Array> wrt{a, b, e};
    const auto slopes = gradients(y, wrt, dy.array);
    expect_within(y, want.y, "y");
    expect_within(slopes[0], want.dq, "dq");
    expect_within(slopes[1], want.dk, "dk");
    expect_within(slopes[2], want.dv, "dv");
  }
};
SAMEBYTES_ON_EVERY_DEVICE(Bf16AttentionTest);

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {1, 1, 1, 1, 1, 1},
      {1, 3, 5, 2, 1, 7},
      {2, 9, 9, 2, 2, 16, true},
      {1, 17, 33, 3, 1, 33, true},
      {1, 70, 70, 2, 1, 64, true},
      {1, 65, 131, 1, 1, 48},
      {2, 5, 67, 2, 1, 31, false, {66, 1}},
      {2, 40, 40, 1, 1, 24, true, {39, 17}},
      {1, 1, 97, 4, 2, 64},
  };
  return all;
}

TEST_P(Bf16AttentionTest, results_and_gradients_are_within_their_roundings) {
  for (const Case& c : cases()) {
    SCOPED_TRACE("T " + std::to_string(c.queries) + ", S " + std::to_string(c.keys) + ", D " + std::to_string(c.depth));
    expect_right(c);
  }
}

TEST_P(Bf16AttentionTest, also_where_no_instruction_multiplies_pairs) {
  const Environment use("SAMEBYTES_MATRIX_INSTRUCTIONS", "0");
  const auto other = make_engine(GetParam());
  const EngineScope scope(*other);
  for (const Case& c : cases()) expect_right(c);
}

// Heads that lie beside each other in one array, as GPT-2's layers have them.
TEST_P(Bf16AttentionTest, packed_heads_are_read_in_place) {
  const Values all = values({2, 11, 6, 20}, 5);
  const Array x = cell(all.array, "x");
  const auto apart = [&](std::int64_t from) { return contiguous(slice(x, 2, from, from + 2)); };
  const Array y = packed_attention(x, 2, {.causal = true}),
              want = scaled_dot_product_attention(apart(0), apart(2), apart(4), {.causal = true});
  EXPECT_EQ(astype(y, f32).to_vector<float>(), astype(want, f32).to_vector<float>());
}

}  // namespace
}  // namespace samebytes::testing
