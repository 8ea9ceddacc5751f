// Which calls an update of DataParallel is made of, and that no other call knows of it.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using train::DataParallel;

class SharedUpdates : public ::testing::Test {
 protected:
  void SetUp() override { SAMEBYTES_NEEDS_PARTS(); }

  // The weights of a small network after `run`, which is given it with an optimizer.
  static std::vector<float> weights_after(const std::function<void(Engine&, nn::Module&, optim::Optimizer&)>& run) {
    Engine engine({.split = {1, 1}});
    nn::Linear net({.in = 2, .out = 1, .bias = false});
    assign(net.parameters()[0], full(net.parameters()[0].shape(), 0.5));
    optim::Sgd sgd(net.parameters(), {.rate = 0.1});
    run(engine, net, sgd);
    return net.parameters()[0].to_vector<float>();
  }
  // Of samples that differ, from `first` on.
  static DataParallel::LossOf loss_from(nn::Module& net, std::int64_t first) {
    return [&net, first](std::int64_t begin, std::int64_t end) {
      const Array x = uniform({8, 2}, 0, 1, f32, {1, 1});
      const Array y = net(slice(x, 0, first + begin, first + end));
      return mean(y * y);
    };
  }
};

TEST_F(SharedUpdates, a_step_takes_what_was_added_before_it) {
  const auto whole = weights_after([](Engine& engine, nn::Module& net, optim::Optimizer& sgd) {
    DataParallel(engine, net).step(sgd, 8, loss_from(net, 0));
  });
  const auto in_parts = weights_after([](Engine& engine, nn::Module& net, optim::Optimizer& sgd) {
    DataParallel parallel(engine, net);
    parallel.add(sgd, 4, loss_from(net, 0));
    EXPECT_EQ(parallel.added(), 4);
    EXPECT_EQ(parallel.steps(), 0);
    parallel.step(sgd, 4, loss_from(net, 4));
    EXPECT_EQ(parallel.added(), 0);
    EXPECT_EQ(parallel.steps(), 1);
    EXPECT_EQ(parallel.global_samples(), 8);
  });
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(in_parts[i], whole[i], 1e-6);
    EXPECT_GT(std::abs(whole[i] - 0.5F), 1e-3) << "it was a step";
  }
}

TEST_F(SharedUpdates, the_optimizers_own_step_takes_its_own_loss) {
  const auto step = [](nn::Module& net, optim::Optimizer& sgd) { sgd.step(loss_from(net, 0)(0, 8)); };
  const auto alone = weights_after([&](Engine&, nn::Module& net, optim::Optimizer& sgd) { step(net, sgd); });
  const auto beside = weights_after([&](Engine& engine, nn::Module& net, optim::Optimizer& sgd) {
    const DataParallel parallel(engine, net);
    step(net, sgd);
  });
  EXPECT_EQ(alone, beside);
}

TEST_F(SharedUpdates, a_source_makes_the_gradients_of_a_step) {
  const auto twice = weights_after([](Engine&, nn::Module& net, optim::Optimizer& sgd) {
    sgd.step(loss_from(net, 0)(0, 8), [&](const Array& loss, const optim::Optimizer::GradientMap& map) {
      EXPECT_FALSE(map);
      std::vector<Array> flat = sgd.flat_gradients(loss);
      for (Array& gradient : flat) gradient = gradient * 2.0;
      return flat;
    });
  });
  const auto once =
      weights_after([](Engine&, nn::Module& net, optim::Optimizer& sgd) { sgd.step(loss_from(net, 0)(0, 8) * 2.0); });
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], once[i], 1e-6);
}

}  // namespace
}  // namespace samebytes::testing
