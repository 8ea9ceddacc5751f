// Small launches on the host: in what order with the device's, who does them, and who may ask for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "graph/context.h"
#include "plan/co_execution.h"
#include "plan/host_cost.h"
#include "runtime/runtime.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

// `rounds` of five launches that depend on each other: a small product, a sum, scalars, a maximum, scalars.
Array small_chain(Array h, const Array& w, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    h = matmul(h, w);
    h = h * 0.25 + sum(h, {1}, true) * 0.125;
    h = h / (max(h, {}) + 1.0);
  }
  return h;
}

class CoExecutionOrderTest : public CoExecutionTest {};
SAMEBYTES_ON_EVERY_DEVICE(CoExecutionOrderTest);

TEST_P(CoExecutionOrderTest, launches_between_products_are_one_run) {
  const auto run = [&](HostExecution mode) {
    const auto own = make_engine(GetParam(), {.seed = 4, .host_execution = mode});
    const EngineScope use(*own);
    const Array a = uniform({320, 320}), w = uniform({8, 8});
    eval({a, w});
    PlanReport before = own->plans();
    const Array first = matmul(a, a);
    const Array h = small_chain(slice(slice(first, 0, 0, 8), 1, 0, 8), w, 20);
    const Array last = linear(first, a, reshape(matmul(reshape(h, {1, 64}), slice(a, 0, 0, 64)), {320}));
    const std::vector<float> values = last.to_vector<float>();
    PlanReport report = own->plans();
    report.launches -= before.launches;
    report.launches_on_host -= before.launches_on_host;
    report.host_runs -= before.host_runs;
    return std::pair{report, values};
  };
  const auto [off, expected] = run(HostExecution::off);
  const auto [automatic, values] = run(HostExecution::automatic);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(off.host_runs, 0u);
  EXPECT_EQ(off.launches_on_host, 0u);
  EXPECT_EQ(automatic.launches, off.launches);
  if (!runs_on_host(engine())) {
    EXPECT_EQ(automatic.launches_on_host, 0u);
  } else if (is_cpu()) {
    EXPECT_EQ(automatic.host_runs, 1u);
    EXPECT_GE(automatic.launches_on_host, off.launches - 3);  // the last small product may be worth its launch
    EXPECT_GE(automatic.launches_on_host, 100u);
  }
}

TEST_P(CoExecutionOrderTest, a_second_step_moves_the_same_launches_with_its_own_scalars) {
  const auto own = make_engine(GetParam(), {.host_execution = HostExecution::always});
  const EngineScope use(*own);
  for (const double scale : {2.0, 3.0, 5.0}) {
    const Array h = ones({3, 3});
    EXPECT_EQ((sum(h * scale, {}) * scale).value(), 9 * scale * scale);
  }
  EXPECT_EQ(own->plans().plans_made, 1u);
}

TEST_P(CoExecutionOrderTest, functions_of_the_driver_and_16_bit_kernels_stay_on_the_device) {
  const auto own = make_engine(GetParam(), {.host_execution = HostExecution::always});
  const EngineScope use(*own);
  const Array x = uniform({4, 4}), h = astype(x, f16);
  eval({x, h});
  const std::uint64_t before = own->plans().launches_on_host;
  eval({pow(x, 2.7), softmax(h), layer_norm(h)});
  if (!is_cpu()) eval({exp(x), log(x), expm1(x), sigmoid(x), tanh(x), sin(x), softmax(x)});  // the driver's functions
  EXPECT_EQ(own->plans().launches_on_host, before);
}

// ---- at once, on the thread that evaluates

TEST_P(CoExecutionOrderTest, a_small_evaluation_that_waits_for_nothing_is_done_by_its_thread) {
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic");
  const auto own = make_engine(GetParam());
  const EngineScope use(*own);
  const Array x = array({1.0f, -2.0f, 3.0f, 0.5f}, {2, 2});
  for (int i = 0; i < 3; ++i) {
    const PlanReport before = own->plans();
    const Array y = x * (2.0 + i) + x;
    y.eval();
    const PlanReport after = own->plans();
    EXPECT_EQ(after.launches - before.launches, 1u);
    EXPECT_EQ(after.launches_on_host - before.launches_on_host, runs_on_host(*own) ? 1u : 0u);
    const auto scale = static_cast<float>(3 + i);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{scale, -2 * scale, 3 * scale, 0.5f * scale}));
  }
  if (!runs_on_host(*own)) return;
  const std::uint64_t before = own->plans().launches_on_host;
  eval({pow(x, 2.7)});       // which the host cannot do
  eval({ones({900, 900})});  // too much
  EXPECT_EQ(own->plans().launches_on_host, before);
}

