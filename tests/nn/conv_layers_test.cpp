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
  EXPECT_FALSE(nn::Conv1d({.in = 1, .out = 1, .bias = false}).bias());
  EXPECT_ERROR(nn::Conv1d({.in = 3, .out = 4, .groups = 2}), ArgumentError,
               "Conv1d: groups must divide in and out, 2 groups of 3 and 4 came");
  EXPECT_ERROR(nn::Conv1d({.in = 3, .out = 4, .pad = -1}), ArgumentError, "Conv1d: pad must be at least 0, -1 came");
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

}  // namespace
}  // namespace samebytes::testing
