#include "runtime/devices.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "runtime/rig.h"
#include "support/process.h"

namespace samebytes::detail {
namespace {

using samebytes::testing::Outcome;
using samebytes::testing::run_child;

TEST(Devices, are_listed_with_what_was_chosen_and_why) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const DeviceInfo& info = devices[i];
    EXPECT_EQ(info.index, static_cast<int>(i));
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.driver.empty());
    EXPECT_FALSE(info.opencl_c.empty());
    EXPECT_FALSE(info.memory_reason.empty());
    EXPECT_FALSE(info.personality_reason.empty());
    EXPECT_GT(info.memory_bytes, 0u);
    EXPECT_GT(info.alignment_bytes, 0u);
    EXPECT_GE(info.cores, 1);
  }
  EXPECT_TRUE(explain_no_device().empty());
}

bool has_platform(const std::string& part) {
  const std::vector<DeviceInfo> devices = list_devices();
  return std::any_of(devices.begin(), devices.end(),
                     [&](const DeviceInfo& d) { return d.platform.find(part) != std::string::npos; });
}

#define SAMEBYTES_NEEDS_POCL() \
  if (!has_platform("Portable")) GTEST_SKIP() << "needs_pocl: the first device is " << list_devices().front().name

TEST(Devices, pocl_shares_its_memory_and_runs_the_cpu_kernels) {
  SAMEBYTES_NEEDS_POCL();
  const DeviceInfo info = choose_device("Portable");
  EXPECT_EQ(info.type, "cpu");
  EXPECT_EQ(info.personality, Personality::cpu);
  EXPECT_TRUE(info.has_fma);
  const bool is_system = info.svm == "system";  // since PoCL 6
  EXPECT_EQ(info.memory_mode, is_system ? MemoryMode::system : MemoryMode::fine);
  EXPECT_TRUE(is_system || info.svm == "fine+atomics") << info.svm;
}

TEST(Devices, are_chosen_by_type_rank_index_or_part_of_a_name) {
  const DeviceInfo best = choose_device("");
  EXPECT_EQ(choose_device("0").name, best.name);
  EXPECT_EQ(choose_device(best.type).id, best.type + ":0");
  EXPECT_EQ(choose_device(best.type + ":0").type, best.type);
  std::string part = best.platform.substr(0, 5);
  for (char& c : part)
    c = static_cast<char>(std::isupper(static_cast<unsigned char>(c)) ? std::tolower(c) : std::toupper(c));
  EXPECT_EQ(choose_device(part).platform, best.platform);
  const std::string message = message_of<ArgumentError>([] { choose_device("warp drive"); });
  EXPECT_NE(message.find("warp drive"), std::string::npos);
  EXPECT_NE(message.find(best.name), std::string::npos);
  EXPECT_THROW(choose_device("99"), ArgumentError);
  EXPECT_THROW(choose_device("gpu:7"), ArgumentError);
}

TEST(Devices, unknown_modes_and_personalities_are_refused_by_name) {
  setenv("SAMEBYTES_MEMORY", "shared", 1);
  const std::string mode = message_of<ArgumentError>([] { list_devices(); });
  EXPECT_EQ(mode, "SAMEBYTES_MEMORY: expected system, fine, usm, coarse, hostptr or copy, got 'shared'");
  EXPECT_THROW(Runtime{RuntimeOptions{}}, ArgumentError);
  setenv("SAMEBYTES_MEMORY", "copy", 1);
  EXPECT_EQ(Runtime{RuntimeOptions{}}.mode(), MemoryMode::copy);
  EXPECT_EQ(list_devices()[0].memory_mode, MemoryMode::copy);
  unsetenv("SAMEBYTES_MEMORY");
  setenv("SAMEBYTES_PERSONALITY", "tpu", 1);
  EXPECT_THROW(list_devices(), ArgumentError);
  setenv("SAMEBYTES_PERSONALITY", "gpu", 1);
  Runtime runtime{RuntimeOptions{}};
  EXPECT_EQ(runtime.device().personality(), Personality::gpu);
  EXPECT_EQ(runtime.device().vector_width(f32), 1);
  EXPECT_NE(runtime.device().kernels().defines(f32).find("-DSAMEBYTES_GPU -DVW=1"), std::string::npos);
  unsetenv("SAMEBYTES_PERSONALITY");
}

