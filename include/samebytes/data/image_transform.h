// Transforms of images [H, W, C], with torchvision's semantics and defaults. output() has the new size if a transform
// changes it. A function marked "f32 or u8" takes only these dtypes, others take any; u8 results are rounded to the
// nearest. Random numbers are a function of (seed, epoch, index), see transform.h. `field` is the index of the image
// among the sample's fields. All throw ArgumentError for invalid options, and in check() for a field that does not fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebytes/data/transform.h"

namespace samebytes::data {

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  constexpr ImageSize() = default;
  constexpr ImageSize(std::int64_t both) : height(both), width(both) {}
  constexpr ImageSize(std::int64_t height_, std::int64_t width_) : height(height_), width(width_) {}
};

struct RandomCropOptions {
  ImageSize size = {};       // of the result
  std::int64_t padding = 0;  // pixels of background to add on each side first
  std::size_t field = 0;
};
// A window at a uniformly random position. Any dtype.
TransformPtr random_crop(const RandomCropOptions& options);

struct CenterCropOptions {
  ImageSize size = {};  // beyond the image: the field's background
  std::size_t field = 0;
};
// The window in the middle. Any dtype.
TransformPtr center_crop(const CenterCropOptions& options);

// Always mirrors top and bottom. Any dtype. (horizontal_flip is in transform.h.)
TransformPtr vertical_flip(std::size_t field = 0);
// with_probability around the flips.
TransformPtr random_horizontal_flip(double probability = 0.5, std::size_t field = 0);
TransformPtr random_vertical_flip(double probability = 0.5, std::size_t field = 0);

struct RandomErasingOptions {
  double probability = 0.5;
  double scale_low = 0.02, scale_high = 0.33;  // area of the rectangle, as a fraction of the image
  double ratio_low = 0.3, ratio_high = 3.3;    // height / width; log-uniform
  float value = 0;
  std::size_t field = 0;
};
// Sets a rectangle to `value`; no change if ten tries find none that fits (Z. Zhong et al., "Random erasing data
// augmentation", AAAI 2020, algorithm 1). f32 or u8.
TransformPtr random_erasing(const RandomErasingOptions& options = {});

enum class Interpolation : std::uint8_t { nearest, bilinear };

struct ResizeOptions {
  ImageSize size = {};
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;  // bilinear: when an axis shrinks, averages over all merged pixels
  std::size_t field = 0;
};
// The whole image at another size, pixel centres at (i + 1/2) scale - 1/2. f32 or u8.
TransformPtr resize(const ResizeOptions& options);

struct RandomResizedCropOptions {
  ImageSize size = {};
  double scale_low = 0.08, scale_high = 1;           // area of the window, as a fraction of the image
  double ratio_low = 3.0 / 4, ratio_high = 4.0 / 3;  // width / height; log-uniform
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;
  std::size_t field = 0;
};
// A window of random area and shape, resized (C. Szegedy et al., "Going deeper with convolutions", CVPR 2015, section
// 6). If ten tries find none that fits: the middle, with the nearest allowed ratio. f32 or u8.
TransformPtr random_resized_crop(const RandomResizedCropOptions& options);

struct RandomRotationOptions {
  double degrees_low = -30, degrees_high = 30;  // uniform, counter-clockwise
  Interpolation interpolation = Interpolation::bilinear;
  std::size_t field = 0;
};
// Rotates about the middle; the size stays, and vacated pixels get the field's background. (torchvision's default is
// nearest.) f32 or u8.
TransformPtr random_rotation(const RandomRotationOptions& options = {});

struct GaussianBlurOptions {
  int kernel = 23;                           // odd; at most 2 H - 1 and 2 W - 1
  double sigma_low = 0.1, sigma_high = 2.0;  // pixels, uniform
  std::size_t field = 0;
};
// Edges are mirrored without repeating the last pixel. f32 or u8.
TransformPtr gaussian_blur(const GaussianBlurOptions& options = {});

// Colours are f32 from 0 to 1, or u8; results are clipped to that range. Images have 1 or 3 channels (R, G, B).
struct ColorJitterOptions {
  double brightness = 0;  // factor from max(0, 1 - x) to 1 + x: blends with black
  double contrast = 0;    // likewise: with the mean grey of the image
  double saturation = 0;  // likewise: with the grey image
  double hue = 0;         // shift from -x to x, at most 0.5 (half a turn)
  std::size_t field = 0;
};
// Applies them in random order, as torchvision does. Saturation and hue do not change images with one channel.
TransformPtr color_jitter(const ColorJitterOptions& options);

struct GrayscaleOptions {
  std::int64_t channels = 3;  // of the result: 1 or 3 equal ones
  std::size_t field = 0;
};
// 0.2989 R + 0.587 G + 0.114 B. random_grayscale() keeps the three channels.
TransformPtr grayscale(const GrayscaleOptions& options = {});
TransformPtr random_grayscale(double probability = 0.1, std::size_t field = 0);

struct ToFloatOptions {
  float scale = 1.0f / 255;
  std::size_t field = 0;
};
// Converts a u8 field of any shape to f32, times scale, and its background likewise.
TransformPtr to_float(const ToFloatOptions& options = {});

}  // namespace samebytes::data
