// The two personalities keep one contract: the same stems and the same entries, each with the arguments that it needs.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/kernel_texts.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

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
  const auto on_cpu = kernel_entries(cpu);
  const auto on_gpu = kernel_entries(gpu);
  for (const auto& [entry, arguments] : on_cpu) {
    if (on_gpu.count(entry) == 0) found.push_back(name + ": " + entry + " is missing in cl/gpu");
  }
  for (const auto& [entry, arguments] : on_gpu) {
    if (on_cpu.count(entry) == 0) found.push_back(name + ": " + entry + " is missing in cl/cpu");
  }
  return found;
}

TEST(Kernels, have_the_same_stems_and_entries_in_both_personalities) {
  const auto cpu = files_of("cpu");
  const auto gpu = files_of("gpu");
  std::vector<std::string> faults;
  for (const auto& [name, text] : cpu) {
    if (gpu.count(name) == 0) {
      faults.push_back(name + " is missing in cl/gpu");
      continue;
    }
    if (kernel_entries(text).empty()) faults.push_back("cl/cpu/" + name + " has no entry");
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
    for (const auto& [entry, arguments] : kernel_entries(text)) {
      const auto [place, fresh] = home.emplace(entry, name);
      if (!fresh) faults.push_back(entry + " stands in " + place->second + " and in " + name);
    }
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

// The program of an entry is found by the entry's name.
TEST(Kernels, entry_names_start_with_the_name_of_their_file) {
  const detail::KernelFiles files = detail::kernel_files(Personality::cpu);
  std::vector<std::string> faults;
  for (const auto& [name, text] : files_of("cpu")) {
    for (const auto& [entry, arguments] : kernel_entries(text)) {
      const std::string found =
          detail::file_of_entry(files, entry.ends_with('*') ? entry.substr(0, entry.size() - 1) : entry);
      if (found + ".cl" != name) faults.push_back(entry + " stands in " + name + ", its name says '" + found + "'");
    }
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Kernels, belong_to_the_same_programs_in_both_personalities) {
  const detail::KernelFiles files = detail::kernel_files(Personality::cpu);
  EXPECT_EQ(files, detail::kernel_files(Personality::gpu));
  std::set<std::string> programs;
  for (const auto& [stem, program] : files) programs.insert(program);
  EXPECT_EQ(programs, (std::set<std::string>{"convolution", "core", "others", "transformer"})) << "docs/design.md";
}

TEST(Kernels, planted_differences_are_found) {
  const std::string one =
      "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\nvoid scale(ARRAY(real, x), const int n) {}\n"
      "__kernel void only_here(const int n) {}  // __kernel void in_a_comment(const int n) {}\n";
  EXPECT_TRUE(differences("x.cl", one, one).empty());
  EXPECT_EQ(kernel_entries(one).size(), 2u);
  EXPECT_EQ(kernel_entries(one).at("scale"), "ARRAY(real,x),const int n");
  const std::string other = "__kernel void scale(ARRAY(real, x),\n                  const long n) {}\n";
  EXPECT_EQ(differences("x.cl", one, other).size(), 1u);
  EXPECT_EQ(differences("x.cl", other, one).size(), 1u);
}

}  // namespace
}  // namespace samebytes::testing
