// What each sampler promises: every sample once, shares within binomial bounds, a function of (seed, epoch, position).
// Over 400 lines because it has a section for each sampler.
#include "samebytes/data/samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "support/errors.h"

namespace samebytes::data {
namespace {

using Indices = std::vector<std::int64_t>;

Indices order(const Sampler& sampler, std::int64_t epoch) {
  Indices indices(static_cast<std::size_t>(sampler.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = sampler.at(epoch, static_cast<std::int64_t>(i));
  return indices;
}

Indices sorted(Indices indices) {
  std::ranges::sort(indices);
  return indices;
}

Indices counting(std::int64_t size) {
  Indices indices(static_cast<std::size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Labels of three classes with 60 %, 30 % and 10 % of the samples, mixed.
std::vector<std::int32_t> labels_of(std::int64_t size) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < size; ++i) labels.push_back(i * 7 % 10 < 6 ? 0 : (i * 7 % 10 < 9 ? 5 : 2));
  return labels;
}

// Every sampler of this file over 103 samples that gives each of them once an epoch.
std::map<std::string, std::function<SamplerPtr(std::uint64_t seed)>> permutations() {
  std::vector<std::int64_t> lengths;
  std::vector<float> features;
  for (std::int64_t i = 0; i < 103; ++i) {
    lengths.push_back(i * i % 37);
    features.push_back(static_cast<float>(i * 29 % 103));
    features.push_back(static_cast<float>(i * 13 % 17));
  }
  return {
      {"subset", [](std::uint64_t seed) { return subset(counting(103), {.seed = seed}); }},
      {"weighted",
       [](std::uint64_t seed) {
         return weighted(std::vector<double>(103, 0.5), {.replacement = false, .seed = seed});
       }},
      {"stratified", [](std::uint64_t seed) { return stratified(labels_of(103), seed); }},
      {"proximity",
       [=](std::uint64_t seed) {
         return proximity(HostArray(Shape{103, 2}, features), {.batch = 8, .seed = seed});
       }},
      {"bucketed", [=](std::uint64_t seed) { return bucketed(lengths, {.batch = 8, .pool = 3, .seed = seed}); }},
      {"curriculum at its end",
       [](std::uint64_t seed) { return curriculum(std::vector<float>(103), {.epochs = 0, .seed = seed}); }},
  };
}

TEST(Samplers, give_every_sample_once_and_another_order_for_each_epoch_and_seed) {
  for (const auto& [name, make] : permutations()) {
    const SamplerPtr sampler = make(3);
    const Indices first = order(*sampler, 0);
    EXPECT_EQ(sorted(first), counting(103)) << name;
    EXPECT_EQ(sorted(order(*sampler, 5)), counting(103)) << name;
    EXPECT_NE(order(*sampler, 5), first) << name;
    EXPECT_NE(order(*make(4), 0), first) << name;
    EXPECT_EQ(order(*make(3), 0), first) << name;
  }
}

TEST(Samplers, start_anywhere_from_several_threads) {
  auto all = permutations();
  all["weighted with replacement"] = [](std::uint64_t seed) {
    return weighted(std::vector<double>(103, 2), {.seed = seed});
  };
  all["balanced"] = [](std::uint64_t seed) { return balanced(labels_of(103), {.seed = seed}); };
  all["hard examples"] = [](std::uint64_t seed) {
    return std::make_shared<HardExamples>(103, HardExamplesOptions{.seed = seed});
  };
  for (const auto& [name, make] : all) {
    const SamplerPtr plain = make(1), shared = make(1);
    std::vector<Indices> expected;
    for (std::int64_t epoch = 0; epoch < 4; ++epoch) expected.push_back(order(*plain, epoch));
    std::vector<Indices> seen(4);
    {
      std::vector<std::jthread> threads;
      for (std::size_t t = 0; t < 4; ++t)  // epochs in another order, backwards
        threads.emplace_back([&, t] {
          const std::size_t epoch = 3 - t;
          Indices indices(103);
          for (std::size_t i = 103; i-- > 0;)
            indices[i] = shared->at(static_cast<std::int64_t>(epoch), static_cast<std::int64_t>(i));
          seen[epoch] = std::move(indices);
        });
    }
    EXPECT_EQ(seen, expected) << name;
  }
}

TEST(SubsetSampler, keeps_its_samples_and_their_order_if_asked) {
  const Indices some = {7, 3, 99, 12};
  EXPECT_EQ(order(*subset(some, {.shuffle = false}), 4), some);
  EXPECT_EQ(sorted(order(*subset(some), 4)), sorted(some));
  EXPECT_EQ(subset({})->size(), 0);
  EXPECT_ERROR(subset({1, -2}), ArgumentError, "subset: indices must be 0 or more, got -2");
}

TEST(WeightedSampler, draws_by_weight_with_replacement) {
  const std::vector<double> weights = {1, 0, 3, 0.5, 5.5};
  constexpr std::int64_t kCount = 50000;
  const SamplerPtr sampler = weighted(weights, {.count = kCount, .seed = 2});
  EXPECT_EQ(sampler->size(), kCount);
  std::vector<int> counts(5);
  for (const std::int64_t index : order(*sampler, 1)) ++counts[static_cast<std::size_t>(index)];
  for (std::size_t i = 0; i < 5; ++i) {
    const double share = weights[i] / 10;
    EXPECT_NEAR(counts[i], kCount * share, 6 * std::sqrt(kCount * share * (1 - share))) << i;
  }
  EXPECT_EQ(weighted(weights)->size(), 5);
}

TEST(WeightedSampler, without_replacement_takes_the_heavy_ones_first) {
  const std::vector<double> weights = {1, 0, 3, 6};
  std::vector<int> first(4);
  constexpr int kEpochs = 20000;
  const SamplerPtr sampler = weighted(weights, {.replacement = false});
  EXPECT_EQ(sampler->size(), 3);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    EXPECT_EQ(sorted(order(*sampler, epoch)), (Indices{0, 2, 3}));
    ++first[static_cast<std::size_t>(sampler->at(epoch, 0))];
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const double share = weights[i] / 10;
    EXPECT_NEAR(first[i], kEpochs * share, 6 * std::sqrt(kEpochs * share * (1 - share))) << i;
  }
  EXPECT_EQ(weighted(weights, {.count = 2, .replacement = false})->size(), 2);
  EXPECT_ERROR(weighted(weights, {.count = 4, .replacement = false}), ArgumentError,
               "weighted: without replacement, count must be at most the 3 samples with a weight above 0, got 4");
  EXPECT_ERROR(weighted(std::vector<double>{0, 0}), ArgumentError, "weighted: expected a weight above 0, got none");
  EXPECT_ERROR(weighted(std::vector<double>{-1}), ArgumentError,
               "weighted: weights must be finite and 0 or more, got -1.000000");
}

TEST(StratifiedSampler, gives_each_class_its_share_of_every_prefix) {
  for (const std::int64_t size : {1, 10, 97, 1000}) {
    const std::vector<std::int32_t> labels = labels_of(size);
    const SamplerPtr sampler = stratified(labels, 4);
    std::map<std::int32_t, double> whole, seen;
    for (const std::int32_t label : labels) ++whole[label];
    const Indices indices = order(*sampler, 2);
    for (std::size_t p = 0; p < indices.size(); ++p) {
      ++seen[labels[static_cast<std::size_t>(indices[p])]];
      for (const auto& [label, count] : whole)
        ASSERT_LT(std::abs(seen[label] - count * static_cast<double>(p + 1) / static_cast<double>(size)), 1) << p;
    }
  }
  EXPECT_ERROR(stratified(std::vector<std::int32_t>{0, -1}), ArgumentError,
               "stratified: labels must be 0 or more, got -1");
}

TEST(StratifiedSampler, keeps_its_bound_with_many_uneven_classes) {
  std::vector<std::int32_t> labels;
  for (std::int32_t c = 0; c < 40; ++c)
    for (std::int32_t i = 0; i < 1 + c * c % 23; ++i) labels.push_back(c);
  const auto size = static_cast<double>(labels.size());
  std::map<std::int32_t, double> whole, seen;
  for (const std::int32_t label : labels) ++whole[label];
  const Indices indices = order(*stratified(labels), 0);
  EXPECT_EQ(sorted(indices), counting(static_cast<std::int64_t>(labels.size())));
  for (std::size_t p = 0; p < indices.size(); ++p) {
    ++seen[labels[static_cast<std::size_t>(indices[p])]];
    for (const auto& [label, count] : whole)
      ASSERT_LT(std::abs(seen[label] - count * static_cast<double>(p + 1) / size), 1) << p << " " << label;
  }
}

TEST(BalancedSampler, gives_each_class_once_in_a_turn_and_all_samples_in_time) {
  const std::vector<std::int32_t> labels = labels_of(100);  // 60, 30 and 10
  const SamplerPtr sampler = balanced(labels, {.seed = 6});
  EXPECT_EQ(sampler->size(), 100);
  std::vector<int> counts(100);
  for (std::int64_t epoch = 0; epoch < 30; ++epoch) {
    const Indices indices = order(*sampler, epoch);
    for (std::size_t p = 0; p < 99; p += 3) {
      std::set<std::int32_t> classes;
      for (std::size_t i = p; i < p + 3; ++i) classes.insert(labels[static_cast<std::size_t>(indices[i])]);
      EXPECT_EQ(classes.size(), 3u);
    }
    // The last turn of an epoch is not whole; its samples are asked for all the same.
    for (std::int64_t p = 0; p < 102; ++p) ++counts[static_cast<std::size_t>(sampler->at(epoch, p))];
  }
  // 30 epochs of 34 turns: 1020 for each class, so 17, 34 and 102 for each sample.
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(counts[i], labels[i] == 0 ? 17 : (labels[i] == 5 ? 34 : 102));
  EXPECT_EQ(balanced(labels, {.count = 7})->size(), 7);
  EXPECT_ERROR(balanced({}), ArgumentError, "balanced: expected one label or more, got none");
}

TEST(ProximitySampler, puts_neighbours_into_one_batch) {
  // 16 clusters of 8 points in the plane.
  std::vector<float> points;
  std::vector<int> cluster;
  for (int i = 0; i < 128; ++i) {
    const int c = i * 11 % 16;
    cluster.push_back(c);
    points.push_back(static_cast<float>(10 * (c % 4)) + 0.1f * static_cast<float>(i % 7));
    points.push_back(static_cast<float>(10 * (c / 4)) + 0.1f * static_cast<float>(i % 5));
  }
  const SamplerPtr sampler = proximity(HostArray(Shape{128, 2}, points), {.batch = 8});
  std::set<int> seen;
  for (std::size_t epoch : {0, 1}) {
    const Indices indices = order(*sampler, static_cast<std::int64_t>(epoch));
    for (std::size_t b = 0; b < 128; b += 8) {
      for (std::size_t i = b; i < b + 8; ++i)
        EXPECT_EQ(cluster[static_cast<std::size_t>(indices[i])], cluster[static_cast<std::size_t>(indices[b])]);
      seen.insert(cluster[static_cast<std::size_t>(indices[b])]);
    }
  }
  EXPECT_EQ(seen.size(), 16u);
  // One number for each sample: sorted, in groups; the short group is last.
  std::vector<float> keys = {5, 3, 1, 4, 2};
  const Indices indices = order(*proximity(HostArray(Shape{5}, keys), {.batch = 2}), 0);
  EXPECT_EQ(indices[4], 0);
  EXPECT_TRUE(sorted({indices[0], indices[1]}) == (Indices{2, 4}) ||
              sorted({indices[0], indices[1]}) == (Indices{1, 3}));
  EXPECT_ERROR(proximity(HostArray(Shape{2}, i32), {.batch = 1}), ArgumentError,
               "proximity: features must be [n] or [n, D] f32, got i32 [2]");
}

TEST(BucketedSampler, makes_batches_of_similar_lengths) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 1003; ++i) lengths.push_back(i * 997 % 1003);
  const auto padding = [&](const SamplerPtr& sampler, std::int64_t epoch) {  // steps padded in all batches of 10
    const Indices indices = order(*sampler, epoch);
    std::int64_t padded = 0;
    for (std::size_t b = 0; b < indices.size(); b += 10) {
      std::int64_t longest = 0, sum = 0, count = 0;
      for (std::size_t i = b; i < std::min(b + 10, indices.size()); ++i, ++count) {
        longest = std::max(longest, lengths[static_cast<std::size_t>(indices[i])]);
        sum += lengths[static_cast<std::size_t>(indices[i])];
      }
      padded += longest * count - sum;
    }
    return padded;
  };
  const std::int64_t plain = padding(random(1003), 0);
  const SamplerPtr buckets = bucketed(lengths, {.batch = 10, .pool = 20});
  EXPECT_LT(padding(buckets, 0), plain / 10);
  EXPECT_LT(padding(buckets, 7), plain / 10);
  // The batches themselves are in random order: their lengths do not rise.
  const Indices indices = order(*buckets, 0);
  int rises = 0;
  for (std::size_t b = 10; b + 10 <= 1000; b += 10)
    rises += lengths[static_cast<std::size_t>(indices[b])] > lengths[static_cast<std::size_t>(indices[b - 10])];
  EXPECT_GT(rises, 25);
  EXPECT_LT(rises, 75);
  EXPECT_ERROR(bucketed(lengths, {.batch = 0}), ArgumentError, "bucketed: batch must be 1 or more, got 0");
}

TEST(CurriculumSampler, begins_with_the_easiest_and_grows_until_all_take_part) {
  std::vector<float> difficulty;
  for (int i = 0; i < 100; ++i) difficulty.push_back(static_cast<float>(i * 37 % 100));
  const CurriculumOptions options{.epochs = 5, .floor = 0.15, .power = 0.5};
  const SamplerPtr sampler = curriculum(difficulty, options);
  std::int64_t before = 0;
  for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
    const std::int64_t count = curriculum_count(100, epoch, options);
    EXPECT_GE(count, std::max<std::int64_t>(before, 15));
    before = count;
    std::map<std::int64_t, int> times;
    for (const std::int64_t index : order(*sampler, epoch)) {
      EXPECT_LT(difficulty[static_cast<std::size_t>(index)], static_cast<float>(count));
      ++times[index];
    }
    EXPECT_EQ(times.size(), static_cast<std::size_t>(count));
    for (const auto& [index, n] : times) {
      EXPECT_GE(n, 100 / count);
      EXPECT_LE(n, (100 + count - 1) / count);
    }
  }
  EXPECT_EQ(curriculum_count(100, 0, options), 15);
  EXPECT_EQ(curriculum_count(100, 5, options), 100);
  EXPECT_EQ(curriculum_count(3, 0, {.floor = 0.001}), 1);  // never none
  EXPECT_ERROR(curriculum(difficulty, {.floor = 0}), ArgumentError,
               "curriculum: floor must be above 0 and at most 1, got 0.000000");
}

