// samebytes bench: an array with one object per workload, mode and device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cli/command.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

TEST(Bench, json_has_one_object_per_workload_and_mode) {
  const auto result = run_command({"bench", "digits", "mlp", "--steps", "10", "--batch", "16", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  ASSERT_TRUE(json.is_array()) << result.out;
  ASSERT_EQ(json.size(), 4u);
  std::set<std::string> kinds;
  for (const auto& row : json) {
    kinds.insert(row["workload"].get<std::string>() + " " + row["mode"].get<std::string>());
    EXPECT_EQ(row["steps"], 10);
    EXPECT_EQ(row["batch"], 16);
    EXPECT_EQ(row["samples"], 160);
    EXPECT_GT(row["gflops"], 0.0);
    EXPECT_GT(row["fraction_of_peak"], 0.0);
    // Loosely: other processes may have slowed the measure of the peak.
    EXPECT_LT(row["fraction_of_peak"], 5);
    for (const char* key : {"device", "memory_mode", "personality", "precision", "seconds", "samples_per_second",
                            "step_ms_p50", "step_ms_p95", "train_loss", "test_loss", "bytes_copied_per_step",
                            "launches_per_step", "peak_bytes", "stall_fraction", "first_step_seconds"})
      EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"digits train", "digits infer", "mlp train", "mlp infer"}));
}

TEST(Bench, the_table_names_the_peak_it_compares_with) {
  const auto result = run_command({"bench", "mlp", "--steps", "5"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("GFLOP/s"));
  EXPECT_THAT(result.out, HasSubstr("GB/s"));
  EXPECT_THAT(result.out, HasSubstr("infer"));
}

}  // namespace
}  // namespace samebytes::testing
