#include "samebytes/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/ops/sampling.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class RandomArrays : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RandomArrays);

constexpr RandomKey kKey{.seed = 0x0123456789abcdef, .counter = 0xfedcba9876543210};

// The word of element i, from the host's generator.
std::uint32_t word_of(const RandomKey& key, std::int64_t i) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const PhiloxCounter words = philox4x32(
      random_counter(key.domain, static_cast<std::uint64_t>(i / 4), low(key.counter), low(key.counter >> 32)),
      {low(key.seed), low(key.seed >> 32)});
  return words[static_cast<std::size_t>(i % 4)];
}

TEST_P(RandomArrays, words_equal_the_known_answer_of_philox) {
  SAMEBYTES_NEEDS_F64();
  // Salmon et al., Random123's kat_vectors: philox4x32 10 rounds, counter and key 0.
  const std::vector<double> want{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const std::vector<double> u = uniform({4}, 0, 1, f64, {.seed = 0, .counter = 0}).to_vector<double>();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(u[i] * 0x1p32, want[i]) << i;
}

TEST_P(RandomArrays, uniform_gives_the_bits_of_the_host_generator) {
  for (std::int64_t n : {1, 3, 63, 64, 65, 5003}) {
    const std::vector<float> u = uniform({n}, 0, 1, f32, kKey).to_vector<float>();
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(u[static_cast<std::size_t>(i)], static_cast<float>(word_of(kKey, i) >> 8) * 0x1p-24f)
          << i << " of " << n;
  }
}

TEST_P(RandomArrays, each_domain_draws_from_a_stream_of_its_own) {
  RandomKey key = kKey;
  key.domain = RandomDomain::synthesis;  // the last one
  const std::vector<float> u = uniform({70}, 0, 1, f32, key).to_vector<float>();
  for (std::int64_t i = 0; i < 70; ++i)
    ASSERT_EQ(u[static_cast<std::size_t>(i)], static_cast<float>(word_of(key, i) >> 8) * 0x1p-24f) << i;
  EXPECT_NE(u, (uniform({70}, 0, 1, f32, kKey).to_vector<float>()));
}

TEST_P(RandomArrays, dropout_and_sampling_of_a_key_do_not_repeat_its_uniform_numbers) {
  const std::int64_t n = 1000;
  const std::vector<float> u = uniform({n}, 0, 1, f32, kKey).to_vector<float>();
  const std::vector<float> kept = dropout(ones({n}), 0.5, kKey).to_vector<float>();
  const std::vector<std::int32_t> drawn = categorical(zeros({n, 2}), kKey).to_vector<std::int32_t>();
  const std::vector<float> pairs = uniform({n, 2}, 0, 1, f32, kKey).to_vector<float>();
  int as_dropped = 0, as_drawn = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    as_dropped += (kept[i] > 0) == (u[i] >= 0.5f);
    as_drawn += (drawn[i] == 1) == (pairs[2 * i + 1] > pairs[2 * i]);
  }
  const double deviation = std::sqrt(0.25 * static_cast<double>(n));
  EXPECT_NEAR(as_dropped, 0.5 * static_cast<double>(n), 6 * deviation);
  EXPECT_NEAR(as_drawn, 0.5 * static_cast<double>(n), 6 * deviation);
}

TEST_P(RandomArrays, uniform_is_uniform_in_its_range) {
  const std::int64_t n = 200000;
  const std::vector<float> u = uniform({n}, -2, 6, f32, kKey).to_vector<float>();
  std::vector<int> counts(16, 0);
  for (float x : u) {
    ASSERT_GE(x, -2);
    ASSERT_LE(x, 6);
    ++counts[static_cast<std::size_t>(std::min(15.0f, (x + 2) * 2))];
  }
  double chi = 0;  // chi-squared of 15 degrees of freedom: above 44.3 once in 10 000
  for (int count : counts) chi += (count - n / 16.0) * (count - n / 16.0) / (n / 16.0);
  EXPECT_LT(chi, 44.3);
}

TEST_P(RandomArrays, sixteen_bit_uniform_stays_below_one) {
  for (Dtype dtype : {f16, bf16}) {
    const std::vector<float> u = uniform({20000}, 0, 1, dtype, kKey).to_vector<float>();
    EXPECT_LT(*std::max_element(u.begin(), u.end()), 1.0f);
    EXPECT_GT(*std::max_element(u.begin(), u.end()), 0.98f);
  }
}

