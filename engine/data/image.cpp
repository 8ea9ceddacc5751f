#include "data/image.h"

namespace samebytes::detail {

const data::FieldSpec& check_field(const char* what, std::span<const data::FieldSpec> fields, std::size_t field) {
  if (field >= fields.size())
    throw ArgumentError(std::string(what) + ": field " + std::to_string(field) + " of a sample with " +
                        std::to_string(fields.size()) + " fields");
  return fields[field];
}

const data::FieldSpec& check_image(const char* what, std::span<const data::FieldSpec> fields, std::size_t field) {
  const data::FieldSpec& spec = check_field(what, fields, field);
  if (spec.shape.rank() != 3)
    throw ArgumentError(std::string(what) + ": needs an image [H, W, C], field '" + spec.name + "' is " +
                        spec.shape.to_string());
  return spec;
}

const data::FieldSpec& check_pixels(const char* what, std::span<const data::FieldSpec> fields, std::size_t field) {
  const data::FieldSpec& spec = check_image(what, fields, field);
  if (spec.dtype != f32 && spec.dtype != Dtype::u8)
    throw ArgumentError(std::string(what) + ": needs pixels in f32 or u8, field '" + spec.name + "' is " +
                        std::string(name_of(spec.dtype)));
  if (spec.shape.size() == 0)
    throw ArgumentError(std::string(what) + ": needs one pixel or more, field '" + spec.name + "' is " +
                        spec.shape.to_string());
  return spec;
}

std::vector<std::byte> background_pixel(const data::Field& field) {
  const auto channels = static_cast<std::size_t>(field.shape.back());
  std::vector<std::byte> pixel(channels * bytes_of(field.dtype));
  if (field.background == 0) return pixel;
  const data::Field one{pixel, Shape{field.shape.back()}, field.dtype, 0};
  switch (field.dtype) {
    case Dtype::f32: std::ranges::fill(one.as<float>(), field.background); break;
    case Dtype::f64: std::ranges::fill(one.as<double>(), static_cast<double>(field.background)); break;
    case Dtype::i32: std::ranges::fill(one.as<std::int32_t>(), static_cast<std::int32_t>(field.background)); break;
    case Dtype::i64: std::ranges::fill(one.as<std::int64_t>(), static_cast<std::int64_t>(field.background)); break;
    case Dtype::u8: std::ranges::fill(one.as<std::uint8_t>(), static_cast<std::uint8_t>(field.background)); break;
    default: throw ArgumentError("transform: a background other than 0 needs f32, f64, i32, i64 or u8");
  }
  return pixel;
}

SampleBuffer::SampleBuffer(std::span<const data::FieldSpec> specs) {
  constexpr std::size_t kAlignment = 64;
  const auto aligned = [](std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
  std::size_t total = 0;
  for (const data::FieldSpec& spec : specs) total += aligned(bytes_of_field(spec));
  memory_ = std::make_unique_for_overwrite<std::byte[]>(total);
  std::size_t place = 0;
  for (const data::FieldSpec& spec : specs) {
    const std::size_t bytes = bytes_of_field(spec);
    fields_.push_back({std::span(memory_.get() + place, bytes), spec.shape, spec.dtype, spec.background});
    place += aligned(bytes);
  }
}

std::vector<data::FieldSpec> specs_of(std::span<const data::Field> sample) {
  std::vector<data::FieldSpec> specs;
  for (const data::Field& field : sample) specs.push_back({"", field.shape, field.dtype, field.background});
  return specs;
}

void copy_fields(std::span<const data::Field> src, std::span<const data::Field> dst) {
  for (std::size_t i = 0; i < src.size(); ++i) copy_field(src[i], dst[i]);
}

void copy_other_fields(std::span<const data::Field> src, std::span<const data::Field> dst, std::size_t but) {
  for (std::size_t i = 0; i < src.size(); ++i)
    if (i != but) copy_field(src[i], dst[i]);
}

std::vector<data::FieldSpec> with_shape(std::span<const data::FieldSpec> fields, std::size_t field,
                                        const Shape& shape) {
  std::vector<data::FieldSpec> specs(fields.begin(), fields.end());
  specs[field].shape = shape;
  return specs;
}

Taps linear_taps(std::int64_t inputs, std::int64_t outputs, bool antialias) {
  const double scale = static_cast<double>(inputs) / static_cast<double>(outputs);
  const double reach = antialias ? std::max(1.0, scale) : 1.0;
  Taps taps;
  taps.most = static_cast<std::size_t>(std::ceil(2 * reach)) + 1;
  taps.weights.resize(static_cast<std::size_t>(outputs) * taps.most);
  for (std::int64_t o = 0; o < outputs; ++o) {
    const double centre = (static_cast<double>(o) + 0.5) * scale - 0.5;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach)) + 1);
    const auto last = std::min<std::int64_t>(inputs - 1, static_cast<std::int64_t>(std::ceil(centre + reach)) - 1);
    float* const weights = taps.weights.data() + static_cast<std::size_t>(o) * taps.most;
    double sum = 0;
    for (std::int64_t i = first; i <= last; ++i) sum += 1 - std::abs(static_cast<double>(i) - centre) / reach;
    for (std::int64_t i = first; i <= last; ++i)
      weights[i - first] = static_cast<float>((1 - std::abs(static_cast<double>(i) - centre) / reach) / sum);
    taps.first.push_back(first);
  }
  return taps;
}

