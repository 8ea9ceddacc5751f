// Padding, views and mixing: exact batches, and the same ones with any number of workers.
#include "samebytes/data/collate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "data/image.h"
#include "samebytes/data/image_transform.h"
#include "samebytes/data/loader.h"
#include "samebytes/data/mix.h"
#include "samebytes/data/series_transform.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

// Sample i: steps {i, 1}, {i, 2}, ... of a series [6, 2], as many as its length; rubbish behind them; tokens as bytes.
std::int32_t length_of(std::int64_t index) { return static_cast<std::int32_t>(index * 5 % 7); }
DatasetPtr series(std::int64_t size) {
  return generate(size, {{"series", Shape{6, 2}}, {"tokens", Shape{6}, i32}, {"length", Shape{}, i32}},
                  [](std::int64_t index, std::span<const Field> dst) {
                    std::ranges::fill(dst[0].as<float>(), -99.0f);
                    std::ranges::fill(dst[1].as<std::int32_t>(), -99);
                    for (std::int32_t t = 0; t < length_of(index); ++t) {
                      dst[0].as<float>()[static_cast<std::size_t>(2 * t)] = static_cast<float>(index);
                      dst[0].as<float>()[static_cast<std::size_t>(2 * t + 1)] = static_cast<float>(t + 1);
                      dst[1].as<std::int32_t>()[static_cast<std::size_t>(t)] = t + 10;
                    }
                    dst[2].as<std::int32_t>()[0] = length_of(index);
                  });
}

// A batch made without a loader: the data set's own values, with the key's transforms left out.
struct Filled {
  std::vector<FieldSpec> specs;
  detail::SampleBuffer memory;
  std::vector<Field> batch;
  std::int64_t samples = 0;

  template <class T>
  std::vector<T> values(std::size_t field) const {
    const std::span<T> all = batch[field].as<T>();
    return {all.begin(), all.begin() + batch[field].shape.size()};
  }
};

Filled fill(const CollatePtr& collate, const DatasetPtr& set, const std::vector<std::int64_t>& indices,
            const SequenceKey& key = {}) {
  std::vector<FieldSpec> specs = collate->fields(*set, indices);
  Filled filled{specs, detail::SampleBuffer(specs), {}, 0};
  filled.batch.assign(filled.memory.fields().begin(), filled.memory.fields().end());
  const ReadSample read(
      [&](std::int64_t index, std::span<const Field> dst, std::uint32_t) { return set->read(index, dst); });
  filled.samples = collate->fill(*set, indices, read, filled.batch, key);
  return filled;
}