TEST_P(CoExecutionOrderTest, a_medium_evaluation_counts_what_it_works_on) {
  // The built-in costs, not those of a machine that has other work just now.
  const TemporaryFolder folder;
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic"), costs("SAMEBYTES_TUNING", folder.string());
  const DeviceInfo& info = engine().device();
  std::ofstream(detail::host_costs_path(info)) << detail::host_costs_text({}, info);
  const auto own = make_engine(GetParam());
  const EngineScope use(*own);
  if (!runs_on_host(*own) || !is_cpu() || own->device().cores < 2 || allowed_cores().size() < 2)
    GTEST_SKIP() << "nothing is shared with helpers, or the host does not take indices";
  const Array rows = uniform({256, 400}), places = astype(floor(uniform({256, 1}) * 400.0), i32);
  const Array heads = transpose(reshape(uniform({4, 256, 96}), {4, 256, 4, 24}), {0, 2, 1, 3});
  const Array images = uniform({2, 28, 28, 32}), one = uniform({1, 14, 14, 32}), weight = uniform({3, 3, 32, 32});
  const Array larger = uniform({1, 40, 40, 32});
  eval({rows, places, heads, images, one, weight, larger});
  own->wait();  // on a busy machine they would still be on their way, and what waits for something is queued
  const std::uint64_t before = own->plans().launches_on_host;
  gather(rows, 1, places).eval();  // 256 of 102400
  EXPECT_EQ(own->plans().launches_on_host, before + 1);
  contiguous(heads).eval();  // 4096 short rows
  EXPECT_EQ(own->plans().launches_on_host, before + 2);
  adaptive_max_pool2d(images, 3, 3).eval();  // few results of large windows
  EXPECT_EQ(own->plans().launches_on_host, before + 3);
  const auto does_all = [&](const Array& y) {
    const PlanReport earlier = own->plans();
    y.eval();
    const PlanReport now = own->plans();
    return now.launches_on_host - earlier.launches_on_host == now.launches - earlier.launches;
  };
  EXPECT_TRUE(does_all(relu(conv2d(one, weight, {}, {.pad_h = 1, .pad_w = 1}))));  // 1.8 million multiply-adds
  // 13 million, where the helpers are as many as the device's other threads
  constexpr int kMostThreads = 4;
  EXPECT_EQ(does_all(conv2d(larger, weight)), own->device().cores <= kMostThreads);
}

TEST_P(CoExecutionOrderTest, a_small_evaluation_comes_after_the_launches_that_it_waits_for) {
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic");
  const auto own = make_engine(GetParam(), {.seed = 3});
  const EngineScope use(*own);
  const Array a = uniform({384, 384});
  a.eval();
  for (int i = 0; i < 5; ++i) {
    const Array product = matmul(a, a + static_cast<double>(i));  // takes a while
    product.eval();
    const Array corner = slice(slice(product, 0, 382, 384), 1, 382, 384) * 2.0;
    corner.eval();
    const std::vector<float> all = product.to_vector<float>(), some = corner.to_vector<float>();
    EXPECT_EQ(some[3], 2 * all.back());
    EXPECT_EQ(some[0], 2 * all[382 * 384 + 382]);
  }
}

// What a queued launch still reads is not free because a small evaluation that reads it, too, is done.
TEST_P(CoExecutionOrderTest, what_a_launch_reads_is_not_written_behind_a_small_evaluation) {
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic");
  const auto own = make_engine(GetParam(), {.seed = 3});
  const EngineScope use(*own);
  const Array a = full({384, 384}, 2.0), state = cell(full({2, 2}, 2.0), "state");
  eval({a, state});
  for (int i = 0; i < 5; ++i) {
    const Array reader = matmul(matmul(a, a), a) + sum(state, {});  // in the queue for a while
    const float expected = 384.f * 384.f * 8.f + 4 * (2.f + static_cast<float>(i));
    reader.eval();
    eval({state * 3.0});
    assign(state, state + 1.0);
    EXPECT_EQ(reader.to_vector<float>().back(), expected);
  }
}

TEST_P(CoExecutionOrderTest, the_profile_shows_what_the_host_did) {
  const auto own = make_engine(GetParam(), {.host_execution = HostExecution::always, .profile = true});
  if (!runs_on_host(*own)) GTEST_SKIP() << "the device does not run host functions";
  const EngineScope use(*own);
  const Array h = uniform({5, 5});
  h.eval();
  Profiler profiler(*own);
  const Array y = max(h * 2.0, {}) + 1.0;
  y.eval();
  const Profile profile = profiler.stop();
  int on_host = 0;
  for (const ProfiledLaunch& launch : profile.launches) {
    on_host += launch.kernel == "host";
    EXPECT_GE(launch.seconds, 0);
    EXPECT_GE(launch.start, 0);
    EXPECT_EQ(launch.device, 0);
  }
  EXPECT_EQ(on_host, static_cast<int>(is_cpu() ? 3 : 2));
}

