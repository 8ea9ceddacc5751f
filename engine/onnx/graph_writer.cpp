// Over 400 lines because the writer and what an op sees of it know each other.
#include "onnx/graph_writer.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "graph/op.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {

using detail::Node;
using detail::NodePtr;
using detail::NodeWriter;

namespace {

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

NodeWriter::Ints sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

NodeWriter::Ints inverse_of(const NodeWriter::Ints& order) {
  NodeWriter::Ints back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return back;
}

bool is_identity(const NodeWriter::Ints& order) { return std::is_sorted(order.begin(), order.end()); }

// How the state's layout turns into PyTorch's order of axes; empty where it is that.
NodeWriter::Ints order_in_file(nn::Layout layout, int rank) {
  if (layout == nn::Layout::linear_transposed) return {1, 0};
  if (layout != nn::Layout::conv && layout != nn::Layout::conv_transpose) return {};
  NodeWriter::Ints order{rank - 1, rank - 2};
  for (int i = 0; i < rank - 2; ++i) order.push_back(i);
  return order;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Whether shapes broadcast to the whole of `result`, not to a part of it.
bool reaches(const std::vector<Shape>& shapes, const Shape& result) {
  for (int axis = -1; axis >= -result.rank(); --axis)
    if (std::none_of(shapes.begin(), shapes.end(),
                     [&](const Shape& shape) { return shape.rank() >= -axis && shape[axis] == result[axis]; }))
      return false;
  return true;
}

struct Refusal {
  std::string why;
};

}  // namespace

// One node of the graph, as its op sees it.
class OneNode final : public NodeWriter {
 public:
  OneNode(Writer& writer, const Node& node) : NodeWriter(node), writer_(writer), node_(node) {}

  Name in(std::size_t i) override { return writer_.name_of(*node_.tape_inputs().at(i).node); }

  std::vector<Name> operands(Ints& order) override {
    std::vector<Name> names;
    std::vector<Shape> shapes;
    const auto rank = static_cast<std::size_t>(result().rank());
    for (std::size_t i = 0; i < count(); ++i) {
      names.push_back(in(i));
      shapes.push_back(shape(i));
      if (const auto made = writer_.made_.find(names[i]); made != writer_.made_.end() && made->second.order.empty()) {
        shapes[i] = made->second.narrow;
        names[i] = made->second.from;
      }
    }
    if (!reaches(shapes, result())) {  // all are narrow: one of them must say how wide the result is
      names[0] = in(0);
      shapes[0] = shape(0);
    }
    for (std::size_t i = 0; i < names.size() && order.empty(); ++i)
      if (const auto made = writer_.made_.find(names[i]);
          made != writer_.made_.end() && made->second.order.size() == rank)
        order = made->second.order;
    if (order.empty()) return names;
    const Ints back = inverse_of(order);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (shapes[i].rank() == 0) continue;
      Ints wide(rank - static_cast<std::size_t>(shapes[i].rank()), 1);
      for (const std::int64_t size : shapes[i]) wide.push_back(size);
      if (wide.size() > static_cast<std::size_t>(shapes[i].rank()) || shapes[i].size() == 1) {
        if (std::count(wide.begin(), wide.end(), 1) + 1 >= std::ssize(wide)) {  // one axis: a reshape turns it
          Ints there(rank);
          for (std::size_t k = 0; k < rank; ++k) there[k] = wide[static_cast<std::size_t>(back[k])];
          names[i] = writer_.reshaped(names[i], Shape(std::span<const std::int64_t>(there)));
          continue;
        }
        names[i] = writer_.reshaped(names[i], Shape(std::span<const std::int64_t>(wide)));
      }
      names[i] = writer_.turned(names[i], back);
    }
    return names;
  }

