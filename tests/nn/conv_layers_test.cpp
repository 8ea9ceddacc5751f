// Convolution layers against their ops; names, initial ranges and file layout as in PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class ConvLayersTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ConvLayersTest);

// All values lie in +-bound, and some in its outer tenth on either side.
void expect_uniform(const Array& a, double bound) {
  const auto values = a.to_vector<double>();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -bound);
  EXPECT_LE(*high, bound);
  EXPECT_LT(*low, -0.9 * bound);
  EXPECT_GT(*high, 0.9 * bound);
}

// The file's tensor "weight".
void expect_file(const std::string& path, const Shape& shape, const std::vector<float>& want) {
  const io::TensorFile file(path);
  const auto index = file.find("weight");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(file.tensors()[*index].shape, shape);
  std::vector<float> values(want.size());
  file.read(*index, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, want);
}

TEST_P(ConvLayersTest, conv1d_is_its_op) {
  nn::Conv1d layer({.in = 4, .out = 6, .kernel = 3, .stride = 2, .pad = 1, .dilation = 2, .groups = 2});
  EXPECT_EQ(layer.describe(), "Conv1d(4, 6, kernel=3, stride=2, pad=1, dilation=2, groups=2)");
  const Array x = uniform({2, 11, 4}, -1, 1);
  EXPECT_TRUE(same_bytes(layer(x),
                         conv1d(x, layer.weight(), layer.bias(), {.stride = 2, .pad = 1, .dilation = 2, .groups = 2})));
  EXPECT_FALSE(nn::Conv1d({.in = 1, .out = 1, .bias = false}).bias().defined());
  EXPECT_ERROR(nn::Conv1d({.in = 3, .out = 4, .groups = 2}), ArgumentError,
               "Conv1d: groups must divide in and out, got 2 groups of 3 and 4");
  EXPECT_ERROR(nn::Conv1d({.in = 3, .out = 4, .pad = -1}), ArgumentError, "Conv1d: pad must be at least 0, got -1");
}

TEST_P(ConvLayersTest, conv1d_starts_as_in_pytorch_and_names_its_state) {
  nn::Conv1d layer({.in = 8, .out = 64, .kernel = 5, .groups = 2});
  const auto state = layer.state();
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[0].name, "weight");
  EXPECT_EQ(state[0].array.shape(), (Shape{5, 4, 64}));
  EXPECT_EQ(state[1].name, "bias");
  expect_uniform(layer.weight(), 1 / std::sqrt(20.0));
  expect_uniform(layer.bias(), 1 / std::sqrt(20.0));
}

TEST_P(ConvLayersTest, conv1d_stands_in_files_as_out_in_taps) {
  const TemporaryFolder folder;
  nn::Conv1d layer({.in = 2, .out = 3, .kernel = 2, .bias = false});
  assign(layer.weight(), array({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 2, 3}));
  io::save(folder / "a.safetensors", layer);
  expect_file(folder / "a.safetensors", {3, 2, 2}, {0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11});
  nn::Conv1d other({.in = 2, .out = 3, .kernel = 2, .bias = false});
  io::load(folder / "a.safetensors", other);
  EXPECT_TRUE(same_bytes(other.weight(), layer.weight()));
}

TEST_P(ConvLayersTest, conv3d_is_its_op_and_starts_as_in_pytorch) {
  nn::Conv3d layer({.in = 4, .out = 256, .kernel = {3, 1, 2}, .stride = {1, 2, 1}, .pad = {1, 0, 0}, .groups = 2});
  EXPECT_EQ(layer.describe(), "Conv3d(4, 256, kernel=(3, 1, 2), stride=(1, 2, 1), pad=(1, 0, 0), groups=2)");
  EXPECT_EQ(layer.weight().shape(), (Shape{3, 1, 2, 2, 256}));
  expect_uniform(layer.weight(), 1 / std::sqrt(12.0));
  expect_uniform(layer.bias(), 1 / std::sqrt(12.0));
  const Array x = uniform({1, 3, 4, 5, 4}, -1, 1);
  EXPECT_TRUE(same_bytes(layer(x), conv3d(x, layer.weight(), layer.bias(), {.stride_h = 2, .pad_d = 1, .groups = 2})));
  EXPECT_ERROR(nn::Conv3d({.in = 3, .out = 4, .stride = {1, 0, 1}}), ArgumentError,
               "Conv3d: stride must be at least 1, got 0");
  const TemporaryFolder folder;
  nn::Conv3d small({.in = 1, .out = 2, .kernel = {1, 1, 2}, .bias = false});
  assign(small.weight(), array({0, 1, 2, 3}, {1, 1, 2, 1, 2}));
  io::save(folder / "a.safetensors", small);
  expect_file(folder / "a.safetensors", {2, 1, 1, 1, 2}, {0, 2, 1, 3});
}

