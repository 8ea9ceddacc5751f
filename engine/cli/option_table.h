// The option table: every option of the command, a row each (option_row.h). The command line, run files, help texts,
// shell completion, the man page, rehearsals, checkpoints and logs are made from it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/options.h"

namespace CLI {
class App;
}

namespace samebytes::cli {

const std::vector<OptionRow>& option_table();
// The row of a verb with this name or alias, with or without dashes in front; null where the verb has none.
const OptionRow* find_row(Verb verb, std::string_view name);

// Gives a parser the options of a verb, which fill `options`.
void add_options(CLI::App& app, Verb verb, Options& options);

// The value of an option of the table as text: "on", "0.05", "the default".
std::string value_of(const OptionRow& row, const Options& options);
// The rows that a run which goes on must agree on, with the value of each: {"--seed", "1"}.
std::vector<std::pair<std::string, std::string>> values_to_agree_on(const Options& options);
// What the first line of the log of a training has of the options: {"seed": 1, ...}.
nlohmann::ordered_json values_to_log(const Options& options);
// Throws Error for an option of the verb that names a file or folder which cannot be written.
void check_outputs(const Options& options);
// The options of a rehearsal: nothing that reads or writes files.
Options without_files(const Options& options);

}  // namespace samebytes::cli