Taps nearest_taps(std::int64_t inputs, std::int64_t outputs) {
  Taps taps{.first = {}, .weights = std::vector<float>(static_cast<std::size_t>(outputs), 1.0f), .most = 1};
  for (std::int64_t o = 0; o < outputs; ++o) taps.first.push_back(o * inputs / outputs);
  return taps;
}

void resample(const data::Field& src, const ImageWindow& window, const data::Field& dst, const Taps& rows,
              const Taps& columns) {
  const std::int64_t width = src.shape[1], channels = src.shape[2], new_height = dst.shape[0], new_width = dst.shape[1];
  // Across first: each row of the window becomes new_width pixels of float.
  std::vector<float> across(static_cast<std::size_t>(window.height * new_width * channels));
  with_pixels(src, [&](auto pixels) {
    for (std::int64_t y = 0; y < window.height; ++y)
      for (std::int64_t x = 0; x < new_width; ++x) {
        const float* const weights = columns.weights.data() + static_cast<std::size_t>(x) * columns.most;
        const std::int64_t first = columns.first[static_cast<std::size_t>(x)];
        const std::int64_t count = std::min(static_cast<std::int64_t>(columns.most), window.width - first);
        const auto* const from = pixels.data() + ((window.top + y) * width + window.left + first) * channels;
        float* const to = across.data() + (y * new_width + x) * channels;
        for (std::int64_t i = 0; i < count; ++i)
          for (std::int64_t c = 0; c < channels; ++c) to[c] += weights[i] * static_cast<float>(from[i * channels + c]);
      }
  });
  std::vector<float> line(static_cast<std::size_t>(new_width * channels));
  with_pixels(dst, [&](auto pixels) {
    using Pixel = typename decltype(pixels)::value_type;
    for (std::int64_t y = 0; y < new_height; ++y) {
      const float* const weights = rows.weights.data() + static_cast<std::size_t>(y) * rows.most;
      const std::int64_t first = rows.first[static_cast<std::size_t>(y)];
      const std::int64_t count = std::min(static_cast<std::int64_t>(rows.most), window.height - first);
      std::ranges::fill(line, 0.0f);
      for (std::int64_t i = 0; i < count; ++i) {
        const float* const from = across.data() + (first + i) * new_width * channels;
        for (std::size_t j = 0; j < line.size(); ++j) line[j] += weights[i] * from[j];
      }
      auto* const to = pixels.data() + y * new_width * channels;
      for (std::size_t j = 0; j < line.size(); ++j) to[j] = to_pixel<Pixel>(line[j]);
    }
  });
}

}  // namespace samebytes::detail