TEST(DistributedSampler, deals_out_the_very_batches_of_one_process) {
  for (const std::int64_t ranks : {1, 2, 3, 5})
    for (const std::int64_t size : {1, 8, 17, 24}) {
      const std::int64_t batch = 8, epoch = 2;
      const SamplerPtr whole = random(size, 5);
      for (std::int64_t step = 0; step * batch < size; ++step) {
        Indices expected, came;
        for (std::int64_t i = step * batch; i < std::min(size, (step + 1) * batch); ++i)
          expected.push_back(whole->at(epoch, i));
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const DistributedOptions options{.rank = rank, .ranks = ranks, .batch = batch};
          const SamplerPtr share = distributed(whole, options);
          const BatchSampler batches(share, std::min(share->size(), distributed_batch(options)));
          EXPECT_EQ(batches.size(), (size + batch - 1) / batch);
          const Indices own = batches.at(epoch, step);
          const std::int64_t samples = distributed_samples(size, options, step);
          ASSERT_LE(samples, std::ssize(own));
          EXPECT_GE(std::ssize(own), 1);
          came.insert(came.end(), own.begin(), own.begin() + samples);
        }
        std::ranges::sort(expected);
        std::ranges::sort(came);
        EXPECT_EQ(came, expected) << ranks << " ranks, " << size << " samples, step " << step;
      }
    }
  EXPECT_ERROR(distributed(random(5), {.drop = true, .batch = 2}), ArgumentError,
               "distributed: batch and drop do not go together");
}

