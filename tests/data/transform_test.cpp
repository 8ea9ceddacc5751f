#include "samebytes/data/transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "samebytes/data/collate.h"
#include "support/apply_transform.h"

namespace samebytes::data {
namespace {

TEST(Normalise, uses_one_number_or_one_for_each_channel) {
  const Shape shape{1, 2, 2};
  EXPECT_EQ(apply<float>(normalise({.mean = {1}, .deviation = {2}}), {1, 3, 5, 7}, shape),
            (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(apply<float>(normalise({.mean = {1, 3}, .deviation = {2, 4}}), {1, 3, 5, 7}, shape),
            (std::vector<float>{0, 0, 2, 1}));
  EXPECT_THROW(normalise({.deviation = {0}}), ArgumentError);
  EXPECT_THROW(apply<float>(normalise({.mean = {1, 2, 3}}), {1, 3, 5, 7}, shape), ArgumentError);
  EXPECT_THROW(apply<std::uint8_t>(normalise({}), {1, 3, 5, 7}, shape), ArgumentError);
  EXPECT_THROW(apply<float>(normalise({.field = 1}), {1, 3, 5, 7}, shape), ArgumentError);
}

// Every shifted image is the plain definition's for some distance, and all distances come up equally often.
TEST(Shift, moves_by_every_distance_and_fills_with_the_background) {
  constexpr std::int64_t kHeight = 4, kWidth = 5, kChannels = 2;
  const Shape shape{kHeight, kWidth, kChannels};
  const std::vector<float> image = ramp(static_cast<std::size_t>(shape.size()));
  std::map<std::vector<float>, int> expected;
  for (std::int64_t down = -2; down <= 2; ++down)
    for (std::int64_t right = -2; right <= 2; ++right) {
      std::vector<float> moved(image.size(), -7.0f);
      for (std::int64_t y = 0; y < kHeight; ++y)
        for (std::int64_t x = 0; x < kWidth; ++x)
          for (std::int64_t c = 0; c < kChannels; ++c)
            if (y - down >= 0 && y - down < kHeight && x - right >= 0 && x - right < kWidth)
              moved[static_cast<std::size_t>((y * kWidth + x) * kChannels + c)] =
                  image[static_cast<std::size_t>(((y - down) * kWidth + x - right) * kChannels + c)];
      expected[moved] = 0;
    }
  ASSERT_EQ(expected.size(), 25u);
  constexpr int kDraws = 5000;
  for (int i = 0; i < kDraws; ++i) {
    const auto moved = apply<float>(shift({.pixels = 2}), image, shape, {.seed = 1, .index = i}, -7.0f);
    ASSERT_TRUE(expected.count(moved)) << i;
    ++expected[moved];
  }
  for (const auto& [moved, count] : expected) EXPECT_NEAR(count, kDraws / 25, 6 * std::sqrt(kDraws / 25.0));
}

TEST(Shift, may_be_longer_than_the_image_and_works_on_bytes) {
  for (int i = 0; i < 200; ++i) {
    const auto moved = apply<std::uint8_t>(shift({.pixels = 5}), {1, 2, 3, 4}, Shape{2, 2, 1}, {.index = i});
    ASSERT_EQ(moved.size(), 4u);
    for (const std::uint8_t value : moved) ASSERT_LE(value, 4);
  }
  EXPECT_THROW(shift({.pixels = -1}), ArgumentError);
  EXPECT_THROW(apply<float>(shift({}), {1, 2, 3, 4}, Shape{4}), ArgumentError);
}

TEST(HorizontalFlip, mirrors_rows_and_keeps_channels) {
  EXPECT_EQ(apply<float>(horizontal_flip(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Shape{2, 3, 2}),
            (std::vector<float>{5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8}));
}

TEST(Transforms, depend_on_seed_epoch_and_index_alone) {
  const TransformPtr transform = compose({shift({.pixels = 2}), with_probability(0.5, horizontal_flip())});
  const Shape shape{5, 5, 1};
  const SequenceKey key{.seed = 4, .epoch = 1, .index = 9};
  const auto once = apply<float>(transform, ramp(25), shape, key);
  EXPECT_EQ(apply<float>(transform, ramp(25), shape, key), once);
  int same = 0;
  for (int epoch = 2; epoch < 22; ++epoch)
    same += apply<float>(transform, ramp(25), shape, {.seed = 4, .epoch = epoch, .index = 9}) == once;
  EXPECT_LT(same, 5);  // 50 outcomes, 20 draws
}

TEST(Transforms, of_one_kind_draw_from_different_lanes) {
  const TransformPtr twice = compose({shift({.pixels = 3}), shift({.pixels = 3})});
  EXPECT_EQ(twice->lanes(), 2u);
  int doubled = 0;
  for (int i = 0; i < 100; ++i) {
    const SequenceKey key{.seed = 2, .index = i};
    const auto one = apply<float>(shift({.pixels = 3}), ramp(49), Shape{7, 7, 1}, key);
    doubled += apply<float>(shift({.pixels = 3}), one, Shape{7, 7, 1}, key) ==
               apply<float>(twice, ramp(49), Shape{7, 7, 1}, key);
  }
  EXPECT_LT(doubled, 20);
}

TEST(WithProbability, applies_to_that_share) {
  int flipped = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i)
    flipped += apply<float>(with_probability(0.3, horizontal_flip()), {1, 2}, Shape{1, 2, 1}, {.index = i})[0] == 2;
  EXPECT_NEAR(flipped, 0.3 * kDraws, 6 * std::sqrt(kDraws * 0.21));
  EXPECT_THROW(with_probability(1.5, horizontal_flip()), ArgumentError);
  EXPECT_THROW(with_probability(0.5, nullptr), ArgumentError);
  EXPECT_THROW(compose({nullptr}), ArgumentError);
}

TEST(DefaultCollate, decodes_each_sample_into_its_row) {
  const DatasetPtr set =
      generate(100, {{"x", Shape{2}}, {"y", Shape{}, i32}}, [](std::int64_t index, std::span<const Field> dst) {
        dst[0].as<float>()[0] = static_cast<float>(index);
        dst[0].as<float>()[1] = static_cast<float>(-index);
        dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(index * 2);
      });
  const std::vector<std::int64_t> indices{7, 3, 50};
  const CollatePtr collate = default_collate();
  const std::vector<FieldSpec> fields = collate->fields(*set, indices);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].shape, (Shape{3, 2}));
  EXPECT_EQ(fields[1].shape, (Shape{3}));
  std::vector<float> x(6);
  std::vector<std::int32_t> y(3);
  Field batch[] = {{std::as_writable_bytes(std::span(x)), fields[0].shape, f32},
                   {std::as_writable_bytes(std::span(y)), fields[1].shape, i32}};
  const ReadSample read(
      [&](std::int64_t index, std::span<const Field> dst, std::uint32_t) { return set->read(index, dst); });
  EXPECT_EQ(collate->fill(*set, indices, read, batch, {}), 3);
  EXPECT_EQ(x, (std::vector<float>{7, -7, 3, -3, 50, -50}));
  EXPECT_EQ(y, (std::vector<std::int32_t>{14, 6, 100}));
}

}  // namespace
}  // namespace samebytes::data