  Name put(const std::string& type, const std::vector<Name>& inputs, const Attributes& attributes) override {
    return writer_.put(type, inputs, attributes);
  }
  Name turned(const Name& value, const Ints& order) override { return writer_.turned(value, order); }
  Name reshaped(const Name& value, const Shape& shape) override { return writer_.reshaped(value, shape); }
  Name expanded(const Name& value, const Shape& shape) override {
    Name result = put("Expand", {value, ints(sizes_of(shape))}, {});
    if (count() > 0 && value == in(0)) writer_.made_[result] = {value, {}, this->shape(0)};
    return result;
  }
  Name cast(const Name& value, Dtype from, Dtype to) override {
    if (from == to) return value;
    return put("Cast", {value}, {{"to", static_cast<std::int64_t>(type_of(to))}});
  }
  Name ints(const Ints& values) override { return writer_.ints(values); }
  Name numbers(const std::vector<double>& values, const Shape& shape, Dtype dtype) override {
    Tensor tensor{type_of(dtype), sizes_of(shape), {}};
    for (const double value : values) {
      switch (dtype) {
        case Dtype::f32: append(tensor.bytes, static_cast<float>(value)); break;
        case Dtype::f64: append(tensor.bytes, value); break;
        case Dtype::i32: append(tensor.bytes, static_cast<std::int32_t>(value)); break;
        case Dtype::i64: append(tensor.bytes, static_cast<std::int64_t>(value)); break;
        case Dtype::u8: append(tensor.bytes, static_cast<std::uint8_t>(value)); break;
        case Dtype::bool_: append(tensor.bytes, static_cast<std::uint8_t>(value != 0)); break;
        case Dtype::f16:
        case Dtype::bf16: return cast(numbers(values, shape, f32), f32, dtype);
      }
    }
    return writer_.constant(tensor);
  }
  Name bytes(const std::vector<std::int8_t>& values, const Shape& shape) override {
    Tensor tensor{Type::i8, sizes_of(shape), {}};
    for (const std::int8_t value : values) append(tensor.bytes, value);
    return writer_.constant(tensor);
  }
  std::vector<Name> put_all(const std::string& type, const std::vector<Name>& inputs, const Attributes& attributes,
                            std::size_t outputs) override {
    return writer_.put_all(type, inputs, attributes, outputs);
  }
  std::optional<detail::WrittenProduct> product(const Name& value) const override {
    const auto* node = writer_.maker(value);
    while (node != nullptr && node->op_type() == "Reshape") node = writer_.maker(node->input(0));
    if (node == nullptr || node->op_type() != "Gemm") return {};
    return detail::WrittenProduct{node->input(0), node->input(1), node->input_size() > 2 ? node->input(2) : ""};
  }
  void give(const Name& value, int result) override {
    writer_.results_[{&node_, result}] = value;
    if (result == 0) writer_.names_[&node_] = value;
  }
  [[noreturn]] void refuse(const std::string& why) const override { throw Refusal{why}; }

 private:
  Writer& writer_;
  const Node& node_;
};

::onnx::TensorProto proto_of(const Tensor& tensor) {
  ::onnx::TensorProto proto;
  proto.set_data_type(static_cast<int>(tensor.type));
  for (const std::int64_t size : tensor.sizes) proto.add_dims(size);
  proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
  return proto;
}

Writer::Name Writer::fresh(const std::string& stem) {
  for (;;) {
    Name name = stem + "_" + std::to_string(++counts_[stem]);
    if (used_.insert(name).second) return name;
  }
}

Writer::Name Writer::put(const std::string& type, const std::vector<Name>& inputs,
                         const NodeWriter::Attributes& attributes) {
  return put_all(type, inputs, attributes, 1)[0];
}

std::vector<Writer::Name> Writer::put_all(const std::string& type, const std::vector<Name>& inputs,
                                          const NodeWriter::Attributes& attributes, std::size_t outputs) {
  auto& node = *graph_.add_node();
  node.set_op_type(type);
  for (const Name& input : inputs) node.add_input(input);
  std::vector<Name> results;
  for (std::size_t i = 0; i < outputs; ++i) {
    results.push_back(fresh(lower(type)));
    node.add_output(results.back());
    makers_[results.back()] = graph_.node_size() - 1;
  }
  node.set_name(results[0]);
  for (const auto& [key, value] : attributes) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(key);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      attribute.set_type(::onnx::AttributeProto::INT);
      attribute.set_i(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      attribute.set_type(::onnx::AttributeProto::FLOAT);
      attribute.set_f(static_cast<float>(*real));
    } else if (const auto* list = std::get_if<Ints>(&value)) {
      attribute.set_type(::onnx::AttributeProto::INTS);
      for (const std::int64_t one : *list) attribute.add_ints(one);
    } else {
      attribute.set_type(::onnx::AttributeProto::STRING);
      attribute.set_s(std::get<std::string>(value));
    }
  }
  return results;
}

