// Transforms that compute pixels from their neighbours: resizing, rotation, blur.
#include <numbers>

#include "data/draw.h"
#include "data/image.h"
#include "samebytes/data/image_transform.h"

namespace samebytes::data {
namespace {

using detail::check_pixels;
using detail::draw;
using detail::ImageWindow;

struct Sampling {
  ImageSize size;
  Interpolation interpolation;
  bool antialias;
};

void resample_window(const Field& src, const ImageWindow& window, const Field& dst, const Sampling& how) {
  const bool is_nearest = how.interpolation == Interpolation::nearest;
  const auto taps = [&](std::int64_t inputs, std::int64_t outputs) {
    return is_nearest ? detail::nearest_taps(inputs, outputs) : detail::linear_taps(inputs, outputs, how.antialias);
  };
  detail::resample(src, window, dst, taps(window.height, how.size.height), taps(window.width, how.size.width));
}

class ResizingTransform : public Transform {
 public:
  ResizingTransform(const char* name, const Sampling& how, std::size_t field) : name_(name), how_(how), field_(field) {
    if (how.size.height < 1 || how.size.width < 1)
      throw ArgumentError(std::string(name) + ": size must be 1 or more, got " + std::to_string(how.size.height) +
                          " x " + std::to_string(how.size.width));
  }
  bool moves() const override { return true; }
  void check(std::span<const FieldSpec> fields) const override { check_pixels(name_, fields, field_); }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    return detail::with_shape(fields, field_, Shape{how_.size.height, how_.size.width, fields[field_].shape[2]});
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    detail::copy_other_fields(src, dst, field_);
    const Field& image = src[field_];
    resample_window(image, window(image.shape[0], image.shape[1], key), dst[field_], how_);
  }

 protected:
  virtual ImageWindow window(std::int64_t height, std::int64_t width, const SequenceKey& key) const = 0;

 private:
  const char* name_;
  Sampling how_;
  std::size_t field_;
};

class Resize final : public ResizingTransform {
 public:
  explicit Resize(const ResizeOptions& options)
      : ResizingTransform("resize", {options.size, options.interpolation, options.antialias}, options.field) {}

 protected:
  ImageWindow window(std::int64_t height, std::int64_t width, const SequenceKey&) const override {
    return {0, 0, height, width};
  }
};

class RandomResizedCrop final : public ResizingTransform {
 public:
  explicit RandomResizedCrop(const RandomResizedCropOptions& options)
      : ResizingTransform("random_resized_crop", {options.size, options.interpolation, options.antialias},
                          options.field),
        options_(options) {
    if (!(options.scale_low > 0 && options.scale_low <= options.scale_high))
      throw ArgumentError("random_resized_crop: expected scale above 0 and low <= high, got " +
                          std::to_string(options.scale_low) + " to " + std::to_string(options.scale_high));
    if (!(options.ratio_low > 0 && options.ratio_low <= options.ratio_high))
      throw ArgumentError("random_resized_crop: expected ratio above 0 and low <= high, got " +
                          std::to_string(options.ratio_low) + " to " + std::to_string(options.ratio_high));
  }

 protected:
  ImageWindow window(std::int64_t height, std::int64_t width, const SequenceKey& key) const override {
    constexpr int kTries = 10;
    Random random(key);
    const auto whole = static_cast<double>(height * width);
    for (int i = 0; i < kTries; ++i) {
      const double area = whole * draw(random, options_.scale_low, options_.scale_high);
      const double ratio = std::exp(draw(random, std::log(options_.ratio_low), std::log(options_.ratio_high)));
      const std::int64_t columns = std::lround(std::sqrt(area * ratio)), rows = std::lround(std::sqrt(area / ratio));
      if (rows < 1 || rows > height || columns < 1 || columns > width) continue;
      const auto top = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(height - rows + 1)));
      const auto left = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(width - columns + 1)));
      return {top, left, rows, columns};
    }
    const double ratio = static_cast<double>(width) / static_cast<double>(height);
    ImageWindow middle{0, 0, height, width};
    if (ratio < options_.ratio_low)
      middle.height = std::max(1l, std::lround(static_cast<double>(width) / options_.ratio_low));
    else if (ratio > options_.ratio_high)
      middle.width = std::max(1l, std::lround(static_cast<double>(height) * options_.ratio_high));
    middle.top = (height - middle.height) / 2;
    middle.left = (width - middle.width) / 2;
    return middle;
  }

 private:
  RandomResizedCropOptions options_;
};

class RandomRotation final : public Transform {
 public:
  explicit RandomRotation(const RandomRotationOptions& options) : options_(options) {
    if (!(options.degrees_low <= options.degrees_high))
      throw ArgumentError("random_rotation: expected degrees low <= high, got " + std::to_string(options.degrees_low) +
                          " to " + std::to_string(options.degrees_high));
  }
  bool moves() const override { return true; }
  void check(std::span<const FieldSpec> fields) const override {
    check_pixels("random_rotation", fields, options_.field);
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    detail::copy_other_fields(src, dst, options_.field);
    Random random(key);
    const double angle = draw(random, options_.degrees_low, options_.degrees_high) * std::numbers::pi / 180;
    detail::with_pixels(src[options_.field], [&](auto pixels) {
      using Pixel = typename decltype(pixels)::value_type;
      rotate<Pixel>(src[options_.field], dst[options_.field], angle);
    });
  }

