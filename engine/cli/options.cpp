#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/option_table.h"
#include "cli/run_file.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "cli/workloads.h"

namespace samebytes::cli {
namespace {

constexpr int kHelpColumn = 26;

std::string help_of(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) return verb->help(app.get_name());
  return app.help();
}

Parsed wrong(const CLI::App& app, const std::string& message) {
  std::string command = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) command += " " + verb->get_name();
  return {{}, fmt::format("samebytes: {}\nTry `{} --help`.\n", message, command), kWrongUsage};
}

// "--checkpoint DIR"
std::string usage_of(const OptionRow& row) { return row.value.empty() ? row.flag : row.flag + " " + row.value; }

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

// A word that stands by itself: a workload, or a run file.
bool stands_alone(const std::string& word) {
  const auto& all = workloads::all();
  return is_run_file_name(word) ||
         std::any_of(all.begin(), all.end(), [&](const WorkloadEntry& workload) { return workload.name == word; });
}

// A flag that may stand alone gets its choice in the same word: "--explain" "passes" is "--explain=passes".
std::vector<std::string> with_joined_choices(Verb verb, const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    result.push_back(words[i]);
    const OptionRow* const row = words[i].starts_with("--") ? find_row(verb, words[i]) : nullptr;
    if (row == nullptr || row->alone.empty()) continue;
    const bool has_choice = i + 1 < words.size() && !words[i + 1].starts_with("--") && !stands_alone(words[i + 1]);
    result.back() += "=" + (has_choice ? words[++i] : row->alone);
  }
  return result;
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Trains and runs neural networks on any OpenCL device, on the same bytes as the host.", "samebytes");
  app.get_formatter()->column_width(kHelpColumn);
  app.set_version_flag("--version", fmt::format("samebytes {}", kVersionNumber), "print the version");
  app.require_subcommand(1);
  for (const VerbRow& row : verb_table()) {
    CLI::App* const verb = app.add_subcommand(row.name, row.about);
    add_options(*verb, row.verb, options);
    verb->footer(footer_of(row));
  }
  app.footer(
      "Start with `samebytes train digits`: it needs no files and takes a few seconds.\n"
      "`samebytes VERB --help` explains a verb's options.");

  // A mistyped verb gets the nearest one instead of a list of rules.
  const std::vector<std::string> names = verb_names();
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    const std::string near = nearest_word(argv[1], names);
    return wrong(app, fmt::format("there is no verb {}{}; there are {}", argv[1],
                                  near.empty() ? "" : ", did you mean " + near + "?", list_text(names)));
  }
  std::string note;
  try {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    const auto name = words.empty() ? names.end() : std::find(names.begin(), names.end(), words[0]);
    if (name != names.end()) {
      options.verb = verb_table()[static_cast<std::size_t>(name - names.begin())].verb;
      const RunFile file = expand_run_file(options.verb, with_joined_choices(options.verb, words));
      if (!file.left_out.empty())
        note = fmt::format("{}: {} does without {}", file.path, *name, list_text(file.left_out));
      words = file.words;
    }
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
    const CLI::App& verb = *app.get_subcommands().front();
    check_companions(verb, options.verb);
    options.command_line = "samebytes";
    for (int i = 1; i < argc; ++i) options.command_line += std::string(" ") + argv[i];
    if (options.print_config) return {{}, to_run_file(verb, options.verb), kDone};
  } catch (const UsageError& error) {
    return wrong(app, error.what());
  } catch (const CLI::CallForHelp&) {
    return {{}, help_of(app), kDone};
  } catch (const CLI::CallForVersion&) {
    return {{}, fmt::format("samebytes {}\n", kVersionNumber), kDone};
  } catch (const CLI::ParseError& error) {
    if (argc == 1) return {{}, "samebytes: the verb is missing\n\n" + app.help(), kWrongUsage};
    return wrong(app, error.what());
  }
  return {options, {}, kDone, note};
}

}  // namespace samebytes::cli
