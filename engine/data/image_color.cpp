// Colour transforms. They compute on floats from 0 to 1 and round once, at the end.
#include <array>

#include "data/image.h"
#include "samebytes/data/image_transform.h"

namespace samebytes::data {
namespace {

const FieldSpec& check_colors(const char* what, std::span<const FieldSpec> fields, std::size_t field) {
  const FieldSpec& spec = detail::check_pixels(what, fields, field);
  if (spec.shape[2] != 1 && spec.shape[2] != 3)
    throw ArgumentError(std::string(what) + ": needs 1 or 3 channels, field '" + spec.name + "' is " +
                        spec.shape.to_string());
  return spec;
}

float grey_of(const float* rgb) { return 0.2989f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]; }
float clamp_unit(float value) { return std::clamp(value, 0.0f, 1.0f); }

// Converts the image to floats from 0 to 1 and back.
std::vector<float> load(const Field& field) {
  std::vector<float> values;
  detail::with_pixels(field, [&](auto pixels) {
    using Pixel = typename decltype(pixels)::value_type;
    values.assign(pixels.begin(), pixels.end());
    if constexpr (!std::is_same_v<Pixel, float>)
      for (float& value : values) value /= 255.0f;
  });
  return values;
}

void store(const std::vector<float>& values, const Field& field) {
  detail::with_pixels(field, [&](auto pixels) {
    using Pixel = typename decltype(pixels)::value_type;
    constexpr float kScale = std::is_same_v<Pixel, float> ? 1.0f : 255.0f;
    for (std::size_t i = 0; i < values.size(); ++i) pixels[i] = detail::to_pixel<Pixel>(kScale * values[i]);
  });
}

// Converts to hue, saturation and value (A. Smith, "Color gamut transform pairs", SIGGRAPH 1978), shifts the hue, and
// converts back.
void turn_hue(float* rgb, float turn) {
  const float red = rgb[0], green = rgb[1], blue = rgb[2];
  const float high = std::max({red, green, blue}), low = std::min({red, green, blue}), range = high - low;
  if (range <= 0) return;
  float hue;
  if (high == red)
    hue = (green - blue) / range;
  else if (high == green)
    hue = 2 + (blue - red) / range;
  else
    hue = 4 + (red - green) / range;
  hue = hue / 6 + turn;
  hue = 6 * (hue - std::floor(hue));
  const int sector = static_cast<int>(hue) % 6;
  const float part = hue - std::floor(hue), saturation = range / high;
  const float p = high * (1 - saturation), q = high * (1 - saturation * part), t = high * (1 - saturation * (1 - part));
  const std::array<std::array<float, 3>, 6> colors = {
      {{high, t, p}, {q, high, p}, {p, high, t}, {p, q, high}, {t, p, high}, {high, p, q}}};
  std::copy_n(colors[static_cast<std::size_t>(sector)].begin(), 3, rgb);
}

class ColorJitter final : public Transform {
 public:
  explicit ColorJitter(const ColorJitterOptions& options) : options_(options) {
    for (const double value : {options.brightness, options.contrast, options.saturation})
      if (!(value >= 0))
        throw ArgumentError("color_jitter: brightness, contrast and saturation must be 0 or more, got " +
                            std::to_string(value));
    if (!(options.hue >= 0 && options.hue <= 0.5))
      throw ArgumentError("color_jitter: hue must be from 0 to 0.5, got " + std::to_string(options.hue));
  }
  void check(std::span<const FieldSpec> fields) const override { check_colors("color_jitter", fields, options_.field); }

  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    const Field& field = sample[options_.field];
    const auto channels = static_cast<std::size_t>(field.shape[2]);
    Random random(key);
    std::array<int, 4> order = {0, 1, 2, 3};
    for (std::uint32_t i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    const auto factor = [&](double reach) {
      const double low = std::max(0.0, 1 - reach), high = 1 + reach;
      return static_cast<float>(low + (high - low) * static_cast<double>(random.uniform()));
    };
    const float brightness = factor(options_.brightness), contrast = factor(options_.contrast);
    const float saturation = factor(options_.saturation);
    const auto turn = static_cast<float>(options_.hue * (2 * static_cast<double>(random.uniform()) - 1));
    std::vector<float> values = load(field);
    for (const int step : order) {
      if (step == 0 && options_.brightness > 0) {
        for (float& value : values) value = clamp_unit(brightness * value);
      } else if (step == 1 && options_.contrast > 0) {
        double sum = 0;
        for (std::size_t i = 0; i < values.size(); i += channels)
          sum += static_cast<double>(channels == 3 ? grey_of(&values[i]) : values[i]);
        const std::size_t pixels = values.size() / channels;
        const auto mean = static_cast<float>(sum / static_cast<double>(pixels));
        for (float& value : values) value = clamp_unit(contrast * value + (1 - contrast) * mean);
      } else if (step == 2 && options_.saturation > 0 && channels == 3) {
        for (std::size_t i = 0; i < values.size(); i += 3) {
          const float grey = grey_of(&values[i]);
          for (std::size_t c = 0; c < 3; ++c)
            values[i + c] = clamp_unit(saturation * values[i + c] + (1 - saturation) * grey);
        }
      } else if (step == 3 && options_.hue > 0 && channels == 3) {
        for (std::size_t i = 0; i < values.size(); i += 3) turn_hue(&values[i], turn);
      }
    }
    store(values, field);
  }

