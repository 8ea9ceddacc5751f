// The planner and the kernels are read function by function: none is longer than a screen and a half.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

constexpr std::size_t kMostLines = 80;

// "path:line has N lines" for each function, of a class or not, that is longer. The files are formatted: a body ends
// at the first closing brace of its own indentation.
std::vector<std::string> long_functions(const SourceFile& file) {
  static const std::regex opens("^(  )?[A-Za-z\\[~].*\\{$");
  static const std::regex other("^ *(namespace|class|struct|enum|union|if|for|while|switch|do|else|return)\\b.*");
  const std::vector<std::string> lines = lines_of(file.text);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!std::regex_match(lines[i], opens) || std::regex_match(lines[i], other)) continue;
    const std::string closing = (lines[i].starts_with("  ") ? "  " : "") + std::string("}");
    std::size_t end = i;
    while (end < lines.size() && lines[end] != closing) ++end;
    if (end < lines.size() && end - i + 1 > kMostLines)
      found.push_back(file.path + ":" + std::to_string(i + 1) + " has " + std::to_string(end - i + 1) + " lines");
  }
  return found;
}

TEST(Lengths, no_function_of_the_planner_is_longer_than_80_lines) {
  std::vector<std::string> faults;
  for (const SourceFile& file : source_files({"engine/plan"}, {".cpp", ".h"}))
    for (const std::string& fault : long_functions(file)) faults.push_back(fault);
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

// The same of a kernel file, whose functions stand at its left edge and take lines of arguments; and of its macros.
std::vector<std::string> long_parts_of_kernels(const SourceFile& file) {
  static const std::regex opens("^(__attribute__\\(.*|[A-Za-z_]\\w*\\*? [^=;]*\\((.*[^;}])?)$");
  const std::vector<std::string> lines = lines_of(file.text);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_macro = lines[i].starts_with("#define ");
    if (!is_macro && !std::regex_match(lines[i], opens)) continue;
    std::size_t end = i;
    while (end < lines.size() && (is_macro ? lines[end].ends_with("\\") : lines[end] != "}")) ++end;
    if (end < lines.size() && end - i + 1 > kMostLines)
      found.push_back(file.path + ":" + std::to_string(i + 1) + " has " + std::to_string(end - i + 1) + " lines");
  }
  return found;
}

TEST(Lengths, no_function_or_macro_of_a_kernel_is_longer_than_80_lines) {
  std::vector<std::string> faults;
  const std::vector<SourceFile> files = source_files({"cl"}, {".cl", ".clh"});
  for (const SourceFile& file : files)
    for (const std::string& fault : long_parts_of_kernels(file)) faults.push_back(fault);
  EXPECT_GE(files.size(), 60u);
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Lengths, a_long_function_is_found) {
  std::string body;
  for (std::size_t i = 0; i < kMostLines; ++i) body += "  ++x;\n";
  EXPECT_EQ(long_functions({"a.cpp", "int f(int x) {\n" + body + "}\n"}).size(), 1u);
  EXPECT_EQ(long_functions({"a.cpp", "int f(int x) {\n  ++x;\n}\n"}).size(), 0u);
  EXPECT_EQ(long_parts_of_kernels({"a.cl", "static int f(\n    int x) {\n" + body + "}\n"}).size(), 1u);
  EXPECT_EQ(long_parts_of_kernels({"a.cl", "__kernel void f(int x) {\n" + body + "}\n"}).size(), 1u);
  EXPECT_EQ(long_parts_of_kernels({"a.cl", "real f(int x) {\n" + body + "}\n"}).size(), 1u);
  EXPECT_EQ(long_parts_of_kernels({"a.cl", "static int f(\n    int x) {\n  ++x;\n}\n" + body}).size(), 0u);
  EXPECT_EQ(long_parts_of_kernels({"a.cl", "MAKE(real, )\n" + body + "}\n"}).size(), 0u);
}

}  // namespace
}  // namespace samebytes::testing
