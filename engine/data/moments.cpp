#include "samebytes/data/moments.h"

#include <cmath>
#include <vector>

namespace samebytes::data {

NormaliseOptions channel_moments(const Dataset& set, std::size_t field) {
  const std::vector<FieldSpec>& specs = set.fields();
  if (field >= specs.size())
    throw ArgumentError("channel_moments: field " + std::to_string(field) + " of a sample with " +
                        std::to_string(specs.size()) + " fields");
  const FieldSpec& spec = specs[field];
  if (spec.dtype != f32 || spec.shape.rank() == 0)
    throw ArgumentError("channel_moments: needs f32 with a last axis of channels, field '" + spec.name + "' is " +
                        std::string(name_of(spec.dtype)) + " " + spec.shape.to_string());
  if (set.size() == kEndless || set.size() == 0 || spec.shape.size() == 0)
    throw ArgumentError("channel_moments: needs values and an end, field '" + spec.name + "' has " +
                        (set.size() == kEndless ? std::string("no end") : "no values"));
  std::vector<std::vector<std::byte>> memory;
  std::vector<Field> sample;
  for (const FieldSpec& one : specs) {
    memory.emplace_back(static_cast<std::size_t>(one.shape.size()) * bytes_of(one.dtype));
    sample.push_back({memory.back(), one.shape, one.dtype, one.background});
  }
  const auto channels = static_cast<std::size_t>(spec.shape.back());
  // Sums of differences from the first value: squares of large values with a small spread would cancel.
  std::vector<double> first(channels), sums(channels), squares(channels);
  const std::span<const float> values = sample[field].as<float>();
  if (set.is_sequential()) set.begin_pass(0);
  for (std::int64_t i = 0; i < set.size(); ++i) {
    set.read(i, sample);
    for (std::size_t j = 0; i == 0 && j < channels; ++j) first[j] = static_cast<double>(values[j]);
    for (std::size_t j = 0; j < values.size(); ++j) {
      const std::size_t channel = j % channels;
      const double difference = static_cast<double>(values[j]) - first[channel];
      sums[channel] += difference;
      squares[channel] += difference * difference;
    }
  }
  NormaliseOptions moments{
      .mean = std::vector<float>(channels), .deviation = std::vector<float>(channels), .field = field};
  const double count =
      static_cast<double>(set.size()) * (static_cast<double>(values.size()) / static_cast<double>(channels));
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double mean = sums[channel] / count, variance = squares[channel] / count - mean * mean;
    moments.mean[channel] = static_cast<float>(first[channel] + mean);
    moments.deviation[channel] = variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0f;
  }
  return moments;
}

}  // namespace samebytes::data
