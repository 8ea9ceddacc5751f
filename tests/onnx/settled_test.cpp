// What a graph becomes once its constants are known: fewer nodes, the same values.
#include "onnx/settled.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onnx/call.h"
#include "onnx/maker.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/explain.h"
#include "samebytes/ops.h"
#include "support/gradcheck.h"

namespace samebytes::onnx {
namespace {

using testing::random_values;

class OnnxSettled : public ::testing::Test {
 protected:
  // A Constant node.
  static void constant(Maker& maker, const std::string& name, const std::vector<std::int64_t>& sizes,
                       const std::vector<float>& values) {
    auto& tensor =
        *Maker::attribute(maker.node("Constant", {}, name), "value", ::onnx::AttributeProto::TENSOR).mutable_t();
    tensor.set_data_type(1);
    for (const auto size : sizes) tensor.add_dims(size);
    for (const float value : values) tensor.add_float_data(value);
  }
  static std::vector<float> numbers(std::int64_t n, std::uint64_t seed) {
    std::vector<float> values;
    for (const double value : random_values(n, seed)) values.push_back(static_cast<float>(value));
    return values;
  }
  // As load() has them.
  static Constants constants_of(const ::onnx::GraphProto& graph) {
    Constants constants;
    for (const auto& node : graph.node())
      if (node.op_type() == "Constant") constants[node.output(0)] = item_of(tensor_of(node.attribute(0).t()));
    return constants;
  }
  std::vector<float> run(const Maker& maker, const Array& x) {
    return load(maker.saved(folder)).forward(x).to_vector<float>();
  }
  static void expect_close(const std::vector<float>& got, const std::vector<double>& want, double bound) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(static_cast<double>(got[i]), want[i], bound) << i;
  }

  Engine engine;
  TemporaryFolder folder;
};

TEST_F(OnnxSettled, a_hard_swish_in_four_nodes_becomes_one) {
  for (const bool is_first : {true, false}) {
    Maker maker;
    maker.input("x", {"n"});
    for (const auto& [name, value] : {std::pair{"three", 3.0f}, std::pair{"zero", 0.0f}, std::pair{"six", 6.0f}})
      constant(maker, name, {}, {value});
    maker.node("Add", {"x", "three"}, "a");
    maker.node("Clip", {"a", "zero", "six"}, "b");
    maker.node("Mul", is_first ? std::vector<std::string>{"x", "b"} : std::vector<std::string>{"b", "x"}, "c");
    maker.node("Div", {"c", "six"}, "y");
    maker.output("y");
    ::onnx::GraphProto graph = maker.model.graph(), shown = maker.model.graph();
    const Constants constants = constants_of(graph);
    EXPECT_EQ(fuse_hard_swish(graph, constants), 1);
    EXPECT_EQ(graph.node(graph.node_size() - 1).op_type(), "HardSwish");
    shown.add_output()->set_name("b");  // somebody reads it
    EXPECT_EQ(fuse_hard_swish(shown, constants), 0);
    const std::vector<float> x{-4, -3, -1, 0, 0.5f, 2, 3, 5};
    std::vector<double> want;
    for (const double value : x) want.push_back(value * std::min(std::max(value + 3, 0.0), 6.0) / 6);
    expect_close(run(maker, array(x, {8})), want, 1e-6);
  }
}

TEST_F(OnnxSettled, other_numbers_are_no_hard_swish) {
  Maker maker;
  maker.input("x", {"n"});
  for (const auto& [name, value] : {std::pair{"three", 3.5f}, std::pair{"zero", 0.0f}, std::pair{"six", 6.0f}})
    constant(maker, name, {}, {value});
  maker.node("Add", {"x", "three"}, "a");
  maker.node("Clip", {"a", "zero", "six"}, "b");
  maker.node("Mul", {"x", "b"}, "c");
  maker.node("Div", {"c", "six"}, "y");
  maker.output("y");
  ::onnx::GraphProto graph = maker.model.graph();
  EXPECT_EQ(fuse_hard_swish(graph, constants_of(graph)), 0);
}

TEST_F(OnnxSettled, a_norm_in_nine_nodes_becomes_one) {
  Maker maker(12);
  maker.input("x", {"2", "3", "4"});
  constant(maker, "two", {}, {2});
  constant(maker, "eps", {}, {1e-3f});
  const auto scale = numbers(4, 1), shift = numbers(4, 2), x = numbers(24, 3);
  constant(maker, "scale", {4}, scale);
  maker.floats("shift", {4}, shift);
  Maker::set(maker.node("ReduceMean", {"x"}, "mean"), "axes", std::vector<std::int64_t>{-1});
  maker.node("Sub", {"x", "mean"}, "d");
  maker.node("Pow", {"d", "two"}, "square");
  Maker::set(maker.node("ReduceMean", {"square"}, "variance"), "axes", std::vector<std::int64_t>{-1});
  maker.node("Add", {"variance", "eps"}, "sum");
  maker.node("Sqrt", {"sum"}, "root");
  maker.node("Div", {"d", "root"}, "unit");
  maker.node("Mul", {"unit", "scale"}, "scaled");
  maker.node("Add", {"scaled", "shift"}, "y");
  maker.output("y");
  ::onnx::GraphProto graph = maker.model.graph(), shown = maker.model.graph();
  EXPECT_EQ(fuse_layer_norms(graph, constants_of(graph), {{"shift", {4}}}), 1);
  EXPECT_EQ(graph.node_size(), 4) << "three constants and the norm";
  shown.add_output()->set_name("d");
  EXPECT_EQ(fuse_layer_norms(shown, constants_of(shown), {{"shift", {4}}}), 1) << "the difference stays";
  EXPECT_EQ(shown.node_size(), 6);
  std::vector<double> want;
  for (std::size_t row = 0; row < 6; ++row) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < 4; ++i) mean += static_cast<double>(x[row * 4 + i]) / 4;
    for (std::size_t i = 0; i < 4; ++i) variance += std::pow(static_cast<double>(x[row * 4 + i]) - mean, 2) / 4;
    for (std::size_t i = 0; i < 4; ++i)
      want.push_back((static_cast<double>(x[row * 4 + i]) - mean) / std::sqrt(variance + 1e-3) *
                         static_cast<double>(scale[i]) +
                     static_cast<double>(shift[i]));
  }
  expect_close(run(maker, array(x, {2, 3, 4})), want, 1e-5);
}

