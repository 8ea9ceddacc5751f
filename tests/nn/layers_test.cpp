// Each layer against the op it stands for, or against plain numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class LayersTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LayersTest);

TEST_P(LayersTest, linear_is_rows_times_the_transposed_weight) {
  nn::Linear layer({.in = 3, .out = 2});
  assign(layer.weight(), array({1, 2, 3, 4, 5, 6}, {2, 3}));
  assign(layer.bias(), array({10, 20}));
  EXPECT_TRUE(all_close(layer(array({1, 1, 1, 0, 1, 2}, {2, 3})), std::vector<double>{16, 35, 18, 37}, 1e-6));
  nn::Linear plain({.in = 3, .out = 2, .bias = false});
  EXPECT_FALSE(plain.bias().defined());
  EXPECT_EQ(plain(zeros({4, 5, 3})).shape(), (Shape{4, 5, 2}));
}

TEST_P(LayersTest, conv2d_takes_square_and_two_sided_sizes) {
  nn::Conv2d square_sizes({.in = 2, .out = 4, .kernel = 3, .stride = 2, .pad = 1});
  EXPECT_EQ(square_sizes(zeros({1, 7, 9, 2})).shape(), (Shape{1, 4, 5, 4}));
  nn::Conv2d uneven(
      {.in = 2, .out = 4, .kernel = {3, 1}, .stride = {1, 2}, .pad = {0, 1}, .dilation = {2, 1}, .groups = 2});
  EXPECT_EQ(uneven(zeros({1, 7, 9, 2})).shape(), (Shape{1, 3, 6, 4}));
  EXPECT_EQ(uneven.describe(), "Conv2d(2, 4, kernel=(3, 1), stride=(1, 2), pad=(0, 1), dilation=(2, 1), groups=2)");
  const Array x = uniform({1, 7, 9, 2}, -1, 1);
  const Array want =
      conv2d(x, uneven.weight(), uneven.bias(), {.stride_w = 2, .pad_w = 1, .dilation_h = 2, .groups = 2});
  EXPECT_TRUE(same_bytes(uneven(x), want));
}

TEST_P(LayersTest, pooling_layers_pass_their_options_on) {
  const Array x = uniform({2, 6, 7, 3}, -1, 1);
  EXPECT_TRUE(same_bytes(nn::MaxPool2d({.kernel = 2})(x), max_pool2d(x, {.kernel_h = 2, .kernel_w = 2})));
  EXPECT_TRUE(same_bytes(nn::MaxPool2d({.kernel = {2, 3}, .stride = 1, .pad = {0, 1}})(x),
                         max_pool2d(x, {.kernel_h = 2, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .pad_w = 1})));
  EXPECT_TRUE(
      same_bytes(nn::AvgPool2d({.kernel = 3, .pad = 1, .count_include_pad = false})(x),
                 avg_pool2d(x, {.kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .count_include_pad = false})));
  EXPECT_EQ(nn::GlobalAvgPool2d()(x).shape(), (Shape{2, 3}));
  EXPECT_TRUE(same_bytes(nn::AdaptiveAvgPool2d({4, 3})(x), adaptive_avg_pool2d(x, 4, 3)));
  EXPECT_TRUE(same_bytes(nn::AdaptiveMaxPool2d(2)(x), adaptive_max_pool2d(x, 2, 2)));
  EXPECT_EQ(nn::AdaptiveMaxPool2d({4, 3}).describe(), "AdaptiveMaxPool2d((4, 3))");
  const Array line = uniform({2, 7, 3}, -1, 1);
  EXPECT_TRUE(same_bytes(nn::MaxPool1d({.kernel = 3, .stride = 1, .pad = 1})(line),
                         max_pool1d(line, {.kernel = 3, .stride = 1, .pad = 1})));
  EXPECT_TRUE(same_bytes(nn::AvgPool1d({.kernel = 3, .ceil_mode = true})(line),
                         avg_pool1d(line, {.kernel = 3, .ceil_mode = true})));
  EXPECT_EQ(nn::MaxPool1d({.kernel = 3, .stride = 1, .pad = 1}).describe(), "MaxPool1d(3, stride=1, pad=1)");
  EXPECT_TRUE(same_bytes(nn::AdaptiveAvgPool1d(3)(line), adaptive_avg_pool1d(line, 3)));
  EXPECT_TRUE(same_bytes(nn::AdaptiveMaxPool1d(3)(line), adaptive_max_pool1d(line, 3)));
  EXPECT_EQ(nn::GlobalAvgPool1d()(line).shape(), (Shape{2, 3}));
}

TEST_P(LayersTest, upsampling_passes_its_options_on) {
  const Array x = uniform({1, 3, 4, 2}, -1, 1);
  EXPECT_TRUE(same_bytes(nn::Upsample({.scale = 2})(x), resize(x, {.scale_h = 2, .scale_w = 2})));
  nn::Upsample layer({.size = {5, 7}, .mode = ResizeMode::bilinear, .align_corners = true});
  EXPECT_TRUE(
      same_bytes(layer(x), resize(x, {.out_h = 5, .out_w = 7, .mode = ResizeMode::bilinear, .align_corners = true})));
  EXPECT_EQ(layer.describe(), "Upsample(size=(5, 7), mode=bilinear, align_corners=true)");
  EXPECT_EQ(nn::Upsample({.scale = 1.5}).describe(), "Upsample(scale=1.5, mode=nearest)");
  EXPECT_ERROR(nn::Upsample({.size = 2, .scale = 2}), ArgumentError,
               "Upsample: expected either size or scale above 0, got size 2 and scale 2");
}

