#include "runtime/allocator.h"

#include <cstdlib>

#include "runtime/rig.h"
#include "samebytes/engine.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

RuntimeOptions limited(std::size_t bytes) {
  RuntimeOptions options = options_of_device();
  options.memory_limit = bytes;
  return options;
}

TEST(Allocator, size_classes_waste_at_most_an_eighth_above_64_kib) {
  EXPECT_EQ(size_class(1), 4096u);
  EXPECT_EQ(size_class(4097), 8192u);
  for (std::size_t bytes = 65537; bytes < (std::size_t{1} << 33); bytes += bytes / 3 + 7) {
    EXPECT_GE(size_class(bytes), bytes);
    EXPECT_LE(size_class(bytes), bytes + bytes / 8 + 1) << bytes;
    EXPECT_EQ(size_class(size_class(bytes)), size_class(bytes));
    EXPECT_EQ(size_class(bytes) % 4096, 0u);
  }
}

TEST(Allocator, serves_the_same_size_from_its_cache) {
  Runtime runtime(limited(64 * kMegabyte));
  for (int i = 0; i < 10; ++i) runtime.allocate(kMegabyte, Category::value, "test");
  const MemoryReport report = runtime.memory();
  EXPECT_EQ(report.allocations, 1u);
  EXPECT_EQ(report.cached_bytes, kMegabyte);
  EXPECT_EQ(report.live_bytes, 0u);
  EXPECT_EQ(runtime.clear_cache(), kMegabyte);
  EXPECT_EQ(runtime.memory().cached_bytes, 0u);
}

TEST(Allocator, what_a_device_writes_first_lies_where_launches_still_are) {
  Runtime runtime(limited(64 * kMegabyte));
  auto slow = runtime.device().kernels().make_generated(
      f32,
      "__kernel void slow(ARRAY_INPLACE(float, x), const int n) { START(x); float s = x[0];"
      " for (int i = 0; i < n; ++i) s = s * 0.999f + 1.0f; x[0] = s; }",
      "slow");
  const auto device_first = [&] {
    return runtime.allocate(kMegabyte, Category::value, "test", "", 0, FirstUse::device);
  };
  StoragePtr free = device_first(), busy = device_first();
  if (!free->binds_pointer()) GTEST_SKIP() << "needs_svm: kernels of " << runtime.device_name() << " get buffers";
  const void *const free_place = free->device_pointer(), *const busy_place = busy->device_pointer();
  write_host(*busy, {0.0f});
  Submission submission(runtime);
  submission.acquire(*busy, true, "slow", 0, 4);
  const std::int64_t start = 0;
  const int n = 100000000;
  slow->set_storage(0, *busy);
  slow->set_bytes(1, &start, sizeof start);
  slow->set_bytes(2, &n, sizeof n);
  submission.enqueue(runtime.device(), *slow, rows(1), "slow");
  submission.finish();
  free.reset();
  busy.reset();
  StoragePtr next = device_first();  // where the queue was last
  EXPECT_EQ(next->device_pointer(), busy_place);
  EXPECT_TRUE(next->is_busy());
  next.reset();
  // The host does not wait.
  EXPECT_EQ(runtime.allocate(kMegabyte, Category::value, "test")->device_pointer(), free_place);
  // What is written there comes after what is under way.
  next = device_first();
  auto kernel = test_kernel(runtime, "fill");
  fill(runtime, *kernel, *next, 4, 3.0f);
  EXPECT_EQ(read_host(*next, 4), std::vector<float>(4, 3.0f));
}

TEST(Allocator, keeps_one_account_per_category_and_the_cause_of_the_peak) {
  Runtime runtime(limited(64 * kMegabyte));
  StoragePtr a = runtime.allocate(2 * kMegabyte, Category::parameter, "layer 1");
  StoragePtr b = runtime.allocate(3 * kMegabyte, Category::library, "gemm");
  b.reset();
  StoragePtr c = runtime.allocate(kMegabyte, Category::value, "relu");
  const MemoryReport report = runtime.memory();
  EXPECT_EQ(report.live_bytes, 3 * kMegabyte);
  EXPECT_EQ(report.library_bytes, 0u);
  EXPECT_EQ(report.peak_bytes, 5 * kMegabyte);
  EXPECT_EQ(report.peak_cause, "gemm");
  EXPECT_EQ(report.limit_bytes, 64 * kMegabyte);
}

