#include "cli/run_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "cli/option_verbs.h"
#include "cli/text.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr const char* kWorkload = "workload";
constexpr const char* kPrintConfig = "print-config";
const std::vector<std::string> kSections = {"run",      "model",     "data",   "loader", "training",   "optimizer",
                                            "schedule", "precision", "memory", "device", "checkpoint", "output"};

struct Pair {
  std::string key;
  YAML::Node value;
  int line;
};

bool is_option(const CLI::Option& option) { return !option.get_lnames().empty(); }
bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }
bool takes_many(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

// The options that a file may hold.
std::vector<const CLI::Option*> options_of(const CLI::App& verb) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : verb.get_options())
    if (is_option(*option) && !option->check_lname("help") && !option->check_lname(kPrintConfig))
      options.push_back(option);
  return options;
}

const CLI::Option* find(const CLI::App& verb, const std::string& key) {
  for (const CLI::Option* option : options_of(verb))
    if (option->check_lname(key)) return option;
  return nullptr;
}

// A verb by itself, to be asked about its options.
class Questions {
 public:
  explicit Questions(AddVerb add) : app_("", "samebytes"), verb_(add(app_, ignored_)) {
    for (CLI::Option* option : verb_->get_options()) option->required(false);
  }
  const CLI::App& verb() const { return *verb_; }
  // Why the verb refuses these words; empty where it does not.
  std::string refusal(const std::vector<std::string>& words) {
    std::vector<std::string> all(words.rbegin(), words.rend());  // CLI11 takes the last one first
    all.push_back(verb_->get_name());
    try {
      app_.parse(all);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return {};
  }

 private:
  Options ignored_;
  CLI::App app_;
  CLI::App* verb_;
};

// "INT" of "INT:INT in [1 - 1024]"
std::string type_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

bool is_whole(const std::string& text) {
  long long signed_value = 0;
  unsigned long long value = 0;
  const char* const end = text.data() + text.size();
  const auto a = std::from_chars(text.data(), end, signed_value);
  const auto b = std::from_chars(text.data(), end, value);
  return (a.ec == std::errc() && a.ptr == end) || (b.ec == std::errc() && b.ptr == end);
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

bool is_quoted(const YAML::Node& node) { return node.Tag() == "!"; }

std::string wanted(const CLI::Option& option) {
  if (is_flag(option)) return "true or false";
  const std::string type = type_of(option);
  const std::string one = type == "INT" || type == "UINT" ? "a whole number" : type == "FLOAT" ? "a number" : "a text";
  return takes_many(option) ? one + " or a list of them" : one;
}

std::string came(const YAML::Node& node) {
  if (node.IsMap()) return "a section";
  if (node.IsSequence()) return "a list";
  if (node.IsNull()) return "nothing";
  return is_quoted(node) ? fmt::format("the text \"{}\"", node.Scalar()) : node.Scalar();
}

bool fits(const CLI::Option& option, const YAML::Node& node) {
  if (!node.IsScalar()) return false;
  bool flag = false;
  if (is_flag(option)) return !is_quoted(node) && YAML::convert<bool>::decode(node, flag);
  const std::string type = type_of(option);
  if (type == "INT" || type == "UINT") return !is_quoted(node) && is_whole(node.Scalar());
  if (type == "FLOAT") return !is_quoted(node) && is_number(node.Scalar());
  return true;
}

class Reader {
 public:
  Reader(AddVerb add, std::string path) : add_(add), questions_(add), train_(add_train), path_(std::move(path)) {}

  // The words of every option that `given` does not hold already.
  void read(const std::set<std::string>& given);

  std::vector<std::string> options, workloads, left_out;

 private:
  [[noreturn]] void refuse(int line, const std::string& message) const {
    throw UsageError(fmt::format("{}:{}: {}", path_, line, message));
  }
  std::vector<Pair> pairs() const;
  void add_pairs(const YAML::Node& map, bool is_section, std::vector<Pair>& list) const;
  [[noreturn]] void refuse_key(const std::string& key, int line) const;
  std::vector<std::string> words_of(const Pair& pair, const CLI::Option& option) const;
  std::vector<std::string> workload_names(const Pair& pair) const;

  AddVerb add_;
  Questions questions_, train_;
  std::string path_;
};

std::vector<Pair> Reader::pairs() const {
  std::ifstream file(path_);
  if (!file) throw UsageError(fmt::format("{} cannot be read: {}", path_, std::strerror(errno)));
  std::vector<Pair> list;
  try {
    const YAML::Node root = YAML::Load(file);
    if (root.IsNull()) return list;
    if (!root.IsMap()) refuse(root.Mark().line + 1, "a run file is lines of `option: value`, " + came(root) + " came");
    add_pairs(root, false, list);
  } catch (const YAML::Exception& error) {
    refuse(std::max(error.mark.line, 0) + 1, "this is no YAML: " + error.msg);
  }
  return list;
}

void Reader::add_pairs(const YAML::Node& map, bool is_section, std::vector<Pair>& list) const {
  for (const auto& entry : map) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) refuse(line, "the name of an option must come first, " + came(entry.first) + " came");
    std::string key = entry.first.Scalar();
    std::replace(key.begin(), key.end(), '_', '-');
    if (entry.second.IsMap() && !is_section && std::find(kSections.begin(), kSections.end(), key) != kSections.end()) {
      add_pairs(entry.second, true, list);
      continue;
    }
    const auto same = std::find_if(list.begin(), list.end(), [&](const Pair& pair) { return pair.key == key; });
    if (same != list.end()) refuse(line, fmt::format("{} was given before, in line {}", key, same->line));
    list.push_back({key, entry.second, line});
  }
}

