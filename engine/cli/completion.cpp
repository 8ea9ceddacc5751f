// samebytes completion: a script for bash, zsh or fish that completes verbs, workloads, options and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/option_table.h"
#include "cli/verbs.h"
#include "cli/workloads.h"

namespace samebytes::cli {
namespace {

std::vector<const OptionRow*> rows_with_flag(Verb verb) {
  std::vector<const OptionRow*> rows;
  for (const OptionRow& row : option_table())
    if (row.verbs.has(verb) && !row.is_positional()) rows.push_back(&row);
  return rows;
}

// What may stand after the verb by itself: workloads, or the choices of its argument.
std::vector<std::string> words_of(Verb verb) {
  std::vector<std::string> words;
  if (kWorkloadVerbs.has(verb))
    for (const WorkloadEntry& workload : workloads::all()) words.push_back(workload.name);
  for (const OptionRow& row : option_table())
    if (row.verbs.has(verb) && row.is_positional()) words.insert(words.end(), row.choices.begin(), row.choices.end());
  return words;
}

bool takes_files(Verb verb) {  // by themselves: run files, logs, snapshots
  return kWorkloadVerbs.has(verb) ||
         std::any_of(option_table().begin(), option_table().end(), [&](const OptionRow& row) {
           return row.verbs.has(verb) && row.is_positional() && row.takes_file();
         });
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string bash() {
  std::string values, words;
  for (const VerbRow& verb : verb_table()) {
    std::vector<std::string> list = words_of(verb.verb);
    for (const OptionRow* row : rows_with_flag(verb.verb)) {
      const std::vector<std::string> flags = row->flags();
      list.insert(list.end(), flags.begin(), flags.end());
      if (row->kind == ValueKind::flag) continue;
      const std::string choose = !row->choices.empty() ? fmt::format("-W '{}'", fmt::join(row->choices, " "))
                                 : row->takes_folder() ? "-d"
                                 : row->takes_file()   ? "-f"
                                                       : "-W ''";
      values += fmt::format("    '{0} {1}') mapfile -t COMPREPLY < <(compgen {2} -- \"$word\"); return ;;\n", verb.name,
                            fmt::join(flags, fmt::format("'|'{} ", verb.name)), choose);
    }
    list.emplace_back("--help");
    words += fmt::format("    {}) mapfile -t COMPREPLY < <(compgen {}-W '{}' -- \"$word\") ;;\n", verb.name,
                         takes_files(verb.verb) ? "-f " : "", fmt::join(list, " "));
  }
  return fmt::format(
      "# Completion of samebytes for bash.\n"
      "_samebytes() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case \"$verb $before\" in\n{}  esac\n"
      "  case \"$verb\" in\n{}  esac\n"
      "}}\n"
      "complete -o filenames -F _samebytes samebytes\n",
      fmt::join(verb_names(), " "), values, words);
}

// Text inside single quotes of a zsh _arguments specification.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : first_line(text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return result;
}

std::string zsh() {
  std::string verbs, cases;
  for (const VerbRow& verb : verb_table()) {
    verbs += fmt::format("    '{}:{}'\n", verb.name, zsh_text(verb.about));
    cases += fmt::format("    {})\n      _arguments", verb.name);
    for (const OptionRow* row : rows_with_flag(verb.verb)) {
      const std::string values = !row->choices.empty() ? fmt::format("({})", fmt::join(row->choices, " "))
                                 : row->takes_folder() ? "_files -/"
                                 : row->takes_file()   ? "_files"
                                                       : "";
      const std::string what =
          row->kind == ValueKind::flag ? "" : (row->alone.empty() ? ":" : "::") + zsh_text(row->value) + ":" + values;
      for (const std::string& flag : row->flags())
        cases += fmt::format(" \\\n        '{}[{}]{}'", flag, zsh_text(row->help), what);
    }
    if (const auto words = words_of(verb.verb); !words.empty())
      cases += fmt::format(" \\\n        '*:what:({})'", fmt::join(words, " "));
    else if (takes_files(verb.verb))
      cases += " \\\n        '*:file:_files'";
    cases += " \\\n        '--help[print the options]' ;;\n";
  }
  return fmt::format(
      "#compdef samebytes\n"
      "# Completion of samebytes for zsh.\n"
      "_samebytes() {{\n"
      "  local -a verbs\n  verbs=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n  fi\n"
      "  local verb=$words[2]\n  shift words\n  ((CURRENT--))\n"
      "  case $verb in\n{}  esac\n"
      "}}\n"
      "if [[ $funcstack[1] == _samebytes ]]; then _samebytes \"$@\"; else compdef _samebytes samebytes; fi\n",
      verbs, cases);
}

std::string fish_text(const std::string& text) {
  std::string result;
  for (const char c : first_line(text)) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string fish() {
  std::string text = "# Completion of samebytes for fish.\n";
  for (const VerbRow& verb : verb_table()) {
    text += fmt::format("complete -c samebytes -n __fish_use_subcommand -f -a {} -d '{}'\n", verb.name,
                        fish_text(verb.about));
    const std::string when = fmt::format("complete -c samebytes -n '__fish_seen_subcommand_from {}'", verb.name);
    if (const auto words = words_of(verb.verb); !words.empty())
      text += fmt::format("{} -a '{}'\n", when, fmt::join(words, " "));
    for (const OptionRow* row : rows_with_flag(verb.verb)) {
      const std::string values = row->kind == ValueKind::flag ? ""
                                 : !row->choices.empty()      ? fmt::format(" -x -a '{}'", fmt::join(row->choices, " "))
                                 : row->takes_folder()        ? " -x -a '(__fish_complete_directories)'"
                                 : row->takes_file()          ? " -r"
                                                              : " -x";
      for (const std::string& flag : row->flags())
        text += fmt::format("{} -l {} -d '{}'{}\n", when, flag.substr(2), fish_text(row->help), values);
    }
  }
  return text;
}

}  // namespace

int run_completion(const Options& options) {
  fmt::print("{}", options.shell == "bash" ? bash() : options.shell == "zsh" ? zsh() : fish());
  return 0;
}

}  // namespace samebytes::cli