TEST_P(ConvLayersTest, transposed_layers_are_their_ops_and_start_as_in_pytorch) {
  nn::ConvTranspose1d line({.in = 6, .out = 64, .kernel = 4, .stride = 2, .pad = 1, .output_pad = 1, .groups = 2});
  EXPECT_EQ(line.describe(), "ConvTranspose1d(6, 64, kernel=4, stride=2, pad=1, output_pad=1, groups=2)");
  EXPECT_EQ(line.weight().shape(), (Shape{4, 32, 6}));
  expect_uniform(line.weight(), 1 / std::sqrt(128.0));
  const Array x = uniform({2, 5, 6}, -1, 1);
  EXPECT_TRUE(same_bytes(
      line(x), conv_transpose1d(x, line.weight(), line.bias(), {.stride = 2, .pad = 1, .output_pad = 1, .groups = 2})));
  nn::ConvTranspose2d image({.in = 2, .out = 3, .kernel = {2, 3}, .stride = {2, 1}, .pad = {0, 1}, .dilation = 2});
  EXPECT_EQ(image.describe(), "ConvTranspose2d(2, 3, kernel=(2, 3), stride=(2, 1), pad=(0, 1), dilation=2)");
  const Array y = uniform({1, 3, 4, 2}, -1, 1);
  EXPECT_TRUE(same_bytes(image(y), conv_transpose2d(y, image.weight(), image.bias(),
                                                    {.stride_h = 2, .pad_w = 1, .dilation_h = 2, .dilation_w = 2})));
  EXPECT_ERROR(nn::ConvTranspose2d({.in = 2, .out = 3, .pad = {0, -1}}), ArgumentError,
               "ConvTranspose2d: pad and output_pad must be at least 0, got -1 and 0");
}

TEST_P(ConvLayersTest, transposed_volumes_are_their_op_and_have_its_gradient) {
  nn::ConvTranspose3d layer({.in = 4,
                             .out = 64,
                             .kernel = {3, 2, 1},
                             .stride = {2, 1, 1},
                             .pad = {1, 0, 0},
                             .output_pad = {1, 0, 0},
                             .groups = 2});
  EXPECT_EQ(
      layer.describe(),
      "ConvTranspose3d(4, 64, kernel=(3, 2, 1), stride=(2, 1, 1), pad=(1, 0, 0), output_pad=(1, 0, 0), groups=2)");
  EXPECT_EQ(layer.weight().shape(), (Shape{3, 2, 1, 32, 4}));
  expect_uniform(layer.weight(), 1 / std::sqrt(192.0));
  expect_uniform(layer.bias(), 1 / std::sqrt(192.0));
  const Array x = uniform({1, 3, 4, 2, 4}, -1, 1);
  EXPECT_TRUE(same_bytes(layer(x), conv_transpose3d(x, layer.weight(), layer.bias(),
                                                    {.stride_d = 2, .pad_d = 1, .output_pad_d = 1, .groups = 2})));
  EXPECT_ERROR(nn::ConvTranspose3d({.in = 2, .out = 3, .output_pad = {0, -1, 0}}), ArgumentError,
               "ConvTranspose3d: pad and output_pad must be at least 0, got 0 and -1");
  EXPECT_ERROR(layer(zeros({1, 4, 3, 3, 3})), ArgumentError,
               "ConvTranspose3d(4, 64, kernel=(3, 2, 1), stride=(2, 1, 1), pad=(1, 0, 0), output_pad=(1, 0, 0), "
               "groups=2): x must be channels last, [N, D, H, W, 4], it is [1, 4, 3, 3, 3], which looks like channels "
               "first, [N, 4, D, H, W]; call contiguous(transpose(x, {0, 2, 3, 4, 1})) before the network, once");
  const TemporaryFolder folder;
  nn::ConvTranspose3d small({.in = 2, .out = 1, .kernel = {1, 1, 2}, .bias = false});
  assign(small.weight(), array({0, 1, 2, 3}, {1, 1, 2, 1, 2}));
  io::save(folder / "a.safetensors", small);
  expect_file(folder / "a.safetensors", {2, 1, 1, 1, 2}, {0, 2, 1, 3});
  SAMEBYTES_NEEDS_F64();
  nn::ConvTranspose3d exact({.in = 2, .out = 2, .kernel = 2, .stride = {1, 2, 1}, .dtype = f64});
  EXPECT_TRUE(check_gradients([&](auto v) { return exact(v[0]); }, {random_input("x", {1, 2, 2, 3, 2})}));
}

