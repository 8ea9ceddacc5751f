// Plans over the parts of a device: who waits for whom, where gradients run, and the same bytes as on one part.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

class SeveralDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (list_devices().front().cores < 2)
      GTEST_SKIP() << "needs_two_cores: " << list_devices().front().name << " has one";
  }
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
      loss = loss ? loss + own : own;
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

// Values go from device to device in chains of different lengths: a launch that does not wait for what it reads, or
// overwrites what another device still reads, gives other numbers.
TEST_F(SeveralDevices, values_that_change_devices_are_read_when_they_are_there) {
  const auto run = [](int devices) {
    Engine engine({.split = {1, 1}, .seed = 3});
    std::vector<std::vector<float>> results;
    const Array w = uniform({96, 96});
    w.eval();
    for (int round = 0; round < 10; ++round) {
      std::vector<Array> values;
      for (int i = 0; i < 4; ++i) values.push_back(uniform({96, 96}));
      for (int i = 0; i < 24; ++i) {
        const DeviceScope on((i * 5 + i / 3) % devices);
        const Array &a = values[static_cast<std::size_t>(i)], &b = values[static_cast<std::size_t>(i / 2)];
        values.push_back(i % 3 ? tanh(matmul(a, w) * 0.01 + b) : softmax(a + b) * 2.0);
      }
      results.push_back(values.back().to_vector<float>());
    }
    return results;
  };
  EXPECT_EQ(run(2), run(1));
}

}  // namespace
}  // namespace samebytes::testing
