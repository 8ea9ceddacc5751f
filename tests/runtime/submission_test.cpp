#include <thread>

#include "runtime/rig.h"
#include "support/quirks.h"

namespace samebytes::detail {
namespace {

struct FailingOp {
  explicit FailingOp(const char* op) {
    MutexLock lock(faults().mutex);
    faults().failing_op = op;
    faults().fail_launch = true;
  }
  ~FailingOp() { faults().fail_launch = false; }
};

TEST(Submission, a_failed_launch_surfaces_with_its_op_at_the_next_wait) {
  SAMEBYTES_NEEDS_FAILED_WAITS();
  Runtime runtime(options_of_device());
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::value, "test"),
             other = runtime.allocate(400, Category::value, "test");
  write_host(*other, counting(100));
  {
    FailingOp failing("conv2d");
    add_one(runtime, *kernel, *storage, 100, 0, 0, "conv2d");
  }
  try {
    runtime.wait();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("conv2d"), std::string::npos) << error.what();
    EXPECT_EQ(error.device(), runtime.device_name());
  }
  EXPECT_NO_THROW(runtime.wait());  // told once
  EXPECT_TRUE(storage->is_lost());
  const std::string message = message_of<DeviceError>([&] { read_host(*storage, 100); });
  EXPECT_NE(message.find("conv2d"), std::string::npos) << message;
  EXPECT_THROW(add_one(runtime, *kernel, *storage, 100), DeviceError);
  // The rest of the engine goes on, and what is written anew is found.
  add_one(runtime, *kernel, *other, 100);
  EXPECT_EQ(read_host(*other, 100), counting(100, 1));
  write_host(*storage, counting(100));
  EXPECT_FALSE(storage->is_lost());
  add_one(runtime, *kernel, *storage, 100);
  EXPECT_EQ(read_host(*storage, 100), counting(100, 1));
}

TEST(Submission, only_the_bytes_that_a_failed_launch_writes_are_lost) {
  SAMEBYTES_NEEDS_FAILED_WAITS();
  Runtime runtime(options_of_device());
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  write_host(*storage, counting(100));
  {
    FailingOp failing("step");
    add_one(runtime, *kernel, *storage, 50, 0, 0, "step");
  }
  EXPECT_THROW(read_host(*storage, 50), DeviceError);
  EXPECT_EQ(read_host(*storage, 50, 50), counting(50, 50));
  write_host(*storage, counting(20));
  EXPECT_THROW(read_host(*storage, 50), DeviceError);
  EXPECT_EQ(read_host(*storage, 20), counting(20));
  auto fill_kernel = test_kernel(runtime, "fill");
  fill(runtime, *fill_kernel, *storage, 100, 3.0f);
  EXPECT_EQ(read_host(*storage, 100), std::vector<float>(100, 3.0f));
}

TEST(Submission, parameters_lost_in_a_queued_update_are_noticed_by_a_later_step) {
  SAMEBYTES_NEEDS_FAILED_WAITS();
  Runtime runtime(options_of_device());
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(400, Category::parameter, "test");
  write_host(*storage, counting(100));
  {
    FailingOp failing("update");
    add_one(runtime, *kernel, *storage, 100, 0, 0, "update");
  }
  // Nobody reads; at most steps_in_flight later a step finds out.
  EXPECT_THROW(for (int i = 0; i < 10; ++i) add_one(runtime, *kernel, *storage, 100), DeviceError);
}

// Fails long after it was enqueued.
class LateFailure : public HostTask {
  void run() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    throw Error("it fails late");
  }
};

