#include "samebytes/data/transform.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace samebytes::data {
namespace {

const FieldSpec& check_field(const char* what, std::span<const FieldSpec> fields, std::size_t field) {
  if (field >= fields.size())
    throw ArgumentError(std::string(what) + ": field " + std::to_string(field) + " of a sample with " +
                        std::to_string(fields.size()) + " fields");
  return fields[field];
}

void check_image(const char* what, std::span<const FieldSpec> fields, std::size_t field) {
  const FieldSpec& spec = check_field(what, fields, field);
  if (spec.shape.rank() != 3)
    throw ArgumentError(std::string(what) + ": needs an image [H, W, C], field '" + spec.name + "' is " +
                        spec.shape.to_string());
}

class Normalise final : public Transform {
 public:
  explicit Normalise(const NormaliseOptions& options) : options_(options) {
    if (options.mean.empty() || options.deviation.empty())
      throw ArgumentError("normalise: mean and deviation have at least one number each");
    for (const float deviation : options.deviation)
      if (!(deviation > 0))
        throw ArgumentError("normalise: deviation is above 0, " + std::to_string(deviation) + " came");
  }

  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = check_field("normalise", fields, options_.field);
    if (spec.dtype != f32)
      throw ArgumentError("normalise: needs f32, field '" + spec.name + "' is " + std::string(name_of(spec.dtype)));
    for (const std::size_t count : {options_.mean.size(), options_.deviation.size()})
      if (count != 1 && static_cast<std::int64_t>(count) != spec.shape.back())
        throw ArgumentError("normalise: one number or one for each channel of '" + spec.name + "' " +
                            spec.shape.to_string() + ", " + std::to_string(count) + " came");
  }

  void apply(std::span<const Field> sample, const SequenceKey&) const override {
    const std::span<float> values = sample[options_.field].as<float>();
    const auto channels = static_cast<std::size_t>(sample[options_.field].shape.back());
    for (std::size_t i = 0; i < values.size(); i += channels)
      for (std::size_t c = 0; c < channels; ++c)
        values[i + c] = (values[i + c] - at(options_.mean, c)) / at(options_.deviation, c);
  }

 private:
  static float at(const std::vector<float>& numbers, std::size_t c) { return numbers[numbers.size() == 1 ? 0 : c]; }
  NormaliseOptions options_;
};

// One element with the field's background.
std::vector<std::byte> background_pixel(const Field& field) {
  const auto channels = static_cast<std::size_t>(field.shape.back());
  std::vector<std::byte> pixel(channels * bytes_of(field.dtype));
  if (field.background == 0) return pixel;
  Field one{pixel, Shape{field.shape.back()}, field.dtype, 0};
  switch (field.dtype) {
    case Dtype::f32: std::ranges::fill(one.as<float>(), field.background); break;
    case Dtype::f64: std::ranges::fill(one.as<double>(), field.background); break;
    case Dtype::i32: std::ranges::fill(one.as<std::int32_t>(), static_cast<std::int32_t>(field.background)); break;
    case Dtype::u8: std::ranges::fill(one.as<std::uint8_t>(), static_cast<std::uint8_t>(field.background)); break;
    default: throw ArgumentError("shift: a background other than 0 needs f32, f64, i32 or u8");
  }
  return pixel;
}

