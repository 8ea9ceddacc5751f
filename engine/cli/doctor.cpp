// samebytes doctor: reads what a run left behind and ranks what to do about it (samebytes/doctor.h).
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/option_table.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/doctor.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

using doctor::Action;
using doctor::Finding;

// Every word of "--batch 32 --scale-rate linear" that begins with -- is an option of train; of "samebytes tune ..." the
// verb is one of this program's.
bool program_has(const std::string& options) {
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    if (word == "samebytes") {
      words >> word;
      const std::vector<std::string> names = verb_names();
      return std::find(names.begin(), names.end(), word) != names.end();
    }
    if (word.starts_with("--") && find_row(Verb::train, word) == nullptr) return false;
  }
  return true;
}

doctor::Diagnosis examine(const DoctorOptions& options) try {
  doctor::Diagnosis diagnosis = doctor::diagnose(options.run, options.profile);
  for (Finding& finding : diagnosis.findings)
    std::erase_if(finding.actions, [](const Action& action) { return !program_has(action.options); });
  return diagnosis;
} catch (const IoError& error) {
  throw UsageError(error.what());
}

}  // namespace

int run_doctor(const Options& options) {
  const doctor::Diagnosis diagnosis = examine(options.doctor);
  if (options.json)
    fmt::print("{}\n", doctor::to_json(diagnosis));
  else
    fmt::print("{}", doctor::to_text(diagnosis));
  return kDone;
}

}  // namespace samebytes::cli
