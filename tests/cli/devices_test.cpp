// samebytes devices, with devices and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Devices, are_listed_with_mode_and_kernels_and_why) {
  const auto result = run_command({"devices"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* word : {"cpu:0", "driver", "OpenCL C", "memory", "kernels"})
    EXPECT_THAT(result.out, HasSubstr(word));
}

TEST(Devices, have_a_json_form) {
  const auto result = run_command({"devices", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = result.json();
  ASSERT_TRUE(json.is_object()) << result.out;
  ASSERT_FALSE(json["devices"].empty());
  EXPECT_EQ(json["trouble"], "");
  const auto& device = json["devices"][0];
  for (const char* key : {"id", "name", "driver", "opencl_c", "svm", "alignment_bytes", "f16", "f64", "memory_bytes",
                          "cores", "memory_mode", "memory_reason", "personality", "personality_reason"})
    EXPECT_TRUE(device.contains(key)) << key;
}

TEST(Devices, without_a_driver_the_command_says_what_to_install) {
  const TemporaryFolder empty;
  const auto result = run_command({"devices"}, {{"OCL_ICD_VENDORS", empty.string()}});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, StartsWith("samebytes: "));
  EXPECT_THAT(result.err, HasSubstr("pocl-opencl-icd"));
  const auto json = run_command({"devices", "--json"}, {{"OCL_ICD_VENDORS", empty.string()}});
  EXPECT_EQ(json.status, 1);
  EXPECT_TRUE(json.json()["devices"].empty());
  EXPECT_NE(json.json()["trouble"], "");
}

TEST(Devices, an_unwritable_kernel_cache_is_named) {
  const auto result = run_command({"devices"}, {{"POCL_CACHE_DIR", "/proc/x"}});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("/proc/x"));
}

TEST(Devices, training_without_one_fails_with_the_same_sentence) {
  const TemporaryFolder empty;
  const auto result = run_command({"train", "digits"}, {{"OCL_ICD_VENDORS", empty.string()}});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("pocl-opencl-icd"));
}

TEST(Devices, an_unknown_one_lists_what_there_is) {
  const auto result = run_command({"train", "digits", "--device", "warp9"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("warp9"));
  EXPECT_THAT(result.err, HasSubstr("cpu:0"));
}

}  // namespace
}  // namespace samebytes::testing