TEST(DistributedSampler, shares_every_sample_once) {
  for (const std::int64_t size : {1, 10, 11, 13}) {
    const std::int64_t ranks = 3;
    for (const bool drop : {false, true}) {
      Indices all;
      std::int64_t length = -1;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const SamplerPtr share = distributed(random(size, 5), {.rank = rank, .ranks = ranks, .drop = drop});
        EXPECT_TRUE(length < 0 || share->size() == length);
        length = share->size();
        const Indices indices = order(*share, 2);
        all.insert(all.end(), indices.begin(), indices.end());
      }
      EXPECT_EQ(length, drop ? size / ranks : (size + ranks - 1) / ranks);
      std::map<std::int64_t, int> times;
      for (const std::int64_t index : all) ++times[index];
      if (drop) {
        for (const auto& [index, n] : times) EXPECT_EQ(n, 1);
      } else {
        EXPECT_EQ(times.size(), static_cast<std::size_t>(size));
        EXPECT_EQ(static_cast<std::int64_t>(all.size()), (size + 2) / 3 * 3);
      }
    }
  }
  EXPECT_ERROR(distributed(random(5), {.rank = 2, .ranks = 2}), ArgumentError,
               "distributed: rank must be from 0 to ranks - 1, got rank 2 of 2");
  EXPECT_THROW(distributed(nullptr, {}), ArgumentError);
  EXPECT_THROW(distributed(sequential(kEndless), {}), ArgumentError);
}

}  // namespace
}  // namespace samebytes::data
