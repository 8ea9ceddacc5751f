// Plans over the parts of a device: who waits for whom, where gradients run, and the same bytes as on one part.
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/device_chains.h"
#include "support/errors.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

class SeveralDevices : public ::testing::Test {
 protected:
  void SetUp() override { SAMEBYTES_NEEDS_PARTS(); }
};

// Ten steps on halves of batches, each half on the next of so many devices, in one graph with one update.
std::vector<float> trained_on_halves(int devices) {
  Engine engine({.split = {1, 1}, .forbid_copies = true, .seed = 5});
  nn::Sequential net(nn::Conv2d({.in = 2, .out = 9, .kernel = 3, .pad = 1}), nn::Relu(), nn::Flatten(),
                     nn::Linear({.in = 9 * 25, .out = 33}), nn::Tanh(), nn::Linear({.in = 33, .out = 7}));
  const std::vector<Array> parameters = net.parameters();
  optim::Sgd sgd(parameters, {.rate = 0.1, .momentum = 0.9});
  for (int step = 0; step < 10; ++step) {
    const Array x = uniform({64, 5, 5, 2}), y = uniform({64, 7});
    Array loss;
    for (int half = 0; half < 2; ++half) {
      const DeviceScope on(half % devices);
      const auto part = [&](const Array& a) { return slice(a, 0, half * 32, half * 32 + 32); };
      const Array own = mse_loss(net(part(x)), part(y)) * 0.5;
      loss = loss.defined() ? loss + own : own;
    }
    sgd.step(loss);
  }
  std::vector<float> weights;
  for (const Array& w : parameters)
    for (const float v : w.to_vector<float>()) weights.push_back(v);
  EXPECT_EQ(engine.transfers().bytes_copied, 0u);
  return weights;
}

TEST_F(SeveralDevices, halves_of_a_batch_train_to_the_bytes_of_one_device) {
  const std::vector<float> one = trained_on_halves(1);
  EXPECT_EQ(trained_on_halves(2), one);
  EXPECT_EQ(trained_on_halves(2), one);
}

TEST_F(SeveralDevices, a_gradient_runs_where_its_layer_ran) {
  Engine engine({.split = {1, 1}});
  const Array x = uniform({8, 4}), w = uniform({4, 3});
  Array y;
  {
    const DeviceScope on(1);
    y = mean(relu(matmul(x, w)));
  }
  EXPECT_EQ(y.device(), 1);
  EXPECT_EQ(gradients(y, std::vector<Array>{w})[0].device(), 1);
  EXPECT_EQ((w * 2.0).device(), 0);
}

TEST_F(SeveralDevices, values_that_change_devices_are_read_when_they_are_there) {
  const auto run = [](int devices) {
    Engine engine({.split = {1, 1}, .seed = 3});
    return device_chains(devices, 96, 10);
  };
  EXPECT_EQ(run(2), run(1));
}

// A running statistic is overwritten by a launch of its branch: that is no reason to wait for the other branch, which
// reads and overwrites cells of its own.
TEST_F(SeveralDevices, a_branch_does_not_wait_for_the_cells_of_another) {
  Engine engine({.split = {1, 1}, .profile = true});
  nn::BatchNorm first({.features = 640}), second({.features = 4});
  const Array w = cell(uniform({640, 640}), "w"), x = uniform({640, 640}), small = uniform({8, 4});
  eval({w, x, small});
  const auto run = [&] {
    Array long_branch = first(x);
    for (int i = 0; i < 8; ++i) long_branch = matmul(long_branch, w) * 1e-3;
    const DeviceScope on(1);
    const Array short_branch = second(small);
    eval({long_branch, short_branch});
    engine.wait();
  };
  run();  // kernels are built
  Profiler profiler(engine);
  run();
  double last_of_long = 0, last_of_short = 0;
  for (const ProfiledLaunch& launch : profiler.stop().launches)
    (launch.device == 0 ? last_of_long : last_of_short) = launch.start;
  EXPECT_GT(last_of_short, 0);
  EXPECT_LT(last_of_short, last_of_long);
}

// A cell that is a part of a flat one is read on one device while the other overwrites the flat one: both orders.
TEST_F(SeveralDevices, parts_of_a_flat_cell_are_read_before_and_after_it_is_overwritten) {
  const auto run = [](int devices) {
    Engine engine({.split = {1, 1}, .seed = 9});
    nn::Linear a({.in = 48, .out = 48}), b({.in = 48, .out = 48});
    std::vector<Array> parameters = a.parameters();
    for (const Array& p : b.parameters()) parameters.push_back(p);
    optim::Sgd sgd(parameters, {.rate = 0.05, .momentum = 0.5});
    std::vector<float> losses;
    const Array x = uniform({32, 48}), y = uniform({32, 48});
    for (int step = 0; step < 12; ++step) {
      Array other;
      {
        const DeviceScope on(step % 2 % devices);
        other = tanh(b(tanh(b(x))));
      }
      const Array loss = mse_loss(a(x) + other, y);
      sgd.step(loss);
      losses.push_back(static_cast<float>(loss.value()));
    }
    return losses;
  };
  EXPECT_EQ(run(2), run(1));
}

struct Trained {
  std::vector<float> weights;
  std::set<std::pair<std::string, int>> branches;  // first name of a layer, and its device
};

Trained trained_transit(std::optional<int> local_device) {
  Engine engine({.split = {1, 1}, .forbid_copies = true, .seed = 2, .profile = true});
  models::Transit net({.local_device = local_device});
  optim::AdamW adam(net.parameters(), {.rate = 1e-3});
  Profiler profiler(engine);
  for (int step = 0; step < 3; ++step) {
    const Array logits = net.forward(uniform({6, 61, 1}), uniform({6, 21, 1}));
    adam.step(bce_with_logits(reshape(logits, {-1}), full({6}, 0.5)));
    profiler.step();
  }
  Trained trained;
  for (const ProfiledLaunch& launch : profiler.stop().launches)
    trained.branches.emplace(launch.layer.substr(0, launch.layer.find('.')), launch.device);
  for (const Array& w : net.parameters())
    for (const float v : w.to_vector<float>()) trained.weights.push_back(v);
  return trained;
}

TEST_F(SeveralDevices, branches_of_transit_run_on_two_devices_with_the_bytes_of_one) {
  const Trained one = trained_transit(std::nullopt), two = trained_transit(1);
  EXPECT_EQ(two.weights, one.weights);
  const auto ran = [](const Trained& trained, const char* branch, int device) {
    return trained.branches.count({branch, device}) != 0;
  };
  EXPECT_TRUE(ran(two, "global", 0) && ran(two, "local", 1) && ran(two, "head", 0));
  EXPECT_FALSE(ran(two, "global", 1) || ran(two, "local", 0) || ran(two, "head", 1));
  EXPECT_TRUE(ran(one, "local", 0) && !ran(one, "local", 1));

  Engine engine({.split = {1, 1}});
  for (const int device : {-1, 2}) {
    models::Transit net({.local_device = device});
    EXPECT_ERROR(
        net.forward(zeros({1, 61, 1}), zeros({1, 21, 1})), ArgumentError,
        ("DeviceScope: the engine has 2 device(s), device " + std::to_string(device) + " was asked for").c_str());
  }
}

}  // namespace
}  // namespace samebytes::testing