TEST_P(RandomArrays, normal_is_box_muller_of_the_words) {
  for (Dtype dtype : real_dtypes()) {
    const std::vector<double> z = normal({1003}, 1, 2, dtype, kKey).to_vector<double>();
    for (std::int64_t i = 0; i < 1003; ++i) {
      const std::int64_t pair = i / 2 * 2;
      const double radius = std::sqrt(-2 * std::log((word_of(kKey, pair) + 0.5) * 0x1p-32));
      const double angle = 2 * 3.14159265358979323846 * word_of(kKey, pair + 1) * 0x1p-32;
      const double want = 1 + 2 * radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      ASSERT_NEAR(z[static_cast<std::size_t>(i)], want, 20 * sum_tolerance(dtype, 1)) << i;
    }
  }
}

TEST_P(RandomArrays, normal_has_its_moments) {
  const std::int64_t n = 200000;
  const Array z = normal({n}, 0, 1, f32, kKey);
  const double deviation = 1 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(mean(z).value(), 0, 4 * deviation);
  EXPECT_NEAR(mean(square(z)).value(), 1, 4 * deviation * std::sqrt(2.0));
  EXPECT_NEAR(mean(square(square(z))).value(), 3, 4 * deviation * std::sqrt(96.0));
}

TEST_P(RandomArrays, another_counter_gives_other_numbers_and_no_other_plan) {
  const auto draw = [](std::uint64_t counter) { return uniform({100}, 0, 1, f32, {.seed = 3, .counter = counter}); };
  draw(0).wait();
  const auto before = engine().plans().plans_made;
  const std::vector<float> a = draw(1).to_vector<float>(), b = draw(2).to_vector<float>(),
                           again = draw(1).to_vector<float>();
  EXPECT_EQ(engine().plans().plans_made, before);
  EXPECT_EQ(a, again);
  int equal = 0;
  for (std::size_t i = 0; i < 100; ++i) equal += a[i] == b[i];
  EXPECT_EQ(equal, 0);
}

TEST_P(RandomArrays, draws_without_a_key_differ) {
  EXPECT_NE(uniform({8}).to_vector<float>(), uniform({8}).to_vector<float>());
  EXPECT_NE(normal({8}).to_vector<float>(), normal({8}).to_vector<float>());
}

TEST_P(RandomArrays, dropout_keeps_what_its_words_say_and_scales_it) {
  for (double p : {0.1, 0.5, 0.9})
    for (std::int64_t n : {1, 15, 70, 4099})
      for (Dtype dtype : real_dtypes()) {
        const auto values = random_values(n, 5, 1, 2);
        const RandomKey own{kKey.seed, kKey.counter, RandomDomain::dropout};
        std::vector<double> want;
        for (std::int64_t i = 0; i < n; ++i)
          want.push_back(word_of(own, i) >= static_cast<std::uint32_t>(p * 0x1p32)
                             ? values[static_cast<std::size_t>(i)] / (1 - p)
                             : 0);
        EXPECT_TRUE(all_close(dropout(real_array(values, {n}, dtype), p, kKey), want, sum_tolerance(dtype, 1)));
      }
}

TEST_P(RandomArrays, the_gradient_of_dropout_has_the_same_mask) {
  const std::vector<Array> wrt{ones({1000})};
  const Array y = dropout(wrt[0], 0.3, kKey);
  const Array dx = gradients(sum(y), wrt)[0];
  EXPECT_TRUE(same_bytes(dx, y));
  const std::vector<Array> keyless{ones({1000})};
  const Array drawn = dropout(keyless[0], 0.3);
  EXPECT_TRUE(same_bytes(gradients(sum(drawn), keyless)[0], drawn));
}

TEST_P(RandomArrays, dropout_of_nothing_and_of_everything) {
  const Array a = ones({5});
  EXPECT_EQ(dropout(a, 0).node(), a.node());
  EXPECT_EQ(dropout(a, 1).to_vector<float>(), std::vector<float>(5, 0.0f));
  EXPECT_EQ(dropout(empty({0}), 0.5).shape(), (Shape{0}));
  EXPECT_EQ(dropout(astype(a, f16), 0.5).dtype(), f16);
}

TEST_P(RandomArrays, wrong_arguments_are_refused) {
  EXPECT_ERROR((uniform({2}, 0, 1, i32)), ArgumentError, "uniform: expected a floating dtype, got i32");
  EXPECT_ERROR((uniform({2}, 2, 1)), ArgumentError,
               "uniform: low must be at most high and both finite, got 2.000000 and 1.000000");
  EXPECT_ERROR((normal({2}, 0, -1)), ArgumentError,
               "normal: mean must be finite and deviation 0 or more, got 0.000000 and -1.000000");
  EXPECT_ERROR((dropout(ones({2}), 1.5)), ArgumentError, "dropout: p must be in [0, 1], got 1.500000");
  EXPECT_ERROR((dropout(full({2}, 1, i32), 0.5)), ArgumentError, "dropout: needs a floating array, src is i32 [2]");
}

}  // namespace
}  // namespace samebytes::testing