TEST(Submission, what_is_computed_from_bytes_that_fail_later_is_lost_with_them) {
  Runtime runtime(options_of_device());
  if (!runtime.device().runs_host_functions()) GTEST_SKIP() << "the device runs no functions of the host";
  auto copy = test_kernel(runtime, "copy"), add = test_kernel(runtime, "add_one");
  const auto storages = [&] { return runtime.allocate(400, Category::value, "test"); };
  StoragePtr first = storages(), second = storages(), third = storages(), other = storages();
  for (const StoragePtr& each : {first, second, third, other}) write_host(*each, counting(100));
  const auto copy_of = [&](Storage& from, Storage& to) {
    Submission submission(runtime);
    submission.acquire(from, false, "copy", 0, 400);
    submission.acquire(to, true, "copy", 0, 400, true);
    const std::int64_t start = 0;
    const int n = 100;
    copy->set_storage(0, from);
    copy->set_bytes(1, &start, sizeof start);
    copy->set_storage(2, to);
    copy->set_bytes(3, &start, sizeof start);
    copy->set_bytes(4, &n, sizeof n);
    submission.enqueue(runtime.device(), *copy, rows(n), "copy");
    return submission.finish();
  };
  {
    Submission submission(runtime);
    submission.acquire(*first, true, "late", 0, 200);  // half of it
    submission.enqueue_host(runtime.device(), "late", std::make_shared<LateFailure>());
    submission.finish();
  }
  const TicketPtr copied = copy_of(*first, *second), copied_again = copy_of(*second, *third);
  const TicketPtr apart = add_one(runtime, *add, *other, 100), whole_half = add_one(runtime, *add, *first, 50, 50);
  const char* const why = "late: the host's part failed: it fails late";
  for (const TicketPtr& ticket : {copied, copied_again}) EXPECT_ERROR(ticket->wait(), DeviceError, why);
  const std::string lost =
      std::string("host: the array is lost, because a queued write to it failed (") + why + "); write it anew";
  for (Storage* const each : {second.get(), third.get()})
    EXPECT_ERROR(read_host(*each, 100), DeviceError, lost.c_str());
  // What reads none of it does not fail with it.
  EXPECT_NO_THROW(apart->wait());
  EXPECT_NO_THROW(whole_half->wait());
  EXPECT_EQ(read_host(*other, 100), counting(100, 1));
  EXPECT_EQ(read_host(*first, 50, 50), counting(50, 51));
}

TEST(Submission, a_launch_that_cannot_be_enqueued_names_op_kernel_and_geometry) {
  Runtime runtime(options_of_device());
  auto kernel = test_kernel(runtime, "add_one");  // no arguments set
  Submission submission(runtime);
  const std::string message =
      message_of<DeviceError>([&] { submission.enqueue(runtime.device(), *kernel, rows(3), "relu"); });
  for (const char* part : {"relu", "add_one", "3*1"}) EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Submission, an_abandoned_one_blocks_nobody) {
  Runtime runtime(options_of_device());
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  {
    Submission submission(runtime);
    submission.acquire(*storage, true, "never", 0, 400);
  }
  write_host(*storage, counting(100));
  EXPECT_EQ(read_host(*storage, 100), counting(100));
}

