#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "cli/option_table.h"
#include "cli/run_file.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "cli/workloads.h"
#include "workloads/onnx_file.h"

namespace samebytes::cli {
namespace {

constexpr int kHelpColumn = 26;

// Help texts as the rows say things: "Usage: samebytes train WORKLOAD [options]".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    for (const CLI::Option* option : app->get_options())
      if (option->get_positional()) name += " " + option->get_option_text();
    return "Usage: " + name + (app->get_subcommands({}).empty() ? "" : " VERB") + " [options]\n";
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional ? "" : CLI::Formatter::make_option_name(option, false);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return (option->get_positional() ? "" : " ") + option->get_option_text();
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, name, mode);
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
    return text;
  }
};

std::string help_of(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) return verb->help(app.get_name());
  return app.help();
}

Parsed wrong(const CLI::App& app, const std::string& verb, const std::string& message) {
  const std::string command = app.get_name() + (verb.empty() ? "" : " " + verb);
  return {{}, fmt::format("samebytes: {}\nTry `{} --help`.\n", message, command), kWrongUsage};
}

// "--checkpoint DIR"; "WORKLOAD" of a word that stands by itself
std::string usage_of(const OptionRow& row) {
  return row.is_positional() ? row.value : row.value.empty() ? row.flag : row.flag + " " + row.value;
}

// Throws UsageError for an option that lacks another one or excludes one that was given.
void check_companions(const CLI::App& app, Verb verb) {
  for (const OptionRow& row : option_table()) {
    if (!row.verbs.has(verb) || app.get_option(row.flag)->count() == 0) continue;
    if (!row.needs.empty() && app.get_option(row.needs)->count() == 0)
      throw UsageError(fmt::format("{} needs {}", row.flag, usage_of(*find_row(verb, row.needs))));
    if (!row.excludes.empty() && app.get_option(row.excludes)->count() > 0)
      throw UsageError(fmt::format("{} excludes {}; use one of the two", row.flag, row.excludes));
  }
}

// A word that stands by itself: a workload, a model's file, or a run file.
bool stands_alone(const std::string& word) {
  const auto& all = workloads::all();
  return is_run_file_name(word) || workloads::is_model_file(word) ||
         std::any_of(all.begin(), all.end(), [&](const WorkloadEntry& workload) { return workload.name == word; });
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0);
}

[[noreturn]] void refuse_flag(const VerbRow& verb, const std::string& flag) {
  std::vector<std::string> own, verbs;
  for (const OptionRow& row : option_table()) {
    if (row.is_positional()) continue;
    for (const VerbRow& other : verb_table())
      if (row.verbs.has(other.verb) && row.has_name(flag)) verbs.push_back(other.name);
    if (const auto flags = row.flags(); row.verbs.has(verb.verb)) own.insert(own.end(), flags.begin(), flags.end());
  }
  const std::string others =
      verbs.empty() ? "" : fmt::format(" ({} {} it)", list_text(verbs), verbs.size() > 1 ? "have" : "has");
  if (flag == "--help") throw UsageError("--help takes no value");
  throw UsageError(
      fmt::format("{} has no option {}{}{}", verb.name, flag, others, verbs.empty() ? or_nearest(flag, own) : ""));
}

// Throws UsageError for more words that stand by themselves than the verb has places for.
void check_places(const VerbRow& verb, const std::vector<std::string>& alone) {
  std::string places;
  std::size_t count = 0;
  for (const OptionRow& row : option_table()) {
    if (!row.verbs.has(verb.verb) || !row.is_positional()) continue;
    if (row.takes_many && !row.is_required) return;
    places += " " + row.value;
    ++count;
  }
  if (alone.size() <= count) return;
  throw UsageError(fmt::format("expected `samebytes {}{}`, got {} too", verb.name, places,
                               list_text({alone.begin() + static_cast<std::ptrdiff_t>(count), alone.end()})));
}

[[noreturn]] void refuse_lack(const OptionRow& row) {
  throw UsageError(fmt::format("{} lacks its value: {}", row.flag, usage_of(row)));
}

// The command line with each flag as its row has it: "--lr" is "--rate", and one that may stand alone has its choice in
// the same word ("--explain" "passes" is "--explain=passes"). Throws UsageError for what no row has.
std::vector<std::string> with_flags_of_rows(const VerbRow& verb, const std::vector<std::string>& words) {
  std::vector<std::string> result = {words[0]}, alone;
  std::vector<const OptionRow*> given;
  const auto has_value = [&](std::size_t place) {
    return place < words.size() && !is_flag(words[place]) && !words[place].empty();
  };
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!is_flag(word) || word == "-h" || word == "--help") {
      if (!is_flag(word) && !is_run_file_name(word)) alone.push_back(word);
      result.push_back(word);
      continue;
    }
    const std::size_t end = std::min(word.find('='), word.size());
    const bool is_joined = end < word.size();
    const OptionRow* const row = word[1] == '-' ? find_row(verb.verb, word.substr(0, end)) : nullptr;
    if (row == nullptr || row->is_positional()) refuse_flag(verb, word.substr(0, end));
    result.push_back(row->flag + word.substr(end));
    if (row->kind == ValueKind::flag) {
      const std::string value = is_joined ? word.substr(end + 1) : "true";
      if (value != "true" && value != "false")
        throw UsageError(fmt::format("{} takes no value, got {}", row->flag, value));
    } else if (is_joined) {
      if (end + 1 == word.size()) refuse_lack(*row);
    } else if (!row->alone.empty()) {
      const bool has_choice = has_value(i + 1) && !stands_alone(words[i + 1]);
      result.back() += "=" + (has_choice ? words[++i] : row->alone);
    } else if (!has_value(i + 1)) {
      refuse_lack(*row);
    } else {
      do result.push_back(words[++i]);
      while (row->takes_many && has_value(i + 1));
    }
    if (row->kind != ValueKind::flag && !row->takes_many && std::count(given.begin(), given.end(), row) > 0)
      throw UsageError(fmt::format("{} comes twice; give it once", row->flag));
    given.push_back(row);
  }
  check_places(verb, alone);
  return result;
}

