// Engines over several devices by name: lists, "all", parts, what is refused, and one memory for those of a platform.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/devices.h"
#include "runtime/rig.h"
#include "samebytes/samebytes.h"
#include "support/process.h"
#include "support/quirks.h"

namespace samebytes::detail {
namespace {

using samebytes::testing::Outcome;
using samebytes::testing::run_child;
using ::testing::HasSubstr;

const std::map<std::string, std::string> kTwoDevices = {{"POCL_DEVICES", "pthread basic"}};

std::string refusal_of(const EngineOptions& options) {
  return message_of<ArgumentError>([&] { const Engine engine(options); });
}

TEST(NamedDevices, wrong_lists_say_what_is_wrong) {
  const DeviceInfo own = choose_device("");
  const std::string id = own.id, type = own.type;
  EXPECT_THAT(refusal_of({.devices = {"warp9"}}), HasSubstr("no device is called 'warp9'; there is " + id));
  EXPECT_THAT(refusal_of({.devices = {id, type}}), HasSubstr("'" + id + "' and '" + type + "' are one device, " + id));
  EXPECT_THAT(refusal_of({.devices = {id, ""}}), HasSubstr("a name is empty; there is " + id));
  EXPECT_EQ(refusal_of({.devices = {"all", type}}), "devices: expected 'all' stands alone, got 2 names");
  EXPECT_EQ(refusal_of({.device = type, .devices = {type}}),
            "engine: device and devices were both given; name all of them in devices");
  EXPECT_THAT(refusal_of({.split = {0}}), HasSubstr("split wants parts of 1 or more cores"));
}

TEST(NamedDevices, one_name_in_a_list_is_that_device) {
  const std::string type = choose_device("").type;
  const Engine engine({.devices = {type}});
  EXPECT_EQ(engine.device_count(), 1);
  EXPECT_EQ(engine.device().id, type + ":0");
}

TEST(NamedDevices, parts_have_names_of_their_own) {
  SAMEBYTES_NEEDS_PARTS();
  const Engine engine({.devices = {"cpu:0"}, .split = {1, 1}});
  ASSERT_EQ(engine.device_count(), 2);
  EXPECT_EQ(engine.device(0).id, "cpu:0.0");
  EXPECT_EQ(engine.device(1).id, "cpu:0.1");
  EXPECT_EQ(engine.device(1).cores, 1);
}

TEST(NamedDevicesChild, DISABLED_two_of_a_platform_share_their_bytes) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{"0", "1"}, {"all"}}) {
    Engine engine({.devices = names, .forbid_copies = true});
    ASSERT_EQ(engine.device_count(), 2);
    EXPECT_NE(engine.device(0).id, engine.device(1).id);
    const Array a = uniform({64, 64}), b = matmul(a, a);
    Array c;
    {
      const DeviceScope on(1);
      c = tanh(matmul(b, a) * 0.01) + b;
    }
    EXPECT_EQ(c.device(), 1);
    const Array whole = tanh(matmul(b, a) * 0.01) + b;
    EXPECT_EQ(c.to_vector<float>(), whole.to_vector<float>());
    EXPECT_EQ(engine.transfers().bytes_copied, 0u);
  }
  RuntimeOptions both;
  both.devices = {"0", "1"};
  EXPECT_EQ(Runtime{both}.space_count(), 1);
  // The order is that of the names; modes hold for all.
  const Engine turned({.devices = {"1", "0"}, .memory = MemoryMode::coarse});
  EXPECT_EQ(turned.device(0).index, 1);
  EXPECT_EQ(turned.device(0).memory_mode, MemoryMode::coarse);
  EXPECT_EQ(turned.device(1).memory_mode, MemoryMode::coarse);
  EXPECT_THAT(refusal_of({.devices = {"0", "1"}, .split = {1}}), HasSubstr("split is of one device, 2 were named"));
}

