// Copies of modules: parameters of their own with the same values, for every kind of module there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class CloneTest : public OnDevice {
 protected:
  static std::vector<std::vector<double>> values_of(const nn::Module& module) {
    std::vector<std::vector<double>> values;
    for (const auto& entry : module.state()) values.push_back(entry.array.to_vector<double>());
    return values;
  }

  // What a copy promises, of a module and an x that it takes.
  template <class M>
  static void check(M module, const Array& x) {
    static_assert(std::is_nothrow_move_constructible_v<M>);  // else a vector that grows would copy
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, module.describe());
    if (x.dtype() == f32) module(x);  // running statistics move, sizes are seen
    module.eval();
    const auto parts = module.modules();
    if (parts.size() > 1) parts.back().module->train();
    parts.back().module->freeze();
    M copy = nn::clone(module);
    expect_alike(module, copy, x);
    M plain = module;  // the same where nothing is tied
    expect_alike(module, plain, x);
  }

  template <class M>
  static void expect_alike(M& module, M& copy, const Array& x) {
    const auto ours = module.state(), theirs = copy.state();
    ASSERT_EQ(ours.size(), theirs.size());
    std::set<const void*> nodes;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].name, theirs[i].name);
      EXPECT_EQ(ours[i].layout, theirs[i].layout) << ours[i].name;
      EXPECT_EQ(ours[i].is_buffer, theirs[i].is_buffer) << ours[i].name;
      EXPECT_EQ(ours[i].is_frozen, theirs[i].is_frozen) << ours[i].name;
      EXPECT_EQ(cell_name(ours[i].array), cell_name(theirs[i].array));
      nodes.insert(ours[i].array.node().get());
    }
    for (const auto& entry : theirs) EXPECT_EQ(nodes.count(entry.array.node().get()), 0u) << entry.name;
    const auto our_modules = module.modules(), their_modules = copy.modules();
    ASSERT_EQ(our_modules.size(), their_modules.size());
    for (std::size_t i = 0; i < our_modules.size(); ++i) {
      EXPECT_EQ(our_modules[i].name, their_modules[i].name);
      EXPECT_EQ(our_modules[i].module->describe(), their_modules[i].module->describe());
      EXPECT_EQ(our_modules[i].module->is_training(), their_modules[i].module->is_training()) << our_modules[i].name;
      EXPECT_NE(our_modules[i].module, their_modules[i].module);
    }
    const auto before = values_of(module);
    EXPECT_EQ(values_of(copy), before);
    EXPECT_EQ(copy(x).template to_vector<float>(), module(x).template to_vector<float>());
    for (const auto& entry : theirs) assign(entry.array, entry.array + 1.0);
    EXPECT_EQ(values_of(module), before);
  }
};
SAMEBYTES_ON_EVERY_DEVICE(CloneTest);

TEST_P(CloneTest, every_layer_with_parameters_is_copied_whole) {
  const Array rows = uniform({3, 4}), images = uniform({2, 6, 6, 4}), lines = uniform({2, 6, 4});
  check(nn::Linear({.in = 4, .out = 3}), rows);
  check(nn::Linear({.in = 4, .out = 3, .bias = false}), rows);
  check(nn::Conv1d({.in = 4, .out = 3, .kernel = 3}), lines);
  check(nn::Conv2d({.in = 4, .out = 3, .kernel = 3}), images);
  check(nn::Conv3d({.in = 2, .out = 3, .kernel = 2}), uniform({1, 3, 3, 3, 2}));
  check(nn::ConvTranspose1d({.in = 4, .out = 3, .kernel = 3}), lines);
  check(nn::ConvTranspose2d({.in = 4, .out = 3, .kernel = 3}), images);
  check(nn::ConvTranspose3d({.in = 2, .out = 3, .kernel = 2}), uniform({1, 3, 3, 3, 2}));
  check(nn::Embedding({.in = 5, .out = 3}), astype(array({0, 4, 2}), i32));
  check(nn::BatchNorm({.features = 4}), rows);
  check(nn::LayerNorm({.features = 4}), rows);
  check(nn::RmsNorm({.features = 4}), rows);
  check(nn::GroupNorm({.groups = 2, .features = 4}), images);
  check(nn::InstanceNorm({.features = 4, .affine = true, .track_running_stats = true}), images);
  check(nn::PRelu({.features = 4}), rows);
  check(nn::Lstm({.in = 4, .hidden = 3, .layers = 2, .bidirectional = true}), lines);
  check(nn::Gru({.in = 4, .hidden = 3}), lines);
  check(nn::MultiHeadAttention({.width = 4, .heads = 2}), lines);
  check(nn::TransformerBlock({.width = 4, .heads = 2}), lines);
}

