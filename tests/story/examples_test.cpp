// The numbered examples are programs with asserts: they run.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "support/files.h"
#include "support/process.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

const char* kNeedsData = "04_mnist_cnn";

TEST(Examples, all_of_them_run) {
  const std::filesystem::path folder = built_program("examples");
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "built without examples";
  int count = 0;
  for (const auto& file : source_files({"examples"}, {".cpp"})) {
    const std::string name = std::filesystem::path(file.path).stem().string();
    if (name == kNeedsData || file.path.find("workloads/") != std::string::npos) continue;
    const Outcome outcome = run_program({(folder / name).string()});
    EXPECT_EQ(outcome.status, 0) << name << ": " << outcome.output;
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(Examples, the_one_that_trains_mnist_has_at_most_40_lines) {
  for (const auto& file : source_files({"examples"}, {".cpp"})) {
    if (file.path.find(kNeedsData) != std::string::npos) {
      EXPECT_LE(lines_of(file.text).size(), 40u);
    }
  }
}

}  // namespace
}  // namespace samebytes::testing