TEST_P(LayersTest, activations_are_the_ops_of_their_names) {
  const Array x = uniform({3, 5}, -2, 2);
  EXPECT_TRUE(same_bytes(nn::Relu()(x), relu(x)));
  EXPECT_TRUE(same_bytes(nn::Gelu()(x), gelu(x)));
  EXPECT_TRUE(same_bytes(nn::Gelu(GeluForm::tanh)(x), gelu(x, GeluForm::tanh)));
  EXPECT_TRUE(same_bytes(nn::Silu()(x), silu(x)));
  EXPECT_TRUE(same_bytes(nn::Sigmoid()(x), sigmoid(x)));
  EXPECT_TRUE(same_bytes(nn::Tanh()(x), tanh(x)));
  EXPECT_TRUE(same_bytes(nn::Softmax()(x), softmax(x)));
  EXPECT_TRUE(same_bytes(nn::LogSoftmax()(x), log_softmax(x)));
  EXPECT_TRUE(same_bytes(nn::Softmax(0)(x), softmax(x, 0)));
  EXPECT_TRUE(same_bytes(nn::LogSoftmax(-2)(x), log_softmax(x, 0)));
  EXPECT_EQ(nn::LogSoftmax(1).describe(), "LogSoftmax(axis=1)");
}

TEST_P(LayersTest, flatten_keeps_rows) { EXPECT_EQ(nn::Flatten()(zeros({4, 3, 2, 5})).shape(), (Shape{4, 30})); }

TEST_P(LayersTest, batch_norm_learns_its_running_statistics_in_training_only) {
  nn::BatchNorm layer({.features = 2});
  const Array x = array({1, 10, 2, 20, 3, 30, 6, 40}, {4, 2});
  const Array y = layer(x);
  // Means 3 and 25; variances 3.5 and 125 over the batch, 14 / 3 and 500 / 3 unbiased.
  const double a = std::sqrt(3.5 + 1e-5), b = std::sqrt(125 + 1e-5);
  const std::vector<double> want{-2 / a, -15 / b, -1 / a, -5 / b, 0, 5 / b, 3 / a, 15 / b};
  EXPECT_TRUE(all_close(y, want, 1e-5));
  EXPECT_TRUE(all_close(layer.running_mean(), std::vector<double>{0.3, 2.5}, 1e-6));
  EXPECT_TRUE(all_close(layer.running_var(), std::vector<double>{0.9 + 1.4 / 3, 0.9 + 50.0 / 3}, 1e-6));
  layer.eval();
  const Array z = layer(x);
  const double mean = 0.3, deviation = std::sqrt(0.9 + 1.4 / 3 + 1e-5);
  EXPECT_NEAR(z.to_vector<double>()[0], (1 - mean) / deviation, 1e-5);
  EXPECT_TRUE(all_close(layer.running_mean(), std::vector<double>{0.3, 2.5}, 1e-6));
}

TEST_P(LayersTest, layer_norm_works_with_and_without_weights) {
  const Array x = uniform({3, 5}, -2, 2);
  nn::LayerNorm layer({.features = 5}), bare({.features = 5, .affine = false});
  EXPECT_EQ(layer.parameters().size(), 2u);
  EXPECT_TRUE(bare.parameters().empty());
  EXPECT_TRUE(all_close(layer(x), bare(x).to_vector<double>(), 1e-6));
}

TEST_P(LayersTest, dropout_drops_in_training_only) {
  nn::Dropout layer({.p = 0.4});
  const Array x = ones({10'000});
  std::int64_t zeros_seen = 0;
  for (const double v : layer(x).to_vector<double>()) {
    if (v == 0.0)
      ++zeros_seen;
    else
      EXPECT_NEAR(v, 1 / 0.6, 1e-6);
  }
  EXPECT_NEAR(static_cast<double>(zeros_seen), 4000, 5 * std::sqrt(10'000 * 0.24));
  EXPECT_FALSE(same_bytes(layer(x), layer(x)));
  layer.eval();
  EXPECT_TRUE(same_bytes(layer(x), x));
}

TEST_P(LayersTest, residual_adds_the_block_to_its_shortcut) {
  const Array x = array({1, 2});
  nn::Residual same{nn::Lambda([](const Array& a) { return a * 3.0; })};
  EXPECT_TRUE(all_close(same(x), std::vector<double>{4, 8}, 1e-6));
  nn::Residual other(nn::Lambda([](const Array& a) { return a * 3.0; }),
                     nn::Lambda([](const Array& a) { return a + 1.0; }));
  EXPECT_TRUE(all_close(other(x), std::vector<double>{5, 9}, 1e-6));
  nn::Residual named(nn::Linear({.in = 2, .out = 2, .bias = false}), nn::Linear({.in = 2, .out = 2, .bias = false}));
  EXPECT_EQ(named.state()[0].name, "block.weight");
  EXPECT_EQ(named.state()[1].name, "shortcut.weight");
}

TEST_P(LayersTest, the_gradient_of_a_network_is_the_numerical_one) {
  SAMEBYTES_NEEDS_F64();
  nn::Linear in({.in = 4, .out = 6, .dtype = f64}), out({.in = 6, .out = 2, .dtype = f64});
  nn::LayerNorm norm({.features = 6, .dtype = f64});
  EXPECT_TRUE(check_gradients([&](auto x) { return out(gelu(norm(in(x[0])))); }, {random_input("x", {3, 4})}));
}

}  // namespace
}  // namespace samebytes::testing
