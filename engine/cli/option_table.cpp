#include "cli/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <type_traits>

#include "cli/text.h"
#include "samebytes/budget.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

constexpr std::size_t kHelpWidth = 94;  // beside the column of the flags
constexpr const char* kUnset = "the default";

template <class T>
struct Inside {
  using type = T;
  static constexpr bool is_optional = false, is_vector = false;
};
template <class T>
struct Inside<std::optional<T>> : Inside<T> {
  static constexpr bool is_optional = true;
};
template <class T>
struct Inside<std::vector<T>> : Inside<T> {
  static constexpr bool is_vector = true;
};
template <class T>
constexpr bool is_bytes = std::is_same_v<T, std::optional<std::size_t>>;

template <class T>
ValueKind kind_of() {
  using Value = typename Inside<T>::type;
  if constexpr (std::is_same_v<Value, bool>) return ValueKind::flag;
  if constexpr (std::is_integral_v<Value> && !is_bytes<T>) return ValueKind::whole;
  if constexpr (std::is_floating_point_v<Value>) return ValueKind::number;
  return ValueKind::text;
}

template <class T>
std::string text_of(const T& member) {
  if constexpr (std::is_same_v<T, Written>)
    return member.text();
  else if constexpr (std::is_same_v<T, bool>)
    return member ? "on" : "off";
  else if constexpr (Inside<T>::is_optional)
    return member ? fmt::format("{}", *member) : kUnset;
  else if constexpr (Inside<T>::is_vector)
    return fmt::format("{}", fmt::join(member, ","));
  else
    return fmt::format("{}", member);
}

template <class T>
Json json_of(const T& member) {
  if constexpr (std::is_same_v<T, Written>)
    return member.json();
  else if constexpr (Inside<T>::is_optional)
    return member ? Json(*member) : Json();
  else
    return Json(member);
}

std::string bytes_fault(const std::string& text) {
  try {
    static_cast<void>(parse_bytes(text));
    return {};
  } catch (const ArgumentError& error) {
    return error.what();
  }
}

std::string wrapped_help(const std::string& text) {
  std::string result;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const bool fits = column + 1 + end - begin <= kHelpWidth;
    if (!result.empty()) result += fits ? ' ' : '\n';
    column = fits && column > 0 ? column + 1 + end - begin : end - begin;
    result.append(text, begin, end - begin);
    begin = end + 1;
  }
  return result;
}

// The help text with the choices in front and the default at the end, where it says neither.
std::string whole_help(const OptionRow& row) {
  std::string text = row.help;
  const bool says_choices = std::all_of(row.choices.begin(), row.choices.end(),
                                        [&](const auto& choice) { return text.find(choice) != text.npos; });
  if (!says_choices) text = list_text(row.choices) + ": " + text;
  if (!row.also.empty()) text += "; also " + list_text(row.also);
  if (!row.default_text.empty() && text.find("default:") == text.npos) text += "; default: " + row.default_text;
  return wrapped_help(text);
}

struct RowCollector {
  std::vector<OptionRow> rows;
  template <class T>
  void operator()(const T& member, OptionRow row) {
    if (const std::size_t blank = row.flag.find(' '); blank != row.flag.npos) {
      row.value = row.flag.substr(blank + 1);
      row.flag.resize(blank);
    }
    row.kind = kind_of<T>();
    row.takes_many = Inside<T>::is_vector;
    if (!Inside<T>::is_optional && row.kind != ValueKind::flag && text_of(member) != kUnset)
      row.default_text = text_of(member);
    if (is_bytes<T>) row.check = bytes_fault;
    if (std::is_same_v<T, std::uint64_t>) row.check = natural();
    row.help = whole_help(row);
    rows.push_back(std::move(row));
  }
};

// The next row of the table, which is what the visited row was completed to.
class TableWalk {
 protected:
  const OptionRow& next() { return option_table()[next_++]; }

 private:
  std::size_t next_ = 0;
};

