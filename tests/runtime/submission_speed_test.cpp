// What the runtime adds to a launch, since a training step replays hundreds. The least of many repetitions counts.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "runtime/rig.h"

namespace samebytes::detail {
namespace {

double microseconds_now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class SubmissionSpeed : public ::testing::TestWithParam<MemoryMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, SubmissionSpeed,
                         ::testing::Values(MemoryMode::fine, MemoryMode::coarse, MemoryMode::hostptr, MemoryMode::copy),
                         [](const auto& mode) { return std::string(samebytes::name_of(mode.param)); });

TEST_P(SubmissionSpeed, a_replayed_launch_costs_less_than_a_microsecond_beyond_the_drivers) {
  constexpr int kLaunches = 50, kStorages = 16, kRepetitions = 300;
  RuntimeOptions options = options_for(GetParam());
  Runtime runtime(options);
  auto kernel = test_kernel(runtime, "add_one");
  std::vector<StoragePtr> storages;
  for (int i = 0; i < kStorages; ++i) {
    storages.push_back(runtime.allocate(4096, Category::value, "test"));
    write_host(*storages.back(), counting(1024));
  }
  const std::int64_t start = 0;
  const int n = 1;
  kernel->set_storage(0, *storages[0]);
  kernel->set_bytes(1, &start, sizeof start);
  kernel->set_bytes(2, &n, sizeof n);
  double make = 1e9, acquire = 1e9, enqueue = 1e9, finish = 1e9, bare = 1e9;
  const std::string op = "matmul";
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const double t0 = microseconds_now();
    Submission submission(runtime);
    const double t1 = microseconds_now();
    for (const StoragePtr& storage : storages) submission.acquire(*storage, true, op, 0, 4096);
    const double t2 = microseconds_now();
    for (int i = 0; i < kLaunches; ++i) submission.enqueue(runtime.device(), *kernel, rows(1), "matmul");
    const double t3 = microseconds_now();
    submission.finish();
    const double t4 = microseconds_now();
    runtime.wait();
    const std::size_t one = 1;
    const double t5 = microseconds_now();
    for (int i = 0; i < kLaunches; ++i)
      clEnqueueNDRangeKernel(runtime.device().queue().get(), kernel->get(), 1, nullptr, &one, &one, 0, nullptr,
                             nullptr);
    const double t6 = microseconds_now();
    runtime.device().finish();
    make = std::min(make, t1 - t0);
    acquire = std::min(acquire, (t2 - t1) / kStorages);
    enqueue = std::min(enqueue, (t3 - t2) / kLaunches);
    finish = std::min(finish, t4 - t3);
    bare = std::min(bare, (t6 - t5) / kLaunches);
  }
  std::printf("submission %.2f us, acquire %.3f us each, enqueue %.2f us each (driver alone %.2f), finish %.2f us\n",
              make, acquire, enqueue, bare, finish);
  EXPECT_LT(acquire, 1.0);
  EXPECT_LT(enqueue - bare, 1.0);
  EXPECT_LT(make + finish, 20.0);
}

}  // namespace
}  // namespace samebytes::detail
