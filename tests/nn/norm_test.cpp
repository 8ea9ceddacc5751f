// Normalisation layers and activations with options against their ops: names, initial values, modes.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class NormLayersTest : public OnDevice {
 protected:
  static std::string names(const nn::Module& module) {
    std::string text;
    for (const nn::NamedArray& entry : module.state())
      text += entry.name + entry.array.shape().to_string() + (entry.is_buffer ? "*" : "") + " ";
    return text;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(NormLayersTest);

TEST_P(NormLayersTest, names_and_shapes_are_pytorchs) {
  EXPECT_EQ(names(nn::RmsNorm({.features = 5})), "weight[5] ");
  EXPECT_EQ(names(nn::RmsNorm({.features = 5, .affine = false})), "");
  EXPECT_EQ(names(nn::GroupNorm({.groups = 2, .features = 6})), "weight[6] bias[6] ");
  EXPECT_EQ(names(nn::GroupNorm({.groups = 2, .features = 6, .affine = false})), "");
  EXPECT_EQ(names(nn::InstanceNorm2d({.features = 3})), "");
  EXPECT_EQ(names(nn::InstanceNorm1d({.features = 3, .affine = true, .track_running_stats = true})),
            "weight[3] bias[3] running_mean[3]* running_var[3]* ");
  EXPECT_EQ(names(nn::PRelu()), "weight[1] ");
  EXPECT_EQ(names(nn::PRelu({.features = 4})), "weight[4] ");
}

TEST_P(NormLayersTest, layers_start_as_their_bare_ops) {
  const Array x = uniform({2, 7, 6}, -2, 2);
  EXPECT_TRUE(same_bytes(nn::RmsNorm({.features = 6})(x), rms_norm(x, ones({6}))));
  EXPECT_TRUE(same_bytes(nn::RmsNorm({.features = 6, .eps = 0.1f, .affine = false})(x), rms_norm(x, {}, 0.1f)));
  EXPECT_TRUE(same_bytes(nn::GroupNorm({.groups = 3, .features = 6})(x), group_norm(x, 3, ones({6}), zeros({6}))));
  EXPECT_TRUE(same_bytes(nn::GroupNorm({.groups = 3, .features = 6, .eps = 0.1f, .affine = false})(x),
                         group_norm(x, 3, {}, {}, 0.1f)));
  EXPECT_TRUE(same_bytes(nn::InstanceNorm({.features = 6})(x), instance_norm(x)));
  EXPECT_TRUE(same_bytes(nn::PRelu()(x), leaky_relu(x, 0.25)));
  EXPECT_TRUE(same_bytes(nn::PRelu({.features = 6, .initial = 0.5})(x), leaky_relu(x, 0.5)));
}

TEST_P(NormLayersTest, instance_norm_uses_running_statistics_in_evaluation_only) {
  nn::InstanceNorm layer({.features = 2, .momentum = 0.5f, .track_running_stats = true});
  const Array x = array({1, 10, 3, 30, 5, 0, 9, 0}, {2, 2, 2});  // two samples of two positions
  const std::vector<double> want{-1, -1, 1, 1, -1, 0, 1, 0};
  EXPECT_TRUE(all_close(layer(x), want, 1e-4));
  // Means 2 and 7, 20 and 0; unbiased variances 2 and 8, 200 and 0.
  EXPECT_TRUE(all_close(layer.running_mean(), std::vector<double>{0.5 * 4.5, 0.5 * 10}, 1e-6));
  EXPECT_TRUE(all_close(layer.running_var(), std::vector<double>{0.5 + 0.5 * 5, 0.5 + 0.5 * 100}, 1e-6));
  layer.eval();
  EXPECT_NEAR(layer(x).to_vector<double>()[0], (1 - 2.25) / std::sqrt(3.0 + 1e-5), 1e-5);
  EXPECT_TRUE(all_close(layer.running_mean(), std::vector<double>{0.5 * 4.5, 0.5 * 10}, 1e-6));
  nn::InstanceNorm bare({.features = 2});
  bare.eval();
  EXPECT_TRUE(all_close(bare(x), want, 1e-4));
}

TEST_P(NormLayersTest, activations_are_the_ops_of_their_names) {
  const Array x = uniform({3, 6}, -4, 4);
  EXPECT_TRUE(same_bytes(nn::LeakyRelu(0.2)(x), leaky_relu(x, 0.2)));
  EXPECT_TRUE(same_bytes(nn::Elu(0.5)(x), elu(x, 0.5)));
  EXPECT_TRUE(same_bytes(nn::Selu()(x), selu(x)));
  EXPECT_TRUE(same_bytes(nn::Softplus({.beta = 2, .threshold = 3})(x), softplus(x, 2, 3)));
  EXPECT_TRUE(same_bytes(nn::Mish()(x), mish(x)));
  EXPECT_TRUE(same_bytes(nn::Relu6()(x), relu6(x)));
  EXPECT_TRUE(same_bytes(nn::HardSigmoid()(x), hard_sigmoid(x)));
  EXPECT_TRUE(same_bytes(nn::HardSwish()(x), hard_swish(x)));
  EXPECT_TRUE(same_bytes(nn::LogSigmoid()(x), log_sigmoid(x)));
  EXPECT_TRUE(same_bytes(nn::Glu(1)(x), glu(x)));
  EXPECT_EQ(nn::LeakyRelu().describe(), "LeakyRelu(0.01)");
  EXPECT_EQ(nn::Elu(0.5).describe(), "Elu(0.5)");
  EXPECT_EQ(nn::Softplus({.beta = 2}).describe(), "Softplus(beta=2.0, threshold=20.0)");
  EXPECT_EQ(nn::Glu(0).describe(), "Glu(axis=0)");
  EXPECT_EQ(nn::PRelu({.features = 4}).describe(), "PRelu(4)");
}

TEST_P(NormLayersTest, wrong_options_are_named) {
  EXPECT_ERROR(nn::RmsNorm({}), ArgumentError, "RmsNorm: features must be at least 1, got 0");
  EXPECT_ERROR(nn::GroupNorm({.groups = 4, .features = 6}), ArgumentError,
               "GroupNorm: groups must divide the features, got 4 and 6");
  EXPECT_ERROR(nn::InstanceNorm({.features = 3, .dtype = f16}), ArgumentError,
               "InstanceNorm: parameters must be f32 or f64, got f16");
  EXPECT_ERROR(nn::GroupNorm({.groups = 2, .features = 6})(zeros({2, 4})), ArgumentError,
               "GroupNorm: needs 6 features in the last axis, src is [2, 4]");
  EXPECT_ERROR(nn::PRelu({.features = 0}), ArgumentError, "PRelu: features must be at least 1, got 0");
}

}  // namespace
}  // namespace samebytes::testing