class Binder : TableWalk {
 public:
  Binder(CLI::App& app, Verb verb) : app_(app), verb_(verb) {}
  template <class T>
  void operator()(T& member, const OptionRow&) {
    const OptionRow& row = next();
    if (!row.verbs.has(verb_)) return;
    if constexpr (std::is_same_v<T, bool>)
      finish(*app_.add_flag(row.flag, member, row.help), row);
    else if constexpr (is_bytes<T>)
      finish(*app_.add_option_function<std::string>(
                 row.flag, [&member](const std::string& text) { member = parse_bytes(text); }, row.help),
             row);
    else
      finish(*app_.add_option(row.flag, member, row.help), row);
  }
  void operator()(const Written& member, const OptionRow&) {
    const OptionRow& row = next();
    if (row.verbs.has(verb_)) finish(*app_.add_option_function<std::string>(row.flag, member.read, row.help), row);
  }

 private:
  void finish(CLI::Option& option, const OptionRow& row) {
    std::string heading(row.group);
    heading[0] = static_cast<char>(std::toupper(heading[0]));
    option.group(heading);
    if (row.kind == ValueKind::flag) return;
    option.option_text(row.value)->required(row.is_required);
    option.check([&row](const std::string& text) { return row.fault(text); });
    if (row.takes_many && !row.is_positional()) option.delimiter(',');
    if (row.takes_many && row.is_required) option.expected(1);
  }

  CLI::App& app_;
  Verb verb_;
};

struct Value {
  const OptionRow& row;
  std::string text;
  Json json;
};

class ValueCollector : TableWalk {
 public:
  std::vector<Value> values;
  template <class T>
  void operator()(const T& member, const OptionRow&) {
    values.push_back({next(), text_of(member), json_of(member)});
  }
};

std::vector<Value> values_of(Options options) {
  ValueCollector collector;
  describe(collector, options);
  return std::move(collector.values);
}

// Calls use(value, whether it is another one than the default) for the options of train.
template <class Use>
void for_each_value(const Options& options, const Use& use) {
  const std::vector<Value> values = values_of(options), defaults = values_of({});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].row.verbs.has(Verb::train)) use(values[i], values[i].text != defaults[i].text);
}

std::string folder_fault(std::filesystem::path path) {
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) path = path.parent_path();
  if (path.empty()) path = ".";
  if (!std::filesystem::is_directory(path, ignored)) return path.string() + " is no folder";
  return access(path.c_str(), W_OK) == 0 ? "" : "the folder " + path.string() + " cannot be written to";
}

std::string file_fault(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return "this is a folder; expected the name of a file";
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))  // /dev/stdout
    return access(path.c_str(), W_OK) == 0 ? "" : "this cannot be written to";
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!std::filesystem::exists(folder, ignored)) return "there is no folder " + folder.string();
  return folder_fault(folder);
}

struct FileRemover {
  template <class T>
  void operator()(T& member, const OptionRow& row) const {
    if (!row.in_rehearsal) member = T{};
  }
  void operator()(const Written&, const OptionRow&) const {}
};

template <class T>
std::optional<T> parsed(const std::string& text) {
  if constexpr (std::is_same_v<T, double>) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && std::isfinite(value) ? std::optional(value) : std::nullopt;
  } else {
    T value = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
  }
}

std::string unless(bool is_right, const std::string& expected, const std::string& text) {
  return is_right ? "" : "expected " + expected + ", got " + shown(text);
}

// "a whole number from 1 to 1024", "a whole number, at least 1" where nobody meets the bound above.
template <class T>
std::string range_text(const char* what, T low, T high, bool is_above) {
  constexpr T kFar = 1 << 20;
  if (high < kFar) return fmt::format("{} from {} to {}", what, low, high);
  return fmt::format("{}, at least {}", what, low) + (is_above ? fmt::format(" and at most {}", high) : "");
}

Check at_least(double low, const char* expected) {
  return [=](const std::string& text) {
    const auto value = parsed<double>(text);
    return unless(value && *value >= low, expected, text);
  };
}

}  // namespace

Check whole(std::int64_t low, std::int64_t high) {
  return [=](const std::string& text) {
    const auto value = parsed<std::int64_t>(text);
    return unless(value && *value >= low && *value <= high,
                  range_text("a whole number", low, high, value && *value > high), text);
  };
}

