// docs/checklist.md is true: the headers, files, tests, verbs and options that it names exist, and no row is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

// What stands between backticks.
std::vector<std::string> names_in(const std::string& text) {
  static const std::regex name("`([^`]+)`");
  std::vector<std::string> names;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), name); it != std::sregex_iterator(); ++it)
    names.push_back((*it)[1]);
  return names;
}

std::string command_sources() {
  std::string text;
  for (const auto& file : source_files({"engine/cli"}, {".h", ".cpp"})) text += file.text;
  return text;
}

std::string test_fault(const std::string& file, const std::string& name) {
  const std::string text = read_text("tests/" + file + ".cpp");
  if (text.empty()) return "there is no tests/" + file + ".cpp";
  const std::regex declared("TEST(_F|_P)?\\(\\s*\\w+,\\s*" + name + "\\)");
  return std::regex_search(text, declared) ? "" : "tests/" + file + ".cpp has no " + name;
}

std::string command_fault(const std::string& words, const std::string& sources) {
  std::istringstream stream(words);
  std::string word;
  stream >> word >> word;
  if (sources.find("{Verb::" + word + ", \"" + word + "\"") == std::string::npos) return "there is no verb " + word;
  while (stream >> word) {
    if (!word.starts_with("--")) continue;
    const bool is_there = sources.find("\"" + word + "\"") != std::string::npos ||
                          sources.find("\"" + word + " ") != std::string::npos ||  // a row has its value behind it
                          sources.find("\"" + word.substr(2) + "\"") != std::string::npos;
    if (!is_there) return "no verb has " + word;
  }
  return "";
}

// Empty for what exists and for what is neither a test, nor a command, nor a path.
std::string fault_of(const std::string& name, const std::string& sources) {
  static const std::regex test("([a-z0-9_/]+_test): (\\w+)"), path("[\\w.]*/[\\w./]*\\.\\w+|[.]ci/run"),
      header("[a-z_0-9/]+\\.h");
  std::smatch match;
  if (std::regex_match(name, match, test)) return test_fault(match[1], match[2]);
  if (name.starts_with("samebytes ")) return command_fault(name, sources);
  if (std::regex_match(name, header) && exists("include/samebytes/" + name)) return "";
  if (std::regex_match(name, header) || std::regex_match(name, path)) return exists(name) ? "" : "there is no " + name;
  return "";
}

std::vector<std::string> rows_of(const std::string& page) {
  std::vector<std::string> rows;
  for (const auto& line : lines_of(page))
    if (line.starts_with("| ") && !line.starts_with("| row")) rows.push_back(line);
  return rows;
}

std::string cell(const std::string& row, int index) {
  std::istringstream stream(row);
  std::string text;
  for (int i = 0; i <= index + 1; ++i) std::getline(stream, text, '|');
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

TEST(Checklist, names_only_what_exists) {
  const std::string sources = command_sources();
  std::vector<std::string> faults;
  for (const auto& row : rows_of(read_text("docs/checklist.md")))
    for (const auto& name : names_in(row))
      if (const auto fault = fault_of(name, sources); !fault.empty()) faults.push_back(cell(row, 0) + ": " + fault);
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Checklist, planted_faults_are_found) {
  const std::string sources = command_sources();
  for (const char* good : {"optim/adam.h", "samebytes train --batch", "docs/design.md", "EngineOptions::split",
                           "house/checklist_test: planted_faults_are_found", "cmake/setup.sh"})
    EXPECT_EQ(fault_of(good, sources), "") << good;
  for (const char* bad : {"optim/adom.h", "samebytes trian", "samebytes train --botch", "docs/nowhere.md",
                          "house/checklist_test: no_such_case", "house/chocklist_test: names_only_what_exists"})
    EXPECT_NE(fault_of(bad, sources), "") << bad;
}

TEST(Checklist, has_every_row_and_says_what_is_missing) {
  const std::string page = read_text("docs/checklist.md");
  std::set<std::string> rows;
  for (const auto& row : rows_of(page)) {
    const std::string id = cell(row, 0);
    EXPECT_TRUE(rows.insert(id).second) << id << " is there twice";
    EXPECT_NE(cell(row, 2), "") << id;
    EXPECT_NE(cell(row, 3), "") << id;
    const bool is_missing = row.find("missing") != std::string::npos;
    EXPECT_EQ(page.find("\n- " + id + ": ") != std::string::npos, is_missing) << id << ", in the list at the end";
    EXPECT_TRUE(is_missing || !names_in(cell(row, 3)).empty()) << id << " has no test";
  }
  const std::vector<std::pair<std::string, int>> families = {{"A", 14},    {"B", 31},    {"C", 27},    {"D", 21},
                                                             {"E", 12},    {"2.1.", 10}, {"2.2.", 15}, {"2.3.", 18},
                                                             {"2.4.", 12}, {"2.5.", 17}};
  std::size_t count = 0;
  for (const auto& [name, last] : families) {
    for (int i = 1; i <= last; ++i) EXPECT_EQ(rows.count(name + std::to_string(i)), 1u) << name << i;
    count += static_cast<std::size_t>(last);
  }
  EXPECT_EQ(rows.size(), count);
}

}  // namespace
}  // namespace samebytes::testing
