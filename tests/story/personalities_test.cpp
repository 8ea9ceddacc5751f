// The two personalities compute the same network: loss and gradients of the first step of digits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

struct FirstStep {
  double loss = 0;
  std::vector<std::string> names;
  std::vector<std::vector<float>> gradients;
};

FirstStep first_step_of_digits(Personality personality, std::uint64_t seed) {
  const auto engine = make_engine({.personality = personality, .memory = {}}, {.seed = seed});
  const EngineScope scope(*engine);
  nn::Sequential net(
      nn::Conv2d({.in = 1, .out = 32, .kernel = 3, .pad = 1, .bias = false}), nn::BatchNorm({.features = 32}),
      nn::Relu(), nn::Conv2d({.in = 32, .out = 32, .kernel = 3, .pad = 1, .bias = false}),
      nn::BatchNorm({.features = 32}), nn::Relu(), nn::MaxPool2d({.kernel = 2}),
      nn::Conv2d({.in = 32, .out = 64, .kernel = 3, .pad = 1, .bias = false}), nn::BatchNorm({.features = 64}),
      nn::Relu(), nn::MaxPool2d({.kernel = 2}), nn::Flatten(), nn::Dropout(0.3), nn::Linear({.in = 256, .out = 10}));
  data::Loader batches(*engine, data::digits().train, {.batch = 64, .shuffle = true, .seed = seed});
  FirstStep step;
  for (const auto& [image, label] : batches) {
    const Array loss = cross_entropy(net(image), label);
    std::vector<Array> all = gradients(loss, net.parameters());
    all.push_back(loss);
    eval(all);
    step.loss = loss.value();
    all.pop_back();
    for (const Array& gradient : all) step.gradients.push_back(gradient.to_vector<float>());
    break;
  }
  for (const auto& parameter : net.named_parameters()) step.names.push_back(parameter.name);
  return step;
}

TEST(Personalities, agree_on_loss_and_gradients_of_the_first_step) {
  const FirstStep cpu = first_step_of_digits(Personality::cpu, 3), gpu = first_step_of_digits(Personality::gpu, 3);
  EXPECT_NEAR(cpu.loss, gpu.loss, 1e-5 * std::abs(cpu.loss));
  ASSERT_EQ(cpu.gradients.size(), gpu.gradients.size());
  for (std::size_t p = 0; p < cpu.gradients.size(); ++p) {
    ASSERT_EQ(cpu.gradients[p].size(), gpu.gradients[p].size());
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < cpu.gradients[p].size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(cpu.gradients[p][i])));
      difference = std::max(difference, std::abs(static_cast<double>(cpu.gradients[p][i]) - gpu.gradients[p][i]));
    }
    EXPECT_GT(largest, 0) << cpu.names[p];
    EXPECT_LE(difference, 1e-4 * largest) << cpu.names[p];
  }
}

}  // namespace
}  // namespace samebytes::testing
