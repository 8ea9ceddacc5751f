// samebytes doctor: reads what a run left behind and ranks what to do about it (samebytes/doctor.h).
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/option_table.h"
#include "cli/text.h"
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

Json to_json(const Finding& finding) {
  Json json{{"rule", finding.rule},    {"severity", name_of(finding.severity)},
            {"seen", finding.seen},    {"file", finding.file},
            {"line", finding.line},    {"why", finding.why},
            {"actions", Json::array()}};
  for (const Action& action : finding.actions)
    json["actions"].push_back({{"options", action.options}, {"text", action.text}});
  return json;
}

// Wraps at blanks; lines after the first are indented.
std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t kWidth = 110;
  std::istringstream words(text);
  std::string result;
  std::size_t column = indent;
  for (std::string word; words >> word;) {
    if (column > indent && column + 1 + word.size() > kWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string to_text(std::size_t number, const Finding& finding) {
  constexpr std::size_t kIndent = 9;
  std::string place = finding.file;
  if (finding.line > 0) place += fmt::format(":{}", finding.line);
  std::string text =
      fmt::format("{}. {} ({})\n   seen  {}\n   why   {}\n", number, finding.rule, name_of(finding.severity),
                  wrapped(place + ": " + finding.seen, kIndent), wrapped(finding.why, kIndent));
  const char* head = "   do    ";
  for (const Action& action : finding.actions) {
    const std::string options = action.options.empty() ? "" : action.options + "  ";
    text += fmt::format("{}{}\n", head,
                        options + wrapped(action.text, kIndent + (options.size() < 40 ? options.size() : 2)));
    head = "         ";
  }
  return text;
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
  const std::vector<Finding>& findings = diagnosis.findings;
  if (options.json) {
    Json json{{"run", options.doctor.run}, {"workload", diagnosis.workload}, {"findings", Json::array()}};
    for (const Finding& finding : findings) json["findings"].push_back(to_json(finding));
    fmt::print("{}\n", json.dump());
    return kDone;
  }
  fmt::print("{}\n", diagnosis.heading);
  if (findings.empty())
    fmt::print("Nothing to complain about: {} rules looked{}.\n", diagnosis.rules,
               options.doctor.profile.empty() ? "; a profile (samebytes profile WORKLOAD --json) shows them more" : "");
  for (std::size_t i = 0; i < findings.size(); ++i) fmt::print("\n{}", to_text(i + 1, findings[i]));
  return kDone;
}

}  // namespace samebytes::cli