TEST(PadCollate, cuts_a_batch_to_its_longest_sample) {
  // Lengths 5, 3, 1.
  const Filled filled = fill(pad_collate({.value = 7}), series(20), {1, 2, 3});
  ASSERT_EQ(filled.batch.size(), 4u);
  EXPECT_EQ(filled.specs[3].name, "mask");
  EXPECT_EQ(filled.specs[0].shape, (Shape{3, 6, 2}));  // what a slot has room for
  EXPECT_EQ(filled.batch[0].shape, (Shape{3, 5, 2}));
  EXPECT_EQ(filled.values<float>(0), (Floats{1, 1, 1, 2, 1, 3, 1, 4, 1, 5,  //
                                             2, 1, 2, 2, 2, 3, 7, 7, 7, 7,  //
                                             3, 1, 7, 7, 7, 7, 7, 7, 7, 7}));
  EXPECT_EQ(filled.values<std::int32_t>(1), (Integers{10, 11, 12, 13, 14, 10, 11, 12, 7, 7, 10, 7, 7, 7, 7}));
  EXPECT_EQ(filled.values<std::int32_t>(2), (Integers{5, 3, 1}));
  EXPECT_EQ(filled.batch[3].shape, (Shape{3, 5}));
  EXPECT_EQ(filled.values<float>(3), (Floats{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(PadCollate, rounds_up_and_pads_named_fields_alone) {
  const Filled rounded =
      fill(pad_collate({.fields = {"tokens"}, .multiple = 4, .mask = Dtype::u8}), series(20), {2, 3});
  EXPECT_EQ(rounded.batch[0].shape, (Shape{2, 6, 2}));
  EXPECT_EQ(rounded.values<float>(0)[11], -99.0f);  // not padded: as it was read
  EXPECT_EQ(rounded.batch[1].shape, (Shape{2, 4}));
  EXPECT_EQ(rounded.values<std::int32_t>(1), (Integers{10, 11, 12, 0, 10, 0, 0, 0}));
  EXPECT_EQ(rounded.values<std::uint8_t>(3), (std::vector<std::uint8_t>{1, 1, 1, 0, 1, 0, 0, 0}));
  // At most what the samples have room for; at least one step.
  EXPECT_EQ(fill(pad_collate({.multiple = 4}), series(20), {1}).batch[0].shape, (Shape{1, 6, 2}));
  EXPECT_EQ(fill(pad_collate(), series(20), {0, 7}).batch[0].shape, (Shape{2, 1, 2}));
}

TEST(PadCollate, checks_fields_and_lengths) {
  const DatasetPtr plain = generate(3, {{"x", Shape{4}}}, [](std::int64_t, std::span<const Field>) {});
  EXPECT_ERROR(fill(pad_collate(), plain, {0}), ArgumentError, "pad_collate: the samples have no field 'length'");
  const auto with_length = [](std::int32_t length) {
    return generate(3, {{"x", Shape{4}}, {"length", Shape{}, i32}},
                    [length](std::int64_t, std::span<const Field> dst) { dst[1].as<std::int32_t>()[0] = length; });
  };
  EXPECT_ERROR(fill(pad_collate(), with_length(5), {2}), ArgumentError,
               "pad_collate: 'length' of sample 2 must be from 0 to 4, got 5");
  EXPECT_ERROR(fill(pad_collate({.fields = {"y"}}), with_length(1), {0}), ArgumentError,
               "pad_collate: the samples have no field 'y'");
  EXPECT_ERROR(pad_collate({.multiple = 0}), ArgumentError, "pad_collate: multiple must be 1 or more, got 0");
  const DatasetPtr uneven = generate(3, {{"x", Shape{4}}, {"z", Shape{5}}, {"length", Shape{}, i32}},
                                     [](std::int64_t, std::span<const Field>) {});
  EXPECT_ERROR(fill(pad_collate(), uneven, {0}), ArgumentError,
               "pad_collate: padded fields have a first axis of one size above 0, 'z' is [5] and 'x' [4]");
}

DatasetPtr numbers(std::int64_t size) {
  return generate(size, {{"x", Shape{2}}, {"label", Shape{}, i32}}, [](std::int64_t index, std::span<const Field> dst) {
    dst[0].as<float>()[0] = static_cast<float>(index);
    dst[0].as<float>()[1] = static_cast<float>(10 * index);
    dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(index % 3);
  });
}

TEST(ContrastiveCollate, repeats_samples_and_labels) {
  const Filled filled = fill(contrastive_collate(), numbers(9), {4, 8});
  EXPECT_EQ(filled.samples, 2);
  EXPECT_EQ(filled.batch[0].shape, (Shape{4, 2}));
  EXPECT_EQ(filled.values<float>(0), (Floats{4, 40, 8, 80, 4, 40, 8, 80}));
  EXPECT_EQ(filled.values<std::int32_t>(1), (Integers{1, 2, 1, 2}));
  EXPECT_EQ(filled.values<std::int32_t>(2), (Integers{0, 1, 0, 1}));
  const Filled together = fill(contrastive_collate({.views = 3, .interleaved = true}), numbers(9), {4, 8});
  EXPECT_EQ(together.values<std::int32_t>(2), (Integers{0, 0, 0, 1, 1, 1}));
  std::map<Integers, int> orders;
  for (int step = 0; step < 600; ++step) {
    const Filled permuted = fill(contrastive_collate({.permute = true}), numbers(9), {4, 8}, {.index = step});
    const Integers pair = permuted.values<std::int32_t>(2);
    ++orders[pair];
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(permuted.values<float>(0)[2 * i], pair[i] == 0 ? 4.0f : 8.0f);
  }
  EXPECT_EQ(orders.size(), 6u);  // of two pairs on four places
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 100, 6 * std::sqrt(600 * 5 / 36.0));
  EXPECT_THROW(contrastive_collate({.views = 0}), ArgumentError);
}

TEST(Mixup, blends_each_sample_with_the_one_before) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 2000;
  for (int step = 0; step < kDraws; ++step) {
    const Filled filled = fill(mixup({.classes = 3, .alpha = 0.4}), numbers(9), {4, 8, 3}, {.seed = 5, .index = step});
    const Floats x = filled.values<float>(0);
    EXPECT_EQ(filled.batch[1].shape, (Shape{3, 3}));
    const float share = (x[2] - 4) / 4;  // of 8 with 4
    EXPECT_NEAR(x[0], share * 4 + (1 - share) * 3, 1e-5);
    EXPECT_NEAR(x[4], share * 3 + (1 - share) * 8, 1e-5);
    EXPECT_NEAR(x[5], 10 * x[4], 1e-4);
    // Labels 1, 2, 0.
    EXPECT_THAT(filled.values<float>(1),
                ::testing::Pointwise(::testing::FloatNear(1e-5f), Floats{1 - share, share, 0,  //
                                                                         0, 1 - share, share,  //
                                                                         share, 0, 1 - share}));
    sum += static_cast<double>(share);
    squares += std::pow(static_cast<double>(share) - 0.5, 2);
  }
  // Beta(a, a): mean 1/2, variance 1 / (4 (2 a + 1)) = 0.1389.
  EXPECT_NEAR(sum / kDraws, 0.5, 6 * std::sqrt(0.1389 / kDraws));
  EXPECT_NEAR(squares / kDraws, 0.1389, 0.01);
}

// A set whose field holds i64 instead of i32, as those of files that NumPy wrote.
DatasetPtr with_i64(const DatasetPtr& set, std::size_t field) {
  std::vector<FieldSpec> specs = set->fields();
  specs[field].dtype = i64;
  return generate(set->size(), specs, [set, field](std::int64_t index, std::span<const Field> dst) {
    std::vector<Field> inner(dst.begin(), dst.end());
    std::int32_t value = 0;
    inner[field] = {std::as_writable_bytes(std::span(&value, 1)), Shape{}, i32, 0};
    set->read(index, inner);
    dst[field].as<std::int64_t>()[0] = value;
  });
}

TEST(Collates, take_labels_and_lengths_of_i64) {
  const std::vector<std::int64_t> indices{4, 8, 3};
  const Filled mixed = fill(mixup({.classes = 3}), with_i64(numbers(9), 1), indices, {.seed = 5});
  EXPECT_EQ(mixed.values<float>(1), fill(mixup({.classes = 3}), numbers(9), indices, {.seed = 5}).values<float>(1));
  const Filled padded = fill(pad_collate(), with_i64(series(20), 2), {1, 2, 3});
  EXPECT_EQ(padded.values<float>(0), fill(pad_collate(), series(20), {1, 2, 3}).values<float>(0));
  EXPECT_EQ(padded.values<std::int64_t>(2), (std::vector<std::int64_t>{5, 3, 1}));
}

TEST(Mixup, leaves_batches_alone_with_the_rest_of_the_probability) {
  int alone = 0;
  for (int step = 0; step < 1000; ++step) {
    const Filled filled = fill(mixup({.classes = 3, .probability = 0.3}), numbers(9), {4, 8}, {.index = step});
    if (filled.values<float>(0) != Floats{4, 40, 8, 80}) continue;
    ++alone;
    EXPECT_EQ(filled.values<float>(1), (Floats{0, 1, 0, 0, 0, 1}));
  }
  EXPECT_NEAR(alone, 700, 6 * std::sqrt(210.0));
  EXPECT_ERROR(fill(mixup({.classes = 2}), numbers(9), {2}), ArgumentError, "mixup: labels must be from 0 to 1, got 2");
  EXPECT_ERROR(mixup({}), ArgumentError, "mixup: classes must be 1 or more, got 0");
  EXPECT_ERROR(mixup({.classes = 2, .alpha = 0}), ArgumentError, "mixup: alpha must be above 0, got 0.000000");
  EXPECT_ERROR(fill(cutmix({.classes = 3}), numbers(9), {1}), ArgumentError,
               "cutmix: needs images [H, W, C], field 'x' of a batch is [1, 2]");
}

TEST(Cutmix, pastes_a_rectangle_and_mixes_labels_by_its_area) {
  const DatasetPtr images = generate(9, {{"image", Shape{8, 10, 2}, Dtype::u8}, {"label", Shape{}, i32}},
                                     [](std::int64_t index, std::span<const Field> dst) {
                                       std::ranges::fill(dst[0].as<std::uint8_t>(), static_cast<std::uint8_t>(index));
                                       dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(index);
                                     });
  double areas = 0;
  constexpr int kDraws = 2000;
  for (int step = 0; step < kDraws; ++step) {
    const Filled filled = fill(cutmix({.classes = 9}), images, {5, 7, 2}, {.index = step});
    const std::vector<std::uint8_t> pixels = filled.values<std::uint8_t>(0);
    const Floats labels = filled.values<float>(1);
    std::array<std::int64_t, 3> taken{};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint8_t own = std::array<std::uint8_t, 3>{5, 7, 2}[i], other = std::array<std::uint8_t, 3>{2, 5, 7}[i];
      for (std::size_t p = 0; p < 160; ++p) {
        const std::uint8_t pixel = pixels[i * 160 + p];
        ASSERT_TRUE(pixel == own || pixel == other);
        taken[i] += pixel == other;
        // The same rectangle in every image.
        ASSERT_EQ(pixel == other, pixels[p] == 2);
      }
      const float share = 1 - static_cast<float>(taken[i]) / 160;
      EXPECT_NEAR(labels[i * 9 + own], share, 1e-6);
      EXPECT_NEAR(labels[i * 9 + other], 1 - share, 1e-6);
    }
    areas += static_cast<double>(taken[0]) / 160;
  }
  EXPECT_GT(areas / kDraws, 0.2);  // a half without cutting at the edges and rounding
  EXPECT_LT(areas / kDraws, 0.5);
}

class CollateLoaderTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(CollateLoaderTest);

TEST_P(CollateLoaderTest, padded_batches_are_as_long_as_their_longest_sample) {
  const auto run = [&](int workers) {
    Loader loader(engine(), series(23),
                  {.batch = 4, .shuffle = true, .slots = 2, .workers = workers, .seed = 1, .collate = pad_collate()});
    std::vector<Floats> seen;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const Batch& batch : loader) {
        const Integers lengths = batch["length"].to_vector<std::int32_t>();
        const std::int64_t longest = std::max(1, *std::ranges::max_element(lengths));
        EXPECT_EQ(batch["series"].shape(), (Shape{batch.samples(), longest, 2}));
        EXPECT_EQ(batch["mask"].shape(), (Shape{batch.samples(), longest}));
        const Floats mask = batch["mask"].to_vector<float>();
        EXPECT_EQ(std::count(mask.begin(), mask.end(), 1.0f), std::accumulate(lengths.begin(), lengths.end(), 0));
        seen.push_back(batch["series"].to_vector<float>());
      }
    return seen;
  };
  const std::vector<Floats> expected = run(0);
  EXPECT_EQ(expected.size(), 12u);
  EXPECT_EQ(run(3), expected);
}

