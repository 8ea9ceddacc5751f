#include "samebytes/data/light_curves.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/io_error.h"
#include "data/class_words.h"
#include "data/lines.h"
#include "samebytes/data/csv.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

constexpr const char* kLabel = "label";
constexpr const char* kStar = "star_id";
constexpr const char* kMission = "mission";

bool has(const std::vector<std::string>& names, const char* wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

// Checks the names of the columns: all but the three words must be f0, f1, ...
std::vector<std::string> read_header(const std::string& path, std::string_view text) {
  detail::LineReader lines("light_curves", path, text);
  std::string_view line, name;
  if (!lines.next(line)) lines.fail_at_end("a header with the column label");
  std::vector<std::string> names;
  std::size_t values = 0;
  for (bool more = true; more;) {
    more = detail::cut(line, ',', name);
    name = detail::trimmed(name);
    names.emplace_back(name);
    if (name == kLabel || name == kStar || name == kMission) continue;
    if (name != "f" + std::to_string(values)) lines.fail(name, "a column f" + std::to_string(values));
    ++values;
  }
  if (!has(names, kLabel) || values == 0)
    detail::throw_io("light_curves", path, 0, "a header with the columns label and f0",
                     has(names, kLabel) ? "no f0" : "no label");
  return names;
}

// The csv reader sorts class words as text; here numeric words get numeric order.
void set_classes(const Table& table, Series& series) {
  std::vector<std::string> words;
  for (const std::int32_t label : table.labels.as<std::int32_t>())
    words.push_back(table.classes.empty() ? std::to_string(label) : table.classes[static_cast<std::size_t>(label)]);
  series.labels = detail::number_words(words, words, series.classes);
}

}  // namespace

LightCurves light_curves(const std::string& path, const LightCurveOptions& options) {
  if (!(options.lowest <= options.highest))
    throw ArgumentError("light_curves: lowest must be at most highest, got " + std::to_string(options.lowest) +
                        " and " + std::to_string(options.highest));
  const std::vector<std::byte> file = io::read_file(path);
  const std::vector<std::string> names = read_header(path, {reinterpret_cast<const char*>(file.data()), file.size()});
  const auto read = [&](const char* label) {
    CsvOptions csv{.separator = ',', .header = true, .label = label};
    for (const char* word : {kLabel, kStar, kMission})
      if (word != std::string_view(label) && has(names, word)) csv.drop.emplace_back(word);
    return parse_csv(path, file, csv);
  };
  const Table table = read(kLabel);
  const bool has_stars = has(names, kStar);
  const Table stars = has_stars ? read(kStar) : Table{};

  Series all;
  set_classes(table, all);
  LightCurves result;
  result.curves.classes = all.classes;
  result.curves.starts = {0};
  const auto steps = static_cast<std::size_t>(table.values.shape[1]);
  const std::span<const float> values = table.values.as<float>();
  std::map<std::string, std::int32_t> seen;  // the bytes of a curve and its label
  for (std::size_t row = 0; row < all.labels.size(); ++row) {
    const std::span<const float> curve = values.subspan(row * steps, steps);
    const auto [first, is_new] =
        seen.emplace(std::string(reinterpret_cast<const char*>(curve.data()), curve.size_bytes()), all.labels[row]);
    if (!options.duplicates && !is_new) {
      ++result.duplicates;
      result.contradictions += first->second != all.labels[row];
      continue;
    }
    for (const float value : curve) result.curves.values.push_back(std::clamp(value, options.lowest, options.highest));
    result.curves.starts.push_back(result.curves.starts.back() + static_cast<std::int64_t>(steps));
    result.curves.labels.push_back(all.labels[row]);
    if (has_stars) result.groups.push_back(stars.labels.as<std::int32_t>()[row]);
  }
  return result;
}

}  // namespace samebytes::data
