#include <atomic>
#include <cstdlib>

#include "runtime/rig.h"

namespace samebytes::detail {
namespace {

class Adopt : public testing::TestWithParam<MemoryMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, Adopt, ::testing::ValuesIn(modes_of_device()),
                         [](const auto& mode) { return std::string(samebytes::name_of(mode.param)); });

// A vector begins on no page, so of the devices that read the host's memory only those of a CPU take it as it is.
bool adopts_vectors(Runtime& runtime) {
  return runtime.mode() == MemoryMode::system ||
         (runtime.mode() != MemoryMode::copy && runtime.device().info().type == "cpu");
}

TEST_P(Adopt, the_device_works_on_a_vector_of_the_users_own) {
  std::vector<float> mine = counting(1000);
  std::atomic<int> deleted{0};
  Adoption verdict;
  bool is_copied = false;
  {
    Runtime runtime(options_for(GetParam()));
    is_copied = !adopts_vectors(runtime);
    auto kernel = test_kernel(runtime, "add_one");
    StoragePtr storage = runtime.adopt(
        mine.data(), 4000, [&] { ++deleted; }, &verdict);
    add_one(runtime, *kernel, *storage, 1000);
    EXPECT_EQ(read_host(*storage, 1000), counting(1000, 1));
    add_one(runtime, *kernel, *storage, 1000);
    if (is_copied) {
      EXPECT_FALSE(verdict.adopted);
      EXPECT_EQ(verdict.reason.rfind("copied: ", 0), 0u) << verdict.reason;
      EXPECT_GE(runtime.transfers().bytes_copied, 4000u);
    } else {
      EXPECT_TRUE(verdict.adopted) << verdict.reason;
      EXPECT_EQ(verdict.reason.rfind("adopted: ", 0), 0u) << verdict.reason;
      EXPECT_EQ(runtime.transfers().bytes_copied, 0u);
      EXPECT_EQ(runtime.memory().adopted_bytes, 4000u);
      EXPECT_EQ(runtime.memory().live_bytes, 0u);
    }
    storage.reset();
    EXPECT_EQ(runtime.memory().adopted_bytes, 0u);
  }
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(mine, is_copied ? counting(1000) : counting(1000, 2));
}

TEST_P(Adopt, any_alignment_of_a_float_will_do_on_a_cpu_device) {
  std::vector<float> mine = counting(1001);
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.adopt(mine.data() + 1, 4000, {}, nullptr);
  add_one(runtime, *kernel, *storage, 1000);
  EXPECT_EQ(read_host(*storage, 1000), counting(1000, 2));
}

TEST_P(Adopt, overlapping_memory_is_refused) {
  std::vector<float> mine = counting(1000);
  Runtime runtime(options_for(GetParam()));
  if (!adopts_vectors(runtime)) return;  // copies share nothing
  StoragePtr first = runtime.adopt(mine.data(), 2000, {}, nullptr);
  EXPECT_THROW(runtime.adopt(mine.data() + 499, 40, {}, nullptr), ArgumentError);
  EXPECT_THROW(runtime.adopt(mine.data(), 4000, {}, nullptr), ArgumentError);
  StoragePtr second = runtime.adopt(mine.data() + 500, 2000, {}, nullptr);
  StoragePtr own = runtime.allocate(4096, Category::value, "test");
  std::uint64_t borrow = 0;
  void* inside = static_cast<std::byte*>(own->acquire_host(true, 0, 4096, __FILE__, __LINE__, &borrow)) + 64;
  own->release_host(borrow);
  EXPECT_THROW(runtime.adopt(inside, 64, {}, nullptr), ArgumentError);
}

TEST(AdoptErrors, nothing_to_adopt_is_refused) {
  Runtime runtime(options_of_device());
  float one = 1;
  EXPECT_THROW(runtime.adopt(&one, 0, {}, nullptr), ArgumentError);
  EXPECT_THROW(runtime.adopt(nullptr, 4, {}, nullptr), ArgumentError);
}

TEST(AdoptErrors, a_copy_is_refused_where_copies_are_forbidden) {
  RuntimeOptions options = options_for(MemoryMode::copy);
  options.forbid_copies = true;
  Runtime runtime(options);
  std::vector<float> mine(10);
  EXPECT_THROW(runtime.adopt(mine.data(), 40, {}, nullptr), ArgumentError);
}

TEST_P(Adopt, a_buffer_for_clblast_shares_the_bytes_at_an_offset) {
  Runtime runtime(options_for(GetParam()));
  if (!runtime.alias_works() && runtime.device().info().type != "cpu") {
    EXPECT_EQ(runtime.allocate(64, Category::value, "test")->alias(), nullptr);
    GTEST_SKIP() << "needs_aliases: a buffer over shared memory has bytes of its own on " << runtime.device_name();
  }
  EXPECT_TRUE(runtime.alias_works());
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  write_host(*storage, counting(100));
  cl_mem alias = storage->alias();
  ASSERT_NE(alias, nullptr);
  EXPECT_EQ(alias, storage->alias());  // made once
  Submission submission(runtime);
  submission.acquire(*storage, true, "alias", 0, 400);
  submission.enqueue_call(runtime.device(), "alias", [&](const cl::CommandQueue& queue) {
    const std::int64_t offset = 20;
    const int n = 80;
    check_cl(clSetKernelArg(kernel->get(), 0, sizeof alias, &alias), "clSetKernelArg");
    kernel->set_bytes(1, &offset, sizeof offset);
    kernel->set_bytes(2, &n, sizeof n);
    const std::size_t global = 80, local = 1;
    check_cl(clEnqueueNDRangeKernel(queue(), kernel->get(), 1, nullptr, &global, &local, 0, nullptr, nullptr),
             "clEnqueueNDRangeKernel");
    return 1;
  });
  submission.finish();
  std::vector<float> expected = counting(100);
  for (int i = 20; i < 100; ++i) expected[static_cast<std::size_t>(i)] += 1;
  EXPECT_EQ(read_host(*storage, 100), expected);
}

TEST(AliasTest, a_device_that_fails_it_gets_no_aliases) {
  Runtime runtime(options_of_device());
  if (runtime.mode() == MemoryMode::hostptr || runtime.mode() == MemoryMode::copy)
    GTEST_SKIP() << "needs_svm: kernels of " << runtime.device_name() << " get buffers";
  faults().break_alias_test = true;
  EXPECT_FALSE(runtime.alias_works());
  faults().break_alias_test = false;
  EXPECT_EQ(runtime.allocate(64, Category::value, "test")->alias(), nullptr);
}

}  // namespace
}  // namespace samebytes::detail
