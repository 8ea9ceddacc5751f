#include "samebytes/data/transform.h"

#include <cstdlib>

#include "data/image.h"

namespace samebytes::data {
namespace {

using detail::check_field;
using detail::check_image;

bool is_same(std::span<const FieldSpec> a, std::span<const FieldSpec> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const FieldSpec& left, const FieldSpec& right) {
    return left.shape == right.shape && left.dtype == right.dtype;
  });
}

class Normalise final : public Transform {
 public:
  explicit Normalise(const NormaliseOptions& options) : options_(options) {
    if (options.mean.empty() || options.deviation.empty())
      throw ArgumentError("normalise: mean and deviation have at least one number each");
    for (const float deviation : options.deviation)
      if (!(deviation > 0))
        throw ArgumentError("normalise: deviation must be above 0, got " + std::to_string(deviation));
  }

  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = check_field("normalise", fields, options_.field);
    if (spec.dtype != f32)
      throw ArgumentError("normalise: needs f32, field '" + spec.name + "' is " + std::string(name_of(spec.dtype)));
    for (const std::size_t count : {options_.mean.size(), options_.deviation.size()})
      if (count != 1 && static_cast<std::int64_t>(count) != spec.shape.back())
        throw ArgumentError("normalise: expected one number or one for each channel of '" + spec.name + "' " +
                            spec.shape.to_string() + ", got " + std::to_string(count));
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

class Shift final : public Transform {
 public:
  explicit Shift(const ShiftOptions& options) : options_(options) {
    if (options.pixels < 0)
      throw ArgumentError("shift: pixels must be 0 or more, got " + std::to_string(options.pixels));
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
    const std::vector<std::byte> pixel = detail::background_pixel(field);
    const auto pixel_bytes = static_cast<std::int64_t>(pixel.size()), row_bytes = width * pixel_bytes;
    const auto fill = [&](std::byte* dst, std::int64_t pixels) {
      for (std::int64_t i = 0; i < pixels; ++i) std::memcpy(dst + i * pixel_bytes, pixel.data(), pixel.size());
    };
    const std::int64_t kept = std::max<std::int64_t>(width - std::abs(right), 0), lost = width - kept;
    // Moves rows in an order that overwrites no row before it is read.
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
      if (!part) throw ArgumentError("compose: expected transforms, got an empty one");
      lanes_ += part->lanes();
    }
    last_move_ = parts_.size();
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i]->moves()) last_move_ = i;
  }
  void check(std::span<const FieldSpec> fields) const override {
    std::vector<FieldSpec> specs(fields.begin(), fields.end());
    for (const TransformPtr& part : parts_) {
      part->check(specs);
      specs = part->output(specs);
    }
  }
  bool moves() const override { return last_move_ < parts_.size(); }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    std::vector<FieldSpec> specs(fields.begin(), fields.end());
    for (const TransformPtr& part : parts_) specs = part->output(specs);
    return specs;
  }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    if (moves()) return Transform::apply(sample, key);
    SequenceKey own = key;
    for (const TransformPtr& part : parts_) {
      part->apply(sample, own);
      own.lane += part->lanes();
    }
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    if (!moves()) return Transform::convert(src, dst, key);
    SequenceKey own = key;
    std::span<const Field> now = src;
    std::unique_ptr<detail::SampleBuffer> between;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const Transform& part = *parts_[i];
      if (!part.moves()) {
        part.apply(now, own);
      } else if (i == last_move_) {  // from here on it is at its destination
        part.convert(now, dst, own);
        now = dst;
      } else {
        auto next = std::make_unique<detail::SampleBuffer>(part.output(detail::specs_of(now)));
        part.convert(now, next->fields(), own);
        between = std::move(next);
        now = between->fields();
      }
      own.lane += part.lanes();
    }
  }
  std::uint32_t lanes() const override { return lanes_; }

 private:
  std::vector<TransformPtr> parts_;
  std::uint32_t lanes_ = 0;
  std::size_t last_move_ = 0;  // index of the last part that moves(), or the number of parts
};

class WithProbability final : public Transform {
 public:
  WithProbability(double probability, TransformPtr inner) : probability_(probability), inner_(std::move(inner)) {
    if (!inner_) throw ArgumentError("with_probability: expected a transform, got none");
    if (!(probability >= 0 && probability <= 1))
      throw ArgumentError("with_probability: expected from 0 to 1, got " + std::to_string(probability));
  }
  void check(std::span<const FieldSpec> fields) const override {
    inner_->check(fields);
    if (inner_->moves() && !is_same(fields, inner_->output(fields)))
      throw ArgumentError("with_probability: the transform inside changes a shape, so it is for all samples or none");
  }
  bool moves() const override { return inner_->moves(); }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    if (is_chosen(key)) inner_->apply(sample, inner_key(key));
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    if (is_chosen(key))
      inner_->convert(src, dst, inner_key(key));
    else
      detail::copy_fields(src, dst);
  }
  std::uint32_t lanes() const override { return 1 + inner_->lanes(); }

 private:
  bool is_chosen(const SequenceKey& key) const { return static_cast<double>(Random(key).uniform()) < probability_; }
  static SequenceKey inner_key(SequenceKey key) {
    ++key.lane;
    return key;
  }
  double probability_;
  TransformPtr inner_;
};

}  // namespace

std::vector<FieldSpec> Transform::output(std::span<const FieldSpec> fields) const {
  return {fields.begin(), fields.end()};
}

void Transform::apply(std::span<const Field> sample, const SequenceKey& key) const {
  const detail::SampleBuffer copy(detail::specs_of(sample));
  detail::copy_fields(sample, copy.fields());
  convert(copy.fields(), sample, key);
}

void Transform::convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const {
  detail::copy_fields(src, dst);
  apply(dst, key);
}

TransformPtr normalise(const NormaliseOptions& options) { return std::make_shared<Normalise>(options); }
TransformPtr shift(const ShiftOptions& options) { return std::make_shared<Shift>(options); }
TransformPtr horizontal_flip(std::size_t field) { return std::make_shared<HorizontalFlip>(field); }
TransformPtr compose(std::vector<TransformPtr> parts) { return std::make_shared<Compose>(std::move(parts)); }
TransformPtr with_probability(double probability, TransformPtr inner) {
  return std::make_shared<WithProbability>(probability, std::move(inner));
}

}  // namespace samebytes::data
