#include "samebytes/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace samebytes {
namespace {

// Known answers of the authors' Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, gives_the_known_answers_of_its_authors) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(philox4x32({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}),
            (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
            (PhiloxCounter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Random, repeats_for_the_same_key_and_differs_when_any_part_differs) {
  const SequenceKey key{.seed = 7, .epoch = 3, .index = 41, .lane = 2};
  const std::uint32_t first = Random(key).bits();
  EXPECT_EQ(Random(key).bits(), first);
  std::set<std::uint32_t> others{first};
  others.insert(Random({.seed = 8, .epoch = 3, .index = 41, .lane = 2}).bits());
  others.insert(Random({.seed = 7 + (std::uint64_t{1} << 32), .epoch = 3, .index = 41, .lane = 2}).bits());
  others.insert(Random({.seed = 7, .epoch = 4, .index = 41, .lane = 2}).bits());
  others.insert(Random({.seed = 7, .epoch = 3, .index = 42, .lane = 2}).bits());
  others.insert(Random({.seed = 7, .epoch = 3, .index = 41, .lane = 3}).bits());
  EXPECT_EQ(others.size(), 6u);
}

// 250 blocks of four words for each use of random numbers, arrays among them, from one seed and zero otherwise.
TEST(Random, the_first_thousand_words_of_all_domains_are_different_for_equal_seeds) {
  constexpr std::uint64_t kSeed = 7;
  std::set<PhiloxCounter> blocks;
  std::size_t count = 0;
  for (int domain = 0; domain <= static_cast<int>(RandomDomain::synthesis); ++domain) {
    Random random({.seed = kSeed, .domain = static_cast<RandomDomain>(domain)});
    for (std::uint64_t block = 0; block < 250; ++block) {
      blocks.insert({random.bits(), random.bits(), random.bits(), random.bits()});
      ++count;
      if (block == 0) continue;  // an array's first block is also the host's
      blocks.insert(philox4x32(random_counter(static_cast<RandomDomain>(domain), block, 0, 0), {kSeed, 0}));
      ++count;
    }
  }
  EXPECT_EQ(blocks.size(), count);
}

TEST(Random, a_place_never_reaches_into_the_domain) {
  const PhiloxCounter last = random_counter(RandomDomain::dropout, ~std::uint64_t{0}, 1, 2);
  EXPECT_EQ(last,
            (PhiloxCounter{0xffffffffu, static_cast<std::uint32_t>(RandomDomain::dropout) << 24 | 0xffffffu, 1, 2}));
}

TEST(Random, numbers_have_the_moments_of_their_distribution) {
  Random random({.seed = 1});
  constexpr int kCount = 40000;
  double sum = 0, normal_sum = 0, normal_squares = 0;
  int threes = 0;
  for (int i = 0; i < kCount; ++i) {
    const float u = random.uniform(), n = random.normal();
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    normal_sum += n;
    normal_squares += n * n;
    threes += random.below(10) == 3;
  }
  // Six standard errors of each estimate.
  EXPECT_NEAR(sum / kCount, 0.5, 6 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(normal_sum / kCount, 0.0, 6 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(normal_squares / kCount, 1.0, 6 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(threes, kCount / 10, 6 * std::sqrt(kCount * 0.09));
}

}  // namespace
}  // namespace samebytes