TEST(Allocator, running_out_names_need_budget_and_ways_out_and_the_engine_goes_on) {
  Runtime runtime(limited(10 * kMegabyte));
  StoragePtr held = runtime.allocate(6 * kMegabyte, Category::arena, "activations");
  try {
    runtime.allocate(5 * kMegabyte, Category::value, "conv2d");
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.need(), 5 * kMegabyte);
    EXPECT_EQ(error.budget(), 10 * kMegabyte);
    const std::string text = error.what();
    for (const char* part :
         {"conv2d: needs 5.24 MB (5242880 bytes)", "6.29 MB of 10.5 MB", "(1)", "(2)", "(3)", "set_memory_limit"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  held.reset();
  EXPECT_NE(runtime.allocate(5 * kMegabyte, Category::value, "conv2d"), nullptr);
}

TEST(Allocator, gives_up_its_cache_before_it_runs_out) {
  Runtime runtime(limited(10 * kMegabyte));
  auto kernel = test_kernel(runtime, "fill");
  for (int i = 0; i < 2; ++i) {
    StoragePtr busy = runtime.allocate(kMegabyte, Category::value, "test");
    fill(runtime, *kernel, *busy, 1 << 18, 1.0f);
  }
  EXPECT_NE(runtime.allocate(9 * kMegabyte + kMegabyte / 2, Category::value, "large"), nullptr);
}

TEST(Allocator, an_array_larger_than_the_largest_allocation_is_refused_with_that_reason) {
  Runtime runtime(limited(std::size_t{1} << 50));
  const std::string text = message_of<OutOfMemory>(
      [&] { runtime.allocate(runtime.device().info().max_allocation_bytes + 1, Category::value, "huge"); });
  EXPECT_NE(text.find("largest single allocation"), std::string::npos) << text;
}

TEST(Allocator, a_lowered_limit_trims_the_cache_and_binds_at_once) {
  Runtime runtime(limited(64 * kMegabyte));
  runtime.allocate(8 * kMegabyte, Category::value, "test");
  EXPECT_GT(runtime.memory().cached_bytes, 0u);
  runtime.set_memory_limit(4 * kMegabyte);
  EXPECT_LE(runtime.memory().cached_bytes, 4 * kMegabyte);
  EXPECT_THROW(runtime.allocate(8 * kMegabyte, Category::value, "test"), OutOfMemory);
}

TEST(Allocator, a_limit_may_be_a_part_of_the_devices_memory) {
  Runtime runtime(options_of_device());
  runtime.set_memory_fraction(0.25);
  EXPECT_NEAR(static_cast<double>(runtime.memory().limit_bytes),
              static_cast<double>(runtime.device().info().memory_bytes) / 4, 1);
  runtime.set_memory_fraction(0);  // none
  EXPECT_GT(runtime.memory().limit_bytes, std::size_t{1} << 60);
  EXPECT_EQ(runtime.allocate(kMegabyte, Category::value, "test")->bytes(), kMegabyte);
  Engine engine;
  EXPECT_THROW(engine.set_memory_fraction(-0.5), ArgumentError);
}

TEST(Allocator, the_default_limit_is_below_what_the_machine_has) {
  Runtime runtime(options_of_device());
  EXPECT_GT(runtime.memory().limit_bytes, kMegabyte);
  EXPECT_LT(runtime.memory().limit_bytes, std::size_t{1} << 46);
}

class ExactAllocator : public testing::TestWithParam<MemoryMode> {
 protected:
  ExactAllocator() { setenv("SAMEBYTES_ALLOCATOR", "exact", 1); }
  ~ExactAllocator() override { unsetenv("SAMEBYTES_ALLOCATOR"); }
};

std::vector<MemoryMode> exact_modes() {
  std::vector<MemoryMode> modes = modes_of_device();
  std::erase_if(modes, [](MemoryMode mode) {
    return mode != MemoryMode::fine && mode != MemoryMode::coarse && mode != MemoryMode::hostptr;
  });
  return modes;
}
INSTANTIATE_TEST_SUITE_P(Modes, ExactAllocator, testing::ValuesIn(exact_modes()),
                         [](const auto& mode) { return std::string(samebytes::name_of(mode.param)); });

TEST_P(ExactAllocator, sees_a_write_past_the_end_and_before_the_start) {
  Runtime runtime(options_for(GetParam()));
  if (runtime.device().info().type != "cpu")
    GTEST_SKIP() << "needs_cpu: maps bring no guards from the memory of " << runtime.device_name();
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(13 * 4, Category::value, "test");
  EXPECT_EQ(runtime.memory().live_bytes, 52u);
  write_host(*storage, counting(13));
  add_one(runtime, *kernel, *storage, 13);
  runtime.wait();
  EXPECT_TRUE(runtime.check_guards().empty());
  add_one(runtime, *kernel, *storage, 14);
  runtime.wait();
  ASSERT_EQ(runtime.check_guards().size(), 1u);
  storage.reset();
  ASSERT_EQ(runtime.check_guards().size(), 1u);  // told once more when it was freed, then forgotten
  EXPECT_TRUE(runtime.check_guards().empty());
  storage = runtime.allocate(13 * 4, Category::value, "test");
  add_one(runtime, *kernel, *storage, 1, -1);
  runtime.wait();
  storage.reset();
  const std::vector<std::string> damage = runtime.check_guards();
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_NE(damage[0].find("before its start"), std::string::npos);
}

TEST_P(ExactAllocator, keeps_nothing) {
  Runtime runtime(options_for(GetParam()));
  runtime.allocate(100, Category::value, "test");
  runtime.allocate(100, Category::value, "test");
  EXPECT_EQ(runtime.memory().allocations, 2u);
  EXPECT_EQ(runtime.memory().cached_bytes, 0u);
}

TEST(ExactAllocatorName, an_unknown_one_is_refused) {
  setenv("SAMEBYTES_ALLOCATOR", "tight", 1);
  EXPECT_THROW(Runtime{options_of_device()}, ArgumentError);
  unsetenv("SAMEBYTES_ALLOCATOR");
}

}  // namespace
}  // namespace samebytes::detail