TEST(Submission, a_host_thread_waits_for_a_submission_that_is_still_being_made) {
  Runtime runtime(options_of_device());
  auto kernel = test_kernel(runtime, "fill");
  StoragePtr storage = runtime.allocate(400, Category::value, "test");
  write_host(*storage, counting(100));
  std::thread reader;
  std::vector<float> seen;
  {
    Submission submission(runtime);
    submission.acquire(*storage, true, "fill", 0, 400, true);
    reader = std::thread([&] { seen = read_host(*storage, 100); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::int64_t start = 0;
    const int n = 100;
    const float value = 8;
    kernel->set_storage(0, *storage);
    kernel->set_bytes(1, &start, sizeof start);
    kernel->set_bytes(2, &n, sizeof n);
    kernel->set_bytes(3, &value, sizeof value);
    submission.enqueue(runtime.device(), *kernel, rows(n), "fill");
    submission.finish();
  }
  reader.join();
  EXPECT_EQ(seen, std::vector<float>(100, 8.0f));
}

// One storage that a kernel of n steps of arithmetic works on, submission after submission.
class SlowWork {
 public:
  explicit SlowWork(Runtime& runtime)
      : runtime_(runtime),
        kernel_(runtime.device().kernels().make_generated(
            f32,
            "__kernel void slow(ARRAY_INPLACE(float, x), const int n) { START(x); float s = x[0];"
            " for (int i = 0; i < n; ++i) s = s * 0.999f + 1.0f; x[0] = s; }",
            "slow")),
        storage_(runtime.allocate(64, Category::value, "test")) {
    write_host(*storage_, {0.0f});
  }

  // How many are queued once it is.
  int submit(int n, int weight = Ticket::kStep) {
    Submission submission(runtime_);
    submission.set_weight(weight);
    submission.acquire(*storage_, true, "slow", 0, 64);
    const std::int64_t start = 0;
    kernel_->set_storage(0, *storage_);
    kernel_->set_bytes(1, &start, sizeof start);
    kernel_->set_bytes(2, &n, sizeof n);
    submission.enqueue(runtime_.device(), *kernel_, rows(1), "slow");
    tickets_.push_back(submission.finish());
    int queued = 0;
    for (const TicketPtr& ticket : tickets_) queued += ticket->is_done() ? 0 : 1;
    return queued;
  }

 private:
  Runtime& runtime_;
  std::unique_ptr<Kernel> kernel_;
  StoragePtr storage_;
  std::vector<TicketPtr> tickets_;
};

TEST(Submission, at_most_steps_in_flight_are_queued) {
  RuntimeOptions options = options_of_device();
  options.steps_in_flight = 2;
  Runtime runtime(options);
  SlowWork work(runtime);
  for (int i = 0; i < 6; ++i) EXPECT_LE(work.submit(3000000), 2);
}

TEST(Submission, many_small_ones_are_queued_where_one_step_would_be) {
  RuntimeOptions options = options_of_device();
  options.steps_in_flight = 2;
  Runtime runtime(options);
  SlowWork work(runtime);
  work.submit(100000000);  // longer than the next ones take to be queued
  for (int i = 2; i <= 33; ++i) EXPECT_EQ(work.submit(10, 1), i);
  // One more is too many: the oldest end, and half of the places are free again.
  EXPECT_LE(work.submit(10, 1), 32);
  for (int i = 0; i < 300; ++i) EXPECT_LE(work.submit(10, 1), 64);
}

TEST(Submission, counts_launches) {
  Runtime runtime(options_of_device());
  auto kernel = test_kernel(runtime, "add_one");
  StoragePtr storage = runtime.allocate(64, Category::value, "test");
  for (int i = 0; i < 5; ++i) add_one(runtime, *kernel, *storage, 16);
  EXPECT_EQ(runtime.launches(), 5u);
}

class SubDevices : public ::testing::TestWithParam<MemoryMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, SubDevices, ::testing::ValuesIn(modes_of_device()),
                         [](const auto& mode) { return std::string(samebytes::name_of(mode.param)); });

TEST_P(SubDevices, two_halves_of_one_array_and_order_between_them) {
  RuntimeOptions options = options_for(GetParam());
  SAMEBYTES_NEEDS_PARTS();
  options.split = {1, 1};
  Runtime runtime(options);
  ASSERT_EQ(runtime.device_count(), 2);
  EXPECT_EQ(runtime.device(1).info().cores, 1);
  auto add0 = test_kernel(runtime, "add_one", 0), add1 = test_kernel(runtime, "add_one", 1),
       copy1 = test_kernel(runtime, "copy", 1);
  constexpr int kCount = 20000, kHalf = kCount / 2;
  StoragePtr a = runtime.allocate(kCount * 4, Category::value, "test"),
             b = runtime.allocate(kCount * 4, Category::value, "test");
  for (int turn = 0; turn < 5; ++turn) {
    write_host(*a, counting(kCount));
    {
      Submission submission(runtime);
      submission.acquire(*a, true, "halves", 0, kCount * 4);
      submission.acquire(*b, true, "copy", 0, kCount * 4, true);
      const std::int64_t zero = 0, half = kHalf;
      Kernel* adds[] = {add0.get(), add1.get()};
      for (int device = 0; device < 2; ++device) {
        adds[device]->set_storage(0, *a);
        adds[device]->set_bytes(1, device ? &half : &zero, sizeof zero);
        adds[device]->set_bytes(2, &kHalf, sizeof kHalf);
        submission.enqueue(runtime.device(device), *adds[device], rows(kHalf), "half");
      }
      submission.order_after(runtime.device(1), runtime.device(0));
      copy1->set_storage(0, *a);
      copy1->set_bytes(1, &zero, sizeof zero);
      copy1->set_storage(2, *b);
      copy1->set_bytes(3, &zero, sizeof zero);
      copy1->set_bytes(4, &kCount, sizeof kCount);
      submission.enqueue(runtime.device(1), *copy1, rows(kCount), "copy");
      submission.finish();
    }
    add_one(runtime, *add0, *b, kCount, 0, 0);  // another submission, on the other device
    EXPECT_EQ(read_host(*b, kCount), counting(kCount, 2));
  }
}

TEST(SubDevicesErrors, more_cores_than_there_are_is_refused) {
  RuntimeOptions options = options_of_device();
  options.split = {1, choose_device("").cores};
  EXPECT_THROW(Runtime{options}, ArgumentError);
  options.split = {0, 1};
  EXPECT_THROW(Runtime{options}, ArgumentError);
}

}  // namespace
}  // namespace samebytes::detail
