// Transforms that compute new pixels, against exact numbers and plain definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/data/image_transform.h"
#include "support/apply_transform.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

void expect_near(const Floats& values, const Floats& expected, float tolerance = 1e-6f) {
  EXPECT_THAT(values, ::testing::Pointwise(::testing::FloatNear(tolerance), expected));
}

TEST(Resize, is_pytorchs_on_one_row) {
  const auto row = [](const ResizeOptions& options, Floats values) {
    const auto width = static_cast<std::int64_t>(values.size());
    return apply<float>(resize(options), std::move(values), Shape{1, width, 1});
  };
  expect_near(row({.size = {1, 4}}, {0, 1}), {0, 0.25f, 0.75f, 1});
  expect_near(row({.size = {1, 2}, .antialias = false}, {1, 2, 3, 4}), {1.5f, 3.5f});
  expect_near(row({.size = {1, 2}}, {1, 2, 3, 4}), {3 / 1.75f, 5.75f / 1.75f});  // weights 3, 3, 1 of 7
  expect_near(row({.size = {1, 2}, .interpolation = Interpolation::nearest}, {1, 2, 3, 4}), {1, 3});
  expect_near(row({.size = {1, 5}, .interpolation = Interpolation::nearest}, {1, 2, 3}), {1, 1, 2, 2, 3});
  expect_near(row({.size = {1, 3}}, {7, 8, 9}), {7, 8, 9});
}

TEST(Resize, works_on_both_axes_and_rounds_bytes) {
  expect_near(apply<float>(resize({.size = {4, 2}}), {0, 10, 8, 18}, Shape{2, 2, 1}), {0, 10, 2, 12, 6, 16, 8, 18});
  // Two channels do not mix.
  expect_near(apply<float>(resize({.size = 1}), {0, 100, 1, 300}, Shape{1, 2, 2}), {0.5f, 200});
  EXPECT_EQ(apply<std::uint8_t>(resize({.size = {1, 4}}), {10, 255}, Shape{1, 2, 1}), (Bytes{10, 71, 194, 255}));
  EXPECT_ERROR(resize({.size = {0, 4}}), ArgumentError, "resize: size must be 1 or more, got 0 x 4");
  EXPECT_ERROR(apply<std::int32_t>(resize({.size = 2}), {1}, Shape{1, 1, 1}), ArgumentError,
               "resize: needs pixels in f32 or u8, field 'image' is i32");
  EXPECT_ERROR(apply<float>(resize({.size = 2}), {}, Shape{0, 1, 1}), ArgumentError,
               "resize: needs one pixel or more, field 'image' is [0, 1, 1]");
}

// On an image whose values are its coordinates the window can be read from the result.
TEST(RandomResizedCrop, takes_windows_of_the_areas_and_shapes_asked_for) {
  constexpr std::int64_t kSide = 60, kNew = 10;
  Floats image;
  for (std::int64_t y = 0; y < kSide; ++y)
    for (std::int64_t x = 0; x < kSide; ++x) image.insert(image.end(), {static_cast<float>(y), static_cast<float>(x)});
  const TransformPtr crop =
      random_resized_crop({.size = kNew, .scale_low = 0.2, .scale_high = 0.6, .ratio_low = 0.5, .antialias = false});
  double areas = 0;
  for (int i = 0; i < 300; ++i) {
    const Floats window = apply<float>(crop, image, Shape{kSide, kSide, 2}, {.index = i});
    const float rows = (window[2 * 5 * kNew] - window[2 * 4 * kNew]) * kNew;
    const float columns = (window[2 * 5 + 1] - window[2 * 4 + 1]) * kNew;
    EXPECT_NEAR(rows, std::round(rows), 1e-3);
    EXPECT_GT(rows * columns, 0.2 * 3600 - 60);
    EXPECT_LT(rows * columns, 0.6 * 3600 + 60);
    EXPECT_GT(columns / rows, 0.5 * 0.93);
    EXPECT_LT(columns / rows, 4.0 / 3 * 1.07);
    const float top = window[0] - (rows / kNew - 1) / 2, left = window[1] - (columns / kNew - 1) / 2;
    EXPECT_NEAR(top, std::round(top), 1e-3);
    EXPECT_GE(top, -1e-3f);
    EXPECT_LE(left + columns, kSide + 1e-3f);
    areas += static_cast<double>(rows * columns) / 3600;
  }
  EXPECT_NEAR(areas / 300, 0.4, 6 * 0.12 / std::sqrt(300));
}