class Shift final : public Transform {
 public:
  explicit Shift(const ShiftOptions& options) : options_(options) {
    if (options.pixels < 0)
      throw ArgumentError("shift: pixels is 0 or more, " + std::to_string(options.pixels) + " came");
  }
  void check(std::span<const FieldSpec> fields) const override { check_image("shift", fields, options_.field); }

  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    Random random(key);
    const auto choices = static_cast<std::uint32_t>(2 * options_.pixels + 1);
    const auto down = static_cast<std::int64_t>(random.below(choices)) - options_.pixels;
    const auto right = static_cast<std::int64_t>(random.below(choices)) - options_.pixels;
    if (down != 0 || right != 0) move(sample[options_.field], down, right);
  }

 private:
  static void move(const Field& field, std::int64_t down, std::int64_t right) {
    const std::int64_t height = field.shape[0], width = field.shape[1];
    if (field.bytes.empty()) return;
    const std::vector<std::byte> pixel = background_pixel(field);
    const auto pixel_bytes = static_cast<std::int64_t>(pixel.size()), row_bytes = width * pixel_bytes;
    const auto fill = [&](std::byte* dst, std::int64_t pixels) {
      for (std::int64_t i = 0; i < pixels; ++i) std::memcpy(dst + i * pixel_bytes, pixel.data(), pixel.size());
    };
    const std::int64_t kept = std::max<std::int64_t>(width - std::abs(right), 0), lost = width - kept;
    // Rows go in the order in which no row is overwritten before it was read.
    for (std::int64_t i = 0; i < height; ++i) {
      const std::int64_t to = down > 0 ? height - 1 - i : i, from = to - down;
      std::byte* dst = field.bytes.data() + to * row_bytes;
      if (from < 0 || from >= height) {
        fill(dst, width);
        continue;
      }
      const std::byte* src = field.bytes.data() + from * row_bytes;
      std::memmove(dst + (right > 0 ? lost : 0) * pixel_bytes, src + (right > 0 ? 0 : lost) * pixel_bytes,
                   static_cast<std::size_t>(kept * pixel_bytes));
      fill(dst + (right > 0 ? 0 : kept) * pixel_bytes, lost);
    }
  }

  ShiftOptions options_;
};

class HorizontalFlip final : public Transform {
 public:
  explicit HorizontalFlip(std::size_t field) : field_(field) {}
  void check(std::span<const FieldSpec> fields) const override { check_image("horizontal_flip", fields, field_); }

  void apply(std::span<const Field> sample, const SequenceKey&) const override {
    const Field& field = sample[field_];
    const std::int64_t height = field.shape[0], width = field.shape[1];
    const auto pixel = static_cast<std::int64_t>(bytes_of(field.dtype)) * field.shape[2];
    for (std::int64_t y = 0; y < height; ++y) {
      std::byte* row = field.bytes.data() + y * width * pixel;
      for (std::int64_t x = 0; x < width / 2; ++x)
        std::swap_ranges(row + x * pixel, row + (x + 1) * pixel, row + (width - 1 - x) * pixel);
    }
  }

 private:
  std::size_t field_;
};

class Compose final : public Transform {
 public:
  explicit Compose(std::vector<TransformPtr> parts) : parts_(std::move(parts)) {
    for (const TransformPtr& part : parts_) {
      if (!part) throw ArgumentError("compose: needs transforms, an empty one came");
      lanes_ += part->lanes();
    }
  }
  void check(std::span<const FieldSpec> fields) const override {
    for (const TransformPtr& part : parts_) part->check(fields);
  }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    SequenceKey own = key;
    for (const TransformPtr& part : parts_) {
      part->apply(sample, own);
      own.lane += part->lanes();
    }
  }
  std::uint32_t lanes() const override { return lanes_; }

 private:
  std::vector<TransformPtr> parts_;
  std::uint32_t lanes_ = 0;
};

class WithProbability final : public Transform {
 public:
  WithProbability(double probability, TransformPtr inner) : probability_(probability), inner_(std::move(inner)) {
    if (!inner_) throw ArgumentError("with_probability: needs a transform, none came");
    if (!(probability >= 0 && probability <= 1))
      throw ArgumentError("with_probability: from 0 to 1, " + std::to_string(probability) + " came");
  }
  void check(std::span<const FieldSpec> fields) const override { inner_->check(fields); }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    if (static_cast<double>(Random(key).uniform()) >= probability_) return;
    SequenceKey own = key;
    ++own.lane;
    inner_->apply(sample, own);
  }
  std::uint32_t lanes() const override { return 1 + inner_->lanes(); }

 private:
  double probability_;
  TransformPtr inner_;
};

}  // namespace

TransformPtr normalise(const NormaliseOptions& options) { return std::make_shared<Normalise>(options); }
TransformPtr shift(const ShiftOptions& options) { return std::make_shared<Shift>(options); }
TransformPtr horizontal_flip(std::size_t field) { return std::make_shared<HorizontalFlip>(field); }
TransformPtr compose(std::vector<TransformPtr> parts) { return std::make_shared<Compose>(std::move(parts)); }
TransformPtr with_probability(double probability, TransformPtr inner) {
  return std::make_shared<WithProbability>(probability, std::move(inner));
}

}  // namespace samebytes::data