// What the verb cannot do without and was not given: "eval needs --load FILE".
std::string missing_text(const CLI::App& app, Verb verb) {
  for (const OptionRow& row : option_table())
    if (row.is_required && row.verbs.has(verb) && app.get_option(row.flag)->count() == 0)
      return fmt::format("{} needs {}", row_of(verb).name, usage_of(row));
  return {};
}

// CLI11 names a word that stands by itself as its row does, people read its value in the help: "NAME: expected ...".
std::string with_values_for_names(std::string message, Verb verb) {
  for (const OptionRow& row : option_table())
    if (row.verbs.has(verb) && row.is_positional() && message.starts_with(row.flag + ": "))
      return row.value + message.substr(row.flag.size());
  return message;
}

// "help" and "version" are verbs to many: `help train` is `train --help`.
std::vector<std::string> with_usual_names(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words[0] == "version" || words[0] == "-V") words[0] = "--version";
  if (words[0] != "help") return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Trains and runs neural networks on any OpenCL device, on the same bytes as the host.", "samebytes");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(kHelpColumn);
  app.get_formatter()->label("Positionals", "What");
  app.set_help_flag("-h,--help", "print this help");
  bool is_version = false;
  app.add_flag("--version", is_version, "print version, commit, parts and drivers; with --json as one line of JSON");
  app.require_subcommand(1);
  for (const VerbRow& row : verb_table()) {
    CLI::App* const verb = app.add_subcommand(row.name, row.about);
    verb->group("Verbs");
    verb->set_help_flag("-h,--help", "print this help");
    add_options(*verb, row.verb, options);
    verb->footer(footer_of(row));
  }
  app.footer(
      "Start with `samebytes train digits`: it needs no files and takes a few seconds.\n"
      "`samebytes VERB --help` explains a verb's options.");

  std::vector<std::string> words = with_usual_names({argv + std::min(argc, 1), argv + argc});
  if (words.empty()) return {{}, "samebytes: the verb is missing\n\n" + app.help(), kWrongUsage};
  if (words[0] == "--version") {
    const bool as_json = words.size() == 2 && words[1] == "--json";
    if (as_json || words.size() == 1) return {{}, version_text(as_json), kDone};
    return wrong(app, {}, fmt::format("expected `samebytes --version [--json]`, got {} too", words[1]));
  }
  const std::vector<std::string> names = verb_names();
  const auto name = std::find(names.begin(), names.end(), words[0]);
  if (name == names.end()) {
    if (words[0] == "--help" || words[0] == "-h") return {{}, app.help(), kDone};
    const bool is_option = words[0].starts_with('-');
    const std::string near = or_nearest(words[0], is_option ? std::vector<std::string>{"--help", "--version"} : names);
    const std::string all = is_option || !near.empty() ? "" : "; there are " + list_text(names);
    return wrong(app, {},
                 fmt::format("there is no {} {}{}{}", is_option ? "option" : "verb", shown(words[0]), near, all));
  }
  std::string note;
  try {
    options.verb = verb_table()[static_cast<std::size_t>(name - names.begin())].verb;
    const RunFile file = expand_run_file(options.verb, with_flags_of_rows(row_of(options.verb), words));
    if (!file.left_out.empty())
      note = fmt::format("{}: {} does without {}", file.path, *name, list_text(file.left_out));
    words = file.words;
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
    const CLI::App& verb = *app.get_subcommands().front();
    check_companions(verb, options.verb);
    options.command_line = "samebytes";
    for (int i = 1; i < argc; ++i) options.command_line += std::string(" ") + argv[i];
    if (options.print_config) return {{}, to_run_file(verb, options.verb), kDone};
  } catch (const UsageError& error) {
    return wrong(app, *name, error.what());
  } catch (const CLI::CallForHelp&) {
    return {{}, help_of(app), kDone};
  } catch (const CLI::RequiredError&) {
    return wrong(app, *name, missing_text(*app.get_subcommands().front(), options.verb));
  } catch (const CLI::ParseError& error) {
    return wrong(app, *name, with_values_for_names(error.what(), options.verb));
  }
  return {options, {}, kDone, note};
}

}  // namespace samebytes::cli
