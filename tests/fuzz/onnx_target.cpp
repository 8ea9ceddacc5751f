#include <cstdint>
#include <iterator>
#include <random>

#include "fuzz/target.h"
#include "onnx/maker.h"
#include "samebytes/engine.h"
#include "samebytes/nn.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

namespace samebytes::fuzz {
namespace {

using onnx::Maker;

void put(const Maker& maker, const std::string& path) { testing::put(path, maker.model.SerializeAsString()); }

void network(const std::string& path) {
  nn::Sequential net(nn::Conv2d({.in = 2, .out = 3, .kernel = 3}), nn::BatchNorm({.features = 3}), nn::Relu(),
                     nn::Flatten(), nn::Linear({.in = 12, .out = 2}));
  onnx::save(path, net, zeros({1, 4, 4, 2}));
}

// Nodes of constants alone, which reading the file computes.
void constants(const std::string& path) {
  Maker maker;
  maker.ints("sizes", {2, 3});
  maker.ints("ends", {0, 6, 1});
  maker.floats("values", {2, 3}, {1, 2, 3, 4, 5, 6});
  maker.node("ConstantOfShape", {"sizes"}, "zeros");
  maker.node("Expand", {"values", "sizes"}, "wide");
  maker.node("Tile", {"sizes", "one"}, "tiled");
  maker.ints("one", {1});
  maker.node("Shape", {"wide"}, "shape");
  maker.node("Reshape", {"wide", "shape"}, "again");
  maker.node("Pad", {"values", "pads"}, "padded");
  maker.ints("pads", {1, 0, 0, 1});
  maker.node("Add", {"zeros", "again"}, "sum");
  maker.output("sum");
  put(maker, path);
}

// A function of the file, a branch, and external data.
void nested(const std::string& path) {
  Maker maker;
  maker.input("x", {"batch", "2"});
  auto& function = *maker.model.add_functions();
  function.set_name("F");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  auto& inside = *function.add_node();
  inside.set_op_type("Relu");
  inside.add_input("a");
  inside.add_output("b");
  maker.node("F", {"x"}, "y").set_domain("local");
  auto& far = maker.floats("far", {2}, {});
  far.set_data_location(::onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair{"location", "w.bin"}, std::pair{"offset", "4"}, std::pair{"length", "8"}}) {
    auto& entry = *far.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  maker.node("Add", {"y", "far"}, "z");
  auto& condition = *maker.model.mutable_graph()->add_initializer();
  condition.set_name("condition");
  condition.set_data_type(9);
  condition.add_int32_data(1);
  auto& branch = maker.node("If", {"condition"}, "chosen");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& body = *Maker::attribute(branch, name, ::onnx::AttributeProto::GRAPH).mutable_g();
    body.set_name("body");
    auto& node = *body.add_node();
    node.set_op_type("Neg");
    node.add_input("z");
    node.add_output(std::string("in ") + name);
    body.add_output()->set_name(std::string("in ") + name);
  }
  maker.output("chosen");
  put(maker, path);
}

// A file of the same format with one thing in it that is another: an operator, a size, a value, an input, an attribute.
class Changer {
 public:
  Changer(::onnx::ModelProto& model, unsigned seed, const std::vector<std::string>& words)
      : graph_(*model.mutable_graph()), random_(seed), words_(words) {}

