// Run files: the options of a verb as YAML, `samebytes train run.yaml`. Every key is a long option without its dashes
// (clip-norm or clip_norm), `workload` is what the verb runs, and options may stand in sections (model, data, ...),
// which are for the reader alone. The command line overrides the file.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace CLI {
class App;
}

namespace samebytes::cli {

struct RunFile {
  std::string path;                   // empty: the command line names none
  std::vector<std::string> words;     // the command line, the options of the file in its place
  std::vector<std::string> left_out;  // options of train that the verb does not have
};

bool is_run_file_name(const std::string& word);

// `words` are those of the command line from the verb on. Throws UsageError with file, line and what is expected: for a
// file that cannot be read or is no YAML, unknown keys (with the nearest one), a key given twice, a wrong type or
// value, and a missing workload.
RunFile expand_run_file(Verb verb, const std::vector<std::string>& words);

// What was parsed as a run file; the options that were not given follow as comments.
std::string to_run_file(const CLI::App& parsed, Verb verb);

}  // namespace samebytes::cli
