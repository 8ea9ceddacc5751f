#include "samebytes/data/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace samebytes::data {
namespace {

std::vector<std::int64_t> order(const Sampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(sampler.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = sampler.at(epoch, static_cast<std::int64_t>(i));
  return indices;
}

TEST(RandomSampler, gives_every_sample_once_for_any_size) {
  for (const std::int64_t size : {0, 1, 2, 3, 4, 5, 7, 16, 17, 97, 1000, 1437, 4096, 60000}) {
    std::vector<std::int64_t> indices = order(*random(size, 11), 2), expected(indices.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::sort(indices.begin(), indices.end());
    EXPECT_EQ(indices, expected) << size;
  }
}

TEST(RandomSampler, depends_on_seed_and_epoch_alone) {
  const auto first = order(*random(1000, 1), 0);
  EXPECT_EQ(order(*random(1000, 1), 0), first);
  EXPECT_NE(order(*random(1000, 1), 1), first);
  EXPECT_NE(order(*random(1000, 2), 0), first);
}

// Over many epochs each sample stands at each place equally often: chi-squared with 99 - 18 = 81 degrees of freedom.
TEST(RandomSampler, puts_every_sample_at_every_place_equally_often) {
  constexpr int kSize = 10, kEpochs = 20000;
  std::vector<int> counts(kSize * kSize);
  const SamplerPtr sampler = random(kSize, 5);
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (int place = 0; place < kSize; ++place)
      ++counts[static_cast<std::size_t>(place * kSize + sampler->at(epoch, place))];
  const double expected = static_cast<double>(kEpochs) / kSize;
  double chi = 0;
  for (const int count : counts) chi += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi, 81 + 6 * std::sqrt(2.0 * 81));
}

TEST(RandomSampler, leaves_few_neighbours_together) {
  const auto indices = order(*random(10000, 3), 0);
  int neighbours = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) neighbours += indices[i] == indices[i - 1] + 1;
  EXPECT_LT(neighbours, 10);  // one is expected
}

TEST(Samplers, compose_by_wrapping) {
  EXPECT_EQ(order(*sequential(4), 9), (std::vector<std::int64_t>{0, 1, 2, 3}));
  const SamplerPtr dropped = drop_last(random(103, 1), 10);
  EXPECT_EQ(dropped->size(), 100);
  const BatchSampler batches(dropped, 10);
  EXPECT_EQ(batches.size(), 10);
  EXPECT_EQ(batches.at(0, 9).size(), 10u);
  const BatchSampler tail(sequential(103), 10);
  EXPECT_EQ(tail.size(), 11);
  EXPECT_EQ(tail.at(0, 10), (std::vector<std::int64_t>{100, 101, 102}));
  EXPECT_EQ(BatchSampler(sequential(kEndless), 3).at(0, 1000), (std::vector<std::int64_t>{3000, 3001, 3002}));
  EXPECT_EQ(BatchSampler(sequential(kEndless), 3).size(), kEndless);
}

TEST(Samplers, check_their_arguments) {
  EXPECT_THROW(random(kEndless), ArgumentError);
  EXPECT_THROW(sequential(-5), ArgumentError);
  EXPECT_THROW(drop_last(sequential(5), 0), ArgumentError);
  EXPECT_THROW(drop_last(nullptr, 1), ArgumentError);
  EXPECT_THROW(BatchSampler(sequential(5), 0), ArgumentError);
  try {
    BatchSampler(sequential(360), 4096);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(), "batch: expected at most the 360 samples of the set, got 4096");
  }
}

}  // namespace
}  // namespace samebytes::data
