#include "cli/run_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "cli/option_table.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

constexpr const char* kWorkload = "workload";

struct Pair {
  std::string key;
  YAML::Node value;
  int line;
};

// The options that a file may hold.
std::vector<const OptionRow*> rows_of(Verb verb) {
  std::vector<const OptionRow*> rows;
  for (const OptionRow& row : option_table())
    if (row.verbs.has(verb) && row.in_run_file && !row.is_positional()) rows.push_back(&row);
  return rows;
}

const OptionRow* find(Verb verb, const std::string& key) {
  const OptionRow* const row = find_row(verb, key);
  return row != nullptr && row->in_run_file && !row->is_positional() ? row : nullptr;
}

bool is_section(const std::string& key) {
  return std::find(std::begin(group::all), std::end(group::all), key) != std::end(group::all);
}

bool is_quoted(const YAML::Node& node) { return node.Tag() == "!"; }

std::string text_of(const YAML::Node& node) {
  if (node.IsMap()) return "a section";
  if (node.IsSequence()) return "a list";
  if (node.IsNull()) return "nothing";
  return is_quoted(node) ? fmt::format("the text \"{}\"", node.Scalar()) : node.Scalar();
}

// What a value must be, whatever its size; empty where it is that.
std::string type_fault(const OptionRow& row, const YAML::Node& node) {
  bool flag = false;
  const bool is_bare = node.IsScalar() && !is_quoted(node);
  const bool is_right = row.kind == ValueKind::flag   ? is_bare && YAML::convert<bool>::decode(node, flag)
                        : row.kind == ValueKind::text ? node.IsScalar()
                                                      : is_bare;
  if (is_right) return {};
  const char* const one = row.kind == ValueKind::flag     ? "true or false"
                          : row.kind == ValueKind::whole  ? "a whole number"
                          : row.kind == ValueKind::number ? "a number"
                                                          : "a text";
  return fmt::format("expected {}{}, got {}", one, row.takes_many ? " or a list of them" : "", text_of(node));
}

class Reader {
 public:
  Reader(Verb verb, std::string path) : verb_(verb), path_(std::move(path)) {}

  // The words of every option that `given` does not hold already.
  void read(const std::set<std::string>& given);

  std::vector<std::string> options, workloads, left_out;

 private:
  [[noreturn]] void refuse(int line, const std::string& message) const {
    throw UsageError(fmt::format("{}:{}: {}", path_, line, message));
  }
  std::vector<Pair> pairs() const;
  void add_pairs(const YAML::Node& map, bool is_inside, std::vector<Pair>& list) const;
  [[noreturn]] void refuse_key(const std::string& key, int line) const;
  std::vector<std::string> words_of(const Pair& pair, const OptionRow& row) const;
  std::vector<std::string> workload_names(const Pair& pair) const;

  const Verb verb_;
  const std::string path_;
};

std::vector<Pair> Reader::pairs() const {
  std::ifstream file(path_);
  if (!file) throw UsageError(fmt::format("{} cannot be read: {}", path_, std::strerror(errno)));
  std::vector<Pair> list;
  try {
    const YAML::Node root = YAML::Load(file);
    if (root.IsNull()) return list;
    if (!root.IsMap())
      refuse(root.Mark().line + 1, "a run file is lines of `option: value`, this one is " + text_of(root));
    add_pairs(root, false, list);
  } catch (const YAML::Exception& error) {
    refuse(std::max(error.mark.line, 0) + 1, "this is not YAML: " + error.msg);
  }
  return list;
}

void Reader::add_pairs(const YAML::Node& map, bool is_inside, std::vector<Pair>& list) const {
  for (const auto& entry : map) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) refuse(line, "expected the name of an option, got " + text_of(entry.first));
    std::string key = entry.first.Scalar();
    std::replace(key.begin(), key.end(), '_', '-');
    if (entry.second.IsMap() && !is_inside && is_section(key)) {
      add_pairs(entry.second, true, list);
      continue;
    }
    for (const Verb verb : {verb_, Verb::train})  // an alias stands for its option
      if (const OptionRow* const row = find(verb, key); row != nullptr) {
        key = row->name();
        break;
      }
    const auto same = std::find_if(list.begin(), list.end(), [&](const Pair& pair) { return pair.key == key; });
    if (same != list.end()) refuse(line, fmt::format("{} was given before, in line {}", key, same->line));
    list.push_back({key, entry.second, line});
  }
}

void Reader::refuse_key(const std::string& key, int line) const {
  if (is_section(key)) refuse(line, fmt::format("{} is a section; options stand indented below it", key));
  std::vector<std::string> names(std::begin(group::all), std::end(group::all));
  names.emplace_back(kWorkload);
  for (const Verb verb : {verb_, Verb::train})
    for (const OptionRow* row : rows_of(verb)) names.push_back(row->name());
  const std::string& verb = row_of(verb_).name;
  refuse(line, fmt::format("{} has no option {}{}; `samebytes {} --help` lists them", verb, key, or_nearest(key, names),
                           verb));
}

