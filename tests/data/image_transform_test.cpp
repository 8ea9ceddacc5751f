// Transforms of images against small images with exact results.
#include "samebytes/data/image_transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "samebytes/data/loader.h"
#include "support/apply_transform.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using Floats = std::vector<float>;

TEST(RandomCrop, gives_every_window_of_the_padded_image_equally_often) {
  constexpr std::int64_t kHeight = 3, kWidth = 4, kPadding = 2;
  const Shape shape{kHeight, kWidth, 2};
  const Floats image = ramp(24);
  std::map<Floats, int> expected;
  for (std::int64_t top = -2; top <= 2; ++top)
    for (std::int64_t left = -2; left <= 2; ++left) {
      Floats window;
      for (std::int64_t y = top; y < top + kHeight; ++y)
        for (std::int64_t x = left; x < left + kWidth; ++x)
          for (std::int64_t c = 0; c < 2; ++c)
            window.push_back(y >= 0 && y < kHeight && x >= 0 && x < kWidth
                                 ? image[static_cast<std::size_t>((y * kWidth + x) * 2 + c)]
                                 : -7.0f);
      expected[window] = 0;
    }
  ASSERT_EQ(expected.size(), 25u);
  const TransformPtr crop = random_crop({.size = {kHeight, kWidth}, .padding = kPadding});
  constexpr int kDraws = 5000;
  for (int i = 0; i < kDraws; ++i) {
    const Floats window = apply<float>(crop, image, shape, {.seed = 4, .index = i}, -7.0f);
    ASSERT_TRUE(expected.count(window)) << i;
    ++expected[window];
  }
  for (const auto& [window, count] : expected) EXPECT_NEAR(count, kDraws / 25, 6 * std::sqrt(kDraws / 25.0));
}

TEST(RandomCrop, may_be_smaller_than_the_image_and_in_place) {
  std::set<Floats> seen;
  for (int i = 0; i < 200; ++i)
    seen.insert(apply<float>(random_crop({.size = 2}), ramp(9), Shape{3, 3, 1}, {.index = i}));
  EXPECT_EQ(seen, (std::set<Floats>{{1, 2, 4, 5}, {2, 3, 5, 6}, {4, 5, 7, 8}, {5, 6, 8, 9}}));
  // apply() alone, where the size stays.
  const TransformPtr crop = random_crop({.size = 3, .padding = 1});
  Floats image = ramp(9);
  const Floats expected = apply<float>(crop, image, Shape{3, 3, 1}, {.index = 5});
  const Field field{std::as_writable_bytes(std::span(image)), Shape{3, 3, 1}};
  crop->apply(std::span(&field, 1), {.index = 5});
  EXPECT_EQ(image, expected);
}

TEST(RandomCrop, checks_its_arguments) {
  EXPECT_ERROR(random_crop({}), ArgumentError, "random_crop: size must be 1 or more, got 0 x 0");
  EXPECT_ERROR(random_crop({.size = 2, .padding = -1}), ArgumentError,
               "random_crop: padding must be 0 or more, got -1");
  EXPECT_ERROR(apply<float>(random_crop({.size = 5}), ramp(9), Shape{3, 3, 1}), ArgumentError,
               "random_crop: 5 x 5 out of field 'image' [3, 3, 1] with padding 0");
  EXPECT_ERROR(apply<float>(random_crop({.size = 2}), ramp(4), Shape{4}), ArgumentError,
               "random_crop: needs an image [H, W, C], field 'image' is [4]");
}

TEST(CenterCrop, takes_the_middle_or_adds_background) {
  EXPECT_EQ(apply<float>(center_crop({.size = {2, 1}}), ramp(12), Shape{4, 3, 1}), (Floats{5, 8}));
  // torchvision: (3 - 2) / 2 = 0.5 and (5 - 2) / 2 = 1.5 are rounded to the even 0 and 2.
  EXPECT_EQ(apply<float>(center_crop({.size = 2}), ramp(15), Shape{3, 5, 1}), (Floats{3, 4, 8, 9}));
  EXPECT_EQ(apply<float>(center_crop({.size = {1, 4}}), {1}, Shape{1, 1, 1}, {}, 9), (Floats{9, 1, 9, 9}));
}

TEST(Flip, vertical_mirrors_columns) {
  EXPECT_EQ(apply<float>(vertical_flip(), {1, 2, 3, 4, 5, 6}, Shape{3, 1, 2}), (Floats{5, 6, 3, 4, 1, 2}));
  int flipped = 0, mirrored = 0;
  for (int i = 0; i < 1000; ++i) {
    flipped += apply<float>(random_vertical_flip(), {1, 2}, Shape{2, 1, 1}, {.index = i})[0] == 2;
    mirrored += apply<float>(random_horizontal_flip(0.2), {1, 2}, Shape{1, 2, 1}, {.index = i})[0] == 2;
  }
  EXPECT_NEAR(flipped, 500, 6 * std::sqrt(250.0));
  EXPECT_NEAR(mirrored, 200, 6 * std::sqrt(160.0));
}

