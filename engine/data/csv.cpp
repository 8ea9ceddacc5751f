#include "samebytes/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/io_error.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

constexpr float kExactFloat = 16777216.0f;  // integers up to here are exact in f32

struct Cell {
  std::string text;  // without quotes and outer blanks
  std::size_t offset = 0;
};

// Walks over text line by line; a quoted field may contain separators and line ends.
class Lines {
 public:
  Lines(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  bool at_end() const { return place_ >= text_.size(); }
  std::size_t place() const { return place_; }
  int line() const { return line_; }  // of the row read last, from 1
  std::string_view peek() const { return text_.substr(place_, text_.find('\n', place_) - place_); }
  void skip() {
    const std::size_t end = text_.find('\n', place_);
    place_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++lines_;
  }

  // The next line that is not blank, cut into cells; false at the end.
  bool next(char separator, std::vector<Cell>& cells) {
    cells.clear();
    while (!at_end() && is_blank(peek())) skip();
    if (at_end()) return false;
    line_ = lines_ + 1;
    while (true) {
      cells.emplace_back();
      const bool more = read_cell(separator, cells.back());
      if (!more) return true;
    }
  }

  [[noreturn]] void fail(std::size_t offset, const std::string& expected, const std::string& found) const {
    detail::throw_io("csv", std::string(name_), static_cast<std::int64_t>(offset),
                     expected + " in line " + std::to_string(line_), found);
  }

 private:
  static bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r") == std::string_view::npos; }

  // Reads one cell and the separator or line end after it; true if another cell follows.
  bool read_cell(char separator, Cell& cell) {
    while (place_ < text_.size() && text_[place_] == ' ' && separator != ' ') ++place_;
    cell.offset = place_;
    if (place_ < text_.size() && text_[place_] == '"') {
      for (++place_;; ++place_) {
        if (place_ >= text_.size())
          fail(cell.offset, "a closing quote for the field that begins", "the end of the file");
        if (text_[place_] == '"') {
          if (place_ + 1 < text_.size() && text_[place_ + 1] == '"') {
            ++place_;
          } else {
            ++place_;
            break;
          }
        }
        if (text_[place_] == '\n') ++lines_;
        cell.text += text_[place_];
      }
    }
    const std::size_t start = place_;
    while (place_ < text_.size() && text_[place_] != separator && text_[place_] != '\n') ++place_;
    std::string_view rest = text_.substr(start, place_ - start);
    rest = rest.substr(0, rest.find_last_not_of(" \t\r") + 1);
    cell.text += rest;
    if (place_ >= text_.size()) return false;
    const bool more = text_[place_++] == separator;
    if (!more) ++lines_;
    return more;
  }

  std::string_view name_, text_;
  std::size_t place_ = 0;
  int lines_ = 0, line_ = 0;
};

char find_separator(std::string_view line) {
  for (char candidate : {'\t', ',', ';', ' '})
    if (line.find(candidate) != std::string_view::npos) return candidate;
  return ',';
}

template <class T>
bool parse(std::string_view text, T& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string in_quotes(const std::string& text) {
  constexpr std::size_t kShown = 40;
  if (text.empty()) return "an empty cell";
  std::string result(1, '\'');
  return result.append(text, 0, kShown).append(1, '\'');
}

// Index of a column given by name or number.
std::size_t find_column(std::string_view file, const std::string& wanted, const std::vector<Cell>& header, bool named,
                        std::size_t count) {
  if (named)
    for (std::size_t i = 0; i < count; ++i)
      if (header[i].text == wanted) return i;
  long long number = 0;
  if (parse(wanted, number)) {
    if (number < 0) number += static_cast<long long>(count);
    if (number >= 0 && number < static_cast<long long>(count)) return static_cast<std::size_t>(number);
  }
  std::string there;
  for (std::size_t i = 0; named && i < std::min<std::size_t>(count, 12); ++i)
    there += (i ? ", " : " named ") + header[i].text;
  throw ArgumentError("csv: " + std::string(file) + ": no column '" + wanted + "'; there are " + std::to_string(count) +
                      there + (named && count > 12 ? ", ..." : ""));
}

// Replaces words by their indices in the sorted list of words.
void number_words(const std::vector<Cell>& words, Table& table, std::vector<std::int32_t>& labels) {
  for (const Cell& word : words) table.classes.push_back(word.text);
  std::sort(table.classes.begin(), table.classes.end());
  table.classes.erase(std::unique(table.classes.begin(), table.classes.end()), table.classes.end());
  for (const Cell& word : words)
    labels.push_back(static_cast<std::int32_t>(std::lower_bound(table.classes.begin(), table.classes.end(), word.text) -
                                               table.classes.begin()));
}

}  // namespace

Table parse_csv(std::string_view name, std::span<const std::byte> bytes, const CsvOptions& options) {
  if (options.label_dtype != i32 && options.label_dtype != f32)
    throw ArgumentError("csv: label_dtype must be i32 or f32, got " + std::string(name_of(options.label_dtype)));
  Lines lines(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (int i = 0; i < options.skip_lines; ++i) lines.skip();
  if (lines.at_end()) lines.fail(lines.place(), "a table", "the end of the file");
  const char separator = options.separator != '\0' ? options.separator : find_separator(lines.peek());

  std::vector<Cell> cells, header, words;
  if (options.header) lines.next(separator, header);
  if (!lines.next(separator, cells)) lines.fail(lines.place(), "at least one row", "the end of the file");

  const std::size_t width = cells.size();
  enum class Use : char { value, label, dropped };
  std::vector<Use> uses(width, Use::value);
  if (options.header && header.size() != width)
    lines.fail(cells.front().offset, std::to_string(header.size()) + " cells as the header has", std::to_string(width));
  for (const std::string& column : options.drop)
    uses[find_column(name, column, header, options.header, width)] = Use::dropped;
  const bool labelled = !options.label.empty();
  if (labelled) uses[find_column(name, options.label, header, options.header, width)] = Use::label;

  Table table;
  const auto columns = static_cast<std::int64_t>(std::count(uses.begin(), uses.end(), Use::value));
  for (std::size_t i = 0; options.header && i < width; ++i)
    if (uses[i] == Use::value) table.columns.push_back(header[i].text);

  std::vector<float> values, quantities;
  std::vector<std::int32_t> labels;
  const bool classes = labelled && options.label_dtype == i32;
  do {
    if (cells.size() != width)
      lines.fail(cells.front().offset, std::to_string(width) + " cells as in the first row",
                 std::to_string(cells.size()));
    for (std::size_t i = 0; i < width; ++i) {
      Cell& cell = cells[i];
      if (uses[i] == Use::dropped) continue;
      if (uses[i] == Use::label && classes) {
        std::int32_t label = 0;
        // If one cell is a word, all are words: then there are fewer labels than cells kept as words.
        if (labels.size() == words.size()) {
          if (float number = 0; parse(cell.text, label)) {
            labels.push_back(label);
          } else if (parse(cell.text, number)) {
            if (number != std::floor(number) || std::fabs(number) > kExactFloat)
              lines.fail(cell.offset, "a class number (or ask for label_dtype f32)", in_quotes(cell.text));
            labels.push_back(static_cast<std::int32_t>(number));
          } else if (options.classes > 0 || cell.text.empty()) {
            lines.fail(cell.offset, "a label", in_quotes(cell.text));
          }
        }
        if (options.classes > 0 && (labels.back() < 0 || labels.back() >= options.classes))
          lines.fail(cell.offset, "a label from 0 to " + std::to_string(options.classes - 1), in_quotes(cell.text));
        words.push_back(std::move(cell));
        continue;
      }
      float number = 0;
      if (cell.text.empty() && options.empty_value && uses[i] == Use::value)
        number = *options.empty_value;
      else if (!parse(cell.text, number))
        lines.fail(cell.offset, "a number", in_quotes(cell.text));
      (uses[i] == Use::value ? values : quantities).push_back(number);
    }
  } while (lines.next(separator, cells));

  if (classes && labels.size() != words.size()) {
    labels.clear();
    number_words(words, table, labels);
  }
  const std::int64_t rows = columns > 0 ? static_cast<std::int64_t>(values.size()) / columns
                                        : static_cast<std::int64_t>(classes ? labels.size() : quantities.size());
  table.values = HostArray(Shape{rows, columns}, values);
  if (classes) table.labels = HostArray(Shape{rows}, labels);
  if (labelled && !classes) table.labels = HostArray(Shape{rows}, quantities);
  return table;
}

Table read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(path, io::read_file(path), options);
}

}  // namespace samebytes::data
