// Modules as such: names, walks, modes, sharing, initial values, summary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModuleTest : public OnDevice {
 protected:
  static std::vector<std::string> names(const std::vector<nn::NamedArray>& state) {
    std::vector<std::string> result;
    for (const auto& entry : state) result.push_back(entry.name);
    return result;
  }
  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  static nn::Sequential small_cnn() {
    return nn::Sequential(nn::Conv2d({.in = 1, .out = 4, .kernel = 3, .pad = 1}), nn::BatchNorm2d({.features = 4}),
                          nn::Relu(), nn::MaxPool2d({.kernel = 2}), nn::Flatten(),
                          nn::Linear({.in = 4 * 4 * 4, .out = 8}), nn::Relu(), nn::Linear({.in = 8, .out = 3}));
  }
};
SAMEBYTES_ON_EVERY_DEVICE(ModuleTest);

TEST_P(ModuleTest, names_are_those_of_pytorchs_state_dict) {
  const nn::Sequential net = small_cnn();
  EXPECT_THAT(names(net.state()), ElementsAre("0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean",
                                              "1.running_var", "5.weight", "5.bias", "7.weight", "7.bias"));
  EXPECT_THAT(names(net.named_buffers()), ElementsAre("1.running_mean", "1.running_var"));
  EXPECT_EQ(net.named_parameters().size(), 8u);
  EXPECT_EQ(net.parameters().size(), 8u);
  EXPECT_EQ(net.parameter_count(), 4 * 9 + 4 + 4 + 4 + 64 * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(net.state()[0].array.shape(), (Shape{3, 3, 1, 4}));
  EXPECT_EQ(net.state()[6].array.shape(), (Shape{8, 64}));
}

TEST_P(ModuleTest, layouts_tell_how_files_order_each_parameter) {
  const nn::Sequential net = small_cnn();
  const auto state = net.state();
  EXPECT_EQ(state[0].layout, nn::Layout::conv);
  EXPECT_EQ(state[2].layout, nn::Layout::plain);
  EXPECT_EQ(state[6].layout, nn::Layout::linear);
  EXPECT_EQ(state[6].flattened_channels, 4);  // of the convolution before
  EXPECT_EQ(state[8].flattened_channels, 0);
}

TEST_P(ModuleTest, a_flatten_of_images_without_convolution_is_told_or_sees_the_channels) {
  nn::Sequential told(nn::Flatten({.channels = 3}), nn::Linear({.in = 12, .out = 2}));
  EXPECT_EQ(told.state()[0].flattened_channels, 3);
  nn::Sequential sees(nn::Flatten(), nn::Linear({.in = 12, .out = 2}));
  EXPECT_EQ(sees.state()[0].flattened_channels, 0);
  sees(zeros({1, 2, 2, 3}));
  EXPECT_EQ(sees.state()[0].flattened_channels, 3);
  EXPECT_EQ(dynamic_cast<nn::Flatten&>(sees[0]).seen(), (Shape{2, 2, 3}));
}

class TwoLayers final : public nn::Module {
 public:
  Array forward(const Array& x) override { return out_(relu(in_(x))) * scale_; }
  void visit(nn::Visitor& visitor) override {
    visitor.parameter("scale", scale_);
    visitor.child("in", in_);
    visitor.child("out", out_);
  }

 private:
  nn::Linear in_{{.in = 4, .out = 8}}, out_{{.in = 8, .out = 2, .bias = false}};
  nn::Parameter scale_{cell(ones({2}), "scale")};
};

TEST_P(ModuleTest, a_users_module_joins_in) {
  nn::Sequential net(TwoLayers(), nn::Linear({.in = 2, .out = 1}));
  EXPECT_THAT(names(net.state()),
              ElementsAre("0.scale", "0.in.weight", "0.in.bias", "0.out.weight", "1.weight", "1.bias"));
  EXPECT_EQ(net(ones({5, 4})).shape(), (Shape{5, 1}));
  std::vector<std::string> paths;
  for (const auto& entry : net.modules()) paths.push_back(entry.name);
  EXPECT_THAT(paths, ElementsAre("", "0", "0.in", "0.out", "1"));
}

TEST_P(ModuleTest, making_a_network_runs_and_copies_nothing) {
  const auto launches = engine().plans().launches;
  const auto copied = engine().transfers().bytes_copied;
  nn::Sequential net = small_cnn();
  nn::Sequential moved = std::move(net);
  moved(zeros({2, 8, 8, 1}));
  EXPECT_EQ(engine().plans().launches, launches);
  moved.state()[0].array.wait();
  EXPECT_GT(engine().plans().launches, launches);
  if (engine().device().memory_mode != MemoryMode::copy) {
    EXPECT_EQ(engine().transfers().bytes_copied, copied);
  }
}

TEST_P(ModuleTest, weights_start_uniform_in_pytorchs_bounds) {
  const auto check = [](const Array& values, double bound) {
    double most = 0, sum = 0, squares = 0;
    for (const double v : values.to_vector<double>()) {
      most = std::max(most, std::abs(v));
      sum += v;
      squares += v * v;
    }
    const double n = static_cast<double>(values.size());
    EXPECT_LE(most, bound * (1 + 1e-6));
    EXPECT_GT(most, bound * 0.98);
    // Mean and variance of a uniform distribution, within five standard errors.
    EXPECT_NEAR(sum / n, 0.0, 5 * bound / std::sqrt(3 * n));
    EXPECT_NEAR(squares / n, bound * bound / 3, 5 * bound * bound * std::sqrt(4.0 / 45 / n));
  };
  const nn::Linear linear({.in = 100, .out = 64});
  check(linear.weight(), 0.1);
  EXPECT_NE(linear.weight().to_vector<float>()[0], linear.bias().to_vector<float>()[0]);
  const nn::Conv2d conv({.in = 16, .out = 32, .kernel = {5, 5}, .groups = 4});
  EXPECT_EQ(conv.weight().shape(), (Shape{5, 5, 4, 32}));
  check(conv.weight(), 0.1);
  const nn::Linear wide({.in = 4, .out = 2000});
  check(wide.bias(), 0.5);
}

TEST_P(ModuleTest, the_same_seed_makes_the_same_network) {
  const auto values = [&](std::uint64_t seed) {
    const auto own = make_engine(GetParam(), {.seed = seed});
    const EngineScope use(*own);
    const nn::Sequential net = small_cnn();
    std::vector<float> all;
    for (const Array& p : net.parameters())
      for (const float v : p.to_vector<float>()) all.push_back(v);
    return all;
  };
  EXPECT_EQ(values(7), values(7));
  EXPECT_NE(values(7), values(8));
}

TEST_P(ModuleTest, a_tied_layer_shares_its_parameters) {
  const nn::Linear layer({.in = 6, .out = 6});
  nn::Sequential net(nn::tied(layer), nn::Relu(), nn::tied(layer));
  EXPECT_EQ(net.state().size(), 4u);
  EXPECT_EQ(net.parameters().size(), 2u);
  EXPECT_EQ(net.parameter_count(), 42);
  EXPECT_EQ(net.parameters()[0].node(), layer.weight().node());
}

TEST_P(ModuleTest, modes_reach_every_child) {
  nn::Sequential net(nn::Sequential(nn::Dropout(0.5), nn::Relu()), nn::BatchNorm({.features = 2}));
  EXPECT_TRUE(net.is_training());
  net.eval();
  for (const auto& entry : net.modules()) EXPECT_FALSE(entry.module->is_training()) << entry.name;
  net.train();
  for (const auto& entry : net.modules()) EXPECT_TRUE(entry.module->is_training()) << entry.name;
}

TEST_P(ModuleTest, frozen_parameters_are_not_trained_but_kept_in_the_state) {
  nn::Sequential net = small_cnn();
  net[0].freeze();
  EXPECT_EQ(net.parameters().size(), 6u);
  EXPECT_EQ(net.state().size(), 10u);
  EXPECT_TRUE(net.state()[0].is_frozen);
  const auto before = net.state()[0].array.to_vector<float>();
  optim::Sgd sgd(net.parameters(), {.rate = 1.0});
  sgd.step(sum(square(net(uniform({4, 8, 8, 1})))));
  EXPECT_EQ(net.state()[0].array.to_vector<float>(), before);
  net.freeze(false);
  EXPECT_EQ(net.parameters().size(), 8u);
}

TEST_P(ModuleTest, parameters_are_frozen_by_patterns_of_their_names) {
  nn::Sequential net(nn::Linear({.in = 2, .out = 3}), nn::Sequential(nn::Linear({.in = 3, .out = 4}), nn::Relu()),
                     nn::Linear({.in = 4, .out = 2}));
  EXPECT_EQ(net.freeze_matching("[01].*weight"), 2u);
  EXPECT_EQ(net.freeze_matching("0.weight"), 1u) << "twice is once";
  std::vector<std::string> trained;
  for (const nn::NamedArray& entry : net.named_parameters())
    if (!entry.is_frozen) trained.push_back(entry.name);
  EXPECT_EQ(trained, (std::vector<std::string>{"0.bias", "1.0.bias", "2.weight", "2.bias"}));
  EXPECT_EQ(net.parameters().size(), 4u);
  EXPECT_EQ(net.trainable_parameter_count(), 3 + 4 + 8 + 2);
  EXPECT_EQ(net[1].parameters().size(), 1u) << "the layer itself knows";
  EXPECT_EQ(nn::clone(net).parameters().size(), 4u);
  EXPECT_EQ(net.freeze_matching("conv*"), 0u);
  net.freeze(false);
  EXPECT_EQ(net.parameters().size(), 6u);
}

TEST_P(ModuleTest, a_mistake_names_the_layer) {
  nn::Sequential net(nn::Linear({.in = 4, .out = 3}), nn::Relu(), nn::Sequential(nn::Linear({.in = 5, .out = 2})));
  const std::string message = message_of([&] { net(zeros({2, 4})); });
  EXPECT_THAT(message, HasSubstr("layer 2, Sequential: layer 0, Linear(5, 2): "));
  EXPECT_THAT(message_of([&] { net[3]; }), HasSubstr("3 modules, number 3"));
}

TEST_P(ModuleTest, wrong_options_are_named) {
  EXPECT_THAT(message_of([] { nn::Linear({.in = 0, .out = 3}); }), HasSubstr("Linear: in must be at least 1, got 0"));
  EXPECT_THAT(message_of([] { nn::Conv2d({.in = 3, .out = 4, .groups = 2}); }), HasSubstr("groups must divide"));
  EXPECT_THAT(message_of([] { nn::Conv2d({.in = 3, .out = 4, .kernel = {3, 0}}); }), HasSubstr("kernel"));
  EXPECT_THAT(message_of([] { nn::Conv2d({.in = 3, .out = 4, .pad = -1}); }), HasSubstr("pad"));
  EXPECT_THAT(message_of([] { nn::Dropout(1.0); }), HasSubstr("[0, 1)"));
  EXPECT_THAT(message_of([] { nn::BatchNorm({}); }), HasSubstr("features"));
  EXPECT_THAT(message_of([] { nn::Linear({.in = 1, .out = 1, .dtype = f16}); }), HasSubstr("f32 or f64, got f16"));
  EXPECT_THAT(message_of([] { nn::LayerNorm({.features = 3})(zeros({2, 4})); }), HasSubstr("3 features"));
}

TEST_P(ModuleTest, the_summary_lists_layers_shapes_and_parameters_and_changes_nothing) {
  nn::Sequential net(nn::Sequential(nn::Conv2d({.in = 1, .out = 4, .kernel = 3, .pad = 1}), nn::Dropout(0.25)),
                     nn::Flatten(), nn::Linear({.in = 8 * 8 * 4, .out = 10}));
  const auto launches = engine().plans().launches;
  const RandomKey before = next_random_key();
  const std::string text = nn::summary(net, {16, 8, 8, 1});
  EXPECT_EQ(next_random_key().counter, before.counter + 1);
  EXPECT_EQ(engine().plans().launches, launches);
  EXPECT_TRUE(net.is_training());
  EXPECT_EQ(text,
            "     layer                          output         parameters\n"
            "0.0  Conv2d(1, 4, kernel=3, pad=1)  [16, 8, 8, 4]          40\n"
            "0.1  Dropout(0.25)                  [16, 8, 8, 4]\n"
            "1    Flatten                        [16, 256]\n"
            "2    Linear(256, 10)                [16, 10]            2,570\n"
            "input [16, 8, 8, 1], 2,610 parameters\n");
}

}  // namespace
}  // namespace samebytes::testing