const ::onnx::NodeProto* Writer::maker(const Name& value) const {
  const auto at = makers_.find(value);
  return at == makers_.end() ? nullptr : &graph_.node(at->second);
}

Writer::Name Writer::constant(const Tensor& tensor) {
  Name result = put("Constant", {}, {});
  auto& attribute = *graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
  attribute.set_name("value");
  attribute.set_type(::onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() = proto_of(tensor);
  return result;
}

Writer::Name Writer::ints(const Ints& values) {
  Name& name = ints_[values];
  if (name.empty()) {
    Tensor tensor{Type::i64, {std::ssize(values)}, {}};
    for (const std::int64_t value : values) append(tensor.bytes, value);
    name = constant(tensor);
  }
  return name;
}

Writer::Name Writer::turned(const Name& value, const Ints& order) {
  if (is_identity(order)) return value;
  Name from = value;
  Ints whole = order;
  if (const auto made = made_.find(value); made != made_.end() && !made->second.order.empty()) {
    from = made->second.from;
    for (std::size_t i = 0; i < order.size(); ++i) whole[i] = made->second.order[static_cast<std::size_t>(order[i])];
    if (is_identity(whole)) return from;
  }
  Name& result = turned_[{from, whole}];
  if (result.empty()) {
    result = put("Transpose", {from}, {{"perm", whole}});
    made_[result] = {from, whole, {}};
  }
  return result;
}

Writer::Name Writer::reshaped(const Name& value, const Shape& shape) {
  return put("Reshape", {value, ints(sizes_of(shape))}, {{"allowzero", std::int64_t{1}}});
}

const Writer::Name& Writer::name_of(const Node& node) { return names_.at(&node); }

void Writer::input(const Array& array, const Name& name, const Ints& order) {
  if (!used_.insert(name).second) throw ArgumentError("onnx: two inputs have the name '" + name + "'");
  auto& info = *graph_.add_input();
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(type_of(array.dtype())));
  for (std::size_t i = 0; i < static_cast<std::size_t>(array.shape().rank()); ++i)
    type.mutable_shape()->add_dim()->set_dim_value(
        array.shape()[order.empty() ? static_cast<int>(i) : static_cast<int>(order[i])]);
  names_[array.node().get()] = order.empty() ? name : turned(name, inverse_of(order));
  varying_.insert(array.node().get());
}

void Writer::reserve(const std::vector<Name>& outputs) {
  for (const Name& name : outputs)
    if (!used_.insert(name).second) throw ArgumentError("onnx: two values have the name '" + name + "'");
}

void Writer::state(const nn::NamedArray& entry) { state_.insert({entry.array.node().get(), entry}); }

// A cell is an initializer with its name, everything else that is given a constant.
void Writer::leaf(const NodePtr& node) {
  const Array array(node);
  if (!node->cell) {
    names_[node.get()] = constant(on_host(item_of(array)));
    return;
  }
  const auto known = state_.find(node.get());
  Name name = known != state_.end() ? known->second.name : cell_name(array);
  if (name.empty()) name = "parameter";
  if (!used_.insert(name).second) name = fresh(name);
  const Ints order = known != state_.end() ? order_in_file(known->second.layout, array.shape().rank()) : Ints{};
  Item item = item_of(array);
  if (!order.empty()) {
    const Ints back = inverse_of(order);
    item.order = Order(back.begin(), back.end());  // stored as the array lies, meant as the file has it
  }
  *graph_.add_initializer() = proto_of(on_host(item));
  graph_.mutable_initializer(graph_.initializer_size() - 1)->set_name(name);
  names_[node.get()] = order.empty() ? name : turned(name, inverse_of(order));
  varying_.insert(node.get());
}