 private:
  template <class Pixel>
  void rotate(const Field& src, const Field& dst, double angle) const {
    const std::int64_t height = src.shape[0], width = src.shape[1], channels = src.shape[2];
    const Pixel* const from = src.as<Pixel>().data();
    Pixel* const to = dst.as<Pixel>().data();
    const double cosine = std::cos(angle), sine = std::sin(angle);
    const double middle_y = static_cast<double>(height - 1) / 2, middle_x = static_cast<double>(width - 1) / 2;
    const auto at = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
      const bool is_inside = y >= 0 && y < height && x >= 0 && x < width;
      return is_inside ? static_cast<float>(from[(y * width + x) * channels + c]) : src.background;
    };
    constexpr double kSnap = 1e-9;  // rounding must not move an unmoved pixel to the previous one
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        const double across = static_cast<double>(x) - middle_x, down = static_cast<double>(y) - middle_y;
        const double column = across * cosine - down * sine + middle_x + kSnap;
        const double row = across * sine + down * cosine + middle_y + kSnap;
        Pixel* const pixel = to + (y * width + x) * channels;
        if (options_.interpolation == Interpolation::nearest) {
          const auto i = static_cast<std::int64_t>(std::floor(row + 0.5));
          const auto j = static_cast<std::int64_t>(std::floor(column + 0.5));
          for (std::int64_t c = 0; c < channels; ++c) pixel[c] = detail::to_pixel<Pixel>(at(i, j, c));
          continue;
        }
        const auto i = static_cast<std::int64_t>(std::floor(row)), j = static_cast<std::int64_t>(std::floor(column));
        const auto lower = static_cast<float>(row - std::floor(row));
        const auto right = static_cast<float>(column - std::floor(column));
        for (std::int64_t c = 0; c < channels; ++c) {
          const float above = at(i, j, c) + right * (at(i, j + 1, c) - at(i, j, c));
          const float below = at(i + 1, j, c) + right * (at(i + 1, j + 1, c) - at(i + 1, j, c));
          pixel[c] = detail::to_pixel<Pixel>(above + lower * (below - above));
        }
      }
  }

  RandomRotationOptions options_;
};

class GaussianBlur final : public Transform {
 public:
  explicit GaussianBlur(const GaussianBlurOptions& options) : options_(options) {
    if (options.kernel < 1 || options.kernel % 2 == 0)
      throw ArgumentError("gaussian_blur: kernel must be odd and above 0, got " + std::to_string(options.kernel));
    if (!(options.sigma_low > 0 && options.sigma_low <= options.sigma_high))
      throw ArgumentError("gaussian_blur: expected sigma above 0 and low <= high, got " +
                          std::to_string(options.sigma_low) + " to " + std::to_string(options.sigma_high));
  }
  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = check_pixels("gaussian_blur", fields, options_.field);
    if (options_.kernel / 2 >= spec.shape[0] || options_.kernel / 2 >= spec.shape[1])
      throw ArgumentError("gaussian_blur: kernel " + std::to_string(options_.kernel) + " reaches beyond the mirrored " +
                          "edges of field '" + spec.name + "' " + spec.shape.to_string());
  }

  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    Random random(key);
    const double sigma = draw(random, options_.sigma_low, options_.sigma_high);
    std::vector<float> weights(static_cast<std::size_t>(options_.kernel));
    const auto height = [&](std::size_t i) {
      const double away = static_cast<double>(i) - static_cast<double>(options_.kernel - 1) / 2;
      return std::exp(-0.5 * away * away / (sigma * sigma));
    };
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) sum += height(i);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(height(i) / sum);
    detail::with_pixels(sample[options_.field], [&](auto pixels) {
      const Shape& shape = sample[options_.field].shape;
      blur(pixels, shape[0], shape[1], shape[2], weights);
    });
  }

 private:
  template <class Pixel>
  static void blur(std::span<Pixel> pixels, std::int64_t height, std::int64_t width, std::int64_t channels,
                   const std::vector<float>& weights) {
    const auto half = static_cast<std::int64_t>(weights.size() / 2), row = width * channels;
    const auto mirrored = [](std::int64_t i, std::int64_t size) {
      return i < 0 ? -i : (i >= size ? 2 * (size - 1) - i : i);
    };
    std::vector<float> across(pixels.size());
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        for (std::int64_t k = -half; k <= half; ++k) {
          const float weight = weights[static_cast<std::size_t>(k + half)];
          const Pixel* const from = pixels.data() + y * row + mirrored(x + k, width) * channels;
          float* const to = across.data() + y * row + x * channels;
          for (std::int64_t c = 0; c < channels; ++c) to[c] += weight * static_cast<float>(from[c]);
        }
    std::vector<float> line(static_cast<std::size_t>(row));
    for (std::int64_t y = 0; y < height; ++y) {
      std::ranges::fill(line, 0.0f);
      for (std::int64_t k = -half; k <= half; ++k) {
        const float weight = weights[static_cast<std::size_t>(k + half)];
        const float* const from = across.data() + mirrored(y + k, height) * row;
        for (std::size_t j = 0; j < line.size(); ++j) line[j] += weight * from[j];
      }
      Pixel* const to = pixels.data() + y * row;
      for (std::size_t j = 0; j < line.size(); ++j) to[j] = detail::to_pixel<Pixel>(line[j]);
    }
  }

  GaussianBlurOptions options_;
};

}  // namespace

TransformPtr resize(const ResizeOptions& options) { return std::make_shared<Resize>(options); }
TransformPtr random_resized_crop(const RandomResizedCropOptions& options) {
  return std::make_shared<RandomResizedCrop>(options);
}
TransformPtr random_rotation(const RandomRotationOptions& options) { return std::make_shared<RandomRotation>(options); }
TransformPtr gaussian_blur(const GaussianBlurOptions& options) { return std::make_shared<GaussianBlur>(options); }

}  // namespace samebytes::data
