// A diagnosis as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/json.h"
#include "samebytes/doctor.h"

namespace samebytes::doctor {
namespace {

using Json = nlohmann::ordered_json;

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

std::string text_of(std::size_t number, const Finding& finding) {
  constexpr std::size_t kIndent = 9;
  std::string place = finding.file, title = finding.rule;
  std::replace(title.begin(), title.end(), '_', ' ');
  if (finding.line > 0) place += fmt::format(":{}", finding.line);
  std::string text = fmt::format("{}. {} ({})\n   seen  {}\n   why   {}\n", number, title, name_of(finding.severity),
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

}  // namespace

std::string to_text(const Diagnosis& diagnosis) {
  std::string text = diagnosis.heading + "\n";
  if (diagnosis.findings.empty())
    text +=
        fmt::format("Nothing to complain about: {} rules looked{}.\n", diagnosis.rules,
                    diagnosis.profile.empty() ? "; a profile (samebytes profile WORKLOAD --json) shows them more" : "");
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) text += "\n" + text_of(i + 1, diagnosis.findings[i]);
  return text;
}

std::string to_json(const Diagnosis& diagnosis) {
  Json json{{"run", diagnosis.run}, {"workload", diagnosis.workload}, {"findings", Json::array()}};
  for (const Finding& finding : diagnosis.findings) json["findings"].push_back(to_json(finding));
  return detail::to_line(json);
}

}  // namespace samebytes::doctor
