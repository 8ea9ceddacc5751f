// The linear layer at the end of a model is found and made anew for other classes; a model is written with the
// parameters that it has now, its graph as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "onnx/maker.h"
#include "samebytes/samebytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::onnx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

class OnnxHead : public ::testing::Test {
 protected:
  // conv, ReLU, flatten, linear for 5 classes, as save() writes it: channels first, one sample.
  std::string saved_net() {
    nn::Sequential net(nn::Conv2d({.in = 3, .out = 4, .kernel = 3, .pad = 1}), nn::Relu(), nn::Flatten(),
                       nn::Linear({.in = 4 * 6 * 6, .out = 5}));
    const std::string path = folder_ / "net.onnx";
    save(path, net, zeros({1, 6, 6, 3}), {.inputs = {"x"}, .outputs = {"y"}});
    return path;
  }
  // One linear layer in the form that `build` gives it, weight [2, 3] or [3, 2] of ones.
  std::string saved_graph(const std::function<void(::onnx::GraphProto&)>& build) {
    ::onnx::ModelProto model;
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    auto& graph = *model.mutable_graph();
    graph.set_name("test");
    auto& input = *graph.add_input();
    input.set_name("x");
    auto& type = *input.mutable_type()->mutable_tensor_type();
    type.set_elem_type(1);
    type.mutable_shape()->add_dim()->set_dim_value(1);
    type.mutable_shape()->add_dim()->set_dim_value(2);
    graph.add_output()->set_name("y");
    build(graph);
    const std::string path = folder_ / "graph.onnx";
    std::ofstream out(path, std::ios::binary);
    model.SerializeToOstream(&out);
    return path;
  }
  static void tensor(::onnx::GraphProto& graph, const std::string& name, const std::vector<std::int64_t>& sizes) {
    auto& made = *graph.add_initializer();
    made.set_name(name);
    made.set_data_type(1);
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) made.add_dims(size), count *= size;
    for (std::int64_t i = 0; i < count; ++i) made.add_float_data(1);
  }
  static void node(::onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& in,
                   const std::string& out) {
    auto& made = *graph.add_node();
    made.set_op_type(op);
    made.set_name("the " + op);
    for (const std::string& name : in) made.add_input(name);
    made.add_output(out);
  }

  Engine engine_;
  const EngineScope scope_{engine_};
  const TemporaryFolder folder_;
};

TEST_F(OnnxHead, a_new_head_has_other_classes_and_fresh_values_and_leaves_the_rest_alone) {
  Model model = load(saved_net(), {.any_batch = true});
  const Head head = model.head();
  EXPECT_EQ(head.weight, "3.weight");
  EXPECT_EQ(head.bias, "3.bias");
  EXPECT_EQ(head.in, 4 * 6 * 6);
  EXPECT_EQ(head.classes, 5);
  EXPECT_FALSE(head.gives_probabilities);
  const auto before = model.state();
  const Model copy = nn::clone(model);
  model.replace_head(7);
  EXPECT_EQ(model.head().classes, 7);
  EXPECT_EQ(copy.head().classes, 5) << "a copy has a graph of its own";
  const double bound = 1 / std::sqrt(4.0 * 6 * 6);
  for (const nn::NamedArray& entry : model.state()) {
    if (entry.name == "3.weight" || entry.name == "3.bias") {
      const auto values = entry.array.to_vector<float>();
      for (const float value : values) EXPECT_LE(std::fabs(value), bound);
      EXPECT_GT(*std::max_element(values.begin(), values.end()), 0.5 * bound);
      EXPECT_EQ(entry.name == "3.bias" ? entry.array.shape() : Shape{7}, Shape{7});
    } else {
      const auto old = std::find_if(before.begin(), before.end(),
                                    [&](const nn::NamedArray& other) { return other.name == entry.name; });
      EXPECT_EQ(old->array.to_vector<float>(), entry.array.to_vector<float>());
    }
  }
  const NoGrad no_grad;
  EXPECT_EQ(model.forward(uniform({3, 3, 6, 6})).shape(), (Shape{3, 7})) << "the file was made for one sample";
}

TEST_F(OnnxHead, any_batch_is_what_the_caller_asks_for) {
  const std::string path = saved_net();
  Model fixed = load(path);
  const NoGrad no_grad;
  EXPECT_THAT(samebytes::message_of<ArgumentError>([&] {
                fixed.forward(zeros({3, 3, 6, 6}));
              }),
              HasSubstr("axis 0 has size 3"));
  EXPECT_EQ(read_summary(path).inputs[0].sizes[0], "1");
}

TEST_F(OnnxHead, weights_in_constant_nodes_train_where_the_caller_asks_for_it) {
  ::onnx::ModelProto proto;
  {
    std::ifstream in(saved_net(), std::ios::binary);
    proto.ParseFromIstream(&in);
  }
  auto& graph = *proto.mutable_graph();
  const auto nodes = graph.node();
  graph.clear_node();
  for (const auto& tensor : graph.initializer()) {
    auto& made = *graph.add_node();
    made.set_op_type("Constant");
    made.add_output(tensor.name());
    auto& value = *made.add_attribute();
    value.set_name("value");
    value.set_type(::onnx::AttributeProto::TENSOR);
    *value.mutable_t() = tensor;
  }
  graph.clear_initializer();
  graph.mutable_node()->MergeFrom(nodes);
  const std::string path = folder_ / "constants.onnx";
  {
    std::ofstream out(path, std::ios::binary);
    proto.SerializeToOstream(&out);
  }
  Model fixed = load(path, {.any_batch = true}), model = load(path, {.any_batch = true, .trainable_constants = true});
  EXPECT_TRUE(fixed.parameters().empty());
  std::vector<std::string> names;
  for (const nn::NamedArray& entry : model.state()) names.push_back(entry.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("0.weight", "0.bias", "3.weight", "3.bias"));
  const Array x = uniform({2, 3, 6, 6});
  {
    const NoGrad no_grad;
    const auto want = fixed.forward(x).to_vector<float>(), got = model.forward(x).to_vector<float>();
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
  }
  model.replace_head(7);
  optim::Sgd sgd(model.parameters(), {.rate = 0.1f});
  const auto loss = [&] { return cross_entropy(model.forward(x), zeros({2}, i32)); };
  const float before = loss().to_vector<float>()[0];
  sgd.step(loss());
  EXPECT_LT(loss().to_vector<float>()[0], before);
}

TEST_F(OnnxHead, a_saved_model_gives_what_the_trained_one_gave) {
  Model model = load(saved_net(), {.any_batch = true});
  model.replace_head(7);
  optim::Sgd sgd(model.parameters(), {.rate = 0.1f});
  const Array x = uniform({4, 3, 6, 6}), label = zeros({4}, i32);
  sgd.step(cross_entropy(model.forward(x), label));
  const std::string path = folder_ / "tuned.onnx";
  save(path, model);
  const NoGrad no_grad;
  Model read = load(path);
  EXPECT_EQ(read.forward(x).to_vector<float>(), model.forward(x).to_vector<float>());
  const Summary summary = read_summary(path);
  EXPECT_THAT(summary.inputs[0].sizes, ElementsAre("batch", "3", "6", "6"));
  EXPECT_THAT(summary.outputs[0].sizes, ElementsAre("batch", "7"));
  EXPECT_EQ(summary.tensors.size(), 5u) << "the parameters, and sizes of a Reshape for any batch";
}

TEST_F(OnnxHead, a_product_a_sum_and_a_soft_max_are_a_head_too) {
  const auto grown = [&](const std::function<void(::onnx::GraphProto&)>& build) {
    Model model = load(saved_graph(build), {.any_batch = true});
    EXPECT_EQ(model.head().classes, 3);
    model.replace_head(4);
    const NoGrad no_grad;
    EXPECT_EQ(model.forward(zeros({2, 2})).shape(), (Shape{2, 4}));
    return model.head();
  };
  EXPECT_EQ(grown([](::onnx::GraphProto& graph) {
              tensor(graph, "w", {2, 3});
              node(graph, "MatMul", {"x", "w"}, "y");
            }).bias,
            "");
  EXPECT_EQ(grown([](::onnx::GraphProto& graph) {
              tensor(graph, "w", {2, 3});
              tensor(graph, "b", {1, 3});
              node(graph, "MatMul", {"x", "w"}, "product");
              node(graph, "Add", {"b", "product"}, "y");
            }).bias,
            "b");
  EXPECT_TRUE(grown([](::onnx::GraphProto& graph) {
                tensor(graph, "w", {3, 2});
                node(graph, "Transpose", {"w"}, "turned");
                node(graph, "MatMul", {"x", "turned"}, "logits");
                node(graph, "Softmax", {"logits"}, "y");
              }).gives_probabilities);
}

TEST_F(OnnxHead, what_is_no_linear_layer_is_named) {
  const auto refused = [&](const std::function<void(::onnx::GraphProto&)>& build) {
    Model model = load(saved_graph(build));
    return samebytes::message_of<ArgumentError>([&] { model.replace_head(4); });
  };
  EXPECT_THAT(refused([](::onnx::GraphProto& graph) {
                tensor(graph, "w", {2, 3});
                node(graph, "MatMul", {"x", "w"}, "a");
                node(graph, "Relu", {"a"}, "y");
              }),
              HasSubstr("Relu 'the Relu' is in the way"));
  EXPECT_THAT(refused([](::onnx::GraphProto& graph) {
                node(graph, "MatMul", {"x", "x"}, "y");
              }),
              HasSubstr("no node makes 'x'"));
  EXPECT_THAT(refused([](::onnx::GraphProto& graph) {
                tensor(graph, "w", {2, 2});
                node(graph, "MatMul", {"x", "w"}, "a");
                node(graph, "MatMul", {"a", "w"}, "y");
              }),
              HasSubstr("more than one node reads 'w'"));
  Model model = load(saved_net());
  EXPECT_THAT(samebytes::message_of<ArgumentError>([&] { model.replace_head(0); }),
              HasSubstr("expected one class at least"));
}

TEST_F(OnnxHead, a_summary_needs_no_operator_that_runs) {
  const std::string path = saved_graph([](::onnx::GraphProto& graph) {
    tensor(graph, "w", {2, 3});
    node(graph, "Unheard", {"x", "w"}, "y");
  });
  const Summary summary = read_summary(path);
  EXPECT_EQ(summary.operators.at("Unheard"), 1);
  EXPECT_THAT(summary.tensors[0].sizes, ElementsAre("2", "3"));
  EXPECT_THROW(read_summary(folder_ / "none.onnx"), IoError);
}

TEST_F(OnnxHead, parameters_are_frozen_by_their_names) {
  Model model = load(saved_net());
  EXPECT_EQ(model.freeze_matching("0.*"), 2u);
  EXPECT_EQ(model.parameters().size(), 2u);
  EXPECT_EQ(model.freeze_matching("nothing"), 0u);
  EXPECT_EQ(nn::clone(model).parameters().size(), 2u);
  model.freeze(false);
  EXPECT_EQ(model.parameters().size(), 4u);
}

// Models whose last layer is looked for.
TEST_F(OnnxHead, is_not_found_in_hostile_graphs) {
  const std::vector<std::pair<const char*, std::function<void(Maker&)>>> all{
      {"an identity of itself",
       [](Maker& m) {
         m.node("Identity", {""}, "");
         m.node("Identity", {""}, "y");
       }},
      {"a soft-max of nothing", [](Maker& m) { m.node("Softmax", {}, "y"); }},
      {"a product of one",
       [](Maker& m) {
         m.floats("a", {2, 2}, {1, 2, 3, 4});
         m.node("MatMul", {"a"}, "y");
       }},
      {"a sum of one",
       [](Maker& m) {
         m.floats("a", {2}, {1, 2});
         m.node("Add", {"a"}, "y");
       }},
  };
  for (const auto& [what, make] : all) {
    Maker maker(24);
    maker.output("y");
    make(maker);
    const std::string text = samebytes::message_of<Error>([&] { load(maker.saved(folder_)).head(); });
    EXPECT_NE(text.find("expected a model whose first output"), std::string::npos) << what << ": " << text;
  }
}

TEST_F(OnnxHead, of_integers_is_not_replaced) {
  Maker maker(24);
  maker.input("x", {"1", "2"}, 7);
  auto& weight = maker.floats("w", {2, 2}, {});
  weight.set_data_type(7);
  for (const int one : {1, 2, 3, 4}) weight.add_int64_data(one);
  maker.node("MatMul", {"x", "w"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder_));
  EXPECT_NE(samebytes::message_of<Error>([&] { model.replace_head(3); }).find("no parameter"), std::string::npos);
}

}  // namespace
}  // namespace samebytes::onnx
