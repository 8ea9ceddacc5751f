// SAMEBYTES_PROTECT=1: a stray host pointer faults where it is used. Each case runs in a process of its own.
#include <sys/mman.h>

#include <csignal>

#include "runtime/rig.h"
#include "support/process.h"

namespace samebytes::detail {
namespace {

using samebytes::testing::Outcome;
using samebytes::testing::run_child;

// The address that a view gave, after the view is gone.
volatile float* stray_pointer(Storage& storage) {
  std::uint64_t borrow = 0;
  void* address = storage.acquire_host(true, 0, 400, __FILE__, __LINE__, &borrow);
  static_cast<float*>(address)[7] = 1.0f;
  storage.release_host(borrow);
  return static_cast<volatile float*>(address);
}

TEST(ProtectChild, DISABLED_a_stray_write_after_the_view) {
  Runtime runtime{RuntimeOptions{}};
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  stray_pointer(*storage)[7] = 2.0f;
  std::printf("no fault\n");
}

TEST(ProtectChild, DISABLED_a_stray_read_after_a_step) {
  Runtime runtime{RuntimeOptions{}};
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  volatile float* stray = stray_pointer(*storage);
  add_one(runtime, *kernel, *storage, 100);
  read_host(*storage, 100);
  const float value = stray[7];
  std::printf("no fault, %g\n", static_cast<double>(value));
}

TEST(ProtectChild, DISABLED_rightful_use) {
  Runtime runtime{RuntimeOptions{}};
  auto kernel = test_kernel(runtime, "add_one");
  for (int turn = 0; turn < 20; ++turn) {
    StoragePtr storage = runtime.allocate(4096 + 40 * static_cast<std::size_t>(turn), Category::value, "test");
    write_host(*storage, counting(1024));
    std::uint64_t borrow = 0;
    add_one(runtime, *kernel, *storage, 1024);
    add_one(runtime, *kernel, *storage, 1024);
    if (turn % 3 == 0) continue;
    const auto* values = static_cast<const float*>(storage->acquire_host(false, 0, 4096, __FILE__, __LINE__, &borrow));
    EXPECT_EQ(values[5], 7.0f);
    storage->release_host(borrow);
    add_one(runtime, *kernel, *storage, 1024);
    EXPECT_EQ(read_host(*storage, 1024), counting(1024, 3));
  }
  runtime.clear_cache();
}

class Protect : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const DeviceInfo info = choose_device("");
    for (const MemoryMode mode : modes_of_device()) {
      if (std::get<0>(GetParam()) != samebytes::name_of(mode)) continue;
      const bool is_drivers_own = info.type != "cpu" && mode != MemoryMode::hostptr && mode != MemoryMode::copy;
      if (is_drivers_own) GTEST_SKIP() << "needs_cpu: this memory belongs to the driver of " << info.name;
      return;
    }
    GTEST_SKIP() << "needs_" << std::get<0>(GetParam()) << ": SVM of " << info.name << " is " << info.svm;
  }
  Outcome run(const std::string& name) const {
    return run_child("ProtectChild.DISABLED_" + name,
                     {{"SAMEBYTES_PROTECT", std::get<1>(GetParam())}, {"SAMEBYTES_MEMORY", std::get<0>(GetParam())}});
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Protect,
                         ::testing::Combine(::testing::Values("system", "fine", "coarse", "hostptr", "copy"),
                                            ::testing::Values("1", "pages")),
                         [](const auto& both) {
                           return std::get<0>(both.param) + (std::get<1>(both.param) == "1" ? "_best" : "_pages");
                         });

TEST_P(Protect, a_stray_write_faults) {
  if (samebytes::testing::is_sanitized()) GTEST_SKIP() << "sanitizers report the fault in their own way";
  const Outcome outcome = run("a_stray_write_after_the_view");
  EXPECT_EQ(outcome.status, 128 + SIGSEGV) << outcome.output;
}

TEST_P(Protect, a_stray_read_faults_once_the_step_is_over) {
  if (samebytes::testing::is_sanitized()) GTEST_SKIP() << "sanitizers report the fault in their own way";
  const Outcome outcome = run("a_stray_read_after_a_step");
  EXPECT_EQ(outcome.status, 128 + SIGSEGV) << outcome.output;
}

TEST_P(Protect, views_and_launches_work_as_ever) {
  const Outcome outcome = run("rightful_use");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::detail
