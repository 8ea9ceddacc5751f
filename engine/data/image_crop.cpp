// Transforms that select pixels: crops, flips, erasing.
#include "data/draw.h"
#include "data/image.h"
#include "samebytes/data/image_transform.h"

namespace samebytes::data {
namespace {

using detail::check_image;
using detail::check_pixels;

void check_size(const char* what, const ImageSize& size) {
  if (size.height < 1 || size.width < 1)
    throw ArgumentError(std::string(what) + ": size must be 1 or more, got " + std::to_string(size.height) + " x " +
                        std::to_string(size.width));
}

// The window whose corner is (top, left), which may lie outside of src; the part outside is background. Any dtype.
void crop_window(const Field& src, const Field& dst, std::int64_t top, std::int64_t left) {
  const std::int64_t height = src.shape[0], width = src.shape[1], rows = dst.shape[0], columns = dst.shape[1];
  if (dst.bytes.empty()) return;
  const std::vector<std::byte> pixel = detail::background_pixel(src);
  const auto pixel_bytes = static_cast<std::int64_t>(pixel.size());
  const std::int64_t first = std::clamp<std::int64_t>(-left, 0, columns);  // of the kept columns of dst
  const std::int64_t last = std::clamp<std::int64_t>(width - left, first, columns);
  const auto fill = [&](std::byte* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * pixel_bytes, pixel.data(), pixel.size());
  };
  for (std::int64_t y = 0; y < rows; ++y) {
    std::byte* const to = dst.bytes.data() + y * columns * pixel_bytes;
    const std::int64_t from = top + y;
    if (from < 0 || from >= height || first == last) {
      fill(to, columns);
      continue;
    }
    fill(to, first);
    std::memcpy(to + first * pixel_bytes, src.bytes.data() + (from * width + left + first) * pixel_bytes,
                static_cast<std::size_t>((last - first) * pixel_bytes));
    fill(to + last * pixel_bytes, columns - last);
  }
}

class Crop : public Transform {
 public:
  Crop(const char* name, const ImageSize& size, std::size_t field) : name_(name), size_(size), field_(field) {
    check_size(name, size);
  }
  bool moves() const override { return true; }
  void check(std::span<const FieldSpec> fields) const override { check_image(name_, fields, field_); }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    return detail::with_shape(fields, field_, Shape{size_.height, size_.width, fields[field_].shape[2]});
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    detail::copy_other_fields(src, dst, field_);
    crop(src[field_], dst[field_], key);
  }

 protected:
  virtual void crop(const Field& src, const Field& dst, const SequenceKey& key) const = 0;
  const char* name_;
  ImageSize size_;
  std::size_t field_;
};

class RandomCrop final : public Crop {
 public:
  explicit RandomCrop(const RandomCropOptions& options)
      : Crop("random_crop", options.size, options.field), padding_(options.padding) {
    if (padding_ < 0) throw ArgumentError("random_crop: padding must be 0 or more, got " + std::to_string(padding_));
  }
  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = check_image(name_, fields, field_);
    if (spec.shape[0] + 2 * padding_ < size_.height || spec.shape[1] + 2 * padding_ < size_.width)
      throw ArgumentError("random_crop: " + std::to_string(size_.height) + " x " + std::to_string(size_.width) +
                          " out of field '" + spec.name + "' " + spec.shape.to_string() + " with padding " +
                          std::to_string(padding_));
  }

 protected:
  void crop(const Field& src, const Field& dst, const SequenceKey& key) const override {
    Random random(key);
    const auto place = [&](std::int64_t length, std::int64_t wanted) {
      const std::int64_t places = length + 2 * padding_ - wanted + 1;
      return static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(places))) - padding_;
    };
    const std::int64_t top = place(src.shape[0], size_.height);
    const std::int64_t left = place(src.shape[1], size_.width);
    crop_window(src, dst, top, left);
  }

 private:
  std::int64_t padding_;
};

class CenterCrop final : public Crop {
 public:
  explicit CenterCrop(const CenterCropOptions& options) : Crop("center_crop", options.size, options.field) {}

