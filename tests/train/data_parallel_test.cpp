// A batch in shares over the parts of a device: the same training as on one, repeated, resumed, and without a device
// that fails, does not answer or slows down.
#include "samebytes/train/parallel/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/faults.h"
#include "samebytes/device_watch.h"
#include "samebytes/samebytes.h"
#include "support/process.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using detail::DeviceFault;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using train::cut_by_shares;
using train::DataParallel;
using train::DataParallelOptions;
using train::DeviceEvent;

using Shares = std::vector<std::int64_t>;

std::vector<float> values_of(const std::vector<nn::NamedArray>& named) {
  std::vector<float> values;
  for (const nn::NamedArray& each : named)
    for (const float v : each.array.to_vector<float>()) values.push_back(v);
  return values;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// The largest difference beside the largest value.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

class DataParallelTest : public ::testing::Test {
 protected:
  void SetUp() override { SAMEBYTES_NEEDS_PARTS(); }
  void TearDown() override { detail::faults().device_fault = DeviceFault::none; }

  struct Setup {
    DataParallelOptions options = {};
    bool is_shared = true;  // else the whole batch on the first device
    bool has_batch_norm = false;
    double dropout = 0;
    int steps = 6;
    std::int64_t batch = 48, last_batch = 48;  // of every third step
    std::string state = {};                    // of shares, to go on with
    std::vector<double> pieces = {};           // of a batch, added up before its update: where each one ends
    std::function<void(int step, DataParallel&)> before = {};
    std::function<void(int step, double end)> before_piece = {};
    HostExecution host_execution = HostExecution::automatic;
  };
  struct Outcome {
    std::vector<float> weights, buffers;
    std::vector<double> losses;
    std::vector<DeviceEvent> events;
    Shares samples;
    std::string state;
    std::size_t copied = 0;
  };

  static Outcome train(const Setup& setup) {
    Engine engine({.split = {1, 1}, .seed = 7, .host_execution = setup.host_execution});
    nn::Sequential net;
    net.add(nn::Conv2d({.in = 2, .out = 5, .kernel = 3, .pad = 1}));
    if (setup.has_batch_norm) net.add(nn::BatchNorm2d({.features = 5}));
    net.add(nn::Relu());
    net.add(nn::Flatten());
    if (setup.dropout > 0) net.add(nn::Dropout(setup.dropout));
    net.add(nn::Linear({.in = 5 * 16, .out = 7}));
    optim::Sgd sgd(net.parameters(), {.rate = 0.1, .momentum = 0.9});
    DataParallel parallel(engine, net, setup.options);
    if (!setup.state.empty()) parallel.load_state(setup.state);
    Outcome outcome;
    const std::size_t before = engine.transfers().bytes_copied;
    for (int step = 0; step < setup.steps; ++step) {
      const std::int64_t n = step % 3 == 2 ? setup.last_batch : setup.batch;
      const auto key = static_cast<std::uint64_t>(step);
      const Array x = uniform({n, 4, 4, 2}, 0, 1, f32, {1, key}), y = uniform({n, 7}, 0, 1, f32, {2, key});
      eval({x, y});
      const auto loss_of = [&](std::int64_t begin, std::int64_t end) {
        return mse_loss(net(share_rows(x, begin, end)), share_rows(y, begin, end));
      };
      if (setup.before) setup.before(step, parallel);
      Array loss;
      std::int64_t begin = 0;
      for (const double part : setup.pieces) {
        if (setup.before_piece) setup.before_piece(step, part);
        const auto end = static_cast<std::int64_t>(part * static_cast<double>(n));
        const double weight = static_cast<double>(end - begin) / static_cast<double>(n);
        const Array own = parallel.add(sgd, end - begin,
                                       [&](std::int64_t a, std::int64_t b) { return loss_of(begin + a, begin + b); });
        loss = loss.defined() ? loss + own * weight : own * weight;
        begin = end;
      }
      if (!setup.pieces.empty())
        parallel.update(sgd);
      else if (setup.is_shared)
        loss = parallel.step(sgd, n, loss_of);
      else
        sgd.step(loss = loss_of(0, n));
      outcome.losses.push_back(loss.value());
    }
    outcome.copied = engine.transfers().bytes_copied - before;
    outcome.weights = values_of(net.named_parameters());
    outcome.buffers = values_of(net.named_buffers());
    outcome.events = parallel.events();
    outcome.samples = parallel.samples();
    outcome.state = parallel.state();
    return outcome;
  }

  static void plant(DeviceFault fault, int device, int launches, int microseconds = 0) {
    detail::Faults& faults = detail::faults();
    faults.faulty_device = device;
    faults.launches_before_fault = launches;
    faults.slow_microseconds = microseconds;
    faults.device_fault = fault;
  }
};

TEST(CutByShares, whole_samples_in_proportion_and_none_where_there_would_be_too_few) {
  EXPECT_THAT(cut_by_shares(64, {1, 1}), ElementsAre(32, 32));
  EXPECT_THAT(cut_by_shares(63, {1, 1}), ElementsAre(32, 31));
  EXPECT_THAT(cut_by_shares(10, {3, 1}), ElementsAre(8, 2));
  EXPECT_THAT(cut_by_shares(10, {3, 0, 1}), ElementsAre(8, 0, 2));
  EXPECT_THAT(cut_by_shares(64, {63, 1}, 2), ElementsAre(64, 0));
  EXPECT_THAT(cut_by_shares(3, {1, 1, 1}, 2), ElementsAre(3, 0, 0));
  EXPECT_THAT(cut_by_shares(1, {1, 1}, 2), ElementsAre(1, 0));
  EXPECT_THAT(cut_by_shares(0, {1, 1}), ElementsAre(0, 0));
  EXPECT_THAT(error_of([] { cut_by_shares(4, {0, 0}); }), HasSubstr("expected none below 0 and one above"));
  EXPECT_THAT(error_of([] { cut_by_shares(4, {1, -1}); }), HasSubstr("got 1, -1"));
}

// Sums of 48 samples in two parts: some roundings more in each of six steps.
constexpr double kOfSums = 2e-6;

TEST_F(DataParallelTest, trains_as_one_device_does) {
  const Outcome one = train({.is_shared = false}), both = train({});
  EXPECT_LT(difference(both.weights, one.weights), kOfSums);
  EXPECT_LT(std::abs(both.losses.back() - one.losses.back()), 1e-6);
  EXPECT_THAT(both.samples, ElementsAre(6 * 24, 6 * 24));
  EXPECT_EQ(both.copied, 0u);
  EXPECT_TRUE(both.events.empty());
}

TEST_F(DataParallelTest, unequal_shares_and_a_smaller_batch_count_by_samples) {
  const Outcome one = train({.is_shared = false, .last_batch = 19});
  const Outcome cut = train({.options = {.shares = {3, 1}}, .last_batch = 19});
  EXPECT_LT(difference(cut.weights, one.weights), kOfSums);
  EXPECT_THAT(cut.samples, ElementsAre(4 * 36 + 2 * 14, 4 * 12 + 2 * 5));
}

TEST_F(DataParallelTest, repeats_bit_for_bit_and_goes_on_with_its_shares) {
  const Setup setup{.options = {.shares = {3, 1}}, .has_batch_norm = true, .dropout = 0.25};
  const Outcome first = train(setup);
  EXPECT_EQ(train(setup).weights, first.weights);
  EXPECT_EQ(train(setup).buffers, first.buffers);
  // Shares that come from a state instead.
  Setup resumed = setup;
  resumed.options.shares = {};
  resumed.state = first.state;
  EXPECT_EQ(train(resumed).weights, first.weights);
  resumed.state = {};
  EXPECT_NE(train(resumed).weights, first.weights);
}

TEST_F(DataParallelTest, shares_of_other_devices_are_refused) {
  std::string state;
  {
    Engine engine({.split = {1, 1}});
    nn::Linear net({.in = 2, .out = 2});
    state = DataParallel(engine, net).state();
  }
  Engine engine({.split = {1}});
  nn::Linear net({.in = 2, .out = 2});
  DataParallel parallel(engine, net);
  const std::string error = error_of([&] { parallel.load_state(state); });
  EXPECT_THAT(error, HasSubstr("the shares are of the devices [\"cpu:0.0"));
  EXPECT_THAT(error, HasSubstr("the engine has [\"cpu:0"));
  EXPECT_THAT(error_of([&] { parallel.load_state("nothing"); }), HasSubstr("not a state of shares"));
}

TEST_F(DataParallelTest, pieces_that_are_added_up_take_the_step_of_the_whole_batch) {
  const std::vector<double> pieces = {0.25, 0.3, 1};  // the second one is of two samples, for one device alone
  const Outcome alone = train({.is_shared = false}), added = train({.pieces = pieces});
  EXPECT_LT(difference(added.weights, alone.weights), 1e-6);
  for (std::size_t i = 0; i < alone.losses.size(); ++i) EXPECT_NEAR(added.losses[i], alone.losses[i], 1e-6) << i;
  EXPECT_EQ(added.copied, 0u);
  EXPECT_EQ(difference(train({.pieces = pieces}).weights, added.weights), 0) << "again";
}

TEST_F(DataParallelTest, what_a_device_added_before_it_failed_counts) {
  const Outcome alone = train({.is_shared = false});
  for (const int device : {1, 0}) {
    const Outcome failed = train({.pieces = {0.5, 1},
                                  .before_piece =
                                      [&](int step, double end) {
                                        if (step == 4 && end == 1) plant(DeviceFault::fail, device, 3);
                                      },
                                  .host_execution = HostExecution::off});  // the device's third launch is in this piece
    ASSERT_EQ(failed.events.size(), 1u);
    EXPECT_EQ(failed.events[0].step, 5);
    EXPECT_LT(difference(failed.weights, alone.weights), 2 * kOfSums) << "device " << device;
  }
}

TEST_F(DataParallelTest, synchronised_batch_norm_is_that_of_the_whole_batch) {
  const Outcome one = train({.is_shared = false, .has_batch_norm = true});
  const Outcome apart = train({.options = {.shares = {3, 1}}, .has_batch_norm = true});
  const Outcome synced = train({.options = {.sync_batch_norm = true, .shares = {3, 1}}, .has_batch_norm = true});
  // A variance is cancelled and a rounding of it is felt in every weight: ten times the tolerance of plain sums.
  EXPECT_LT(difference(synced.weights, one.weights), 10 * kOfSums);
  EXPECT_LT(difference(synced.buffers, one.buffers), 10 * kOfSums);
  EXPECT_GT(difference(apart.weights, one.weights), 1e-3);
}

TEST_F(DataParallelTest, a_device_that_refuses_or_fails_is_given_up_and_its_step_made_again) {
  const Outcome plain = train({.has_batch_norm = true, .steps = 10});
  for (const DeviceFault fault : {DeviceFault::refuse, DeviceFault::fail})
    for (const int device : {1, 0}) {
      const Outcome failed = train({.has_batch_norm = true, .steps = 10, .before = [&](int step, DataParallel&) {
                                      if (step == 5) plant(fault, device, 3);
                                    }});
      SCOPED_TRACE(::testing::Message() << "device " << device << " fault " << static_cast<int>(fault));
      ASSERT_EQ(failed.events.size(), 1u);
      EXPECT_EQ(failed.events[0].kind, DeviceEvent::Kind::failed);
      EXPECT_EQ(failed.events[0].step, 6);
      EXPECT_EQ(failed.events[0].device, device);
      EXPECT_THAT(failed.events[0].text, HasSubstr(device == 1 ? "48 + 0 of 48" : "0 + 48 of 48"));
      EXPECT_THAT(failed.samples, device == 1 ? ElementsAre(5 * 48 + 5 * 24, 5 * 24) : ElementsAre(5 * 24, 5 * 72));
      for (int step = 0; step < 5; ++step) EXPECT_EQ(failed.losses[step], plain.losses[step]);
      // Statistics of the whole batch instead of its halves from there on.
      EXPECT_NEAR(failed.losses.back(), plain.losses.back(), 0.05 * plain.losses.back());
    }
}

TEST_F(DataParallelTest, without_batch_norm_a_failure_changes_roundings_alone) {
  const Outcome plain = train({.steps = 10});
  const Outcome failed = train({.steps = 10, .before = [](int step, DataParallel&) {
                                  if (step == 5) plant(DeviceFault::refuse, 1, 3);
                                }});
  EXPECT_LT(difference(failed.weights, plain.weights), 2 * kOfSums);
  EXPECT_EQ(failed.events.size(), 1u);
}

TEST_F(DataParallelTest, a_device_that_does_not_answer_is_given_up_after_the_time_limit) {
  const Outcome plain = train({.steps = 10});
  for (const int device : {1, 0}) {
    const Outcome silent =
        train({.options = {.least_seconds = 0.3}, .steps = 10, .before = [&](int step, DataParallel&) {
                 if (step == 6) plant(DeviceFault::hang, device, 2);
               }});
    ASSERT_EQ(silent.events.size(), 1u);
    EXPECT_EQ(silent.events[0].kind, DeviceEvent::Kind::silent);
    EXPECT_EQ(silent.events[0].step, 7);
    EXPECT_EQ(silent.events[0].device, device);
    EXPECT_THAT(silent.events[0].text, HasSubstr("has not answered for 0."));
    EXPECT_LT(difference(silent.weights, plain.weights), 2 * kOfSums);
  }
}

TEST_F(DataParallelTest, a_device_that_becomes_slow_gets_a_smaller_share) {
  const Outcome slow = train({.steps = 24, .before = [](int step, DataParallel&) {
                                if (step == 12) plant(DeviceFault::slow, 1, 0, 10000);
                              }});
  ASSERT_GE(slow.events.size(), 1u);
  EXPECT_EQ(slow.events[0].kind, DeviceEvent::Kind::slow);
  EXPECT_EQ(slow.events[0].device, 1);
  EXPECT_GE(slow.events[0].step, 13);
  EXPECT_LT(slow.samples[1], 24 * 24 - 24);
  EXPECT_EQ(slow.samples[0] + slow.samples[1], 24 * 48);
}

TEST_F(DataParallelTest, the_last_device_throws) {
  const auto run = [](const Setup& setup) { train(setup); };
  const Setup setup{.steps = 8, .before = [](int step, DataParallel& parallel) {
                      if (step == 2) plant(DeviceFault::refuse, 0, 3);
                      if (step == 5) plant(DeviceFault::refuse, 1, 3);
                      if (step == 6) ADD_FAILURE() << parallel.events().size();
                    }};
  EXPECT_THROW(run(setup), DeviceError);
}

TEST_F(DataParallelTest, maps_over_shares_in_the_order_of_samples) {
  Engine engine({.split = {1, 1}});
  nn::Linear net({.in = 3, .out = 2});
  const Array x = uniform({10, 3});
  x.eval();
  const std::vector<float> whole = net(x).to_vector<float>();
  DataParallel parallel(engine, net, {.shares = {4, 1}});
  std::vector<float> parts;
  std::vector<int> devices;
  for (const auto& share : parallel.map(
           10, [&](std::int64_t begin, std::int64_t end) { return std::vector{net(share_rows(x, begin, end))}; })) {
    EXPECT_EQ(share.end - share.begin, share.results[0].shape()[0]);
    devices.push_back(share.results[0].device());
    for (const float v : share.results[0].to_vector<float>()) parts.push_back(v);
  }
  EXPECT_THAT(devices, ElementsAre(0, 1));
  EXPECT_LT(difference(parts, whole), 1e-6);
}

TEST_F(DataParallelTest, wrong_arguments_say_what_is_needed) {
  Engine engine({.split = {1, 1}});
  nn::Linear net({.in = 2, .out = 2});
  const auto error = [&](const DataParallelOptions& options) {
    return error_of([&] { DataParallel(engine, net, options); });
  };
  EXPECT_THAT(error({.shares = {1, 1, 1}}), HasSubstr("the engine has 2 (cpu:0.0, cpu:0.1), got 3"));
  EXPECT_THAT(error({.shares = {0, 0}}), HasSubstr("one above"));
  EXPECT_THAT(error({.least = 0}), HasSubstr("least must be 1 or more, got 0"));
  EXPECT_THAT(error({.time_limit = 0}), HasSubstr("time_limit must be above 0"));
  EXPECT_THAT(error({.slow_factor = 0.5}), HasSubstr("slow_factor must be above 1"));
  EXPECT_THAT(error({.shard_state = true}), HasSubstr("shard_state shares out over processes"));
  DataParallel parallel(engine, net);
  optim::Sgd releasing(net.parameters(), {.rate = 0.1, .release_gradients = true});
  const auto loss_of = [&](std::int64_t, std::int64_t) { return sum(net(ones({4, 2}))); };
  EXPECT_THAT(error_of([&] { parallel.step(releasing, 4, loss_of); }), HasSubstr("release_gradients"));
  EXPECT_THAT(error_of([&] { parallel.add(releasing, 4, loss_of); }), HasSubstr("release_gradients"));
  EXPECT_THAT(error_of([&] { give_up_device(engine, 2, "a test"); }), HasSubstr("device 2 of 2"));
}

TEST(DataParallelChild, DISABLED_of_devices_that_share_cores_one_has_the_batch) {
  Engine engine({.devices = {"0", "1"}});
  nn::Linear net({.in = 8, .out = 3});
  optim::Sgd sgd(net.parameters(), {.rate = 0.1});
  const Array x = uniform({16, 8}, 0, 1, f32, {1, 1});
  DataParallel parallel(engine, net);
  parallel.measure_shares(sgd, 16, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(end - begin, 16) << "they work side by side";
    return mean(net(share_rows(x, begin, end)));
  });
  EXPECT_THAT(parallel.shares(16), ::testing::AnyOf(ElementsAre(16, 0), ElementsAre(0, 16)));
}

TEST(DataParallelTogether, of_devices_that_share_cores_one_has_the_batch) {
  if (list_devices().front().platform.find("Portable") == std::string::npos) GTEST_SKIP() << "needs_pocl: POCL_DEVICES";
  const auto outcome = run_child("DataParallelChild.*", {{"POCL_DEVICES", "pthread basic"}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

}  // namespace
}  // namespace samebytes::testing