Check natural() {
  return [](const std::string& text) {
    return unless(parsed<std::uint64_t>(text).has_value(), "a whole number, at least 0", text);
  };
}

Check number(double low, double high) {
  return [=](const std::string& text) {
    const auto value = parsed<double>(text);
    return unless(value && *value >= low && *value <= high, range_text("a number", low, high, value && *value > high),
                  text);
  };
}

Check above_zero() { return at_least(std::numeric_limits<double>::denorm_min(), "a number above 0"); }
Check at_least_zero() { return at_least(0, "a number, at least 0"); }

Check identifier() {
  return [](const std::string& text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const bool fits = !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
      return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
    });
    return unless(fits, "a name of letters, digits and _ that begins with a letter", text);
  };
}

Check or_word(std::string_view word, Check check) {
  return [word = std::string(word), check = std::move(check)](const std::string& text) {
    std::string fault = text == word ? "" : check(text);
    constexpr std::string_view kExpected = "expected ";
    if (!fault.empty()) fault.insert(kExpected.size(), word + " or ");
    return fault;
  };
}

std::vector<std::string> OptionRow::flags() const {
  std::vector<std::string> result = {flag};
  result.insert(result.end(), also.begin(), also.end());
  return result;
}

bool OptionRow::has_name(std::string_view word) const {
  if (word.starts_with("--")) word.remove_prefix(2);
  std::string dashed(word);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return name() == dashed || std::find(also.begin(), also.end(), "--" + dashed) != also.end();
}

std::string OptionRow::log_name() const {
  std::string result = name();
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

std::string OptionRow::fault(const std::string& text) const {
  if (!choices.empty())
    return unless(std::find(choices.begin(), choices.end(), text) != choices.end(),
                  (choices.size() > 2 ? "one of " : "") + list_text(choices), text + or_nearest(text, choices));
  if (check) return check(text);
  if (kind == ValueKind::whole)
    return unless(parsed<std::int64_t>(text) || parsed<std::uint64_t>(text), "a whole number", text);
  if (kind == ValueKind::number) return unless(parsed<double>(text).has_value(), "a number", text);
  return {};
}

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> table = [] {
    Options defaults;
    RowCollector collector;
    describe(collector, defaults);
    return std::move(collector.rows);
  }();
  return table;
}

const OptionRow* find_row(Verb verb, std::string_view name) {
  for (const OptionRow& row : option_table())
    if (row.verbs.has(verb) && row.has_name(name)) return &row;
  return nullptr;
}

void add_options(CLI::App& app, Verb verb, Options& options) {
  Binder binder(app, verb);
  describe(binder, options);
}

std::string value_of(const OptionRow& row, const Options& options) {
  for (const Value& value : values_of(options))
    if (&value.row == &row) return value.text;
  return {};
}

std::vector<std::pair<std::string, std::string>> values_to_agree_on(const Options& options) {
  std::vector<std::pair<std::string, std::string>> result;
  for_each_value(options, [&](const Value& value, bool is_given) {
    const Resume resume = value.row.resume;
    if (resume == Resume::must_agree || (resume == Resume::must_agree_if_given && is_given))
      result.emplace_back(value.row.flag, value.text);
  });
  return result;
}

Json values_to_log(const Options& options) {
  Json result = Json::object();
  for_each_value(options, [&](const Value& value, bool is_given) {
    if (value.row.log == Log::always || (value.row.log == Log::if_given && is_given))
      result[value.row.log_name()] = value.json;
  });
  return result;
}

void check_outputs(const Options& options) {
  for (const auto& [row, text, json] : values_of(options)) {
    if (!row.verbs.has(options.verb) || row.writes == Writes::nothing || text.empty()) continue;
    const std::string fault = row.writes == Writes::file ? file_fault(text) : folder_fault(text);
    if (!fault.empty()) throw Error(fmt::format("{} {}: {}", row.flag, text, fault));
  }
}

Options without_files(const Options& options) {
  Options result = options;
  FileRemover remover;
  describe(remover, result);
  return result;
}

}  // namespace samebytes::cli