 protected:
  void crop(const Field& src, const Field& dst, const SequenceKey&) const override {
    // torchvision rounds half to even, and pads on the left with the smaller half.
    const auto corner = [](std::int64_t length, std::int64_t wanted) {
      if (length < wanted) return -((wanted - length) / 2);
      return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(length - wanted) / 2));
    };
    crop_window(src, dst, corner(src.shape[0], size_.height), corner(src.shape[1], size_.width));
  }
};

class VerticalFlip final : public Transform {
 public:
  explicit VerticalFlip(std::size_t field) : field_(field) {}
  void check(std::span<const FieldSpec> fields) const override { check_image("vertical_flip", fields, field_); }
  void apply(std::span<const Field> sample, const SequenceKey&) const override {
    const Field& field = sample[field_];
    const std::int64_t height = field.shape[0];
    if (field.bytes.empty()) return;
    const auto row = static_cast<std::int64_t>(field.bytes.size()) / height;
    std::byte* const bytes = field.bytes.data();
    for (std::int64_t y = 0; y < height / 2; ++y)
      std::swap_ranges(bytes + y * row, bytes + (y + 1) * row, bytes + (height - 1 - y) * row);
  }

 private:
  std::size_t field_;
};

class RandomErasing final : public Transform {
 public:
  explicit RandomErasing(const RandomErasingOptions& options) : options_(options) {
    if (!(options.scale_low >= 0 && options.scale_low <= options.scale_high && options.scale_high <= 1))
      throw ArgumentError("random_erasing: expected scale from 0 to 1 and low <= high, got " +
                          std::to_string(options.scale_low) + " to " + std::to_string(options.scale_high));
    if (!(options.ratio_low > 0 && options.ratio_low <= options.ratio_high))
      throw ArgumentError("random_erasing: expected ratio above 0 and low <= high, got " +
                          std::to_string(options.ratio_low) + " to " + std::to_string(options.ratio_high));
  }
  void check(std::span<const FieldSpec> fields) const override {
    check_pixels("random_erasing", fields, options_.field);
  }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    constexpr int kTries = 10;
    const Field& field = sample[options_.field];
    const std::int64_t height = field.shape[0], width = field.shape[1], channels = field.shape[2];
    Random random(key);
    for (int i = 0; i < kTries; ++i) {
      const double area =
          static_cast<double>(height * width) * detail::draw(random, options_.scale_low, options_.scale_high);
      const double ratio = std::exp(detail::draw(random, std::log(options_.ratio_low), std::log(options_.ratio_high)));
      const std::int64_t rows = std::lround(std::sqrt(area * ratio)), columns = std::lround(std::sqrt(area / ratio));
      if (rows >= height || columns >= width) continue;
      const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(height - rows + 1)));
      const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(width - columns + 1)));
      detail::with_pixels(field, [&](auto pixels) {
        using Pixel = typename decltype(pixels)::value_type;
        for (std::int64_t y = top; y < top + rows; ++y)
          std::fill_n(pixels.data() + (y * width + left) * channels, columns * channels,
                      detail::to_pixel<Pixel>(options_.value));
      });
      return;
    }
  }

 private:
  RandomErasingOptions options_;
};

}  // namespace

TransformPtr random_crop(const RandomCropOptions& options) { return std::make_shared<RandomCrop>(options); }
TransformPtr center_crop(const CenterCropOptions& options) { return std::make_shared<CenterCrop>(options); }
TransformPtr vertical_flip(std::size_t field) { return std::make_shared<VerticalFlip>(field); }
TransformPtr random_horizontal_flip(double probability, std::size_t field) {
  return with_probability(probability, horizontal_flip(field));
}
TransformPtr random_vertical_flip(double probability, std::size_t field) {
  return with_probability(probability, vertical_flip(field));
}
TransformPtr random_erasing(const RandomErasingOptions& options) {
  return with_probability(options.probability, std::make_shared<RandomErasing>(options));
}

}  // namespace samebytes::data
