#include "samebytes/data/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "data/class_words.h"
#include "data/lines.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

using detail::cut;
using detail::LineReader;
using detail::parse_number;
using detail::trimmed;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view as_text(const std::vector<std::byte>& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// One case while it is read: its channels, each a row of values.
struct Case {
  std::vector<std::vector<float>> channels;
  std::size_t steps() const { return channels.front().size(); }
};

void read_values(const LineReader& lines, std::string_view text, char separator, std::vector<float>& values) {
  for (bool more = true; more;) {
    std::string_view cell;
    more = cut(text, separator, cell);
    cell = trimmed(cell);
    float value = 0;
    if (cell == "?" || lower(cell) == "nan")
      value = kMissing;
    else if (!parse_number(cell, value))
      lines.fail(cell, "a number");
    values.push_back(value);
  }
}

// Removes trailing steps without a value in any channel.
void drop_padding(const LineReader& lines, std::string_view line, Case& one) {
  std::size_t steps = one.steps();
  const auto is_padding = [&](std::size_t step) {
    return std::all_of(one.channels.begin(), one.channels.end(),
                       [&](const auto& row) { return std::isnan(row[step]); });
  };
  while (steps > 0 && is_padding(steps - 1)) --steps;
  if (steps == 0) lines.fail_with(line, "a series of one value or more", "missing values only");
  for (std::vector<float>& row : one.channels) row.resize(steps);
}

void fill_gaps(const LineReader& lines, std::string_view line, bool interpolate, Case& one) {
  for (std::vector<float>& row : one.channels) {
    const auto is_missing = [](float value) { return std::isnan(value); };
    if (std::none_of(row.begin(), row.end(), is_missing)) continue;
    if (!interpolate) lines.fail_with(line, "values without gaps (or ask for interpolate)", "a missing value");
    if (std::all_of(row.begin(), row.end(), is_missing))
      lines.fail_with(line, "a channel of one value or more", "missing values only");
    for (std::size_t gap = 0; gap < row.size(); ++gap) {
      if (!is_missing(row[gap])) continue;
      std::size_t end = gap;
      while (end < row.size() && is_missing(row[end])) ++end;
      for (std::size_t i = gap; i < end; ++i) {
        if (gap == 0 || end == row.size()) {
          row[i] = gap == 0 ? row[end] : row[gap - 1];
          continue;
        }
        const double share = static_cast<double>(i - gap + 1) / static_cast<double>(end - gap + 1);
        const double from = static_cast<double>(row[gap - 1]), to = static_cast<double>(row[end]);
        row[i] = static_cast<float>(from + share * (to - from));
      }
    }
  }
}

void append(const LineReader& lines, std::string_view line, const SeriesReading& reading, Case& one, Series& series) {
  drop_padding(lines, line, one);
  fill_gaps(lines, line, reading.interpolate, one);
  for (std::size_t step = 0; step < one.steps(); ++step)
    for (const std::vector<float>& row : one.channels) series.values.push_back(row[step]);
  series.starts.push_back(series.starts.back() + static_cast<std::int64_t>(one.steps()));
}

// The header of a .ts file, before @data.
struct TsHeader {
  std::string name;
  std::int64_t dimensions = 0;  // 0: not given
  std::int64_t length = 0;      // 0: not given
  bool equal_length = false, labelled = false, regression = false;
  std::vector<std::string> classes;  // empty: not listed
};

class TsReader {
 public:
  TsReader(const std::string& path, std::string_view text, const SeriesReading& reading)
      : lines_("ts", path, text), reading_(reading) {}

  Series read() {
    read_header();
    Series series;
    series.name = header_.name;
    series.starts = {0};
    std::vector<std::string> words;
    std::string_view line;
    while (next(line)) read_case(line, series, words);
    if (series.size() == 0) lines_.fail_at_end("at least one case after @data");
    series.channels = header_.dimensions;
    if (header_.labelled)
      series.labels = detail::number_words(words, header_.classes.empty() ? words : header_.classes, series.classes);
    return series;
  }

 private:
  // The next line that is neither blank nor a comment, without outer blanks.
  bool next(std::string_view& line) {
    while (lines_.next(line)) {
      line = trimmed(line);
      if (!line.empty() && line.front() != '#') return true;
    }
    return false;
  }

  bool boolean(std::string_view text) const {
    const std::string word = lower(text);
    if (word != "true" && word != "false") lines_.fail(text, "true or false");
    return word == "true";
  }
  std::int64_t count(std::string_view text) const {
    std::int64_t value = 0;
    if (!parse_number(text, value) || value < 1) lines_.fail(text, "a number from 1");
    return value;
  }

  void read_header() {
    std::string_view line;
    while (next(line)) {
      if (line.front() != '@') lines_.fail(line, "a line that begins with @ or #");
      std::string_view tag, rest = line;
      cut(rest, ' ', tag);
      rest = trimmed(rest);
      const std::string name = lower(tag);
      if (name == "@data") return;
      read_tag(name, tag, rest);
    }
    lines_.fail_at_end("a line @data");
  }

  void read_tag(const std::string& name, std::string_view tag, std::string_view rest) {
    if (name == "@problemname") {
      header_.name = rest;
    } else if (name == "@timestamps") {
      if (boolean(rest)) lines_.fail(rest, "@timeStamps false (series with time stamps are not read)");
    } else if (name == "@missing") {
      (void)boolean(rest);  // the values show it
    } else if (name == "@univariate") {
      if (boolean(rest)) header_.dimensions = 1;
    } else if (name == "@dimensions" || name == "@dimension") {
      header_.dimensions = count(rest);
    } else if (name == "@equallength") {
      header_.equal_length = boolean(rest);
    } else if (name == "@serieslength") {
      header_.length = count(rest);
    } else if (name == "@classlabel") {
      std::string_view word;
      cut(rest, ' ', word);
      header_.labelled = boolean(word);
      while (header_.labelled && !(rest = trimmed(rest)).empty()) {
        cut(rest, ' ', word);
        header_.classes.emplace_back(word);
      }
    } else if (name == "@targetlabel") {
      header_.regression = boolean(rest);
    } else {
      lines_.fail(tag, "a tag of a .ts file");
    }
  }

  void read_case(std::string_view line, Series& series, std::vector<std::string>& words) {
    std::string_view rest = line, label;
    if (header_.labelled || header_.regression) {
      const std::size_t colon = line.rfind(':');
      if (colon == std::string_view::npos) lines_.fail(line, "channels and a label, with ':' between");
      label = trimmed(line.substr(colon + 1));
      rest = line.substr(0, colon);
    }
    Case one;
    for (bool more = true; more;) {
      std::string_view channel;
      more = cut(rest, ':', channel);
      one.channels.emplace_back();
      read_values(lines_, channel, ',', one.channels.back());
      const std::size_t have = one.channels.back().size();
      if (have != one.steps())
        lines_.fail_with(channel, std::to_string(one.steps()) + " values as in the first channel",
                         std::to_string(have));
    }
    check_sizes(line, one);
    read_label(label, series, words);
    append(lines_, line, reading_, one, series);
  }

  void check_sizes(std::string_view line, const Case& one) {
    const auto channels = static_cast<std::int64_t>(one.channels.size());
    const auto steps = static_cast<std::int64_t>(one.steps());
    if (header_.dimensions == 0) header_.dimensions = channels;
    if (channels != header_.dimensions)
      lines_.fail_with(line, std::to_string(header_.dimensions) + " channels", std::to_string(channels));
    if (header_.equal_length && header_.length == 0) header_.length = steps;
    if (header_.equal_length && steps != header_.length)
      lines_.fail_with(line, std::to_string(header_.length) + " values a channel", std::to_string(steps));
  }

  void read_label(std::string_view label, Series& series, std::vector<std::string>& words) const {
    if (header_.regression) {
      float target = 0;
      if (!parse_number(label, target) || !std::isfinite(target)) lines_.fail(label, "a number as target");
      series.targets.push_back(target);
    } else if (header_.labelled) {
      const auto& classes = header_.classes;
      if (label.empty() || (!classes.empty() && std::find(classes.begin(), classes.end(), label) == classes.end()))
        lines_.fail(label, "a class that @classLabel lists");
      words.emplace_back(label);
    }
  }

  LineReader lines_;
  SeriesReading reading_;
  TsHeader header_;
};

}  // namespace

