// What is measured of a device, and what follows from it.
#include "runtime/kernel_speed.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "runtime/inside_calls.h"
#include "runtime/rig.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/process.h"

namespace samebytes::detail {
namespace {

using ::testing::HasSubstr;

TEST(KernelSpeed, emulated_fma_and_lanes_that_idle_are_noticed) {
  EXPECT_TRUE(has_fast_fma({.vectors = 90, .items = 10, .products = 60}));
  EXPECT_FALSE(has_fast_fma({.vectors = 0.02, .items = 0.1, .products = 2}));  // llvmpipe
  EXPECT_TRUE(has_fast_vectors({.vectors = 90, .items = 90, .products = 60}));
  EXPECT_FALSE(has_fast_vectors({.vectors = 5, .items = 90, .products = 5}));
}

TEST(KernelSpeed, is_measured_on_every_device) {
  for (const DeviceInfo& info : list_devices()) {
    if (!info.refused.empty()) continue;
    const KernelSpeed speed = samebytes::measure_kernel_speed(info);
    EXPECT_GT(speed.vectors, 0) << info.name;
    EXPECT_GT(speed.items, 0) << info.name;
    EXPECT_GT(speed.products, 0) << info.name;
    if (info.type != "cpu") continue;
    EXPECT_EQ(has_fast_fma(speed), info.has_fma) << info.name << ": " << text_of_speed(speed);
  }
}

TEST(KernelSpeed, is_kept_beside_the_tuning_store) {
  const samebytes::testing::TemporaryFolder folder;
  const Environment store("SAMEBYTES_TUNING", folder.string());
  FoundDevice found = find_device("");
  found.info.name = "kept";  // this process knows the real one
  const auto first = known_kernel_speed(found.info, found.handle);
  ASSERT_TRUE(first);
  std::ifstream file(folder / "devices.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("kept, " + found.info.driver));
  EXPECT_EQ(known_kernel_speed(found.info, found.handle)->vectors, first->vectors);
  found.info.name = "damaged";
  for (const char* damage : {R"({"format": 1, "speeds": {"x": {"vectors": 0}}})", R"({"format": "1", "speeds": {}})"}) {
    std::ofstream(folder / "devices.json") << damage;
    EXPECT_THROW(known_kernel_speed(found.info, found.handle), IoError) << damage;
  }
}

TEST(HandOver, is_measured_in_every_mode_of_the_device) {
  const DeviceInfo info = choose_device("");
  const std::vector<HandOver> costs = measure_hand_over(info, 1 << 20);
  std::size_t modes = 0;
  std::string reason;
  for (const MemoryMode mode : kMemoryModes) modes += can_use_mode(info, mode, &reason) ? 1 : 0;
  EXPECT_EQ(costs.size(), modes);
  for (const HandOver& cost : costs) {
    EXPECT_GE(cost.to_device, 0);
    EXPECT_LT(cost.to_host, 10) << name_of(cost.mode);
  }
  EXPECT_THROW(measure_hand_over(info, 0), ArgumentError);
}

TEST(InsideCallsChild, DISABLED_one_of_pocls_two_devices_works_inside_the_calls) {
  const std::vector<FoundDevice> found = find_devices();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(
      std::count_if(found.begin(), found.end(), [](const FoundDevice& d) { return works_inside_calls(d.handle); }), 1);
}

TEST(InsideCalls, one_of_pocls_two_devices_works_inside_the_calls) {
  const DeviceInfo info = choose_device("");
  if (info.platform.find("Portable") == std::string::npos) GTEST_SKIP() << "needs_pocl: POCL_DEVICES";
  const auto outcome = samebytes::testing::run_child("InsideCallsChild.*", {{"POCL_DEVICES", "pthread basic"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::detail