// A convolution of 2 to 3 channels, its norm, a scale for each channel, one for all, and sums; all but `open` constant.
Maker folding(bool is_open, const std::function<void(Maker&, const std::string&, const std::vector<std::int64_t>&,
                                                     const std::vector<float>&)>& constant) {
  Maker maker;
  maker.input("x", {"1", "2", "3", "3"});
  const std::vector<float> w{1, -2, 0.5f, 3, 2, -1, 1, 0, 4, 1, -3, 2, 1, 1, 2, -2, 0.5f, 1, 1, -1, 2, 0, 1, 3};
  if (is_open)
    maker.floats("w", {3, 2, 2, 2}, w);
  else
    constant(maker, "w", {3, 2, 2, 2}, w);
  constant(maker, "scale", {3}, {2, 1, 0.5f});
  constant(maker, "shift", {3}, {1, -1, 0.25f});
  constant(maker, "mean", {3}, {0.5f, 1, -1});
  constant(maker, "variance", {3}, {4, 1, 0.25f});
  constant(maker, "each", {1, 3, 1, 1}, {2, 4, -1});
  constant(maker, "all", {1}, {3});
  constant(maker, "more", {3, 1, 1}, {10, 20, 30});
  maker.node("Conv", {"x", "w"}, "c");
  maker.node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, "n");
  maker.node("Mul", {"each", "n"}, "m");
  maker.node("Sub", {"m", "all"}, "s");
  maker.node("Div", {"s", "all"}, "d");
  maker.node("Add", {"d", "more"}, "y");
  maker.output("y");
  return maker;
}

TEST_F(OnnxSettled, constants_around_a_convolution_fold_into_its_filter) {
  const Maker fixed = folding(false, constant), open = folding(true, constant);
  const auto x = numbers(18, 5);
  const auto y = run(open, array(x, {1, 2, 3, 3}));  // its filter is a parameter, so every node runs
  expect_close(run(fixed, array(x, {1, 2, 3, 3})), {y.begin(), y.end()}, 1e-4);
  ::onnx::GraphProto graph = fixed.model.graph();
  Constants constants = constants_of(graph);
  const int nodes = graph.node_size();
  EXPECT_EQ(fold_into_filters(graph, constants), 0) << "the norm is still a node of its own";
  graph.mutable_node()->DeleteSubrange(nodes - 5, 1);
  graph.mutable_node(nodes - 5)->set_input(1, "c");
  EXPECT_EQ(fold_into_filters(graph, constants), 4);
  EXPECT_EQ(graph.node(graph.node_size() - 1).op_type(), "Conv");
  EXPECT_EQ(graph.node(graph.node_size() - 1).output(0), "y");
}

TEST_F(OnnxSettled, filters_of_constants_are_turned_once) {
  const Maker fixed = folding(false, constant);
  Model model = load(fixed.saved(folder));
  const NoGrad no_grad;
  const Array x = ones({1, 2, 3, 3});
  x.wait();
  for (int i = 0; i < 2; ++i) model.forward(x).wait();
  const std::string plan = explain(engine), key = "relayouts: ";
  ASSERT_NE(plan.find(key), std::string::npos) << plan;
  EXPECT_LE(std::stoi(plan.substr(plan.find(key) + key.size())), 1) << "the filter was turned when it was read";
}

}  // namespace
}  // namespace samebytes::onnx
