// Run files: the options of a verb as YAML, `samebytes train run.yaml`. Every key is a long option without its dashes
// (clip-norm or clip_norm), `workload` is what the verb runs, and options may stand in sections (model, data, ...),
// which are for the reader alone. What the command line says too is taken from there.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/options.h"

namespace samebytes::cli {

using AddVerb = CLI::App* (*)(CLI::App&, Options&);  // option_verbs.h

struct RunFile {
  std::string path;                   // empty: the command line names none
  std::vector<std::string> words;     // the command line, the options of the file in its place
  std::vector<std::string> left_out;  // options of train that the verb does not have
};

// `words` are those of the command line from the verb on. Throws UsageError with file, line and what is wanted: for a
// file that cannot be read or is no YAML, unknown keys (with the nearest one), a key given twice, a wrong type or
// value, and a missing workload.
RunFile expand_run_file(AddVerb add, const std::vector<std::string>& words);

// True for verbs that run a workload.
bool takes_run_file(const CLI::App& verb);
// --print-config, for verbs that take a run file.
void add_run_file_options(CLI::App& verb, Options& options);
// What was parsed as a run file; the options that were not given stand behind it as comments.
std::string to_run_file(const CLI::App& verb);

}  // namespace samebytes::cli