std::vector<std::string> Reader::words_of(const Pair& pair, const OptionRow& row) const {
  std::vector<std::string> texts;
  const bool is_list = pair.value.IsSequence() && row.takes_many;
  const auto add = [&](const YAML::Node& node) {
    std::string fault = type_fault(row, node);
    if (fault.empty() && row.kind != ValueKind::flag) fault = row.fault(node.Scalar());
    if (!fault.empty()) refuse(pair.line, fmt::format("{}: {}", pair.key, fault));
    texts.push_back(node.Scalar());
  };
  if (is_list)
    for (const auto& node : pair.value) add(node);
  else
    add(pair.value);
  if (row.kind == ValueKind::flag) return {row.flag + (pair.value.as<bool>() ? "=true" : "=false")};
  if (texts.size() == 1 && texts[0].empty()) return {};  // the default
  return {fmt::format("{}={}", row.flag, fmt::join(texts, ","))};
}

std::vector<std::string> Reader::workload_names(const Pair& pair) const {
  std::vector<std::string> names;
  if (pair.value.IsScalar()) names.push_back(pair.value.Scalar());
  if (pair.value.IsSequence())
    for (const YAML::Node& node : pair.value) {
      if (!node.IsScalar())
        refuse(pair.line, fmt::format("workload: expected names, got {} among them", text_of(node)));
      names.push_back(node.Scalar());
    }
  if (names.empty()) refuse(pair.line, fmt::format("workload: expected a name, got {}", text_of(pair.value)));
  return names;
}

void Reader::read(const std::set<std::string>& given) {
  for (const Pair& pair : pairs()) {
    if (pair.key == kWorkload) {
      workloads = workload_names(pair);
      continue;
    }
    const OptionRow* const own = find(verb_, pair.key);
    const OptionRow* const row = own != nullptr ? own : find(Verb::train, pair.key);
    if (row == nullptr) refuse_key(pair.key, pair.line);
    if (pair.value.IsNull()) continue;  // the default
    const std::vector<std::string> words = words_of(pair, *row);
    if (own == nullptr)
      left_out.push_back(pair.key);
    else if (given.count(pair.key) == 0)
      options.insert(options.end(), words.begin(), words.end());
  }
}

}  // namespace

bool is_run_file_name(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

RunFile expand_run_file(Verb verb, const std::vector<std::string>& words) {
  RunFile result{{}, words, {}};
  if (!kWorkloadVerbs.has(verb)) return result;
  std::set<std::string> given;
  std::size_t place = 0;  // of the file's name; the verb stands at 0
  bool has_workload = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--")) {
      const std::string name = word.substr(2, word.find('=') == std::string::npos ? word.npos : word.find('=') - 2);
      given.insert(name);
      const OptionRow* const row = find_row(verb, name);
      if (row != nullptr && row->kind != ValueKind::flag && word.find('=') == std::string::npos) ++i;
    } else if (!is_run_file_name(word)) {
      has_workload = true;
    } else if (place != 0) {
      throw UsageError(fmt::format("expected one run file, got {} and {}", words[place], word));
    } else {
      place = i;
    }
  }
  if (place == 0) return result;

  Reader reader(verb, words[place]);
  reader.read(given);
  if (reader.workloads.empty() && !has_workload)
    throw UsageError(fmt::format("{} lacks `workload: NAME`, which says what to {}", words[place], words[0]));
  result.path = words[place];
  result.left_out = reader.left_out;
  result.words = {words[0]};
  if (!has_workload) result.words.insert(result.words.end(), reader.workloads.begin(), reader.workloads.end());
  result.words.insert(result.words.end(), reader.options.begin(), reader.options.end());
  for (std::size_t i = 1; i < words.size(); ++i)
    if (i != place) result.words.push_back(words[i]);
  return result;
}

std::string to_run_file(const CLI::App& parsed, Verb verb) {
  const auto scalar = [](const std::string& text) {
    YAML::Emitter out;
    out << text;
    return std::string(out.c_str());
  };
  const auto list = [&](const std::vector<std::string>& texts) {
    if (texts.size() == 1) return scalar(texts[0]);
    std::string line;
    for (const std::string& text : texts) line += (line.empty() ? "[" : ", ") + scalar(text);
    return line + "]";
  };
  std::string text =
      fmt::format("# For `samebytes {} FILE.yaml`. What stands behind # has its default.\n", row_of(verb).name);
  std::string rest;
  if (const CLI::Option* workload = parsed.get_option(kWorkload); workload->count() > 0)
    text += fmt::format("{}: {}\n", kWorkload, list(workload->results()));
  for (const OptionRow* row : rows_of(verb)) {
    const bool is_flag = row->kind == ValueKind::flag;
    if (const CLI::Option* option = parsed.get_option(row->flag); option->count() > 0) {
      text += fmt::format("{}: {}\n", row->name(), is_flag ? option->as<std::string>() : list(option->results()));
      continue;
    }
    std::string about = row->help;
    std::replace(about.begin(), about.end(), '\n', ' ');
    rest += fmt::format("# {}: {}  # {}\n", row->name(), is_flag ? "true" : row->value, about);
  }
  return text + rest;
}

}  // namespace samebytes::cli
