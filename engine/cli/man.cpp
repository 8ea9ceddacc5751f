// samebytes man: the manual page samebytes(1) as roff.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "cli/option_table.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
  }
  return result;
}

std::string verbatim(const std::string& text) { return text.empty() ? "" : ".PP\n.nf\n" + escaped(text) + "\n.fi\n"; }

std::string usage_of(Verb verb) {
  std::string text;
  for (const OptionRow& row : option_table())
    if (row.verbs.has(verb) && row.is_positional()) text += " \\fI" + escaped(row.value) + "\\fR";
  return text;
}

std::string section_of(const VerbRow& verb) {
  std::string text = fmt::format(".SS \"samebytes {}\"\n{}.\n", verb.name, escaped(verb.about));
  for (const OptionRow& row : option_table()) {
    if (!row.verbs.has(verb.verb)) continue;
    text += ".TP\n";
    if (!row.is_positional())
      text += fmt::format("\\fB{}\\fR{}", escaped(fmt::format("{}", fmt::join(row.flags(), ", "))),
                          row.value.empty() ? "" : " ");
    if (!row.value.empty()) text += "\\fI" + escaped(row.value) + "\\fR";
    text += "\n" + escaped(row.help) + "\n";
  }
  return text + verbatim(footer_of(verb));
}

}  // namespace

int run_man(const Options&) {
  std::string synopsis, sections;
  for (const VerbRow& verb : verb_table()) {
    synopsis += fmt::format("{}\\fBsamebytes {}\\fR{} [\\fIoptions\\fR]\n", synopsis.empty() ? "" : ".br\n", verb.name,
                            usage_of(verb.verb));
    sections += section_of(verb);
  }
  fmt::print(
      ".TH SAMEBYTES 1 \"\" \"samebytes {}\" \"User Commands\"\n"
      ".SH NAME\nsamebytes \\- train and run neural networks on any OpenCL device\n"
      ".SH SYNOPSIS\n{}"
      ".SH DESCRIPTION\n"
      "Trains and runs neural networks on any OpenCL device, on the same bytes as the host. Options of a verb may\n"
      "stand in a run file (YAML): a key is a long option without its dashes.\n"
      ".SH VERBS\n{}"
      ".SH EXIT STATUS\n"
      "0 done, 1 failed, 2 wrong usage, 130 interrupted.\n",
      kVersionNumber, synopsis, sections);
  return 0;
}

}  // namespace samebytes::cli
