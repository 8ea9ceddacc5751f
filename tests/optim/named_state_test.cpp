// What optimizers keep, by the names of parameters.
#include "samebytes/optim/named_state.h"

#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class NamedStateTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(NamedStateTest);

nn::Sequential small_net() { return nn::Sequential(nn::Linear({.in = 3, .out = 2}), nn::Linear({.in = 2, .out = 1})); }

TEST_P(NamedStateTest, a_state_goes_by_name_to_an_optimizer_with_another_order_and_counts_from_the_first_step) {
  const Array x = uniform({4, 3}, -1, 1);
  x.eval();
  const auto loss = [&](nn::Module& net) { return sum(square(net(x))); };
  nn::Sequential net = small_net();
  optim::AdamW adam(net.parameters(), {.rate = 0.01});
  for (int step = 0; step < 3; ++step) adam.step(loss(net));
  const auto state = optim::state_by_name(adam, net.named_parameters());
  ASSERT_EQ(state.size(), 8u);
  EXPECT_EQ(state[2].name, "0.weight.moment1");
  EXPECT_EQ(state[2].array.shape(), (Shape{2, 3}));
  for (const auto& entry : state) EXPECT_GT(sum(abs(entry.array)).value(), 0) << entry.name;

  nn::Sequential other = nn::clone(net);
  std::vector<Array> reversed = other.parameters();
  std::reverse(reversed.begin(), reversed.end());
  optim::AdamW later(reversed, {.rate = 0.01});
  optim::load_state_by_name(later, other.named_parameters(), state, adam.step_count());
  adam.step(loss(net));
  later.step(loss(other));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(all_close(other.parameters()[i], net.parameters()[i].to_vector<double>(), 1e-6)) << i;
}

TEST_P(NamedStateTest, a_loaded_momentum_moves_the_first_step_and_what_does_not_fit_is_named) {
  nn::Linear layer({.in = 2, .out = 1, .bias = false});
  assign(layer.weight(), zeros({1, 2}));
  optim::Sgd sgd(layer.parameters(), {.rate = 1.0, .momentum = 0.5, .dampening = 0.5});
  const auto names = layer.named_parameters();
  const optim::StateArray momentum{"weight.momentum", array({4, 8}, {1, 2})};
  optim::load_state_by_name(sgd, names, {momentum});
  sgd.step(sum(layer.weight()));  // momentum 0.5 * {4, 8} + 0.5 * {1, 1}
  EXPECT_EQ(layer.weight().to_vector<float>(), (std::vector<float>{-2.5f, -4.5f}));
  EXPECT_ERROR((optim::load_state_by_name(sgd, names, {{"bias.momentum", momentum.array}})), ArgumentError,
               "state by name: the optimizer has no bias.momentum; it has weight.momentum among others");
  EXPECT_ERROR((optim::load_state_by_name(sgd, names, {{"weight.momentum", zeros({2})}})), ArgumentError,
               "state by name: weight.momentum must be [1, 2], as its parameter is, it is [2]");
  EXPECT_THROW(optim::state_by_name(sgd, std::vector<optim::StateArray>{}), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing
