// What a file becomes when it is read: fewer nodes, the same values and gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "onnx/maker.h"
#include "onnx/rewrite.h"
#include "samebytes/autograd.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"
#include "support/gradcheck.h"

namespace samebytes::onnx {
namespace {

using testing::all_close;
using testing::check_gradients;
using testing::random_input;

class OnnxRewrites : public ::testing::Test {
 protected:
  Engine engine;
  TemporaryFolder folder;
};

// The scores in single nodes, as exporters write them: product, scale, mask, soft-max, product.
struct Written {
  Maker maker{17};
  explicit Written(const std::string& mask) {
    maker.input("q", {"2", "2", "3", "4"}, kF64);
    maker.input("k", {"2", "2", "3", "4"}, kF64);
    maker.input("v", {"2", "2", "3", "4"}, kF64);
    Maker::set(maker.node("Transpose", {"k"}, "kt"), "perm", std::vector<std::int64_t>{0, 1, 3, 2});
    maker.node("MatMul", {"q", "kt"}, "scores");
    constant("two", 2.0);
    maker.node("Div", {"scores", "two"}, "scaled");
    std::string last = "scaled";
    if (mask == "causal") {
      auto& seen = *maker.model.mutable_graph()->add_initializer();
      seen.set_name("seen");
      seen.set_data_type(9);
      for (const int size : {1, 1, 3, 3}) seen.add_dims(size);
      for (const int one : {1, 0, 0, 1, 1, 0, 1, 1, 1}) seen.add_int32_data(one);
      constant("hidden", -1e30);
      maker.node("Where", {"seen", last, "hidden"}, "masked");
      last = "masked";
    }
    if (mask == "added") {
      maker.input("bias", {"3", "3"}, kF64);
      maker.node("Add", {last, "bias"}, "masked");
      last = "masked";
    }
    Maker::set(maker.node("Softmax", {last}, "shares"), "axis", std::int64_t{-1});
    maker.node("MatMul", {"shares", "v"}, "y");
    maker.output("y");
  }
  void constant(const std::string& name, double value) {
    auto& tensor =
        *Maker::attribute(maker.node("Constant", {}, name), "value", ::onnx::AttributeProto::TENSOR).mutable_t();
    tensor.set_data_type(kF64);
    tensor.add_double_data(value);
  }
};

TEST_F(OnnxRewrites, attention_in_single_nodes_becomes_one) {
  for (const std::string mask : {"none", "causal", "added"}) {
    Written written(mask);
    Written shown(mask);
    shown.maker.output("shares");  // somebody reads the shares, so the nodes stay
    ::onnx::GraphProto graph = written.maker.model.graph(), other = shown.maker.model.graph();
    const int nodes = graph.node_size();
    EXPECT_EQ(fuse_attention(graph, 17), 1);
    EXPECT_EQ(graph.node_size(), nodes - (mask == "none" ? 3 : 4)) << mask;
    EXPECT_EQ(fuse_attention(other, 17), 0);
    std::vector<testing::GradientInput> inputs{random_input("q", {2, 2, 3, 4}, 1), random_input("k", {2, 2, 3, 4}, 2),
                                               random_input("v", {2, 2, 3, 4}, 3)};
    std::vector<std::string> names{"q", "k", "v"};
    if (mask == "added") {
      inputs.push_back(random_input("bias", {3, 3}, 4));
      names.push_back("bias");
    }
    const auto function = [&](const Maker& maker) {
      const auto model = std::make_shared<Model>(load(maker.saved(folder)));
      return [model, names](std::span<const Array> x) {
        std::map<std::string, Value> given;
        for (std::size_t i = 0; i < x.size(); ++i) given[names[i]] = x[i];
        return std::get<Array>(model->run(given).at("y"));
      };
    };
    const auto one = function(written.maker), many = function(shown.maker);
    EXPECT_TRUE(all_close(one(arrays_of(inputs)), many(arrays_of(inputs)).to_vector<double>(), 1e-12)) << mask;
    EXPECT_TRUE(check_gradients(one, inputs)) << mask;
  }
}

// What PyTorch's exporters write for a bool mask: -infinity added, and 0 where the soft-max is no number.
TEST_F(OnnxRewrites, attention_that_puts_zero_for_queries_without_a_key_becomes_one_call_without_scores) {
  Maker maker(17);
  for (const char* name : {"q", "v"}) maker.input(name, {"1", "2", "n", "4"});
  maker.input("kt", {"1", "2", "4", "n"});
  maker.input("seen", {"n", "n"}, 9);
  maker.floats("zero", {1}, {0});
  maker.floats("hidden", {1}, {-std::numeric_limits<float>::infinity()});
  for (const char* form : {"added", "chosen"}) {
    Maker own = maker;
    own.node("MatMul", {"q", "kt"}, "scores");
    if (form == std::string("added")) {
      own.node("Where", {"seen", "zero", "hidden"}, "mask");
      own.node("Add", {"scores", "mask"}, "masked");
    } else {
      own.node("Where", {"seen", "scores", "hidden"}, "masked");
    }
    Maker::set(own.node("Softmax", {"masked"}, "shares"), "axis", std::int64_t{-1});
    own.node("IsNaN", {"shares"}, "missing");
    own.node("Where", {"missing", "zero", "shares"}, "safe");
    own.node("MatMul", {"safe", "v"}, "y");
    own.output("y");
    Maker shown = own;
    shown.output("shares");
    ::onnx::GraphProto graph = own.model.graph();
    EXPECT_EQ(fuse_attention(graph, 17), 1) << form;
    const std::int64_t n = 512;
    const Array q = uniform({1, 2, n, 4}, -1, 1), kt = uniform({1, 2, 4, n}, -1, 1), v = uniform({1, 2, n, 4}, -1, 1);
    const Array rows = reshape(arange(0, double(n), 1, i32), {n, 1}), columns = arange(0, double(n), 1, i32);
    const Array seen = less(columns, rows);  // the first query sees nothing
    eval({q, kt, v, seen});
    const auto run = [&](const Maker& from) {
      Model model = load(from.saved(folder));
      const NoGrad no_grad;
      return std::get<Array>(model.run({{"q", q}, {"kt", kt}, {"v", v}, {"seen", seen}}).at("y")).to_vector<double>();
    };
    const auto before = engine.memory().peak_bytes;
    const auto one = run(own);
    EXPECT_LT(engine.memory().peak_bytes - before, std::size_t(2 * n * n * 4)) << "the scores are not stored";
    const auto many = run(shown);
    for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], many[i], 1e-5) << form << " " << i;
    EXPECT_EQ(one[0], 0.0);
  }
}