TEST(RandomErasing, clears_one_rectangle_of_the_area_asked_for) {
  const Shape shape{20, 30, 2};
  const TransformPtr erase = random_erasing({.probability = 1, .scale_low = 0.1, .scale_high = 0.2, .value = -1});
  for (int i = 0; i < 200; ++i) {
    const Floats image = apply<float>(erase, ramp(1200), shape, {.index = i});
    std::int64_t top = 20, bottom = -1, left = 30, right = -1, erased = 0;
    for (std::int64_t p = 0; p < 600; ++p) {
      const bool gone = image[static_cast<std::size_t>(2 * p)] == -1;
      ASSERT_EQ(image[static_cast<std::size_t>(2 * p + 1)] == -1, gone);
      if (!gone) continue;
      ++erased;
      top = std::min(top, p / 30);
      bottom = std::max(bottom, p / 30);
      left = std::min(left, p % 30);
      right = std::max(right, p % 30);
    }
    EXPECT_EQ(erased, (bottom - top + 1) * (right - left + 1));
    EXPECT_GT(erased, 0.1 * 600 * 0.85);
    EXPECT_LT(erased, 0.2 * 600 * 1.15);
  }
  EXPECT_THROW(random_erasing({.scale_low = 0.5, .scale_high = 0.2}), ArgumentError);
}

TEST(Compose, hands_on_changed_shapes) {
  const TransformPtr both = compose(
      {center_crop({.size = 4}), vertical_flip(), center_crop({.size = 2}), vertical_flip(), normalise({.mean = {1}})});
  EXPECT_TRUE(both->moves());
  const FieldSpec specs[] = {{"label", Shape{}, i32}, {"image", Shape{6, 6, 1}}};
  EXPECT_THROW(both->check(specs), ArgumentError);  // the label is no image
  EXPECT_EQ(apply<float>(both, ramp(36), Shape{6, 6, 1}), (Floats{14, 15, 20, 21}));
  EXPECT_ERROR(apply<float>(with_probability(0.5, center_crop({.size = 2})), ramp(9), Shape{3, 3, 1}), ArgumentError,
               "with_probability: the transform inside changes a shape, so it is for all samples or none");
  int cropped = 0;
  for (int i = 0; i < 1000; ++i)
    cropped += apply<float>(with_probability(0.3, compose({center_crop({.size = 1}), center_crop({.size = 3})})),
                            ramp(9), Shape{3, 3, 1}, {.index = i})[0] == 0;
  EXPECT_NEAR(cropped, 300, 6 * std::sqrt(210.0));
}

DatasetPtr pictures(std::int64_t size) {
  return generate(size, {{"image", Shape{5, 4, 3}}, {"label", Shape{}, i32}},
                  [](std::int64_t index, std::span<const Field> dst) {
                    const std::span<float> image = dst[0].as<float>();
                    for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(index) + 0.01f * i;
                    dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(index);
                  });
}

TEST(Transformed, is_a_data_set_with_the_new_shapes) {
  const DatasetPtr set = transformed(pictures(10), {center_crop({.size = {3, 2}}), normalise({.mean = {3}})});
  EXPECT_EQ(set->size(), 10);
  EXPECT_EQ(set->fields()[0].shape, (Shape{3, 2, 3}));
  EXPECT_EQ(set->fields()[0].name, "image");
  Floats image(18);
  std::int32_t label = 0;
  const Field dst[] = {{std::as_writable_bytes(std::span(image)), Shape{3, 2, 3}},
                       {std::as_writable_bytes(std::span(&label, 1)), Shape{}, i32}};
  ASSERT_TRUE(set->read(7, dst));
  EXPECT_FLOAT_EQ(image[0], 7 + 0.15f - 3);  // row 1, column 1
  EXPECT_EQ(label, 7);
  EXPECT_THROW(transformed(nullptr, {}), ArgumentError);
}

class ImageLoaderTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ImageLoaderTest);

TEST_P(ImageLoaderTest, batches_have_the_transformed_shape_whatever_the_workers) {
  const auto run = [&](int workers) {
    Loader loader(engine(), pictures(23),
                  {.batch = 5,
                   .shuffle = true,
                   .workers = workers,
                   .seed = 2,
                   .transforms = {random_crop({.size = {4, 4}, .padding = 1}), random_horizontal_flip(),
                                  normalise({.mean = {1, 2, 3}})}});
    std::vector<Floats> seen;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const auto& [image, label] : loader) {
        EXPECT_EQ(image.shape(), (Shape{label.shape()[0], 4, 4, 3}));
        seen.push_back(image.to_vector<float>());
      }
    return seen;
  };
  const std::vector<Floats> expected = run(0);
  ASSERT_EQ(expected.size(), 10u);
  EXPECT_NE(expected[0], expected[5]);
  EXPECT_EQ(run(1), expected);
  EXPECT_EQ(run(3), expected);
}

}  // namespace
}  // namespace samebytes::data
