// Coarse mode on a device whose map is empty keeps a shadow, so that a wrong map or unmap gives wrong numbers. These
// tests plant each mistake and see that it shows.
#include "runtime/rig.h"

namespace samebytes::detail {
namespace {

struct Planted {
  explicit Planted(MapFault fault) { faults().map = fault; }
  ~Planted() { faults().map = MapFault::none; }
};

// Host writes, device adds one, host reads and writes one element, device adds one again, host reads.
std::vector<float> play(Runtime& runtime, MapFault fault) {
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  // A block of the cache carries the numbers and the mapping of its last owner: start from known ones.
  write_host(*storage, std::vector<float>(100, -7.0f));
  add_one(runtime, *kernel, *storage, 100);
  read_host(*storage, 100);
  add_one(runtime, *kernel, *storage, 100);
  Planted planted(fault);
  write_host(*storage, counting(100));
  read_host(*storage, 1);
  add_one(runtime, *kernel, *storage, 100);
  runtime.wait();  // a doubled unmap now loses what the device wrote
  add_one(runtime, *kernel, *storage, 100);
  read_host(*storage, 1);
  write_host(*storage, {50.0f}, 3);
  add_one(runtime, *kernel, *storage, 100);
  return read_host(*storage, 100);
}

std::vector<float> right_answer() {
  std::vector<float> expected = counting(100, 3);
  expected[3] = 51.0f;
  return expected;
}

// Where a map does something by itself, there is no shadow that would show mistakes in the same way each time.
#define SAMEBYTES_NEEDS_SHADOW()                                                         \
  if (const std::string svm = choose_device(options_for(MemoryMode::coarse).device).svm; \
      svm == "coarse" || svm == "none")                                                  \
  GTEST_SKIP() << "needs_fine_grained: the device has no SVM whose map is empty (" << svm << ")"

TEST(Coarse, gives_the_right_numbers_on_a_device_whose_map_is_not_empty) {
  const RuntimeOptions options = options_for(MemoryMode::coarse);
  if (const std::string svm = choose_device(options.device).svm; svm != "coarse")
    GTEST_SKIP() << "needs_coarse: the device has " << svm;
  Runtime runtime(options);
  EXPECT_FALSE(runtime.coarse_shadow());
  EXPECT_EQ(play(runtime, MapFault::none), right_answer());
}

TEST(CoarseShadow, gives_the_right_numbers_without_mistakes) {
  SAMEBYTES_NEEDS_SHADOW();
  Runtime runtime(options_for(MemoryMode::coarse));
  ASSERT_TRUE(runtime.coarse_shadow());
  EXPECT_EQ(play(runtime, MapFault::none), right_answer());
}

TEST(CoarseShadow, shows_a_missing_map) {
  SAMEBYTES_NEEDS_SHADOW();
  Runtime runtime(options_for(MemoryMode::coarse));
  EXPECT_NE(play(runtime, MapFault::skip_map), right_answer());
}

TEST(CoarseShadow, shows_a_missing_unmap) {
  SAMEBYTES_NEEDS_SHADOW();
  Runtime runtime(options_for(MemoryMode::coarse));
  EXPECT_NE(play(runtime, MapFault::skip_unmap), right_answer());
}

TEST(CoarseShadow, shows_a_doubled_map) {
  SAMEBYTES_NEEDS_SHADOW();
  Runtime runtime(options_for(MemoryMode::coarse));
  EXPECT_NE(play(runtime, MapFault::double_map), right_answer());
}

TEST(CoarseShadow, shows_a_doubled_unmap) {
  SAMEBYTES_NEEDS_SHADOW();
  Runtime runtime(options_for(MemoryMode::coarse));
  EXPECT_NE(play(runtime, MapFault::double_unmap), right_answer());
}

TEST(CoarseShadow, is_not_in_the_ledger) {
  SAMEBYTES_NEEDS_SHADOW();
  Runtime coarse(options_for(MemoryMode::coarse)), fine(options_for(MemoryMode::fine));
  StoragePtr a = coarse.allocate(1 << 20, Category::value, "test"), b = fine.allocate(1 << 20, Category::value, "test");
  EXPECT_EQ(coarse.memory().live_bytes, fine.memory().live_bytes);
}

}  // namespace
}  // namespace samebytes::detail