TEST(RandomResizedCrop, falls_back_to_the_middle) {
  // No window of a 1 x 8 image has a ratio below 4/3 and all of its area: the fallback is 1 x 1 in the middle.
  const TransformPtr crop = random_resized_crop({.size = 1, .scale_low = 1});
  EXPECT_EQ(apply<float>(crop, ramp(8), Shape{1, 8, 1}), (Floats{4}));
  EXPECT_EQ(apply<float>(crop, ramp(8), Shape{8, 1, 1}), (Floats{4}));
  EXPECT_THROW(random_resized_crop({.size = 2, .scale_low = 0}), ArgumentError);
}

TEST(RandomRotation, turns_against_the_clock) {
  for (const auto how : {Interpolation::nearest, Interpolation::bilinear}) {
    const auto turn = [&](double degrees, Floats image, const Shape& shape) {
      const TransformPtr rotation =
          random_rotation({.degrees_low = degrees, .degrees_high = degrees, .interpolation = how});
      return apply<float>(rotation, std::move(image), shape, {}, 9);
    };
    expect_near(turn(0, ramp(6), Shape{2, 3, 1}), ramp(6), 1e-5f);
    expect_near(turn(90, {1, 2, 3, 4}, Shape{2, 2, 1}), {2, 4, 1, 3}, 1e-5f);
    expect_near(turn(180, ramp(6), Shape{2, 3, 1}), {6, 5, 4, 3, 2, 1}, 1e-5f);
    expect_near(turn(-90, ramp(9), Shape{3, 3, 1}), {7, 4, 1, 8, 5, 2, 9, 6, 3}, 1e-5f);
    // A row standing upright: what comes from outside is background.
    expect_near(turn(90, {1, 2, 3}, Shape{1, 3, 1}), {9, 2, 9}, 1e-5f);
  }
  // By 45 degrees the corner (0, 0) of 3 x 3 comes from (1 - sqrt 2, 1), outside above the middle of the first row.
  const TransformPtr eighth = random_rotation({.degrees_low = -45, .degrees_high = -45});
  const float out = std::sqrt(2.0f) - 1;
  EXPECT_NEAR(apply<float>(eighth, ramp(9), Shape{3, 3, 1}, {}, 9)[2], 2 * (1 - out) + 9 * out, 1e-4);
  EXPECT_THROW(random_rotation({.degrees_low = 5, .degrees_high = -5}), ArgumentError);
}

TEST(GaussianBlur, spreads_a_point_by_the_kernel_and_mirrors_edges) {
  const TransformPtr blur = gaussian_blur({.kernel = 3, .sigma_low = 0.7, .sigma_high = 0.7});
  const float side = std::exp(-0.5f / 0.49f), whole = 1 + 2 * side, a = side / whole, b = 1 / whole;
  expect_near(apply<float>(blur, {0, 0, 0, 0, 1, 0, 0, 0, 0}, Shape{3, 3, 1}),
              {4 * a * a, 2 * a * b, 4 * a * a, 2 * a * b, b * b, 2 * a * b, 4 * a * a, 2 * a * b, 4 * a * a});
  // The neighbour beyond the edge of [1, 0, 0] is its second pixel, so the corner loses 2 a in each direction.
  expect_near(apply<float>(blur, {1, 0, 0, 0, 0, 0, 0, 0, 0}, Shape{3, 3, 1}),
              {b * b, a * b, 0, a * b, a * a, 0, 0, 0, 0});
  expect_near(apply<float>(blur, {0, 0, 0, 1, 0, 0, 0, 0, 0}, Shape{3, 3, 1}),
              {2 * a * b, 2 * a * a, 0, b * b, a * b, 0, 2 * a * b, 2 * a * a, 0});
  EXPECT_EQ(apply<std::uint8_t>(gaussian_blur({.kernel = 5}), Bytes(27, 200), Shape{3, 3, 3}), Bytes(27, 200));
  EXPECT_ERROR(gaussian_blur({.kernel = 4}), ArgumentError, "gaussian_blur: kernel must be odd and above 0, got 4");
  EXPECT_ERROR(apply<float>(gaussian_blur({.kernel = 7}), ramp(9), Shape{3, 3, 1}), ArgumentError,
               "gaussian_blur: kernel 7 reaches beyond the mirrored edges of field 'image' [3, 3, 1]");
}