TEST_F(OnnxRewrites, what_follows_from_constants_is_computed_when_the_file_is_read) {
  Maker maker(17);
  maker.input("x", {"2", "2"});
  maker.ints("shape", {2, 2});
  auto& filled = maker.node("ConstantOfShape", {"shape"}, "ones");
  auto& value = *Maker::attribute(filled, "value", ::onnx::AttributeProto::TENSOR).mutable_t();
  value.set_data_type(1);
  value.add_dims(1);
  value.add_float_data(0.5F);
  maker.node("Exp", {"ones"}, "table");
  maker.node("Add", {"x", "table"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder));
  EXPECT_EQ(model.summary().operators.size(), 3u);  // of the file, as it stands
  const auto before = engine.plans().launches;
  const Array y = model.forward(array({1, 2, 3, 4}, {2, 2}));
  const float e = std::exp(0.5F);
  EXPECT_TRUE(all_close(y, std::vector<double>{1 + e, 2 + e, 3 + e, 4 + e}, 1e-6));
  EXPECT_LE(engine.plans().launches - before, 1u);
}

// In evaluation mode without gradients a norm after a convolution is no pass over the images.
TEST_F(OnnxRewrites, a_norm_folds_into_its_convolution) {
  const auto bytes = [&](bool has_norm, std::vector<float>& values) {
    Maker maker(17);
    maker.input("x", {"1", "2", "8", "8"});
    maker.floats("w", {2, 2, 1, 1}, {1, 2, 3, 4});
    maker.node("Conv", {"x", "w"}, has_norm ? "c" : "y");
    const std::vector<std::pair<std::string, std::vector<float>>> statistics{
        {"scale", {2, 3}}, {"shift", {1, -1}}, {"mean", {0.5F, 1}}, {"variance", {4, 9}}};
    for (const auto& [name, own] : statistics)
      if (has_norm) maker.floats(name, {2}, own);
    if (has_norm)
      Maker::set_real(maker.node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, "y"), "epsilon", 0);
    maker.output("y");
    ::onnx::GraphProto graph = maker.model.graph();
    EXPECT_EQ(fuse_norms(graph), has_norm ? 1 : 0);
    EXPECT_EQ(graph.node_size(), 1);
    Model model = load(maker.saved(folder), {.frozen = true});
    EXPECT_EQ(model.summary().operators.contains("BatchNormalization"), has_norm);
    const NoGrad guard;
    const Array x = samebytes::ones({1, 2, 8, 8});
    model.forward(x).wait();
    const double before = engine.plans().bytes;
    values = contiguous(model.forward(x)).to_vector<float>();
    return engine.plans().bytes - before;
  };
  std::vector<float> bare, normed;
  const double without = bytes(false, bare), with = bytes(true, normed);
  EXPECT_NEAR(normed.front(), (bare.front() - 0.5) / 2 * 2 + 1, 1e-5);
  EXPECT_NEAR(normed.back(), (bare.back() - 1) / 3 * 3 - 1, 1e-5);
  EXPECT_LT(with - without, 512) << "a pass over the images reads and writes 512 bytes each";
}

}  // namespace
}  // namespace samebytes::onnx
