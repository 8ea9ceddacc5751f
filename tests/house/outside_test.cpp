// The checks that look at the library from outside are themselves checked: the byte counter counts every kind of call,
// and Oclgrind reports mistakes that were planted.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "support/process.h"

namespace samebytes::testing {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::filesystem::remove(path);
  return text;
}

TEST(CountBytes, reports_every_kind_of_call_that_moves_bytes) {
  const std::string counts = temporary_path("counts.json");
  const Outcome outcome =
      run_program({built_program("count_bytes_probe")},
                  {{"LD_PRELOAD", built_program("libcount_bytes_preload.so")}, {"SAMEBYTES_COUNT_FILE", counts}});
  if (outcome.status == 2) GTEST_SKIP() << "no device with shared virtual memory";
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const auto json = nlohmann::json::parse(text_of(counts));
  const auto expect = [&json](const char* kind, int calls, int bytes) {
    EXPECT_EQ(json.at(kind).at("calls"), calls) << kind;
    EXPECT_EQ(json.at(kind).at("bytes"), bytes) << kind;
  };
  expect("read", 2, 200 + 64);
  expect("write", 2, 100 + 64);
  expect("copy", 2, 300 + 64);
  expect("svm_memcpy", 1, 900);
  expect("migrate", 1, 4096);
  expect("copied_host_pointer", 1, 4096);
  expect("map", 2, 600 + 700);
  expect("unmap", 2, 0);
  expect("fill", 2, 500 + 800);
  EXPECT_EQ(json.at("moved"), 264 + 164 + 364 + 900 + 4096 + 4096);
}

class Oclgrind : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"oclgrind", "--version"}).status != 0) GTEST_SKIP() << "oclgrind is not installed";
  }

  // What Oclgrind writes about one op of tests/programs/planted_kernel.cpp, run as .ci/run runs the kernels' tests.
  static std::string report_on(const std::string& op, const std::vector<std::string>& checks = {
                                                          "--data-races", "--uniform-writes", "--uninitialized"}) {
    const std::string log = temporary_path("oclgrind.log");
    std::vector<std::string> command{"oclgrind"};
    command.insert(command.end(), checks.begin(), checks.end());
    command.insert(command.end(),
                   {"--build-options", "-cl-opt-disable", "--log", log, built_program("planted_kernel"), op});
    const Outcome outcome = run_program(command, {{"SAMEBYTES_ALLOCATOR", "exact"}, {"SAMEBYTES_MEMORY", "copy"}});
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return text_of(log);
  }
};

TEST_F(Oclgrind, reports_a_planted_overrun) {
  EXPECT_NE(report_on("overrun").find("Invalid write of size 4"), std::string::npos);
}

TEST_F(Oclgrind, reports_a_planted_race) { EXPECT_NE(report_on("race").find("data race"), std::string::npos); }

TEST_F(Oclgrind, reports_a_planted_unset_value) {
  EXPECT_NE(report_on("unset").find("Uninitialized value"), std::string::npos);
}

TEST_F(Oclgrind, says_nothing_about_a_clean_op) { EXPECT_EQ(report_on("clean"), ""); }

TEST_F(Oclgrind, finds_no_races_in_plans_that_are_replayed) {
  EXPECT_EQ(report_on("plan", {"--data-races", "--uniform-writes"}), "");
}

TEST(GuardBytes, tell_a_planted_overrun_from_a_clean_op) {
  const auto outcome_of = [](const std::string& op) {
    return run_program({built_program("planted_kernel"), op}, {{"SAMEBYTES_ALLOCATOR", "exact"}});
  };
  const Outcome overrun = outcome_of("overrun"), clean = outcome_of("clean");
  EXPECT_EQ(clean.status, 0) << clean.output;
  EXPECT_EQ(overrun.status, 3) << overrun.output;
  EXPECT_NE(overrun.output.find("bytes past its end"), std::string::npos) << overrun.output;
}

}  // namespace
}  // namespace samebytes::testing
