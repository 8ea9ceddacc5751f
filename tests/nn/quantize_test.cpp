// Networks in int8: which layers, which ranges, what they compute and what they refuse.
#include "samebytes/nn/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;

class QuantizeTest : public OnDevice {
 protected:
  static Array input(const Shape& shape, int seed = 1) {
    return uniform(shape, -1, 1, f32, {.seed = static_cast<std::uint64_t>(seed)}).eval();
  }
  static nn::Sequential small_net() {
    return nn::Sequential(nn::Conv2d({.in = 3, .out = 16, .kernel = 3, .pad = 1}), nn::BatchNorm2d({.features = 16}),
                          nn::Relu(), nn::Conv2d({.in = 16, .out = 16, .kernel = 3, .groups = 4}), nn::Relu(),
                          nn::Flatten(), nn::Linear({.in = 16 * 6 * 6, .out = 10}));
  }
  // The largest difference, as a part of the largest value.
  static double difference(const Array& a, const Array& b) { return max(abs(a - b)).value() / max(abs(b)).value(); }
};
SAMEBYTES_ON_EVERY_DEVICE(QuantizeTest);

std::vector<std::string> names(const nn::QuantizeReport& report) {
  std::vector<std::string> all;
  for (const auto& layer : report.layers) all.push_back(layer.name);
  return all;
}

TEST_P(QuantizeTest, replaces_products_and_convolutions_and_says_which) {
  nn::Sequential net = small_net();
  const NoGrad no_grad;
  const Array x = input({4, 8, 8, 3});
  net.eval();
  const Array want = net(x).eval();
  for (const bool is_static : {false, true}) {
    const nn::QuantizeReport report = is_static ? nn::quantize(net, {x, input({4, 8, 8, 3}, 2)}) : nn::quantize(net);
    EXPECT_THAT(names(report), ElementsAre("0", "6"));
    EXPECT_THAT(report.kept, ElementsAre("3"));
    EXPECT_EQ(report.layers[0].range.has_value(), is_static);
    EXPECT_EQ(report.to_text(), "2 layers multiply in int8 (20.7 kB), 1 does not: 3");
    EXPECT_TRUE(nn::is_quantized(net));
    const Array y = net(x);
    EXPECT_LT(difference(y, want), 0.03);
    EXPECT_GT(difference(y, want), 0) << "it is the network in f32";
    nn::dequantize(net);
    EXPECT_FALSE(nn::is_quantized(net));
    EXPECT_TRUE(same_bytes(net(x), want));
  }
}

TEST_P(QuantizeTest, takes_the_ranges_of_the_calibration) {
  nn::Sequential net(nn::Linear({.in = 4, .out = 8}), nn::Relu(), nn::Linear({.in = 8, .out = 2}));
  const Array low = full({1, 4}, -2.0), high = full({1, 4}, 3.0);
  const nn::QuantizeReport report = nn::quantize(net, {low, high});
  EXPECT_EQ(report.layers[0].range->low, -2);
  EXPECT_EQ(report.layers[0].range->high, 3);
  EXPECT_GE(report.layers[1].range->low, 0);
  EXPECT_FALSE(net.is_training());
  const NoGrad no_grad;  // beyond the range, a value counts as its end
  EXPECT_TRUE(same_bytes(net(full({1, 4}, 100.0)), net(high)));
  nn::dequantize(net);
  int calls = 0;
  nn::quantize(net, [&] {
    ++calls;
    net(low).eval();
  });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(nn::is_quantized(net));
}

TEST_P(QuantizeTest, transformers_and_sequences_do_too) {
  nn::TransformerBlock block({.width = 32, .heads = 4, .hidden = 64});
  nn::Sequential line(nn::Conv1d({.in = 6, .out = 12, .kernel = 5, .stride = 2}), nn::Gelu(),
                      nn::Conv1d({.in = 12, .out = 4, .kernel = 3}));
  nn::MultiHeadAttention attention({.width = 32, .heads = 4});
  const NoGrad no_grad;
  const Array tokens = input({2, 9, 32}), samples = input({2, 30, 6}), others = input({2, 5, 32}, 2);
  for (nn::Module* module : {static_cast<nn::Module*>(&block), static_cast<nn::Module*>(&attention)}) {
    module->eval();
    const Array want = (*module)(tokens).eval();
    const nn::QuantizeReport report = nn::quantize(*module);
    EXPECT_EQ(report.layers.size(), module == &block ? 4U : 2U);
    EXPECT_LT(difference((*module)(tokens), want), 0.04);
  }
  const Array crossed = attention(tokens, others, others).eval();
  nn::dequantize(attention);
  EXPECT_LT(difference(crossed, attention(tokens, others, others)), 0.04);
  line.eval();
  const Array want = line(samples).eval();
  EXPECT_EQ(nn::quantize(line).layers.size(), 2U);
  EXPECT_LT(difference(line(samples), want), 0.04);
}

