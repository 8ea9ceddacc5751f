// What a user can say on the command line, after parsing and before anything is known about devices or data.
#pragma once

#include <optional>
#include <string>

#include "cli/options_running.h"
#include "cli/options_tools.h"
#include "cli/options_training.h"

namespace samebytes::cli {

inline constexpr const char* kVersionNumber = "0.1.0";
// What --version prints: lines, or one line of JSON.
std::string version_text(bool as_json);

struct Options : TrainingOptions, RunningOptions, ToolOptions {
  Verb verb = Verb::devices;
  std::string command_line;  // as it was typed
};

// Calls row(member, OptionRow) for every option, in the order of the help texts.
template <class Row>
void describe(Row& row, Options& options) {
  describe_workload(row, options);
  describe_measurement(row, options);
  describe_tools(row, options, options.memory);
  describe_recipe(row, options);
  describe_step(row, options);
  describe_adapters(row, options);
  describe_devices(row, options);
  describe_parallel(row, options);
  describe_checkpoints(row, options);
  describe_output(row, options);
}

// What parsing came to: options to run with, or a text to print (help, version) and the status to end with.
struct Parsed {
  std::optional<Options> options;
  std::string text;
  int status = 0;
  std::string note = {};  // a line for standard error before the run
};

// Never throws for what a user typed; never prints.
Parsed parse_options(int argc, const char* const* argv);

}  // namespace samebytes::cli
