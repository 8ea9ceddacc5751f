// Only the loops that are chosen when they run may use instructions above the baseline (engine/ops/native.h): the
// commands that compile the library say so, and so do the names in the objects that are built above it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "support/places.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

// The commands that compile the library, each with the object that it makes.
std::map<std::string, std::string> commands_of_the_library() {
  std::ifstream file(build_folder() + "/compile_commands.json");
  std::map<std::string, std::string> commands;
  for (const auto& entry : nlohmann::json::parse(file)) {
    const std::string command = entry.at("command");
    std::smatch object;
    if (std::regex_search(command, object, std::regex(" -o (CMakeFiles/samebytes(_[a-z0-9]+)?[.]dir/\\S+[.]o)")))
      commands[object[1]] = command;
  }
  return commands;
}

bool is_native(const std::string& object) { return object.find("_native.cpp.o") != std::string::npos; }

TEST(Levels, only_the_loops_chosen_when_they_run_are_compiled_above_the_baseline) {
  const std::regex above(" -m(arch|cpu|avx|fma|bmi|sse[34])");
  int checked = 0;
  for (const auto& [object, command] : commands_of_the_library()) {
    if (is_native(object)) continue;
    EXPECT_FALSE(std::regex_search(command, above)) << command;
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST(Levels, the_loops_share_no_function_that_the_linker_could_take_for_another_level) {
  if (run_program({"nm", "--version"}).status != 0) GTEST_SKIP() << "nm is not installed";
  for (const auto& [object, command] : commands_of_the_library()) {
    // Sanitizers keep functions apart that are inlined otherwise.
    if (!is_native(object) || is_sanitized()) continue;
    std::smatch level;
    ASSERT_TRUE(std::regex_search(object, level, std::regex("samebytes_([a-z0-9]+)[.]dir")));
    if (level[1] == "baseline") continue;
    const std::string number = level[1] == "avx2" ? "1" : "2";
    const Outcome names = run_program({"nm", "-C", "--defined-only", build_folder() + "/" + object});
    ASSERT_EQ(names.status, 0) << names.output;
    std::istringstream lines(names.output);
    for (std::string line; std::getline(lines, line);) {
      if (!std::regex_search(line, std::regex("^[0-9a-f]+ [A-Zuvw] "))) continue;  // a local name
      EXPECT_TRUE(line.find("Eigen_" + level[1].str()) != std::string::npos ||
                  line.find("samebytes::detail::HostLevel)" + number) != std::string::npos ||
                  line.find(" DW.ref.") != std::string::npos)
          << object << "\n"
          << line;
    }
  }
}

}  // namespace
}  // namespace samebytes::testing
