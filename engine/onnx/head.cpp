// The linear layer at the end of a model: found, and made anew for other classes. And the model written with the
// parameters that it has now.
#include <algorithm>
#include <cmath>

#include "onnx/graph_writer.h"
#include "onnx/model_file.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Node = ::onnx::NodeProto;

struct FoundHead {
  Head head;
  std::size_t class_axis = 1;  // of the weight
};

class HeadFinder {
 public:
  explicit HeadFinder(const ::onnx::GraphProto& graph) : graph_(graph) {
    for (const auto& tensor : graph.initializer()) tensors_[tensor.name()] = &tensor;
    for (const auto& node : graph.node())
      for (const auto& output : node.output())
        if (!output.empty()) makers_[output] = &node;
  }

  FoundHead find() {
    if (graph_.output_size() == 0) throw ArgumentError("onnx: the model has no output");
    std::string value = graph_.output(0).name();
    for (;;) {
      const Node& node = maker(value);
      const std::string& op = node.op_type();
      if (op == "Gemm") return gemm(node);
      if (op == "MatMul") return matmul(node, "");
      if (op == "Add") return add(node);
      if (op == "Softmax") found_.head.gives_probabilities = true;
      if (op != "Softmax" && op != "LogSoftmax" && op != "Identity" && op != "Dropout" && op != "Flatten")
        refuse(shown(node) + " is in the way");
      value = input(node, 0);
    }
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw ArgumentError(
        "onnx: expected a model whose first output comes from a linear layer (Gemm, or MatMul and Add): " + why);
  }
  const Node& maker(const std::string& value) const {
    const auto at = makers_.find(value);
    if (at == makers_.end()) refuse("no node makes '" + value + "'");
    return *at->second;
  }
  static const std::string& input(const Node& node, int place) {
    if (place >= node.input_size()) refuse(shown(node) + " has " + std::to_string(node.input_size()) + " inputs");
    return node.input(place);
  }
  const ::onnx::TensorProto* tensor(const Node& node, int input) const {
    if (input >= node.input_size()) return nullptr;
    const auto at = tensors_.find(node.input(input));
    return at == tensors_.end() ? nullptr : at->second;
  }

  FoundHead with(const ::onnx::TensorProto& weight, std::size_t class_axis, const std::string& bias) {
    if (weight.dims_size() != 2) refuse("its weight '" + weight.name() + "' is no matrix");
    found_.class_axis = class_axis;
    found_.head.weight = weight.name();
    found_.head.bias = bias;
    found_.head.classes = weight.dims(static_cast<int>(class_axis));
    found_.head.in = weight.dims(static_cast<int>(1 - class_axis));
    if (!bias.empty()) {
      const auto& dims = tensors_.at(bias)->dims();
      if (dims.empty() || *dims.rbegin() != found_.head.classes ||
          std::count(dims.begin(), dims.end(), 1) != dims.size() - (found_.head.classes == 1 ? 0 : 1))
        refuse("its bias '" + bias + "' does not have one number for each class");
    }
    return found_;
  }

  FoundHead gemm(const Node& node) {
    std::int64_t turned = 0;
    for (const auto& attribute : node.attribute())
      if (attribute.name() == "transB") turned = attribute.i();
    const auto* const weight = tensor(node, 1);
    if (weight == nullptr) refuse("the weight of " + shown(node) + " is no parameter");
    const bool has_bias = node.input_size() > 2 && !node.input(2).empty();
    if (has_bias && tensor(node, 2) == nullptr) refuse("the bias of " + shown(node) + " is no parameter");
    return with(*weight, turned != 0 ? 0 : 1, has_bias ? node.input(2) : "");
  }

  FoundHead matmul(const Node& node, const std::string& bias) {
    if (const auto* const weight = tensor(node, 1)) return with(*weight, 1, bias);
    const Node& before = maker(input(node, 1));  // a transpose that the exporter left
    const auto* const weight = tensor(before, 0);
    if (before.op_type() != "Transpose" || weight == nullptr)
      refuse("the weight of " + shown(node) + " is no parameter");
    return with(*weight, 0, bias);
  }

