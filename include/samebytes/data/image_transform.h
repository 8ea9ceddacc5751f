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

}  // namespace samebytes::data