// All nodes below, inputs of a node before it; what is known already is not looked into.
std::vector<NodePtr> Writer::sorted(const std::vector<Array>& outputs) {
  std::vector<NodePtr> result, stack;
  std::set<const Node*> seen;
  for (const Array& output : outputs) stack.push_back(output.node());
  while (!stack.empty()) {
    const NodePtr node = stack.back();
    stack.pop_back();
    if (names_.contains(node.get()) || !seen.insert(node.get()).second) continue;
    result.push_back(node);
    if (!node->cell)
      for (const auto& edge : node->tape_inputs()) stack.push_back(edge.node);
  }
  std::sort(result.begin(), result.end(), detail::comes_before);
  return result;
}

void Writer::nodes(const std::vector<Array>& outputs) {
  const std::vector<NodePtr> all = sorted(outputs);
  for (const NodePtr& node : all) {  // what is read by something that varies is a value of its own
    const auto& inputs = node->tape_inputs();
    if (node->cell || std::any_of(inputs.begin(), inputs.end(),
                                  [&](const detail::Edge& edge) { return varying_.contains(edge.node.get()); }))
      varying_.insert(node.get());
  }
  std::vector<std::string> refused;
  const auto need = [&](const NodePtr& node) {
    if (!names_.contains(node.get())) leaf(node);
  };
  for (const NodePtr& node : all) {
    if (node->cell) {
      need(node);
      continue;
    }
    if (!varying_.contains(node.get())) continue;  // a constant, where something needs it
    for (const auto& edge : node->tape_inputs())
      if (node->output < 0) need(edge.node);
    if (node->output >= 0) {
      const Node* producer = node->tape_inputs()[0].node.get();
      const auto made = results_.find({producer, node->output});
      names_[node.get()] = made == results_.end() ? "" : made->second;
      if (made == results_.end() && !name_of(*producer).empty())
        refused.push_back("\n  " + std::string(producer->tape_op()->name()) + ": ONNX has no operator for its result " +
                          std::to_string(node->output));
      continue;
    }
    const detail::Op& op = *node->tape_op();
    const auto refuse = [&](const std::string& why) {
      refused.push_back("\n  " + std::string(op.name()) + ": " + why);
      names_[node.get()] = "";
    };
    const auto* written = dynamic_cast<const detail::Written*>(&op);
    if (written == nullptr) {
      refuse("ONNX has no operator for it");
      continue;
    }
    try {
      OneNode one(*this, *node);
      written->write(one);
    } catch (const Refusal& refusal) {
      refuse(refusal.why);
    }
  }
  std::sort(refused.begin(), refused.end());
  refused.erase(std::unique(refused.begin(), refused.end()), refused.end());
  if (!refused.empty())
    throw ArgumentError("onnx: these operations cannot be written:" +
                        std::accumulate(refused.begin(), refused.end(), std::string()));
  for (const Array& output : outputs) need(output.node());
}

void Writer::output(const Array& array, const Name& name, const Ints& order) {
  const Name value = order.empty() ? name_of(*array.node()) : turned(name_of(*array.node()), order);
  put("Identity", {value}, {});
  graph_.mutable_node(graph_.node_size() - 1)->set_output(0, name);
  auto& info = *graph_.add_output();
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(type_of(array.dtype())));
  for (std::size_t i = 0; i < static_cast<std::size_t>(array.shape().rank()); ++i)
    type.mutable_shape()->add_dim()->set_dim_value(
        array.shape()[order.empty() ? static_cast<int>(i) : static_cast<int>(order[i])]);
}

void Writer::finish() {
  std::set<Name> needed;
  for (const auto& output : graph_.output()) needed.insert(output.name());
  std::vector<::onnx::NodeProto> kept;
  for (int i = graph_.node_size(); i-- > 0;) {
    const auto& node = graph_.node(i);
    if (std::none_of(node.output().begin(), node.output().end(),
                     [&](const Name& output) { return needed.contains(output); }))
      continue;
    for (const auto& input : node.input()) needed.insert(input);
    kept.push_back(node);
  }
  graph_.clear_node();
  for (auto node = kept.rbegin(); node != kept.rend(); ++node) graph_.add_node()->Swap(&*node);
  ::onnx::GraphProto all;
  all.mutable_initializer()->Swap(graph_.mutable_initializer());
  for (auto& tensor : *all.mutable_initializer())
    if (needed.contains(tensor.name())) graph_.add_initializer()->Swap(&tensor);
}

}  // namespace samebytes::onnx