  FoundHead add(const Node& node) {
    for (const int side : {0, 1}) {
      const auto* const bias = tensor(node, side);
      if (bias == nullptr) continue;
      const Node& product = maker(input(node, 1 - side));
      if (product.op_type() == "MatMul") return matmul(product, bias->name());
      refuse(shown(node) + " is in the way");
    }
    refuse(shown(node) + " adds no parameter");
  }

  const ::onnx::GraphProto& graph_;
  std::map<std::string, const ::onnx::TensorProto*> tensors_;
  std::map<std::string, const Node*> makers_;
  FoundHead found_;
};

int uses_of(const ::onnx::GraphProto& graph, const std::string& name) {
  int count = 0;
  for (const auto& node : graph.node()) {
    count += static_cast<int>(std::count(node.input().begin(), node.input().end(), name));
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) count += uses_of(attribute.g(), name);
  }
  return count;
}

void set_size(::onnx::GraphProto& graph, const std::string& tensor, int axis, std::int64_t size) {
  for (auto& initializer : *graph.mutable_initializer())
    if (initializer.name() == tensor) initializer.set_dims(axis, size);
  for (auto& input : *graph.mutable_input())  // older files list initializers there, too
    if (input.name() == tensor && input.type().tensor_type().shape().dim_size() > axis)
      input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(axis)->set_dim_value(size);
}

}  // namespace

Head Model::head() const { return HeadFinder(file_->proto.graph()).find().head; }

Model::Weight& Model::weight(const std::string& name) {
  const auto at =
      std::find_if(weights_.begin(), weights_.end(), [&](const Weight& weight) { return weight.name == name; });
  if (at == weights_.end()) throw ArgumentError("onnx: '" + printable(name) + "' is no parameter: it has integers");
  return *at;
}

void Model::replace_head(std::int64_t classes) {
  if (classes < 1)
    throw ArgumentError("onnx: replace_head: expected one class at least, got " + std::to_string(classes));
  const auto [head, class_axis] = HeadFinder(file_->proto.graph()).find();
  for (const std::string& name : {head.weight, head.bias})
    if (!name.empty() && uses_of(file_->proto.graph(), name) > 1)
      throw ArgumentError("onnx: replace_head: more than one node reads '" + name + "'");
  const auto file = std::make_shared<File>(*file_);
  file->find_functions();
  auto& graph = *file->proto.mutable_graph();
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, head.in)));
  const auto renew = [&](const std::string& name, int axis) {
    Weight& old = weight(name);
    std::vector<std::int64_t> sizes(old.cell.shape().begin(), old.cell.shape().end());
    sizes.at(static_cast<std::size_t>(axis)) = classes;
    const Shape shape{std::span<const std::int64_t>(sizes)};
    old.cell = nn::Parameter(cell(uniform(shape, -bound, bound, old.cell.dtype()), name));
    set_size(graph, name, axis, classes);
  };
  renew(head.weight, static_cast<int>(class_axis));
  if (!head.bias.empty()) renew(head.bias, weight(head.bias).cell.shape().rank() - 1);
  graph.clear_value_info();
  auto& output = *graph.mutable_output(0);
  if (output.type().has_tensor_type() && output.type().tensor_type().shape().dim_size() > 0) {
    auto& shape = *output.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(shape.dim_size() - 1)->set_dim_value(classes);
  }
  file_ = file;
  recorded_ = {};
}

void save(const std::string& path, const Model& model) {
  ::onnx::ModelProto proto = model.file_->proto;
  std::map<std::string, Item> values = model.file_->constants;
  for (const Model::Weight& weight : model.weights_)
    values[weight.name] = weight.layout == nn::Layout::conv
                              ? ordered(weight.cell, taps_first(static_cast<std::size_t>(weight.cell.shape().rank())))
                              : item_of(weight.cell);
  for (auto& tensor : *proto.mutable_graph()->mutable_initializer()) {
    const std::string name = tensor.name();
    Item item = values.at(name);
    const auto type = static_cast<Type>(tensor.data_type());
    if (is_floating(type) && type != item.type) item = item_of(astype(plain(item), dtype_of(type)));
    tensor = proto_of(on_host(item));
    tensor.set_name(name);
  }
  write_model(path, proto);
}

}  // namespace samebytes::onnx