TEST(NamedDevices, two_of_a_platform_share_their_bytes) {
  if (choose_device("").platform.find("Portable") == std::string::npos) GTEST_SKIP() << "needs_pocl: POCL_DEVICES";
  const Outcome outcome = run_child("NamedDevicesChild.DISABLED_two_of_a_platform_share_their_bytes", kTwoDevices);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

// There and back, with a launch on either side that must come after, and another one behind it in the queue.
TEST(NamedDevicesChild, DISABLED_bytes_cross_between_drivers) {
  RuntimeOptions options;
  options.devices = {"Portable", "llvmpipe"};
  const std::vector<FoundDevice> found = find_devices();
  if (std::none_of(found.begin(), found.end(),
                   [](const FoundDevice& d) { return d.info.name.find("llvmpipe") != std::string::npos; }))
    GTEST_SKIP() << "no llvmpipe";
  if (found.front().info.platform.find("Portable") == std::string::npos) GTEST_SKIP() << "no PoCL";
  Runtime runtime(options);
  ASSERT_EQ(runtime.space_count(), 2);
  EXPECT_EQ(runtime.space(0).mode(), found.front().info.memory_mode);
  constexpr int kCount = 5000;
  const StoragePtr here = runtime.allocate(kCount * 4, Category::value, "test");
  const StoragePtr there = runtime.allocate(kCount * 4, Category::value, "test", "", 1);
  const auto add_here = test_kernel(runtime, "add_one", 0), add_there = test_kernel(runtime, "add_one", 1);
  write_host(*here, counting(kCount));
  for (int round = 0; round < 20; ++round) {
    Submission submission(runtime);
    submission.acquire(*here, true, "test", 0, kCount * 4);
    submission.acquire(*there, true, "test", 0, kCount * 4);
    submission.begin_transfers();
    const auto add_one = [&](Kernel& kernel, Storage& storage, int device) {
      const std::int64_t first = 0;
      kernel.set_storage(0, storage);
      kernel.set_bytes(1, &first, sizeof first);
      kernel.set_bytes(2, &kCount, sizeof kCount);
      submission.enqueue(runtime.device(device), kernel, rows(kCount), "add_one");
    };
    add_one(*add_here, *here, 0);
    const auto before = submission.mark(runtime.device(0));
    const auto arrived = submission.transfer({here.get(), 0, there.get(), 0, kCount * 4}, {&before}, "transfer");
    submission.order_after(runtime.device(1), arrived);
    add_one(*add_there, *there, 1);
    const auto done = submission.mark(runtime.device(1));
    const auto back = submission.transfer({there.get(), 0, here.get(), 0, kCount * 4}, {&done}, "transfer");
    submission.order_after(runtime.device(0), back);
    add_one(*add_here, *here, 0);
    submission.finish();
  }
  runtime.wait();
  EXPECT_EQ(read_host(*here, kCount), counting(kCount, 60));
  EXPECT_EQ(read_host(*there, kCount), counting(kCount, 59));
  EXPECT_EQ(runtime.transfers().bytes_between_contexts, 40u * kCount * 4);
  EXPECT_EQ(runtime.transfers().crossings, 40u);
}

TEST(NamedDevices, bytes_cross_between_drivers) {
  const Outcome outcome =
      run_child("NamedDevicesChild.DISABLED_bytes_cross_between_drivers", {{"RUSTICL_ENABLE", "llvmpipe"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(NamedDevicesChild, DISABLED_all_leaves_out_what_cannot_be_used) {
  const std::vector<FoundDevice> found = find_devices();
  const auto is_llvmpipe = [](const FoundDevice& d) { return d.info.name.find("llvmpipe") != std::string::npos; };
  if (found.size() != 1 || !is_llvmpipe(found[0]) || found[0].info.svm != "none")
    GTEST_SKIP() << "no llvmpipe without shared virtual memory";
  const MemoryMode fine = MemoryMode::fine;
  EXPECT_EQ(find_devices({"all"}, nullptr).size(), 1u);
  const std::string message = message_of<ArgumentError>([&] { find_devices({"all"}, &fine); });
  EXPECT_THAT(message, HasSubstr("devices: of all, none can be used (cpu:0 '"));
  EXPECT_THAT(message, HasSubstr("no fine-grained SVM"));
}

TEST(NamedDevices, all_leaves_out_what_cannot_be_used) {
  const Outcome outcome = run_child("NamedDevicesChild.DISABLED_all_leaves_out_what_cannot_be_used",
                                    {{"RUSTICL_ENABLE", "llvmpipe"}, {"OCL_ICD_VENDORS", "rusticl.icd"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::detail