TEST_P(ConvLayersTest, convolutions_have_a_padding_for_each_end) {
  const Array line = uniform({2, 7, 4}, -1, 1), image = uniform({1, 5, 6, 2}, -1, 1),
              volume = uniform({1, 3, 4, 3, 2}, -1, 1);
  eval({line, image, volume});
  nn::Conv1d causal({.in = 4, .out = 3, .kernel = 3, .pad = 2, .pad_end = 0});
  EXPECT_EQ(causal.describe(), "Conv1d(4, 3, kernel=3, pad=2, pad_end=0)");
  const Array before = concat({zeros({2, 2, 4}), line}, 1);
  EXPECT_TRUE(all_close(causal(line), conv1d(before, causal.weight(), causal.bias()).to_vector<double>(), 1e-6));
  nn::Conv2d conv2({.in = 2, .out = 3, .kernel = {2, 3}, .pad = {0, 1}, .pad_end = nn::Size2(1, 2)});
  EXPECT_EQ(conv2.describe(), "Conv2d(2, 3, kernel=(2, 3), pad=(0, 1), pad_end=(1, 2))");
  EXPECT_TRUE(same_bytes(conv2(image),
                         conv2d(image, conv2.weight(), conv2.bias(), {.pad_w = 1, .pad_end_h = 1, .pad_end_w = 2})));
  nn::Conv3d conv3({.in = 2, .out = 3, .kernel = 2, .pad = {1, 0, 0}, .pad_end = nn::Size3(0, 1, 1)});
  EXPECT_TRUE(same_bytes(conv3(volume), conv3d(volume, conv3.weight(), conv3.bias(),
                                               {.pad_d = 1, .pad_end_d = 0, .pad_end_h = 1, .pad_end_w = 1})));
  EXPECT_EQ(conv3(volume).shape(), (Shape{1, 3, 4, 3, 3}));
  EXPECT_ERROR(nn::Conv1d({.in = 3, .out = 4, .pad_end = -1}), ArgumentError,
               "Conv1d: pad_end must be at least 0, got -1");
  EXPECT_ERROR(nn::Conv2d({.in = 3, .out = 4, .pad_end = nn::Size2(0, -1)}), ArgumentError,
               "Conv2d: pad_end must be at least 0, got (0, -1)");
  EXPECT_ERROR(nn::Conv3d({.in = 3, .out = 4, .pad_end = nn::Size3(0, -1, 0)}), ArgumentError,
               "Conv3d: pad_end must be at least 0, got (0, -1, 0)");
}

TEST_P(ConvLayersTest, transposed_weights_stand_in_files_as_in_out_taps) {
  const TemporaryFolder folder;
  nn::ConvTranspose1d layer({.in = 3, .out = 2, .kernel = 2, .bias = false});
  assign(layer.weight(), array({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 2, 3}));  // [taps, out, in]
  io::save(folder / "a.safetensors", layer);
  expect_file(folder / "a.safetensors", {3, 2, 2}, {0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11});
}

TEST_P(ConvLayersTest, a_linear_layer_behind_knows_the_channels) {
  nn::Sequential net(nn::ConvTranspose2d({.in = 2, .out = 3, .kernel = 2}), nn::Flatten(),
                     nn::Linear({.in = 27, .out = 1}));
  EXPECT_EQ(net.state()[2].flattened_channels, 3);
}

}  // namespace
}  // namespace samebytes::testing