// Announced by the driver, or found by the probe.
TEST(Devices, the_personality_rule_is_a_cpu_with_fma_and_wide_vectors) {
  for (const FoundDevice& found : find_devices()) {
    const bool is_cpu = found.info.type == "cpu" && found.info.has_fma && found.info.vector_width >= 4;
    EXPECT_EQ(found.info.personality == Personality::cpu, is_cpu) << found.info.name;
  }
}

TEST(DevicesChild, DISABLED_there_is_no_device) {
  EXPECT_TRUE(list_devices().empty());
  std::printf("%s\n", explain_no_device().c_str());
  const std::string message = message_of<DeviceError>([] { choose_device(""); });
  EXPECT_EQ(message, explain_no_device());
}

TEST(Devices, an_empty_folder_of_drivers_is_explained) {
  const std::string folder = samebytes::testing::temporary_path("no_drivers");
  std::filesystem::create_directories(folder);
  const Outcome outcome = run_child("DevicesChild.DISABLED_there_is_no_device", {{"OCL_ICD_VENDORS", folder}});
  std::filesystem::remove_all(folder);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("OCL_ICD_VENDORS is " + folder), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("apt install pocl-opencl-icd"), std::string::npos) << outcome.output;
}

TEST(Devices, a_kernel_cache_that_cannot_be_written_is_explained) {
  SAMEBYTES_NEEDS_POCL();
  const Outcome outcome = run_child("DevicesChild.DISABLED_there_is_no_device", {{"POCL_CACHE_DIR", "/proc/x"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("kernel cache folder /proc/x cannot be written"), std::string::npos) << outcome.output;
}

TEST(DevicesChild, DISABLED_llvmpipe_is_offered_and_pocl_wins) {
  const std::vector<DeviceInfo> devices = list_devices();
  const bool offered = std::any_of(devices.begin(), devices.end(),
                                   [](const DeviceInfo& d) { return d.name.find("llvmpipe") != std::string::npos; });
  if (!offered) GTEST_SKIP() << "no llvmpipe";
  EXPECT_NE(choose_device("").platform, "rusticl");
  EXPECT_NE(choose_device("cpu").platform, "rusticl");
  const DeviceInfo info = choose_device("llvmpipe");
  EXPECT_EQ(info.svm, "none");
  EXPECT_EQ(info.memory_mode, MemoryMode::hostptr);
  EXPECT_EQ(info.personality, Personality::gpu);
  RuntimeOptions options;
  options.device = "llvmpipe";
  options.force_mode = true;
  options.mode = MemoryMode::fine;
  EXPECT_THROW(Runtime{options}, ArgumentError);
}

TEST(Devices, pocl_wins_where_llvmpipe_offers_a_cpu_too) {
  SAMEBYTES_NEEDS_POCL();
  const Outcome outcome = run_child("DevicesChild.DISABLED_llvmpipe*", {{"RUSTICL_ENABLE", "llvmpipe"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

// The modes without SVM on a real device that has none.
TEST(Devices, modes_without_svm_run_on_llvmpipe) {
  const Outcome outcome =
      run_child("Storage/Modes.*/hostptr:Storage/Modes.*/copy:Modes/Adopt.*/hostptr:Modes/Adopt.*/copy",
                {{"RUSTICL_ENABLE", "llvmpipe"}, {"SAMEBYTES_TEST_DEVICE", "llvmpipe"}});
  if (outcome.output.find("no device is called") != std::string::npos) GTEST_SKIP() << "no llvmpipe";
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(DevicesChild, DISABLED_threads_are_limited_by_the_environment) {
  pin_threads(1);
  EXPECT_EQ(choose_device("Portable").cores, 1);
}

TEST(Devices, the_command_can_limit_pocls_threads) {
  SAMEBYTES_NEEDS_POCL();
  if (choose_device("Portable").cores < 2) GTEST_SKIP() << "needs_two_cores";
  const Outcome outcome =
      run_child("DevicesChild.DISABLED_threads_are_limited_by_the_environment", {{"SAMEBYTES_TEST_LATE_DEVICE", "1"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::detail