const Floats kColors = {0.5f, 0.2f, 0.1f, 0.3f, 0.6f, 0.3f, 0.25f, 0.3f, 0.65f, 0.4f, 0.4f, 0.4f};

float grey(const Floats& rgb, std::size_t pixel) {
  return 0.2989f * rgb[3 * pixel] + 0.587f * rgb[3 * pixel + 1] + 0.114f * rgb[3 * pixel + 2];
}

TEST(ColorJitter, multiplies_brightness_by_one_factor) {
  float low = 9, high = 0;
  for (int i = 0; i < 300; ++i) {
    const Floats image = apply<float>(color_jitter({.brightness = 0.4}), kColors, Shape{2, 2, 3}, {.index = i});
    const float factor = image[0] / kColors[0];
    for (std::size_t j = 0; j < image.size(); ++j) EXPECT_NEAR(image[j], factor * kColors[j], 1e-6);
    low = std::min(low, factor);
    high = std::max(high, factor);
  }
  EXPECT_GE(low, 0.6f - 1e-6f);
  EXPECT_LT(low, 0.62f);
  EXPECT_LE(high, 1.4f + 1e-6f);
  EXPECT_GT(high, 1.38f);
}

TEST(ColorJitter, scales_contrast_about_the_mean_grey_and_saturation_about_each_grey) {
  float mean = 0;
  for (std::size_t p = 0; p < 4; ++p) mean += grey(kColors, p) / 4;
  for (int i = 0; i < 30; ++i) {
    const SequenceKey key{.index = i};
    const Floats contrast = apply<float>(color_jitter({.contrast = 0.3}), kColors, Shape{2, 2, 3}, key);
    const float factor = (contrast[0] - mean) / (kColors[0] - mean);
    EXPECT_NEAR(factor, 1, 0.3 + 1e-5);
    const Floats saturation = apply<float>(color_jitter({.saturation = 0.3}), kColors, Shape{2, 2, 3}, key);
    const float other = (saturation[0] - grey(kColors, 0)) / (kColors[0] - grey(kColors, 0));
    EXPECT_NEAR(other, 1, 0.3 + 1e-5);
    for (std::size_t j = 0; j < kColors.size(); ++j) {
      EXPECT_NEAR(contrast[j], mean + factor * (kColors[j] - mean), 1e-5);
      EXPECT_NEAR(saturation[j], grey(kColors, j / 3) + other * (kColors[j] - grey(kColors, j / 3)), 1e-5);
    }
  }
}

// The hexagon's hue in turns.
double hue_of(const float* rgb) {
  const double r = static_cast<double>(rgb[0]), g = static_cast<double>(rgb[1]), b = static_cast<double>(rgb[2]);
  const double high = std::max({r, g, b}), range = high - std::min({r, g, b});
  const double hue = high == r ? (g - b) / range : (high == g ? 2 + (b - r) / range : 4 + (r - g) / range);
  return hue / 6 - std::floor(hue / 6);
}

TEST(ColorJitter, turns_all_hues_by_one_angle) {
  double widest = 0;
  for (int i = 0; i < 200; ++i) {
    const Floats image = apply<float>(color_jitter({.hue = 0.3}), kColors, Shape{2, 2, 3}, {.index = i});
    double turn = 0;
    for (std::size_t p = 0; p < 3; ++p) {
      const auto [low, high] = std::minmax_element(&image[3 * p], &image[3 * p] + 3);
      const auto [old_low, old_high] = std::minmax_element(&kColors[3 * p], &kColors[3 * p] + 3);
      EXPECT_NEAR(*low, *old_low, 1e-6);
      EXPECT_NEAR(*high, *old_high, 1e-6);
      const double angle = std::remainder(hue_of(&image[3 * p]) - hue_of(&kColors[3 * p]), 1.0);
      if (p == 0) turn = angle;
      EXPECT_NEAR(std::remainder(angle - turn, 1.0), 0, 1e-4);
    }
    EXPECT_LE(std::abs(turn), 0.3 + 1e-4);
    widest = std::max(widest, std::abs(turn));
    for (std::size_t j = 9; j < 12; ++j) EXPECT_EQ(image[j], 0.4f);  // grey has no hue
  }
  EXPECT_GT(widest, 0.28);
}

