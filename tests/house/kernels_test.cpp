// The two personalities keep one contract: the same stems and the same entries, each with the arguments that it needs.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <regex>
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

// A variant of another file's kernels that the host chooses where the device is better with it.
bool is_alone(const std::string& text) { return text.find("\n// Of this personality alone.\n") != std::string::npos; }

TEST(Kernels, have_the_same_stems_and_entries_in_both_personalities) {
  const auto cpu = files_of("cpu");
  const auto gpu = files_of("gpu");
  std::vector<std::string> faults;
  for (const auto& [name, text] : cpu) {
    if (gpu.count(name) == 0 && is_alone(text)) continue;
    if (gpu.count(name) == 0) {
      faults.push_back(name + " is missing in cl/gpu");
      continue;
    }
    if (kernel_entries(text).empty()) faults.push_back("cl/cpu/" + name + " has no entry");
    for (const auto& difference : differences(name, text, gpu.at(name))) faults.push_back(difference);
  }
  for (const auto& [name, text] : gpu) {
    if (cpu.count(name) == 0 && !is_alone(text)) faults.push_back(name + " is missing in cl/cpu");
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

// What a text between balanced `open` and `close`, from the first `open` at or behind `from`, is.
std::string block_at(const std::string& text, std::size_t from, char open, char close) {
  const std::size_t begin = text.find(open, from);
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return text.substr(begin, i + 1 - begin);
  }
  return "";
}

bool names(const std::string& text, const std::string& word) {
  const auto is_part = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (!(at > 0 && is_part(at - 1)) && !is_part(at + word.size())) return true;
  return false;
}

// The macros of a file, name to text.
std::map<std::string, std::string> macros_of(const std::string& text) {
  static const std::regex macro("#define (\\w+)((?:.*\\\\\n)*.*)\n");
  std::map<std::string, std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), macro); it != std::sregex_iterator(); ++it)
    found[(*it)[1]] += (*it)[2];
  return found;
}

// "entry: argument" for each argument of a kernel file that neither the entry's body nor a macro in it names. A family
// that a macro makes is given macros by name, so all that the file names count.
std::vector<std::string> unused_arguments(const std::string& kernel_text, const std::string& included = "") {
  static const std::regex attribute("__attribute__\\s*\\(\\((?:[^()]|\\([^()]*\\))*\\)\\)");
  static const std::regex start("START\\(\\w+\\)");
  static const std::regex argument("ARRAY(?:_INPLACE)?\\([^,]*, *(\\w+)\\)|const \\w+ (\\w+)");
  const std::string text = std::regex_replace(without_comments(kernel_text), attribute, " ");
  const auto macros = macros_of(without_comments(included) + "\n" + text);
  std::vector<std::string> found;
  for (std::size_t at = text.find("__kernel"); at != std::string::npos; at = text.find("__kernel", at + 1)) {
    std::size_t open = text.find('(', at);
    const std::string entry = text.substr(at, open - at);
    const bool is_family = entry.ends_with("SB_JOIN");
    if (is_family) open = text.find('(', text.find(')', open));
    std::string arguments = block_at(text, open, '(', ')');
    std::string body = std::regex_replace(block_at(text, open + arguments.size(), '{', '}'), start, "");
    for (int depth = 0; depth < 3; ++depth) {  // macros that name macros
      std::string more;
      for (const auto& [name, value] : macros) {
        if (depth == 0 && name.ends_with("_GEOMETRY") && names(arguments, name)) arguments += value;
        const bool has_part = names(body, name) || (is_family && names(text, name));
        if (has_part && !name.ends_with("_GEOMETRY") && value.find("__kernel") == std::string::npos) more += value;
      }
      body += more;
      if (is_family) break;
    }
    for (auto it = std::sregex_iterator(arguments.begin(), arguments.end(), argument); it != std::sregex_iterator();
         ++it) {
      const std::string name = (*it)[1].matched ? (*it)[1] : (*it)[2];
      if (!names(body, name)) found.push_back(entry + ": " + name);
    }
  }
  return found;
}

TEST(Kernels, take_no_argument_that_they_do_not_use) {
  std::string included;
  for (const auto& file : source_files({"cl/cpu", "cl/shared"}, {".clh", ".cl", ".h"})) included += file.text + "\n";
  std::vector<std::string> faults;
  for (const auto& file : source_files({"cl/cpu", "cl/gpu"}, {".cl"}))
    for (const auto& fault : unused_arguments(file.text, included)) faults.push_back(file.path + ": " + fault);
  EXPECT_TRUE(faults.empty()) << joined(faults);
  const std::string kernel =
      "__kernel void scale(ARRAY(real, x), const int n, const int m) {\n  START(x);\n  x[0] = n;\n}\n";
  EXPECT_EQ(unused_arguments(kernel).size(), 1u);
  EXPECT_EQ(unused_arguments("#define SCALE_BY(x) x *= m\n" + kernel).size(), 1u);
  EXPECT_EQ(unused_arguments("__kernel void f(ARRAY(real, x)) {\n  START(x);\n}\n").size(), 1u);
}

// What differs between the personalities is picked as a whole (Launch::pick), not asked for place by place.
TEST(Ops, do_not_ask_which_personality_runs) {
  static const std::regex asks("is_cpu|run\\.personality\\(\\)");
  std::vector<std::string> faults;
  for (const auto& file : source_files({"engine/ops"}, {".cpp", ".h"})) {
    std::size_t number = 0;
    for (const auto& line : lines_of(without_comments(file.text))) {
      ++number;
      if (std::regex_search(line, asks)) faults.push_back(file.path + ":" + std::to_string(number) + ": " + line);
    }
  }
  for (const auto& file : source_files({"engine/graph"}, {".cpp", ".h"}))
    if (file.text.find("is_cpu") != std::string::npos) faults.push_back(file.path);
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
  detail::KernelFiles cpu = detail::kernel_files(Personality::cpu), gpu = detail::kernel_files(Personality::gpu);
  std::set<std::string> programs;
  for (const auto* const files : {&cpu, &gpu})
    for (const auto& [stem, program] : *files) programs.insert(program);
  for (const auto& [name, text] : files_of("cpu"))
    if (is_alone(text)) cpu.erase(name.substr(0, name.find('.')));
  for (const auto& [name, text] : files_of("gpu"))
    if (is_alone(text)) gpu.erase(name.substr(0, name.find('.')));
  EXPECT_EQ(cpu, gpu);
  EXPECT_EQ(programs, (std::set<std::string>{"convolution", "convolution_1d", "core", "int8", "others", "products",
                                             "quantised", "transformer"}))
      << "docs/design.md";
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
