#include "runtime/storage.h"

#include <thread>

#include "runtime/rig.h"

namespace samebytes::detail {
namespace {

class Modes : public testing::TestWithParam<MemoryMode> {};

INSTANTIATE_TEST_SUITE_P(Storage, Modes, ::testing::ValuesIn(modes_of_device()),
                         [](const auto& mode) { return std::string(samebytes::name_of(mode.param)); });

TEST_P(Modes, host_and_device_see_the_same_bytes_in_turns) {
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  constexpr int kCount = 1009;
  StoragePtr storage = runtime.allocate(kCount * 4, Category::value, "test");
  EXPECT_EQ(storage->mode(), GetParam());
  write_host(*storage, counting(kCount));
  for (int turn = 1; turn <= 3; ++turn) {
    add_one(runtime, *kernel, *storage, kCount);
    add_one(runtime, *kernel, *storage, kCount);
    EXPECT_EQ(read_host(*storage, kCount), counting(kCount, 2.0f * static_cast<float>(turn)));
  }
  write_host(*storage, counting(10, 100), 5);
  add_one(runtime, *kernel, *storage, kCount);
  std::vector<float> expected = counting(kCount, 7);
  for (int i = 0; i < 10; ++i) expected[static_cast<std::size_t>(5 + i)] = static_cast<float>(101 + i);
  EXPECT_EQ(read_host(*storage, kCount), expected);
}

TEST_P(Modes, a_view_and_a_launch_that_would_meet_are_refused) {
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(4096, Category::value, "test");
  write_host(*storage, counting(1024));
  std::uint64_t writing = 0;
  storage->acquire_host(true, 0, 400, "user.cpp", 42, &writing);
  EXPECT_TRUE(storage->has_borrows());
  const std::string message = message_of<ArgumentError>([&] { add_one(runtime, *kernel, *storage, 50, 50); });
  EXPECT_NE(message.find("add_one"), std::string::npos) << message;
  EXPECT_NE(message.find("user.cpp:42"), std::string::npos) << message;
  storage->release_host(writing);
  std::uint64_t reading = 0;
  storage->acquire_host(false, 0, 400, "user.cpp", 43, &reading);
  EXPECT_THROW(add_one(runtime, *kernel, *storage, 50, 50), ArgumentError);
  {
    Submission submission(runtime);
    submission.acquire(*storage, false, "read", 0, 4096);  // two readers do not meet
  }
  storage->release_host(reading);
  EXPECT_FALSE(storage->has_borrows());
  add_one(runtime, *kernel, *storage, 50, 50);
  EXPECT_EQ(read_host(*storage, 1, 50)[0], 51.0f);
}

TEST_P(Modes, a_view_covers_bytes_where_the_mode_can_tell_them_apart) {
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(4096, Category::value, "test");
  write_host(*storage, counting(1024));
  std::uint64_t writing = 0;
  storage->acquire_host(true, 0, 400, "user.cpp", 42, &writing);
  const bool maps_all = GetParam() == MemoryMode::coarse || GetParam() == MemoryMode::hostptr;
  if (maps_all)
    EXPECT_THROW(add_one(runtime, *kernel, *storage, 50, 100), ArgumentError);
  else
    EXPECT_NO_THROW(add_one(runtime, *kernel, *storage, 50, 100));
  storage->release_host(writing);
}

TEST_P(Modes, memory_is_reused_and_never_read_before_its_last_use_ended) {
  Runtime runtime(options_for(GetParam()));
  auto fill_kernel = test_kernel(runtime, "fill");
  constexpr int kCount = 1 << 16;
  for (int turn = 0; turn < 20; ++turn) {
    StoragePtr storage = runtime.allocate(kCount * 4, Category::value, "test");
    const float value = static_cast<float>(turn);
    fill(runtime, *fill_kernel, *storage, kCount, value);
    if (turn % 3) continue;  // given back while the device still writes
    EXPECT_EQ(read_host(*storage, 1, kCount - 1)[0], value);
    write_host(*storage, std::vector<float>(kCount, -1.0f));
  }
  EXPECT_LE(runtime.memory().allocations, 3u);
  EXPECT_EQ(runtime.memory().live_bytes, 0u);
}

TEST_P(Modes, transfers_are_counted) {
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(4000, Category::value, "test");
  write_host(*storage, counting(1000));
  add_one(runtime, *kernel, *storage, 1000);
  read_host(*storage, 3, 7);
  const TransferReport report = runtime.transfers();
  if (GetParam() == MemoryMode::copy) {
    EXPECT_EQ(report.bytes_to_device, 4000u);
    EXPECT_EQ(report.bytes_to_host, 12u);
    EXPECT_EQ(report.bytes_copied, 4012u);
    read_host(*storage, 3, 7);  // what the host knows already is not asked for again
    add_one(runtime, *kernel, *storage, 1000);
    EXPECT_EQ(runtime.transfers().bytes_copied, 4012u);
  } else {
    EXPECT_EQ(report.bytes_copied, 0u);
  }
  if (GetParam() == MemoryMode::coarse || GetParam() == MemoryMode::hostptr)
    EXPECT_EQ(report.bytes_mapped, 4012u);
  else
    EXPECT_EQ(report.bytes_mapped, 0u);
}

TEST_P(Modes, forbidden_copies_throw_at_the_first_byte) {
  RuntimeOptions options = options_for(GetParam());
  options.forbid_copies = true;
  Runtime runtime(options);
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(4000, Category::value, "test");
  write_host(*storage, counting(1000));
  if (GetParam() == MemoryMode::copy) {
    const std::string message = message_of<ArgumentError>([&] { add_one(runtime, *kernel, *storage, 1000); });
    EXPECT_NE(message.find("add_one: forbid_copies is set and 4000 bytes"), std::string::npos) << message;
  } else {
    add_one(runtime, *kernel, *storage, 1000);
    EXPECT_EQ(read_host(*storage, 1)[0], 1.0f);
  }
}

TEST_P(Modes, a_host_function_in_the_middle_sees_what_came_before_and_is_seen_after) {
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  write_host(*storage, counting(100));
  {
    Submission submission(runtime);
    submission.acquire(*storage, true, "chain", 0, 400);
    const std::int64_t start = 0;
    const int n = 100;
    kernel->set_storage(0, *storage);
    kernel->set_bytes(1, &start, sizeof start);
    kernel->set_bytes(2, &n, sizeof n);
    submission.enqueue(runtime.device(), *kernel, rows(n), "add_one");
    submission.run_host("double", {{storage.get(), true}}, [&](const std::function<void*(Storage&)>& address) {
      auto* x = static_cast<float*>(address(*storage));
      for (int i = 0; i < n; ++i) x[i] *= 2.0f;
    });
    submission.enqueue(runtime.device(), *kernel, rows(n), "add_one");
    submission.finish();
  }
  std::vector<float> expected(100);
  for (int i = 0; i < 100; ++i) expected[static_cast<std::size_t>(i)] = 2.0f * static_cast<float>(i + 1) + 1.0f;
  EXPECT_EQ(read_host(*storage, 100), expected);
}

TEST_P(Modes, an_array_may_be_destroyed_after_its_engine_and_nothing_else) {
  StoragePtr storage;
  {
    Runtime runtime(options_for(GetParam()));
    auto kernel = test_kernel(runtime, "add_one");
    storage = runtime.allocate(4096, Category::value, "test");
    write_host(*storage, counting(1024));
    add_one(runtime, *kernel, *storage, 1024);
  }
  std::uint64_t borrow = 0;
  EXPECT_THROW(storage->acquire_host(false, 0, 4, __FILE__, __LINE__, &borrow), ArgumentError);
  storage.reset();
}

// The bytes are on their way to the device when the host asks for them again: a launch that only reads keeps no view
// for reading away.
TEST_P(Modes, a_view_for_reading_sees_what_was_written_while_it_goes_to_the_device) {
  Runtime runtime(options_for(GetParam()));
  auto slow = runtime.device().kernels().make_generated(
      f32,
      "__kernel void slow(ARRAY_INPLACE(float, x), const int n) { START(x); float s = x[0];"
      " for (int i = 0; i < n; ++i) s = s * 0.999f + 1.0f; x[0] = s; }",
      "slow");
  auto copy = test_kernel(runtime, "copy");
  const int count = 5000, steps = 10000000;
  const std::int64_t start = 0;
  StoragePtr busy = runtime.allocate(64, Category::value, "test");
  StoragePtr a = runtime.allocate(count * 4, Category::value, "test"),
             b = runtime.allocate(count * 4, Category::value, "test");
  write_host(*busy, {0.0f});
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<float> values = counting(count, static_cast<float>(turn));
    write_host(*a, values);
    {
      Submission submission(runtime);
      submission.acquire(*busy, true, "slow", 0, 4);
      slow->set_storage(0, *busy);
      slow->set_bytes(1, &start, sizeof start);
      slow->set_bytes(2, &steps, sizeof steps);
      submission.enqueue(runtime.device(), *slow, rows(1), "slow");
      submission.finish();
    }
    {
      Submission submission(runtime);
      submission.acquire(*a, false, "copy", 0, count * 4);
      submission.acquire(*b, true, "copy", 0, count * 4, true);
      copy->set_storage(0, *a);
      copy->set_bytes(1, &start, sizeof start);
      copy->set_storage(2, *b);
      copy->set_bytes(3, &start, sizeof start);
      copy->set_bytes(4, &count, sizeof count);
      submission.enqueue(runtime.device(), *copy, rows(count), "copy");
      submission.finish();
    }
    EXPECT_EQ(read_host(*a, count), values);
    EXPECT_EQ(read_host(*b, count), values);
  }
}

TEST_P(Modes, several_threads_read_and_write_their_own_arrays) {
  Runtime runtime(options_for(GetParam()));
  auto kernel = test_kernel(runtime, "add_one");
  Mutex engine;  // evaluation is under the engine's lock
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int turn = 0; turn < 20; ++turn) {
        StoragePtr storage = runtime.allocate(4096, Category::value, "test");
        write_host(*storage, counting(1024, static_cast<float>(t)));
        {
          MutexLock lock(engine);
          add_one(runtime, *kernel, *storage, 1024);
        }
        if (read_host(*storage, 1024) != counting(1024, static_cast<float>(t + 1))) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Storage, an_empty_array_has_none) {
  Runtime runtime(options_of_device());
  EXPECT_EQ(runtime.allocate(0, Category::value, "test"), nullptr);
}

TEST(Storage, begins_on_a_page_where_the_device_is_a_cpu) {
  Runtime runtime(options_of_device());
  if (runtime.device().info().type != "cpu") GTEST_SKIP() << "needs_cpu: " << runtime.device_name();
  for (int i = 0; i < 10; ++i) {
    StoragePtr storage = runtime.allocate(1000, Category::value, "test");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage->device_pointer()) % 4096, 0u);
  }
}

}  // namespace
}  // namespace samebytes::detail