 private:
  ColorJitterOptions options_;
};

class Grayscale final : public Transform {
 public:
  explicit Grayscale(const GrayscaleOptions& options) : options_(options) {
    if (options.channels != 1 && options.channels != 3)
      throw ArgumentError("grayscale: channels must be 1 or 3, got " + std::to_string(options.channels));
  }
  bool moves() const override { return options_.channels == 1; }
  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = detail::check_pixels("grayscale", fields, options_.field);
    if (spec.shape[2] != 3)
      throw ArgumentError("grayscale: needs 3 channels, field '" + spec.name + "' is " + spec.shape.to_string());
  }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    const Shape& shape = fields[options_.field].shape;
    return detail::with_shape(fields, options_.field, Shape{shape[0], shape[1], options_.channels});
  }
  void apply(std::span<const Field> sample, const SequenceKey&) const override {
    std::vector<float> values = load(sample[options_.field]);
    for (std::size_t i = 0; i < values.size(); i += 3) std::fill_n(&values[i], 3, grey_of(&values[i]));
    store(values, sample[options_.field]);
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    if (!moves()) return Transform::convert(src, dst, key);
    detail::copy_other_fields(src, dst, options_.field);
    const std::vector<float> values = load(src[options_.field]);
    std::vector<float> grey(values.size() / 3);
    for (std::size_t i = 0; i < grey.size(); ++i) grey[i] = grey_of(&values[3 * i]);
    store(grey, dst[options_.field]);
  }

 private:
  GrayscaleOptions options_;
};

class ToFloat final : public Transform {
 public:
  explicit ToFloat(const ToFloatOptions& options) : options_(options) {}
  bool moves() const override { return true; }
  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = detail::check_field("to_float", fields, options_.field);
    if (spec.dtype != Dtype::u8)
      throw ArgumentError("to_float: needs u8, field '" + spec.name + "' is " + std::string(name_of(spec.dtype)));
  }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    std::vector<FieldSpec> specs(fields.begin(), fields.end());
    specs[options_.field].dtype = f32;
    specs[options_.field].background *= options_.scale;
    return specs;
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey&) const override {
    detail::copy_other_fields(src, dst, options_.field);
    const auto from = src[options_.field].as<std::uint8_t>();
    const auto to = dst[options_.field].as<float>();
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = options_.scale * static_cast<float>(from[i]);
  }

 private:
  ToFloatOptions options_;
};

}  // namespace

TransformPtr color_jitter(const ColorJitterOptions& options) { return std::make_shared<ColorJitter>(options); }
TransformPtr grayscale(const GrayscaleOptions& options) { return std::make_shared<Grayscale>(options); }
TransformPtr random_grayscale(double probability, std::size_t field) {
  return with_probability(probability, grayscale({.channels = 3, .field = field}));
}
TransformPtr to_float(const ToFloatOptions& options) { return std::make_shared<ToFloat>(options); }

}  // namespace samebytes::data
