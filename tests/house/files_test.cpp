// Rules that every source file keeps: its size, its head, and words that may not stay.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

constexpr std::size_t kLinesThatNeedAReason = 400;
constexpr std::size_t kMostLines = 800;
constexpr std::size_t kMostLinesOfPublicHeader = 250;
constexpr std::size_t kHeadLines = 20;

std::vector<SourceFile> all_sources() {
  return source_files({"engine", "include", "cl", "tests", "benchmarks", "examples", "cmake"},
                      {".h", ".cpp", ".cl", ".clh", ".cmake", ".sh"});
}

std::string head_of(const SourceFile& file) {
  std::string head;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size() && i < kHeadLines; ++i) {
    if (!lines[i].starts_with("//") && !lines[i].starts_with("#")) break;
    head += lines[i] + "\n";
  }
  return head;
}

// The reason reads "Over 400 lines because ..." in the comment that opens the file.
std::string size_fault(const SourceFile& file) {
  const std::size_t lines = lines_of(file.text).size();
  if (file.path.starts_with("include/") && lines > kMostLinesOfPublicHeader)
    return file.path + " has " + std::to_string(lines) +
           " lines: a public header is a contract; what the engine alone needs goes into an Impl";
  if (lines > kMostLines) return file.path + " has " + std::to_string(lines) + " lines: split it";
  if (lines > kLinesThatNeedAReason && head_of(file).find("Over 400 lines because") == std::string::npos) {
    return file.path + " has " + std::to_string(lines) +
           " lines: say \"Over 400 lines because ...\" in its head comment";
  }
  return "";
}

TEST(Files, are_short_or_say_why_not) {
  std::vector<std::string> faults;
  for (const auto& file : all_sources()) {
    if (const auto fault = size_fault(file); !fault.empty()) faults.push_back(fault);
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Files, a_long_one_without_a_reason_is_found) {
  const std::string body(kLinesThatNeedAReason + 1, '\n');
  EXPECT_NE(size_fault({"engine/core/long.cpp", "// About something.\n" + body}), "");
  EXPECT_EQ(size_fault({"engine/core/long.cpp", "// Over 400 lines because it is a table.\n" + body}), "");
  EXPECT_NE(size_fault({"engine/core/long.cpp", "// Over 400 lines because it is a table.\n" + body + body}), "");
  EXPECT_NE(size_fault({"include/samebytes/long.h", std::string(kMostLinesOfPublicHeader + 1, '\n')}), "");
  EXPECT_EQ(size_fault({"include/samebytes/long.h", std::string(kMostLinesOfPublicHeader, '\n')}), "");
}

TEST(Files, every_header_says_what_it_is_and_is_read_once) {
  std::vector<std::string> faults;
  for (const auto& file : source_files({"engine", "include", "cl", "tests", "benchmarks"}, {".h"})) {
    if (!file.text.starts_with("//")) faults.push_back(file.path + " does not open with a comment");
    if (file.text.find("\n#pragma once\n") == std::string::npos) faults.push_back(file.path + " lacks #pragma once");
  }
  for (const auto& file : source_files({"cl"}, {".cl", ".clh"})) {
    if (!file.text.starts_with("//")) faults.push_back(file.path + " does not open with a comment");
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Files, no_word_promises_later_work) {
  // Put together from halves, so that this file does not contain them.
  const std::regex unfinished(std::string("\\b(TO") + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b|not imple" +
                              "mented|for n" + "ow\\b");
  std::vector<std::string> faults;
  for (const auto& file : all_sources()) {
    std::size_t number = 0;
    for (const auto& line : lines_of(file.text)) {
      ++number;
      if (std::regex_search(line, unfinished)) faults.push_back(file.path + ":" + std::to_string(number) + ": " + line);
    }
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Files, the_library_neither_prints_nor_exits) {
  static const std::regex printing("std::(cout|cerr|clog)|\\b(f?printf|puts|fputs|exit|_exit|abort|terminate)\\s*\\(");
  std::vector<std::string> faults;
  for (const auto& file : source_files({"engine", "include"}, {".h", ".cpp"})) {
    if (file.path.starts_with("engine/cli/")) continue;
    std::size_t number = 0;
    for (const auto& line : lines_of(without_comments(file.text))) {
      ++number;
      if (std::regex_search(line, printing)) faults.push_back(file.path + ":" + std::to_string(number) + ": " + line);
    }
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

}  // namespace
}  // namespace samebytes::testing