std::int64_t Series::longest() const {
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < size(); ++i) most = std::max(most, length(i));
  return most;
}

Series read_ucr(const std::string& path, const SeriesReading& reading) {
  const std::vector<std::byte> file = io::read_file(path);
  LineReader lines("ucr", path, as_text(file));
  Series series;
  series.starts = {0};
  std::vector<std::string> words;
  std::string_view line;
  std::size_t width = 0;
  char separator = '\t';
  while (lines.next(line)) {
    if (trimmed(line).empty()) continue;
    if (words.empty() && line.find('\t') == std::string_view::npos) separator = ',';
    std::string_view rest = line, label;
    if (!cut(rest, separator, label)) lines.fail(line, "a class and values with tabs between");
    double number = 0;
    label = trimmed(label);
    if (!parse_number(label, number) || !std::isfinite(number)) lines.fail(label, "a class number");
    Case one;
    read_values(lines, rest, separator, one.channels.emplace_back());
    // Shorter series are padded in the file, so a line with fewer cells is truncated.
    if (words.empty()) width = one.steps();
    if (one.steps() != width)
      lines.fail_with(line, std::to_string(width) + " values as in the first line", std::to_string(one.steps()));
    words.push_back(detail::plain_word(label));
    append(lines, line, reading, one, series);
  }
  if (words.empty()) lines.fail_at_end("at least one series");
  series.labels = detail::number_words(words, words, series.classes);
  return series;
}

Series read_ts(const std::string& path, const SeriesReading& reading) {
  const std::vector<std::byte> file = io::read_file(path);
  return TsReader(path, as_text(file), reading).read();
}

}  // namespace samebytes::data
