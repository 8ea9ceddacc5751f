#include "samebytes/data/ucr.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "core/io_error.h"
#include "data/class_words.h"
#include "data/find_file.h"

namespace samebytes::data {
namespace {

void check_series(const Series& series, const SeriesOptions& options) {
  const auto complain = [](const std::string& text) { throw ArgumentError("from_series: " + text); };
  if (options.length < 0) complain("length must be 0 or more, got " + std::to_string(options.length));
  if (series.channels < 1) complain("channels must be 1 or more, got " + std::to_string(series.channels));
  if (series.starts.empty() || series.starts.front() != 0 ||
      !std::is_sorted(series.starts.begin(), series.starts.end()))
    complain("starts begin with 0 and do not fall");
  const std::int64_t values = series.starts.back() * series.channels;
  if (static_cast<std::int64_t>(series.values.size()) != values)
    complain("starts and channels want " + std::to_string(values) + " values, got " +
             std::to_string(series.values.size()));
  for (const std::size_t count : {series.labels.size(), series.targets.size()})
    if (count != 0 && static_cast<std::int64_t>(count) != series.size())
      complain(std::to_string(series.size()) + " series want as many labels or targets, got " + std::to_string(count));
}

void normalise_channels(Series& series) {
  const std::int64_t channels = series.channels;
  for (std::int64_t i = 0; i < series.size(); ++i) {
    const std::int64_t steps = series.length(i);
    float* const first = series.values.data() + series.starts[static_cast<std::size_t>(i)] * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      for (std::int64_t t = 0; t < steps; ++t) sum += static_cast<double>(first[t * channels + c]);
      const double mean = sum / static_cast<double>(std::max<std::int64_t>(steps, 1));
      for (std::int64_t t = 0; t < steps; ++t) {
        const double difference = static_cast<double>(first[t * channels + c]) - mean;
        squares += difference * difference;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(std::max<std::int64_t>(steps, 1)));
      // Rounding errors of a constant channel are not a signal.
      constexpr double kConstant = 1e-7;
      const bool is_constant = deviation <= kConstant * std::max(1.0, std::fabs(mean));
      for (std::int64_t t = 0; t < steps; ++t) {
        float& value = first[t * channels + c];
        value = is_constant ? 0.0f : static_cast<float>((static_cast<double>(value) - mean) / deviation);
      }
    }
  }
}

// Series keep their lengths; padding happens in the batch's row.
class SeriesSet final : public Dataset {
 public:
  SeriesSet(Series series, std::int64_t steps, bool lengths) : series_(std::move(series)), steps_(steps) {
    fields_.push_back({"series", Shape{steps, series_.channels}, f32});
    if (!series_.labels.empty()) fields_.push_back({"label", Shape{}, i32});
    if (!series_.targets.empty()) fields_.push_back({"target", Shape{}, f32});
    if (lengths) fields_.push_back({"length", Shape{}, i32});
    lengths_ = lengths;
  }

  std::int64_t size() const override { return series_.size(); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const auto i = static_cast<std::size_t>(index);
    const std::int64_t kept = std::min(series_.length(index), steps_);
    const std::span<float> row = dst[0].as<float>();
    const auto first = series_.values.begin() + series_.starts[i] * series_.channels;
    std::fill(std::copy(first, first + kept * series_.channels, row.begin()), row.end(), 0.0f);
    std::size_t field = 1;
    if (!series_.labels.empty()) dst[field++].as<std::int32_t>()[0] = series_.labels[i];
    if (!series_.targets.empty()) dst[field++].as<float>()[0] = series_.targets[i];
    if (lengths_) dst[field].as<std::int32_t>()[0] = static_cast<std::int32_t>(kept);
    return true;
  }

 private:
  Series series_;
  std::int64_t steps_;
  bool lengths_ = false;
  std::vector<FieldSpec> fields_;
};

bool has_shorter(const Series& series, std::int64_t steps) {
  for (std::int64_t i = 0; i < series.size(); ++i)
    if (series.length(i) < steps) return true;
  return false;
}

struct Part {
  std::string path;
  Series series;
};

Part read_ucr_part(const std::string& folder, const std::string& file, const SeriesReading& reading) {
  const bool is_ts = !detail::has_file(folder, file + ".tsv") && detail::has_file(folder, file + ".ts");
  Part part{.path = detail::find_file("ucr", folder, file + (is_ts ? ".ts" : ".tsv")), .series = {}};
  part.series = is_ts ? read_ts(part.path, reading) : read_ucr(part.path, reading);
  return part;
}

// Converts the labels of `series` to indices into `classes`.
void relabel(Series& series, const std::vector<std::string>& classes) {
  for (std::int32_t& label : series.labels) {
    const std::string& word = series.classes[static_cast<std::size_t>(label)];
    label = static_cast<std::int32_t>(std::find(classes.begin(), classes.end(), word) - classes.begin());
  }
  series.classes = classes;
}

}  // namespace

DatasetPtr from_series(Series series, const SeriesOptions& options) {
  check_series(series, options);
  if (options.normalise) normalise_channels(series);
  const std::int64_t steps = options.length > 0 ? options.length : series.longest();
  const bool lengths = options.lengths || has_shorter(series, steps);
  return std::make_shared<SeriesSet>(std::move(series), steps, lengths);
}

Split ucr(const std::string& folder, const std::string& name, const UcrOptions& options) {
  std::error_code ignored;
  const auto inner = std::filesystem::path(folder) / name;
  const std::string place = std::filesystem::is_directory(inner, ignored) ? inner.string() : folder;
  const SeriesReading reading{.interpolate = options.interpolate};
  Part train = read_ucr_part(place, name + "_TRAIN", reading), test = read_ucr_part(place, name + "_TEST", reading);
  if (train.series.channels != test.series.channels)
    detail::throw_io("ucr", test.path, -1, std::to_string(train.series.channels) + " channels as in " + train.path,
                     std::to_string(test.series.channels));
  if (train.series.labels.empty() != test.series.labels.empty() ||
      train.series.targets.empty() != test.series.targets.empty())
    detail::throw_io("ucr", test.path, -1, "labels of the same kind as in " + train.path, "another kind");

  std::vector<std::string> words = train.series.classes;
  words.insert(words.end(), test.series.classes.begin(), test.series.classes.end());
  const std::vector<std::string> classes = detail::sorted_classes(std::move(words));
  relabel(train.series, classes);
  relabel(test.series, classes);

  SeriesOptions both{.normalise = options.normalise, .length = options.length, .lengths = options.lengths};
  if (both.length == 0) both.length = std::max(train.series.longest(), test.series.longest());
  both.lengths = both.lengths || has_shorter(train.series, both.length) || has_shorter(test.series, both.length);
  return {from_series(std::move(train.series), both), from_series(std::move(test.series), both), classes};
}

}  // namespace samebytes::data
