// samebytes devices, with devices and without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "support/files.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Devices, are_listed_with_mode_and_kernels_and_why) {
  const auto result = run_command({"devices"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* word :
       {"--device   cpu:0, cpu, 0, or a part of its name", "driver", "OpenCL C", "memory", "kernels"})
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

const std::map<std::string, std::string> kTwoDevices = {{"POCL_DEVICES", "pthread basic"}};

TEST(Devices, of_one_platform_say_that_they_share_memory) {
  const auto result = run_command({"devices"}, kTwoDevices);
  EXPECT_THAT(result.out, HasSubstr("--device   cpu:1, 1, or a part of its name"));
  EXPECT_THAT(result.out, HasSubstr("together   shares its memory with cpu:0"));
  const auto json = run_command({"devices", "--json"}, kTwoDevices).json();
  ASSERT_EQ(json["devices"].size(), 2u);
  EXPECT_EQ(json["devices"][0]["names"], (nlohmann::ordered_json{"cpu:0", "cpu", "0"}));
  EXPECT_EQ(json["devices"][0]["shares_memory_with"], (nlohmann::ordered_json{"cpu:1"}));
}

TEST(Devices, several_of_them_train_together) {
  for (const char* list : {"cpu:0,cpu:1", "all"}) {
    const auto result = run_command({"train", "digits", "--device", list, "--steps", "3", "--json"}, kTwoDevices);
    ASSERT_EQ(result.status, 0) << result.err;
    const std::string device = result.json()["device"];
    EXPECT_THAT(device, HasSubstr("cpu:0 "));
    EXPECT_THAT(device, HasSubstr(" + cpu:1 "));
    EXPECT_EQ(result.json()["bytes_copied_per_step"], 0);
  }
}

TEST(Devices, parts_of_one_train_together) {
  const auto list = run_command({"devices", "--json"}).json();
  SAMEBYTES_NEEDS_PARTS();
  const auto result =
      run_command({"bench", "mlp", "--mode", "train", "--split-device", "1,1", "--steps", "3", "--json", "--explain"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::string device = result.json()[0]["device"];
  EXPECT_THAT(device, HasSubstr("cpu:0.0 "));
  EXPECT_THAT(device, HasSubstr(" + cpu:0.1 "));
  const std::string mode = list["devices"][0]["memory_mode"];
  const std::vector<std::string> words{"plan of ", "context 0, memory mode " + mode + ", ", "cross_entropy",
                                       "between contexts: nothing", "all devices share one context"};
  for (const std::string& word : words) EXPECT_THAT(result.err, HasSubstr(word));
}

TEST(Explain, prints_the_part_that_is_asked_for) {
  const auto printed = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--mode", "train", "--steps", "2", "--json"});
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.err;
  };
  const std::string plan = printed({"bench", "mlp", "--explain", "plan"});
  EXPECT_THAT(plan, HasSubstr("plan of "));
  EXPECT_THAT(plan, Not(HasSubstr("passes:")));
  const std::string passes = printed({"bench", "mlp", "--explain=passes"});
  EXPECT_THAT(passes, HasSubstr("passes:\n  collect "));
  EXPECT_THAT(passes, Not(HasSubstr("plan of ")));
  const std::string all = printed({"bench", "--explain", "mlp"});  // the word after it is no part
  for (const char* word : {"plan of ", "passes:", "why:"}) EXPECT_THAT(all, HasSubstr(word));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bench", "mlp", "--explain=zigzag"}, {"bench", "mlp", "--explain", "zigzag"}}) {
    const auto wrong = run_command(words);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_THAT(wrong.err, HasSubstr("expected one of all, plan, passes, got zigzag"));
  }
}

TEST(Devices, wrong_lists_say_what_is_wrong) {
  const auto refusal = [](std::vector<std::string> words) {
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2) << result.out;
    return result.err;
  };
  EXPECT_THAT(refusal({"train", "digits", "--device", "cpu:0,cpu"}), HasSubstr("'cpu:0' and 'cpu' are one device"));
  EXPECT_THAT(refusal({"train", "digits", "--device", "cpu:0,"}), HasSubstr("a name is empty"));
  EXPECT_THAT(refusal({"train", "digits", "--device", "all,cpu:0"}), HasSubstr("'all' stands alone"));
  EXPECT_THAT(refusal({"train", "digits", "--split-device", "99,99"}), HasSubstr("got 198 in 2 parts"));
  EXPECT_THAT(refusal({"bench", "mlp", "--serve", "--device", "cpu:0,cpu:1"}), HasSubstr("--serve needs one device"));
  EXPECT_THAT(refusal({"eval", "digits", "--load", "x", "--device", "all"}), HasSubstr("eval uses one device"));
}

}  // namespace
}  // namespace samebytes::testing