TEST_P(CollateLoaderTest, views_of_a_sample_differ_and_do_not_depend_on_workers) {
  const auto run = [&](int workers) {
    Loader loader(engine(), numbers(12),
                  {.batch = 4,
                   .shuffle = true,
                   .workers = workers,
                   .seed = 3,
                   .transforms = {jitter({.deviation = 0.01})},
                   .collate = contrastive_collate()});
    std::vector<Floats> seen;
    for (const Batch& batch : loader) {
      const Floats x = batch["x"].to_vector<float>();
      const Integers label = batch["label"].to_vector<std::int32_t>();
      EXPECT_EQ(batch["x"].shape(), (Shape{8, 2}));
      for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_NE(x[i], x[8 + i]);
        EXPECT_NEAR(x[i], x[8 + i], 0.2);
        EXPECT_EQ(label[i % 4], label[4 + i % 4]);
      }
      seen.push_back(x);
    }
    return seen;
  };
  const std::vector<Floats> expected = run(0);
  EXPECT_EQ(expected.size(), 3u);
  EXPECT_EQ(run(3), expected);
}

TEST_P(CollateLoaderTest, mixed_batches_do_not_depend_on_workers_and_change_with_the_epoch) {
  const auto run = [&](int workers, std::int64_t first_epoch) {
    Loader loader(
        engine(), numbers(10),
        {.batch = 4, .workers = workers, .seed = 3, .collate = mixup({.classes = 3}), .first_epoch = first_epoch});
    std::vector<Floats> seen;
    for (const auto& [x, label] : loader) {
      EXPECT_EQ(label.shape(), (Shape{x.shape()[0], 3}));
      seen.push_back(x.to_vector<float>());
    }
    return seen;
  };
  const std::vector<Floats> expected = run(0, 0);
  EXPECT_EQ(run(3, 0), expected);
  EXPECT_NE(run(1, 1)[0], expected[0]);
}

}  // namespace
}  // namespace samebytes::data