  void change() {
    const int initializers = graph_.initializer_size(), nodes = graph_.node_size();
    const int kind = below(8);
    if (kind < 2 && initializers > 0)
      change(*graph_.mutable_initializer(below(initializers)));
    else if (kind < 3)
      add_node();
    else if (nodes > 0)
      change(*graph_.mutable_node(below(nodes)), kind);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::int64_t number() {
    static constexpr std::int64_t odd[] = {0,         1,         -1,        2,          3,           -2,
                                           7,         1 << 10,   1 << 20,   1 << 24,    1LL << 31,   1LL << 40,
                                           1LL << 62, INT64_MIN, INT64_MAX, 0x7fffffff, -(1LL << 31)};
    return odd[below(std::size(odd))];
  }
  std::string word() { return words_[std::size_t(below(static_cast<int>(words_.size())))]; }
  std::string value() {
    std::vector<std::string> names;
    for (const auto& tensor : graph_.initializer()) names.push_back(tensor.name());
    for (const auto& node : graph_.node()) names.insert(names.end(), node.output().begin(), node.output().end());
    return names.empty() ? "" : names[std::size_t(below(static_cast<int>(names.size())))];
  }
  void change(::onnx::TensorProto& tensor) {
    switch (below(4)) {
      case 0:
        if (tensor.dims_size() > 0) tensor.set_dims(below(tensor.dims_size()), number());
        break;
      case 1:
        if (tensor.int64_data_size() > 0) tensor.set_int64_data(below(tensor.int64_data_size()), number());
        break;
      case 2:
        tensor.add_int64_data(number());
        if (tensor.dims_size() > 0) tensor.set_dims(0, tensor.int64_data_size());
        break;
      default: tensor.set_data_type(below(17));
    }
  }
  void set(::onnx::NodeProto& node) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(word());
    if (below(2) == 0) {
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_i(number());
    } else {
      attribute.set_type(::onnx::AttributeProto::INTS);
      for (int i = below(5); i >= 0; --i) attribute.add_ints(number());
    }
  }
  void change(::onnx::NodeProto& node, int kind) {
    if (kind == 3) node.set_op_type(word());
    if (kind == 4 && node.input_size() > 0) node.set_input(below(node.input_size()), value());
    if (kind == 5) node.add_input(value());
    if (kind == 6) set(node);
    if (kind == 7 && node.attribute_size() > 0) {
      auto& attribute = *node.mutable_attribute(below(node.attribute_size()));
      if (attribute.ints_size() > 0)
        attribute.set_ints(below(attribute.ints_size()), number());
      else
        attribute.set_i(number());
    }
  }
  void add_node() {
    const std::string made = "made" + std::to_string(random_() % 1000000);
    std::vector<std::string> inputs;
    for (int i = below(3); i >= 0; --i) inputs.push_back(value());
    auto& node = *graph_.add_node();
    node.set_op_type(word());
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(made);
    if (below(2) == 0) set(node);
  }

  ::onnx::GraphProto& graph_;
  std::minstd_rand random_;
  const std::vector<std::string>& words_;
};

const std::vector<std::string> kWords{"ConstantOfShape",
                                      "Expand",
                                      "Tile",
                                      "Range",
                                      "Reshape",
                                      "Concat",
                                      "Gather",
                                      "Slice",
                                      "Unsqueeze",
                                      "Squeeze",
                                      "Transpose",
                                      "Cast",
                                      "Where",
                                      "Pad",
                                      "Resize",
                                      "MatMul",
                                      "Gemm",
                                      "Conv",
                                      "Softmax",
                                      "Mul",
                                      "Add",
                                      "Div",
                                      "Pow",
                                      "ReduceSum",
                                      "OneHot",
                                      "EyeLike",
                                      "NonZero",
                                      "Trilu",
                                      "Einsum",
                                      "ScatterND",
                                      "Split",
                                      "TopK",
                                      "CumSum",
                                      "Loop",
                                      "Scan",
                                      "If",
                                      "axes",
                                      "axis",
                                      "to",
                                      "perm",
                                      "value",
                                      "location",
                                      "w.bin",
                                      "offset",
                                      "length",
                                      "equation",
                                      "pads",
                                      "strides",
                                      "BatchNormalization",
                                      "GlobalAveragePool",
                                      "Constant",
                                      "value_ints",
                                      "kernel_shape"};

// Reading only: what a graph computes when it runs may be as large as it says.
const Added added({
    .name = "onnx",
    .file = "model.onnx",
    .make =
        [](const std::string& folder) {
          static Engine engine;
          const EngineScope scope(engine);
          put(onnx::linear_model(), folder + "/linear");
          network(folder + "/network");
          constants(folder + "/constants");
          nested(folder + "/nested");
        },
    .read =
        [](const std::string& path) {
          static Engine engine;
          const EngineScope scope(engine);
          testing::put(path.substr(0, path.rfind('/')) + "/w.bin", std::string(16, '\1'));
          onnx::read_summary(path);
          const onnx::Model model = onnx::load(path);
          model.summary();
        },
    .words = kWords,
    .change =
        [](const std::string& file, unsigned seed) {
          ::onnx::ModelProto model;
          if (!model.ParseFromString(file)) return std::string();
          Changer(model, seed, kWords).change();
          return model.SerializeAsString();
        },
    .growth = 300,  // a message of two bytes is an object
});

}  // namespace
}  // namespace samebytes::fuzz