TEST_P(QuantizeTest, a_weight_that_was_overwritten_is_an_error_and_not_another_network) {
  nn::Linear layer({.in = 4, .out = 3});
  nn::quantize(layer);
  const NoGrad no_grad;
  layer(zeros({1, 4})).eval();
  assign(layer.weight(), zeros({3, 4}));
  EXPECT_ERROR(layer(zeros({1, 4})), ArgumentError,
               "a weight [3, 4] was overwritten after quantize(); dequantize() and quantize() the model again");
  nn::dequantize(layer);
  layer(zeros({1, 4})).eval();
  nn::quantize(layer);
  layer(zeros({1, 4})).eval();
}

TEST_P(QuantizeTest, copies_are_quantized_too) {
  nn::Sequential net = small_net();
  const NoGrad no_grad;
  const Array x = input({2, 8, 8, 3});
  nn::quantize(net, {x});
  const Array want = net(x).eval();
  nn::Sequential copy = nn::clone(net);
  EXPECT_TRUE(nn::is_quantized(copy));
  assign(net.parameters()[0], zeros(net.parameters()[0].shape()));
  EXPECT_TRUE(same_bytes(copy(x), want));
  nn::Sequential stale = nn::clone(net);  // of the first layer nothing was left to copy
  EXPECT_TRUE(nn::is_quantized(stale));
  stale(x).eval();
}

TEST_P(QuantizeTest, skips_what_it_is_told) {
  nn::Sequential net = small_net();
  EXPECT_THAT(names(nn::quantize(net, nn::QuantizeOptions{.skip = {"6"}})), ElementsAre("0"));
  nn::dequantize(net);
  EXPECT_ERROR(nn::quantize(net, nn::QuantizeOptions{.skip = {"head"}}), ArgumentError,
               "quantize: skip has head, which matches no layer; there are 0, 3, 6");
  EXPECT_ERROR(nn::quantize(net, nn::QuantizeOptions{.skip = {"0", "6"}}), ArgumentError,
               "quantize: Sequential has no layer that multiplies in int8: linear ones, and convolutions of one group");
  EXPECT_FALSE(nn::is_quantized(net));
}

TEST_P(QuantizeTest, refuses_and_changes_nothing) {
  nn::Sequential net = small_net();
  nn::Relu none;
  EXPECT_ERROR(nn::quantize(none), ArgumentError,
               "quantize: Relu has no layer that multiplies in int8: linear ones, and convolutions of one group");
  EXPECT_ERROR(nn::quantize(net, std::vector<Array>{}), ArgumentError, "quantize: the calibration has no batch");
  EXPECT_ERROR(nn::quantize(net, {full({1, 8, 8, 3}, std::numeric_limits<double>::quiet_NaN())}), ArgumentError,
               "layer 0, Conv2d(3, 16, kernel=3, pad=1): quantize: the input of 0 has values that are not finite");
  EXPECT_ERROR(nn::quantize(net, [] {}), ArgumentError,
               "quantize: 0 saw no input; skip it, or calibrate with inputs that reach it");
  EXPECT_FALSE(nn::is_quantized(net));
  EXPECT_TRUE(net.is_training());
  nn::Module& norm = *net.modules()[2].module;  // a layer in another mode keeps it
  norm.eval();
  EXPECT_ERROR(nn::quantize(net, [] {}), ArgumentError,
               "quantize: 0 saw no input; skip it, or calibrate with inputs that reach it");
  EXPECT_TRUE(net.is_training());
  EXPECT_FALSE(norm.is_training());
  nn::quantize(net);
  EXPECT_ERROR(nn::quantize(net), ArgumentError, "quantize: Sequential is quantized already; dequantize() first");
  EXPECT_ERROR(nn::apply_lora(net), ArgumentError, "apply_lora: Sequential is quantized; dequantize() first");
  const Array x = input({1, 8, 8, 3});
  EXPECT_ERROR(gradients(sum(net(x)), std::vector<Array>{x}), ArgumentError, "int8_product: has no gradient");
  nn::dequantize(net);
  nn::apply_lora(net);
  EXPECT_ERROR(nn::quantize(net), ArgumentError,
               "quantize: Sequential has adapters; merge_lora() and unload_lora() first");
}

}  // namespace
}  // namespace samebytes::testing
