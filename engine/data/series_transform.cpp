#include "samebytes/data/series_transform.h"

#include "data/image.h"

namespace samebytes::data {
namespace {

const FieldSpec& check_values(const char* what, std::span<const FieldSpec> fields, std::size_t field) {
  const FieldSpec& spec = detail::check_field(what, fields, field);
  if (spec.dtype != f32)
    throw ArgumentError(std::string(what) + ": needs f32, field '" + spec.name + "' is " +
                        std::string(name_of(spec.dtype)));
  return spec;
}

const FieldSpec& check_series_field(const char* what, std::span<const FieldSpec> fields, std::size_t field) {
  const FieldSpec& spec = check_values(what, fields, field);
  if (spec.shape.rank() != 2)
    throw ArgumentError(std::string(what) + ": needs a series [L, C], field '" + spec.name + "' is " +
                        spec.shape.to_string());
  return spec;
}

void check_deviation(const char* what, double deviation) {
  if (!(deviation >= 0))
    throw ArgumentError(std::string(what) + ": deviation must be 0 or more, got " + std::to_string(deviation));
}

class Jitter final : public Transform {
 public:
  explicit Jitter(const JitterOptions& options) : options_(options) { check_deviation("jitter", options.deviation); }
  void check(std::span<const FieldSpec> fields) const override {
    constexpr std::int64_t kMost = 131072;  // the capacity of a lane, at two words per number
    const FieldSpec& spec = check_values("jitter", fields, options_.field);
    if (spec.shape.size() > kMost)
      throw ArgumentError("jitter: expected at most 131072 values, field '" + spec.name + "' is " +
                          spec.shape.to_string());
  }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    Random random(key);
    const auto deviation = static_cast<float>(options_.deviation);
    for (float& value : sample[options_.field].as<float>()) value += deviation * random.normal();
  }

 private:
  JitterOptions options_;
};

class Scaling final : public Transform {
 public:
  explicit Scaling(const ScalingOptions& options) : options_(options) { check_deviation("scaling", options.deviation); }
  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = check_values("scaling", fields, options_.field);
    if (spec.shape.rank() == 0)
      throw ArgumentError("scaling: needs channels as the last axis, field '" + spec.name + "' is a scalar");
  }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    const Field& field = sample[options_.field];
    Random random(key);
    std::vector<float> factors(static_cast<std::size_t>(field.shape.back()));
    for (float& factor : factors) factor = 1 + static_cast<float>(options_.deviation) * random.normal();
    const std::span<float> values = field.as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i % factors.size()];
  }

 private:
  ScalingOptions options_;
};

class TimeShift final : public Transform {
 public:
  explicit TimeShift(const TimeShiftOptions& options) : options_(options) {
    if (options.steps < 0 || options.steps > INT32_MAX / 2)
      throw ArgumentError("time_shift: steps must be 0 or more, got " + std::to_string(options.steps));
  }
  void check(std::span<const FieldSpec> fields) const override {
    check_series_field("time_shift", fields, options_.field);
  }
  void apply(std::span<const Field> sample, const SequenceKey& key) const override {
    const Field& field = sample[options_.field];
    const std::int64_t length = field.shape[0], channels = field.shape[1];
    if (field.bytes.empty()) return;
    Random random(key);
    const auto choices = static_cast<std::uint32_t>(2 * options_.steps + 1);
    const std::int64_t later = static_cast<std::int64_t>(random.below(choices)) - options_.steps;
    const std::span<float> values = field.as<float>();
    if (options_.circular) {
      const std::int64_t first = ((-later) % length + length) % length;
      std::rotate(values.begin(), values.begin() + first * channels, values.end());
      return;
    }
    const std::int64_t kept = std::max<std::int64_t>(0, length - std::abs(later)) * channels;
    if (later > 0) {
      std::copy_backward(values.begin(), values.begin() + kept, values.end());
      std::fill(values.begin(), values.end() - kept, field.background);
    } else {
      std::copy(values.end() - kept, values.end(), values.begin());
      std::fill(values.begin() + kept, values.end(), field.background);
    }
  }

 private:
  TimeShiftOptions options_;
};

class RandomWindow final : public Transform {
 public:
  explicit RandomWindow(const RandomWindowOptions& options) : options_(options) {
    if (options.length < 1)
      throw ArgumentError("random_window: length must be 1 or more, got " + std::to_string(options.length));
  }
  bool moves() const override { return true; }
  void check(std::span<const FieldSpec> fields) const override {
    const FieldSpec& spec = check_series_field("random_window", fields, options_.field);
    if (spec.shape[0] < options_.length)
      throw ArgumentError("random_window: " + std::to_string(options_.length) + " steps of field '" + spec.name + "' " +
                          spec.shape.to_string());
  }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    return detail::with_shape(fields, options_.field, Shape{options_.length, fields[options_.field].shape[1]});
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& key) const override {
    detail::copy_other_fields(src, dst, options_.field);
    const Field& field = src[options_.field];
    const std::int64_t places = field.shape[0] - options_.length + 1;
    Random random(key);
    const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(places)));
    const std::span<float> from = field.as<float>(), to = dst[options_.field].as<float>();
    std::copy_n(from.begin() + first * field.shape[1], to.size(), to.begin());
  }

 private:
  RandomWindowOptions options_;
};

}  // namespace

TransformPtr jitter(const JitterOptions& options) { return std::make_shared<Jitter>(options); }
TransformPtr scaling(const ScalingOptions& options) { return std::make_shared<Scaling>(options); }
TransformPtr time_shift(const TimeShiftOptions& options) { return std::make_shared<TimeShift>(options); }
TransformPtr random_window(const RandomWindowOptions& options) { return std::make_shared<RandomWindow>(options); }

}  // namespace samebytes::data