void Reader::refuse_key(const std::string& key, int line) const {
  if (std::find(kSections.begin(), kSections.end(), key) != kSections.end())
    refuse(line, fmt::format("{} is a section, options stand indented below it", key));
  std::vector<std::string> names = kSections;
  names.emplace_back(kWorkload);
  for (const CLI::App* verb : {&questions_.verb(), &train_.verb()})
    for (const CLI::Option* option : options_of(*verb)) names.push_back(option->get_lnames().front());
  const std::string near = nearest_word(key, names);
  refuse(line, fmt::format("{} has no option {}{}; `samebytes {} --help` lists them", questions_.verb().get_name(), key,
                           near.empty() ? "" : ", did you mean " + near + "?", questions_.verb().get_name()));
}

std::vector<std::string> Reader::words_of(const Pair& pair, const CLI::Option& option) const {
  std::vector<std::string> texts;
  const bool is_list = pair.value.IsSequence() && takes_many(option);
  const auto check = [&](const YAML::Node& node) {
    if (!fits(option, node))
      refuse(pair.line, fmt::format("{} wants {}, {} came", pair.key, wanted(option), came(node)));
    texts.push_back(node.Scalar());
  };
  if (is_list)
    for (const auto& node : pair.value) check(node);
  else
    check(pair.value);
  const std::string name = "--" + option.get_lnames().front();
  if (is_flag(option)) return {name + (pair.value.as<bool>() ? "=true" : "=false")};
  if (!is_list) return texts.front().empty() ? std::vector<std::string>{name, ""} : std::vector{name + "=" + texts[0]};
  if (option.get_delimiter() != '\0')
    return {fmt::format("{}={}", name, fmt::join(texts, std::string(1, option.get_delimiter())))};
  texts.insert(texts.begin(), name);
  return texts;
}

std::vector<std::string> Reader::workload_names(const Pair& pair) const {
  std::vector<std::string> names;
  if (pair.value.IsScalar()) names.push_back(pair.value.Scalar());
  if (pair.value.IsSequence())
    for (const auto& node : pair.value)
      if (node.IsScalar()) names.push_back(node.Scalar());
  if (names.empty()) refuse(pair.line, fmt::format("workload wants a name, {} came", came(pair.value)));
  return names;
}

void Reader::read(const std::set<std::string>& given) {
  for (const Pair& pair : pairs()) {
    if (pair.key == kWorkload) {
      workloads = workload_names(pair);
      continue;
    }
    const CLI::Option* const own = find(questions_.verb(), pair.key);
    const CLI::Option* const option = own != nullptr ? own : find(train_.verb(), pair.key);
    if (option == nullptr) refuse_key(pair.key, pair.line);
    if (pair.value.IsNull()) continue;  // the default
    const std::vector<std::string> words = words_of(pair, *option);
    // A fresh one each time: it remembers what it was asked.
    std::string refusal = Questions(own != nullptr ? add_ : add_train).refusal(words);
    if (!refusal.empty()) {
      const std::string prefix = "--" + pair.key + ": ";
      if (refusal.starts_with(prefix)) refusal.erase(0, prefix.size());
      // CLI11 writes out the largest double.
      if (const std::size_t at = refusal.find(" not in range 0.000000 to 1797"); at != refusal.npos)
        refusal.replace(at, refusal.npos, " is too small");
      refuse(pair.line, fmt::format("{}: {}", pair.key, refusal));
    }
    if (own == nullptr)
      left_out.push_back(pair.key);
    else if (given.count(pair.key) == 0)
      options.insert(options.end(), words.begin(), words.end());
  }
}

bool is_run_file_name(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

}  // namespace

bool takes_run_file(const CLI::App& verb) { return verb.get_option_no_throw(kWorkload) != nullptr; }

RunFile expand_run_file(AddVerb add, const std::vector<std::string>& words) {
  RunFile result{{}, words, {}};
  const Questions questions(add);
  if (!takes_run_file(questions.verb())) return result;
  std::set<std::string> given;
  std::size_t place = 0;  // of the file's name; the verb stands at 0
  bool has_workload = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--")) {
      const std::string name = word.substr(2, word.find('=') == std::string::npos ? word.npos : word.find('=') - 2);
      given.insert(name);
      const CLI::Option* const option = find(questions.verb(), name);
      if (option != nullptr && !is_flag(*option) && word.find('=') == std::string::npos) ++i;
    } else if (!is_run_file_name(word)) {
      has_workload = true;
    } else if (place != 0) {
      throw UsageError(fmt::format("one run file is enough, {} and {} came", words[place], word));
    } else {
      place = i;
    }
  }
  if (place == 0) return result;

  Reader reader(add, words[place]);
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

void add_run_file_options(CLI::App& verb, Options& options) {
  verb.add_flag(std::string("--") + kPrintConfig, options.print_config,
                "run nothing; print what was asked for as a run file, which may stand in the workload's place");
}

std::string to_run_file(const CLI::App& verb) {
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
      fmt::format("# For `samebytes {} FILE.yaml`. What stands behind # has its default.\n", verb.get_name());
  std::string rest;
  if (const CLI::Option* workload = verb.get_option_no_throw(kWorkload); workload->count() > 0)
    text += fmt::format("{}: {}\n", kWorkload, list(workload->results()));
  for (const CLI::Option* option : options_of(verb)) {
    const std::string& name = option->get_lnames().front();
    if (option->count() > 0) {
      text += fmt::format("{}: {}\n", name, is_flag(*option) ? option->as<std::string>() : list(option->results()));
      continue;
    }
    std::string about = option->get_description();
    std::replace(about.begin(), about.end(), '\n', ' ');
    rest += fmt::format("# {}: {}  # {}\n", name, is_flag(*option) ? "true" : option->get_option_text(), about);
  }
  return text + rest;
}

}  // namespace samebytes::cli