TEST(ColorJitter, stays_in_range_and_leaves_alone_what_is_not_asked_for) {
  EXPECT_EQ(apply<float>(color_jitter({}), kColors, Shape{2, 2, 3}), kColors);
  for (int i = 0; i < 50; ++i) {
    const TransformPtr all = color_jitter({.brightness = 2, .contrast = 2, .saturation = 2, .hue = 0.5});
    for (const float value : apply<float>(all, kColors, Shape{2, 2, 3}, {.index = i})) {
      EXPECT_GE(value, 0.0f);
      EXPECT_LE(value, 1.0f);
    }
    const Bytes bytes =
        apply<std::uint8_t>(color_jitter({.brightness = 1}), {100, 200, 40}, Shape{1, 1, 3}, {.index = i});
    EXPECT_NEAR(bytes[0], 2.5 * bytes[2], 1.5 + 0.5);
    EXPECT_EQ(apply<float>(color_jitter({.saturation = 1, .hue = 0.5}), {0.3f, 0.6f}, Shape{1, 2, 1}, {.index = i}),
              (Floats{0.3f, 0.6f}));
  }
  EXPECT_ERROR(color_jitter({.hue = 0.7}), ArgumentError, "color_jitter: hue must be from 0 to 0.5, got 0.700000");
  EXPECT_ERROR(apply<float>(color_jitter({}), ramp(2), Shape{1, 1, 2}), ArgumentError,
               "color_jitter: needs 1 or 3 channels, field 'image' is [1, 1, 2]");
}

TEST(Grayscale, weighs_the_channels) {
  const float value = 0.2989f * 0.5f + 0.587f * 0.2f + 0.114f * 0.1f;
  const Floats pixel(kColors.begin(), kColors.begin() + 3);
  expect_near(apply<float>(grayscale(), pixel, Shape{1, 1, 3}), {value, value, value});
  expect_near(apply<float>(grayscale({.channels = 1}), pixel, Shape{1, 1, 3}), {value});
  EXPECT_EQ(apply<std::uint8_t>(grayscale({.channels = 1}), {255, 0, 100}, Shape{1, 1, 3}), (Bytes{88}));
  EXPECT_THROW(apply<float>(grayscale(), ramp(4), Shape{2, 2, 1}), ArgumentError);
  EXPECT_THROW(grayscale({.channels = 2}), ArgumentError);
  int grey = 0;
  for (int i = 0; i < 2000; ++i)
    grey += apply<float>(random_grayscale(), pixel, Shape{1, 1, 3}, {.index = i})[0] != pixel[0];
  EXPECT_NEAR(grey, 200, 6 * std::sqrt(180.0));
}

TEST(ToFloat, scales_bytes_and_background) {
  const TransformPtr transform = to_float();
  const FieldSpec spec{"image", Shape{1, 2, 1}, Dtype::u8, 51};
  transform->check(std::span(&spec, 1));
  const std::vector<FieldSpec> output = transform->output(std::span(&spec, 1));
  EXPECT_EQ(output[0].dtype, f32);
  EXPECT_FLOAT_EQ(output[0].background, 0.2f);
  Bytes bytes = {0, 255};
  Floats values(2);
  const Field src{std::as_writable_bytes(std::span(bytes)), spec.shape, Dtype::u8};
  const Field dst{std::as_writable_bytes(std::span(values)), spec.shape, f32};
  transform->convert(std::span(&src, 1), std::span(&dst, 1), {});
  EXPECT_EQ(values, (Floats{0, 1}));
  EXPECT_ERROR(apply<float>(transform, {1}, Shape{1}), ArgumentError, "to_float: needs u8, field 'image' is f32");
}

}  // namespace
}  // namespace samebytes::data
