// Transforms of images [H, W, C], with torchvision's meaning and defaults. Those that change the size say so in
// output(). Pixels are f32 or u8 where a function says "pixels", else of any dtype; new u8 values are rounded to the
// nearest. What random transforms draw is a function of (seed, epoch, index), see transform.h. `field` is the image's
// place among the sample's fields. All throw ArgumentError for wrong options, and from check() for a field that does
// not fit.
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
  std::int64_t padding = 0;  // pixels of the field's background added on each side first
  std::size_t field = 0;
};
// A window at a random place, each equally likely. Any dtype.
TransformPtr random_crop(const RandomCropOptions& options);

struct CenterCropOptions {
  ImageSize size = {};  // what sticks out of the image is background
  std::size_t field = 0;
};
// The window in the middle. Any dtype.
TransformPtr center_crop(const CenterCropOptions& options);

// Mirrors top and bottom, always. Any dtype. (horizontal_flip is in transform.h.)
TransformPtr vertical_flip(std::size_t field = 0);
// with_probability around the flips.
TransformPtr random_horizontal_flip(double probability = 0.5, std::size_t field = 0);
TransformPtr random_vertical_flip(double probability = 0.5, std::size_t field = 0);

struct RandomErasingOptions {
  double probability = 0.5;
  double scale_low = 0.02, scale_high = 0.33;  // area of the rectangle in parts of the image's
  double ratio_low = 0.3, ratio_high = 3.3;    // height / width; even in the logarithm
  float value = 0;
  std::size_t field = 0;
};
// A rectangle becomes `value`; nothing where ten tries gave none that fits (Z. Zhong et al., "Random erasing data
// augmentation", AAAI 2020, algorithm 1). Pixels.
TransformPtr random_erasing(const RandomErasingOptions& options = {});

enum class Interpolation : std::uint8_t { nearest, bilinear };

struct ResizeOptions {
  ImageSize size = {};
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;  // bilinear: where an axis shrinks, average over all pixels that it merges
  std::size_t field = 0;
};
// The whole image at another size, pixel centres at (i + 1/2) scale - 1/2. Pixels.
TransformPtr resize(const ResizeOptions& options);

struct RandomResizedCropOptions {
  ImageSize size = {};
  double scale_low = 0.08, scale_high = 1;           // area of the window in parts of the image's
  double ratio_low = 3.0 / 4, ratio_high = 4.0 / 3;  // width / height; even in the logarithm
  Interpolation interpolation = Interpolation::bilinear;
  bool antialias = true;
  std::size_t field = 0;
};
// A window of random area and shape, resized (C. Szegedy et al., "Going deeper with convolutions", CVPR 2015, section
// 6). Where ten tries gave none that fits: the middle, with the nearest ratio allowed. Pixels.
TransformPtr random_resized_crop(const RandomResizedCropOptions& options);

struct RandomRotationOptions {
  double degrees_low = -30, degrees_high = 30;  // evenly, against the clock
  Interpolation interpolation = Interpolation::bilinear;
  std::size_t field = 0;
};
// About the middle; the size stays, what comes from outside is the field's background. (torchvision's default is
// nearest.) Pixels.
TransformPtr random_rotation(const RandomRotationOptions& options = {});

struct GaussianBlurOptions {
  int kernel = 23;                           // odd; at most 2 H - 1 and 2 W - 1
  double sigma_low = 0.1, sigma_high = 2.0;  // pixels, evenly
  std::size_t field = 0;
};
// Edges are mirrored without repeating the last pixel. Pixels.
TransformPtr gaussian_blur(const GaussianBlurOptions& options = {});

// Colours are f32 from 0 to 1, or u8; results are cut to that range. Images have 1 or 3 channels (R, G, B).
struct ColorJitterOptions {
  double brightness = 0;  // factor from max(0, 1 - x) to 1 + x: blended with black
  double contrast = 0;    // the same: with the mean grey of the image
  double saturation = 0;  // the same: with the grey image
  double hue = 0;         // turned by -x to x, at most 0.5 (half a turn)
  std::size_t field = 0;
};
// In random order, as torchvision does. Saturation and hue leave images of one channel as they are.
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
// A u8 field of any shape as f32, times scale; the background too.
TransformPtr to_float(const ToFloatOptions& options = {});

}  // namespace samebytes::data