TEST_P(CloneTest, layers_without_parameters_are_copied) {
  const Array rows = uniform({3, 4}, -1, 1), images = uniform({2, 6, 6, 4}), lines = uniform({2, 6, 4});
  check(nn::Sequential(nn::Relu(), nn::Gelu(), nn::Silu(), nn::Sigmoid(), nn::Tanh(), nn::Softmax(), nn::LogSoftmax(),
                       nn::LeakyRelu(0.2), nn::Elu(0.5), nn::Selu(), nn::Softplus(), nn::Mish(), nn::Relu6(),
                       nn::HardSigmoid(), nn::HardSwish(), nn::LogSigmoid(), nn::Dropout(0.5), nn::Glu()),
        rows);
  check(nn::Sequential(nn::MaxPool1d({.kernel = 2}), nn::AvgPool1d({.kernel = 2}), nn::GlobalAvgPool1d()), lines);
  check(nn::Sequential(nn::AdaptiveAvgPool1d(4), nn::AdaptiveMaxPool1d(3)), lines);
  check(nn::Sequential(nn::AdaptiveAvgPool2d({4, 5}), nn::AdaptiveMaxPool2d({3, 2})), images);
  check(nn::Sequential(nn::Upsample({.scale = 2}), nn::MaxPool2d({.kernel = 2}), nn::AvgPool2d({.kernel = 2}),
                       nn::GlobalAvgPool2d(), nn::Lambda([](const Array& x) { return x * 2.0; })),
        images);
  check(nn::Sequential(nn::MaxPool2d({.kernel = 2}), nn::Flatten(), nn::Linear({.in = 36, .out = 2})), images);
  check(nn::Sequential(nn::Interpolate({.scale = {2}}), nn::LpPool2d(), nn::Unfold({.kernel = {2, 2}}),
                       nn::Fold({6, 6}, {.kernel = {2, 2}})),
        images);
  check(nn::Sequential(nn::MaxPool3d({.kernel = 2, .stride = 1}), nn::AvgPool3d({.kernel = 2, .stride = 1}),
                       nn::LpPool3d({.kernel = 2, .stride = 1}), nn::AdaptiveAvgPool3d(3), nn::AdaptiveMaxPool3d(2),
                       nn::GlobalAvgPool3d()),
        uniform({1, 5, 5, 5, 2}));
}

TEST_P(CloneTest, containers_and_whole_networks_are_copied) {
  const Array images = uniform({2, 8, 8, 3}), lines = uniform({2, 16, 1});
  check(nn::Sequential(nn::Linear({.in = 3, .out = 4}), nn::Sequential(nn::Relu(), nn::Linear({.in = 4, .out = 2})),
                       nn::Residual(nn::Linear({.in = 2, .out = 2}), nn::Linear({.in = 2, .out = 2, .bias = false}))),
        images);
  check(models::resnet(8, {.width = 4}), images);
  check(models::resnet1d({.width = 4}), lines);
  check(models::transit({.has_local = false}), uniform({2, 16, 1}));
  check(models::lstm_classifier({.hidden = 4}), lines);
  check(models::gpt({.vocabulary = 16, .context = 8, .layers = 2, .heads = 2, .width = 8}),
        astype(array({1, 3, 5, 7}, {1, 4}), i32));
}

TEST_P(CloneTest, training_a_copy_leaves_the_original) {
  nn::Sequential net(nn::Linear({.in = 4, .out = 8}), nn::BatchNorm({.features = 8}), nn::Relu(),
                     nn::Linear({.in = 8, .out = 1}));
  nn::Sequential copy = nn::clone(net);
  const auto before = values_of(net);
  optim::Adam adam(copy.parameters(), {.rate = 0.1});
  for (int i = 0; i < 3; ++i) adam.step(mean(square(copy(uniform({8, 4})))));
  EXPECT_EQ(values_of(net), before);
  EXPECT_NE(values_of(copy), before);
}

TEST_P(CloneTest, a_copy_has_the_values_of_its_moment) {
  nn::Linear layer({.in = 2, .out = 1, .bias = false});
  assign(layer.weight(), array({1, 2}, {1, 2}));
  const nn::Linear early = layer;
  assign(layer.weight(), array({3, 4}, {1, 2}));
  const nn::Linear late = nn::clone(layer);
  assign(layer.weight(), array({5, 6}, {1, 2}));
  EXPECT_EQ(early.weight().to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(late.weight().to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST_P(CloneTest, what_is_tied_inside_stays_tied_inside) {
  nn::Linear layer({.in = 4, .out = 4});
  nn::Sequential net(nn::tied(layer), nn::Relu(), std::move(layer));
  ASSERT_EQ(net.parameters().size(), 2u);
  const nn::Sequential copy = nn::clone(net);
  EXPECT_EQ(copy.parameters().size(), 2u);
  EXPECT_EQ(copy.state()[0].array.node(), copy.state()[2].array.node());
  EXPECT_NE(copy.state()[0].array.node(), net.state()[0].array.node());
  EXPECT_ERROR(nn::Sequential(static_cast<const nn::Sequential&>(net)), ArgumentError,
               "copy of Sequential: 0.weight and 2.weight are one parameter, which a plain copy would make two; use "
               "nn::clone(), which keeps them one");
}

TEST_P(CloneTest, adapters_are_copied_with_their_layers) {
  nn::Linear layer({.in = 4, .out = 4});
  nn::Sequential net(nn::tied(layer), nn::Relu(), std::move(layer), nn::Linear({.in = 4, .out = 2}));
  nn::apply_lora(net, {.rank = 2, .targets = {"all-linear"}});
  for (const Array& p : net.parameters()) assign(p, uniform(p.shape(), -1, 1));
  nn::Sequential copy = nn::clone(net);
  EXPECT_EQ(copy.parameters().size(), net.parameters().size());
  EXPECT_EQ(copy.trainable_parameter_count(), net.trainable_parameter_count());
  const Array x = uniform({3, 4});
  EXPECT_EQ(copy(x).to_vector<float>(), net(x).to_vector<float>());
  const auto before = values_of(net);
  for (const Array& p : copy.parameters()) assign(p, p * 2.0);
  nn::merge_lora(copy);
  EXPECT_EQ(values_of(net), before);
}

class Uncopied final : public nn::Module {
 public:
  Array forward(const Array& x) override { return x; }
  std::string kind() const override { return "Uncopied"; }

 private:
  std::unique_ptr<int> state_;
};

TEST_P(CloneTest, a_users_module_without_copies_says_so) {
  const nn::Sequential net{nn::Relu(), Uncopied()};
  EXPECT_ERROR(nn::clone(net), ArgumentError,
               "copy of Uncopied: its type has no copy constructor; give it one, or make it anew");
}

}  // namespace
}  // namespace samebytes::testing