TEST_P(CoExecutionOrderTest, only_modes_that_share_bytes_have_it) {
  for (const MemoryMode mode : {MemoryMode::fine, MemoryMode::coarse, MemoryMode::hostptr, MemoryMode::copy}) {
    std::unique_ptr<Engine> own;
    try {
      own = make_engine(GetParam(), {.memory = mode, .host_execution = HostExecution::always});
    } catch (const ArgumentError&) {
      continue;  // the device has no such mode
    }
    const EngineScope use(*own);
    const Array y = sum(ones({3, 4}) * 2.0, {});
    EXPECT_EQ(y.value(), 24.0);
    const bool shares = own->device().memory_mode == MemoryMode::fine && runs_on_host(engine());
    EXPECT_EQ(own->plans().launches_on_host > 0, shares) << name_of(mode);
    EXPECT_EQ(own->transfers().bytes_copied > 0, own->device().memory_mode == MemoryMode::copy);
  }
}

// ---- threads, devices, failures

TEST_P(CoExecutionOrderTest, engines_and_threads_do_not_disturb_each_other) {
  constexpr int kThreads = 3, kRepeats = 20;
  const auto chain = [](Engine& own) {
    const EngineScope use(own);
    return small_chain(ones({8, 8}), full({8, 8}, 0.1), 4).to_vector<float>();
  };
  const auto shared = make_engine(GetParam(), {.host_execution = HostExecution::always});
  const std::vector<float> expected = chain(*shared);
  int wrong[kThreads] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto own = t == 0 ? nullptr : make_engine(GetParam(), {.host_execution = HostExecution::always});
      for (int i = 0; i < kRepeats; ++i) wrong[t] += chain(own ? *own : *shared) != expected;
    });
  for (int i = 0; i < kRepeats; ++i) EXPECT_EQ(chain(*shared), expected);
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

// Chains on two parts of a device that read from each other: a run that begins too early, or ends too late, gives other
// numbers or waits for ever.
TEST_P(CoExecutionOrderTest, runs_keep_the_order_between_devices) {
  SAMEBYTES_NEEDS_PARTS();
  const auto run = [&](HostExecution mode, int devices) {
    const auto own = make_engine(GetParam(), {.split = {1, 1}, .seed = 3, .host_execution = mode});
    const EngineScope use(*own);
    std::vector<std::vector<float>> results;
    const Array w = uniform({12, 12});
    w.eval();
    for (int round = 0; round < 6; ++round) {
      std::vector<Array> values;
      for (int i = 0; i < 4; ++i) values.push_back(uniform({12, 12}));
      for (int i = 0; i < 40; ++i) {
        const DeviceScope on((i / 3 + i % 7 / 6) % devices);
        const Array &a = values[static_cast<std::size_t>(i)], &b = values[static_cast<std::size_t>(i / 2 + 3)];
        values.push_back(i % 4 == 1   ? matmul(a, w) * 0.1 + b
                         : i % 4 == 2 ? a - mean(b, {1}, true)
                         : i % 4 == 3 ? softmax(a + b)
                                      : maximum(a, b) * 0.5);
      }
      results.push_back(values.back().to_vector<float>());
    }
    return results;
  };
  const auto expected = run(HostExecution::off, 1);
  EXPECT_EQ(run(HostExecution::always, 1), expected);
  EXPECT_EQ(run(HostExecution::off, 2), expected);
  EXPECT_EQ(run(HostExecution::always, 2), expected);
  EXPECT_EQ(run(HostExecution::automatic, 2), expected);
}

TEST_P(CoExecutionOrderTest, what_a_host_function_throws_is_thrown_at_the_next_wait) {
  using detail::HostTask;
  using detail::Runtime;
  class Failing final : public HostTask {
    void run() override { throw std::runtime_error("no more room"); }
  };
  const auto own = make_engine(GetParam());
  if (!runs_on_host(*own)) GTEST_SKIP() << "the device does not run host functions";
  Runtime& runtime = *own->context()->runtime;
  detail::TicketPtr ticket;
  {
    detail::Submission submission(runtime);
    submission.enqueue_host(runtime.device(), "small", std::make_shared<Failing>());
    ticket = submission.finish();
  }
  EXPECT_ERROR(ticket->wait(), DeviceError, "small: the host's part failed: no more room");
  try {
    ticket->wait();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.status(), "");  // no OpenCL call failed
    EXPECT_EQ(error.call(), "");
  }
  EXPECT_THROW(own->wait(), DeviceError);
  EXPECT_NO_THROW(own->wait());
}

}  // namespace
}  // namespace samebytes::testing
