// The two personalities keep one contract: the same stems, the same entries, the same arguments.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

std::string squeezed(const std::string& text) {
  static const std::regex blanks("\\s+");
  static const std::regex around("\\s*([,()*])\\s*");
  const std::string result = std::regex_replace(std::regex_replace(text, blanks, " "), around, "$1");
  const std::size_t begin = result.find_first_not_of(' ');
  return begin == std::string::npos ? "" : result.substr(begin, result.find_last_not_of(' ') + 1 - begin);
}

// The text from the opening parenthesis at `open` to its partner, without both.
std::string inside(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return "";
}

// Entry name to argument list, both as written; attributes between `__kernel` and the name are left out.
std::map<std::string, std::string> entries_of(const std::string& kernel_text) {
  static const std::regex attribute("__attribute__\\s*\\(\\((?:[^()]|\\([^()]*\\))*\\)\\)");
  static const std::regex entry("__kernel\\s+(?:\\w+\\s+)*?void\\s+(\\w+)\\s*\\(");
  const std::string text = std::regex_replace(without_comments(kernel_text), attribute, " ");
  std::map<std::string, std::string> entries;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), entry); it != std::sregex_iterator(); ++it) {
    const auto open = static_cast<std::size_t>(it->position() + it->length() - 1);
    entries[(*it)[1]] = squeezed(inside(text, open));
  }
  return entries;
}

std::map<std::string, std::string> files_of(const std::string& personality) {
  std::map<std::string, std::string> files;
  for (const auto& file : source_files({"cl/" + personality}, {".cl"})) {
    files[file.path.substr(("cl/" + personality + "/").size())] = file.text;
  }
  return files;
}

// How two kernel files differ in what the host sees, one line each.
std::vector<std::string> differences(const std::string& name, const std::string& cpu, const std::string& gpu) {
  std::vector<std::string> found;
  const auto on_cpu = entries_of(cpu);
  const auto on_gpu = entries_of(gpu);
  for (const auto& [entry, arguments] : on_cpu) {
    const auto other = on_gpu.find(entry);
    if (other == on_gpu.end()) {
      found.push_back(name + ": " + entry + " is missing in cl/gpu");
    } else if (other->second != arguments) {
      found.push_back(name + ": " + entry + " takes (" + arguments + ") in cl/cpu, (" + other->second + ") in cl/gpu");
    }
  }
  for (const auto& [entry, arguments] : on_gpu) {
    if (on_cpu.count(entry) == 0) found.push_back(name + ": " + entry + " is missing in cl/cpu");
  }
  return found;
}

TEST(Kernels, have_the_same_stems_entries_and_arguments_in_both_personalities) {
  const auto cpu = files_of("cpu");
  const auto gpu = files_of("gpu");
  std::vector<std::string> faults;
  for (const auto& [name, text] : cpu) {
    if (gpu.count(name) == 0) {
      faults.push_back(name + " is missing in cl/gpu");
      continue;
    }
    if (entries_of(text).empty()) faults.push_back("cl/cpu/" + name + " has no entry");
    for (const auto& difference : differences(name, text, gpu.at(name))) faults.push_back(difference);
  }
  for (const auto& [name, text] : gpu) {
    if (cpu.count(name) == 0) faults.push_back(name + " is missing in cl/cpu");
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Kernels, entry_names_are_unique_over_all_files) {
  std::map<std::string, std::string> home;
  std::vector<std::string> faults;
  for (const auto& [name, text] : files_of("cpu")) {
    for (const auto& [entry, arguments] : entries_of(text)) {
      const auto [place, fresh] = home.emplace(entry, name);
      if (!fresh) faults.push_back(entry + " stands in " + place->second + " and in " + name);
    }
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Kernels, planted_differences_are_found) {
  const std::string one =
      "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\nvoid scale(ARRAY(real, x), const int n) {}\n"
      "__kernel void only_here(const int n) {}  // __kernel void in_a_comment(const int n) {}\n";
  EXPECT_TRUE(differences("x.cl", one, one).empty());
  EXPECT_EQ(entries_of(one).size(), 2u);
  EXPECT_EQ(entries_of(one).at("scale"), "ARRAY(real,x),const int n");
  const std::string other = "__kernel void scale(ARRAY(real, x),\n                  const long n) {}\n";
  EXPECT_EQ(differences("x.cl", one, other).size(), 2u);
  EXPECT_EQ(differences("x.cl", other, one).size(), 2u);
}

}  // namespace
}  // namespace samebytes::testing
