#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/option_verbs.h"
#include "cli/run_file.h"
#include "cli/text.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr int kHelpColumn = 26;

struct VerbEntry {
  Verb verb;
  CLI::App* (*add)(CLI::App&, Options&);
};

constexpr VerbEntry kVerbs[] = {
    {Verb::devices, add_devices}, {Verb::train, add_train},       {Verb::eval, add_eval},
    {Verb::bench, add_bench},     {Verb::generate, add_generate}, {Verb::tune, add_tune},
    {Verb::profile, add_profile}, {Verb::estimate, add_estimate}, {Verb::sweep, add_sweep},
    {Verb::doctor, add_doctor},   {Verb::memory, add_memory},
};

std::string help_of(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) return verb->help(app.get_name());
  return app.help();
}

Parsed wrong(const CLI::App& app, const std::string& message) {
  std::string command = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) command += " " + verb->get_name();
  return {{}, fmt::format("samebytes: {}\nTry `{} --help`.\n", message, command), kWrongUsage};
}

}  // namespace

std::vector<std::string> verb_names() {
  Options ignored;
  CLI::App app("", "samebytes");
  std::vector<std::string> names;
  for (const VerbEntry& entry : kVerbs) names.push_back(entry.add(app, ignored)->get_name());
  return names;
}

Parsed parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Trains and runs neural networks on any OpenCL device, on the same bytes as the host.", "samebytes");
  app.get_formatter()->column_width(kHelpColumn);
  app.set_version_flag("--version", fmt::format("samebytes {}", kVersionNumber), "print the version");
  app.require_subcommand(1);
  std::vector<std::pair<Verb, const CLI::App*>> added;
  std::vector<std::string> names;
  for (const auto& [verb, add] : kVerbs) {
    added.emplace_back(verb, add(app, options));
    names.push_back(added.back().second->get_name());
    if (CLI::App* verb_app = app.get_subcommand(names.back()); takes_run_file(*verb_app))
      add_run_file_options(*verb_app, options);
  }
  app.footer(
      "Start with `samebytes train digits`: it needs no files and takes a few seconds.\n"
      "`samebytes VERB --help` explains a verb's options.");

  // A mistyped verb gets the nearest one instead of a list of rules.
  if (argc > 1 && argv[1][0] != '-' && std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    const std::string near = nearest_word(argv[1], names);
    return wrong(app, fmt::format("there is no verb {}{}; there are {}", argv[1],
                                  near.empty() ? "" : ", did you mean " + near + "?", list_text(names)));
  }
  std::string note;
  try {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    const auto verb = words.empty() ? names.end() : std::find(names.begin(), names.end(), words[0]);
    if (verb != names.end()) {
      const RunFile file = expand_run_file(kVerbs[verb - names.begin()].add, words);
      if (!file.left_out.empty())
        note = fmt::format("{}: {} does without {}", file.path, *verb, list_text(file.left_out));
      words = file.words;
    }
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(words);
  } catch (const UsageError& error) {
    return wrong(app, error.what());
  } catch (const CLI::CallForHelp&) {
    return {{}, help_of(app), kDone};
  } catch (const CLI::CallForVersion&) {
    return {{}, fmt::format("samebytes {}\n", kVersionNumber), kDone};
  } catch (const CLI::ParseError& error) {
    if (argc == 1) return {{}, "samebytes: what to do is missing\n\n" + app.help(), kWrongUsage};
    return wrong(app, error.what());
  }
  for (const auto& [verb, parser] : added) {
    if (!parser->parsed()) continue;
    options.verb = verb;
    options.command_line = "samebytes";
    for (int i = 1; i < argc; ++i) options.command_line += std::string(" ") + argv[i];
    if (options.print_config) return {{}, to_run_file(*parser), kDone};
  }
  return {options, {}, kDone, note};
}

}  // namespace samebytes::cli
