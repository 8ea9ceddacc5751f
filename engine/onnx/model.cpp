// Loading a model, and running its graph for the values of its inputs.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "graph/context.h"
#include "graph/recordings.h"
#include "onnx/check.h"
#include "onnx/external.h"
#include "onnx/model_file.h"
#include "onnx/rewrite.h"
#include "onnx/runner.h"
#include "onnx/settled.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 28;  // bytes of what follows from weights, of one size of inputs

// Where the graph reads each initializer.
struct Use {
  std::string op;
  int input = 0;
};
using Uses = std::multimap<std::string, Use>;

void collect(const ::onnx::GraphProto& graph, Uses& uses) {
  for (const auto& node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i)
      uses.emplace(node.input(i), Use{is_standard(node.domain()) ? node.op_type() : "", i});
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) collect(attribute.g(), uses);
  }
  for (const auto& output : graph.output()) uses.emplace(output.name(), Use{"", 0});
}

bool all_uses(const Uses& uses, const std::string& name, const std::function<bool(const Use&)>& test) {
  const auto [first, last] = uses.equal_range(name);
  return first != last && std::all_of(first, last, [&](const auto& use) { return test(use.second); });
}

// The cell has them now.
void clear_values(::onnx::TensorProto& proto) {
  proto.clear_raw_data();
  proto.clear_float_data();
  proto.clear_double_data();
  proto.clear_int32_data();
  proto.clear_external_data();
  proto.clear_data_location();
}

// Numbers that steer an operator and are no weights.
bool is_setting(const Use& use) {
  if (use.op == "Clip" || use.op == "Resize" || use.op == "Upsample" || use.op == "Dropout" || use.op == "Range")
    return use.input > 0 || use.op == "Range";
  if (use.op == "QuantizeLinear" || use.op == "DequantizeLinear") return use.input == 1;
  return use.op == "Pad" && use.input == 2;
}

// A single number there is a setting, too: the host needs to know it, and no gradient flows to it.
bool is_exponent(const Use& use) { return use.op == "Pow" && use.input == 1; }

// The inputs of operators that are weights wherever they come from. A bias may be added by a node of its own.
bool is_weight(const Use& use) {
  static const std::map<std::string, std::set<int>> slots{{"Conv", {1, 2}},
                                                          {"ConvTranspose", {1, 2}},
                                                          {"Gemm", {1, 2}},
                                                          {"MatMul", {1}},
                                                          {"PRelu", {1}},
                                                          {"BatchNormalization", {1, 2, 3, 4}},
                                                          {"InstanceNormalization", {1, 2}},
                                                          {"GroupNormalization", {1, 2}},
                                                          {"LayerNormalization", {1, 2}},
                                                          {"RNN", {1, 2, 3}},
                                                          {"GRU", {1, 2, 3}},
                                                          {"LSTM", {1, 2, 3, 7}}};
  const auto found = slots.find(use.op);
  return found != slots.end() && found->second.contains(use.input);
}

// Turns Constant nodes that hold weights into initializers of the same names.
void make_initializers(::onnx::GraphProto& graph) {
  Uses uses;
  collect(graph, uses);
  std::map<std::string, std::string> makers;  // the operator behind each value
  for (const auto& node : graph.node())
    for (const auto& output : node.output()) makers[output] = node.op_type();
  std::set<std::string> biases;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "Add" || node.input_size() != 2) continue;
    for (int i = 0; i < 2; ++i)
      if (const std::string& maker = makers[node.input(1 - i)]; maker == "MatMul" || maker == "Conv")
        biases.insert(node.input(i));
  }
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  for (auto& node : *graph.mutable_node()) {
    const bool is_constant = is_standard(node.domain()) && node.op_type() == "Constant" && node.output_size() == 1 &&
                             node.attribute_size() == 1 && node.attribute(0).has_t() &&
                             is_floating(static_cast<Type>(node.attribute(0).t().data_type()));
    const auto reads_weight = [&](const Use& use) {
      return is_weight(use) || (use.op == "Add" && biases.contains(node.output(0)));
    };
    if (!is_constant || !all_uses(uses, node.output(0), reads_weight)) {
      *kept.Add() = std::move(node);
      continue;
    }
    auto& made = *graph.add_initializer();
    made = std::move(*node.mutable_attribute(0)->mutable_t());
    made.set_name(node.output(0));
  }
  graph.mutable_node()->Swap(&kept);
}

// Whether the operators are those of opset 1 that are the same in opset 7.
bool is_unchanged(const ::onnx::GraphProto& graph) {
  static const std::set<std::string> ops{"Not",  "Identity", "Shape",   "Size",      "Softplus",          "Softsign",
                                         "Conv", "Gather",   "Squeeze", "Unsqueeze", "GlobalAveragePool", "Transpose"};
  return std::all_of(graph.node().begin(), graph.node().end(),
                     [&](const auto& node) { return is_standard(node.domain()) && ops.contains(node.op_type()); });
}

bool is_dequantised(const ::onnx::NodeProto& node) {
  return is_standard(node.domain()) && node.op_type() == "DequantizeLinear";
}

// Runs the nodes that read constants alone, once, and leaves them out of the graph: those whose results have, all
// together, not much more bytes than the file, so that one that claims large ones costs nothing. Of `bytes_left` the
// results are taken off.
void fold_constants(::onnx::GraphProto& graph, const Functions& functions, std::map<std::string, Item>& constants,
                    int opset, std::size_t& bytes_left, bool keeps_dequantised = false) {
  static const std::set<std::string> excluded{"Dropout",       "BatchNormalization", "ConvBatchNormalization",
                                              "Bernoulli",     "Multinomial",        "RandomNormal",
                                              "RandomUniform", "RandomNormalLike",   "RandomUniformLike"};
  Scope scope;
  scope.values = constants;
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  for (const auto& node : graph.node()) {
    bool folds = !excluded.contains(node.op_type()) && !(keeps_dequantised && is_dequantised(node));
    for (const auto& input : node.input()) folds = folds && (input.empty() || scope.values.contains(input));
    for (const auto& attribute : node.attribute()) folds = folds && !attribute.has_g();
    std::map<std::string, Item> made;
    if (folds) {
      Scope inside;
      inside.outer = &scope;
      try {
        const MostElements limit(static_cast<std::int64_t>(bytes_left / sizeof(std::int64_t)));
        Runner(functions, false, bytes_left).node(node, inside, opset);
        std::size_t bytes = 0;
        for (auto& [name, item] : inside.values)
          bytes += static_cast<std::size_t>(count(sizes_of(item))) * bytes_of(item.type);
        folds = bytes <= bytes_left;
        for (auto& [name, item] : inside.values)
          if (item.array.defined() && folds) item.array.eval();
        if (folds) bytes_left -= bytes;
        made = std::move(inside.values);
      } catch (const ArgumentError&) {
        folds = false;  // the run says so, with the values that it has
      }
    }
    if (!folds)
      *kept.Add() = node;
    else
      scope.values.merge(made);
  }
  graph.mutable_node()->Swap(&kept);
  constants = std::move(scope.values);
}

}  // namespace

Summary Model::summary() const { return summary_of(file_->proto); }

const std::vector<std::string>& Model::inputs() const { return file_->inputs; }
const std::vector<std::string>& Model::outputs() const { return file_->outputs; }

Model load(const std::string& path, const LoadOptions& options) {
  auto file = std::make_shared<Model::File>();
  file->proto = read_model(path);
  if (options.any_batch) open_batch(*file->proto.mutable_graph());
  if (options.trainable_constants) make_initializers(*file->proto.mutable_graph());
  const auto& graph = file->proto.graph();
  const int opset = opset_of(file->proto.opset_import());
  if (opset > kNewestOpset || (opset < kOldestOpset && !is_unchanged(graph)))
    throw ArgumentError("onnx: " + path + " has opset " + std::to_string(opset) + ", expected " +
                        std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset));
  file->find_functions();
  check(graph, file->functions);
  Uses uses;
  collect(graph, uses);
  *file->running.mutable_node() = graph.node();
  *file->running.mutable_output() = graph.output();
  fuse_attention(file->running, opset);
  fuse_norms(file->running);
  if (graph.output_size() == 0) throw ArgumentError("onnx: the model has no output");
  if (graph.sparse_initializer_size() > 0) throw ArgumentError("onnx: sparse initializers are not supported");

  std::set<std::string> initializers;
  std::size_t file_bytes = file->proto.ByteSizeLong();  // and those of external data
  Model model;
  ExternalData external(std::filesystem::path(path).parent_path());
  for (auto& proto : *file->proto.mutable_graph()->mutable_initializer()) {
    if (!initializers.insert(proto.name()).second)
      throw ArgumentError("onnx: the initializer '" + proto.name() + "' exists twice");
    const Item item = external.item(proto);
    const bool is_number = count(sizes_of(item)) == 1;
    if (!is_floating(item.type) || all_uses(uses, proto.name(), is_setting) ||
        (is_number && all_uses(uses, proto.name(), is_exponent))) {
      file->constants[proto.name()] = item;
      continue;
    }
    Model::Weight weight{proto.name(), {}, nn::Layout::plain, false};
    Array initial = item.array;
    if (const std::size_t rank = sizes_of(item).size();
        rank >= 3 && rank <= 5 &&
        all_uses(uses, proto.name(), [](const Use& use) { return use.op == "Conv" && use.input == 1; })) {
      initial = contiguous(stored(item, taps_first(rank)));
      weight.layout = nn::Layout::conv;
    }
    weight.is_buffer =
        all_uses(uses, proto.name(), [](const Use& use) { return use.op == "BatchNormalization" && use.input >= 3; });
    weight.cell = nn::Parameter(cell(initial, proto.name()));
    clear_values(proto);
    model.weights_.push_back(std::move(weight));
  }
  file_bytes += external.bytes();
  const auto& running = file->running.node();
  const bool is_quantised = std::any_of(running.begin(), running.end(), is_dequantised);
  constexpr std::size_t kAnyBytes = std::size_t{4} << 20;  // of constants, that may always be made
  // A byte of a quantised weight may become a float.
  std::size_t bytes_left = std::max(file_bytes * (is_quantised ? sizeof(float) : 1), kAnyBytes);
  if (is_quantised) {
    fold_constants(file->running, file->functions, file->constants, opset, bytes_left, true);
    fuse_quantised(file->running, file->constants, bytes_left);
  }
  fold_constants(file->running, file->functions, file->constants, opset, bytes_left);
  std::map<std::string, Sizes> sizes;
  for (const auto& proto : graph.initializer()) sizes[proto.name()] = {proto.dims().begin(), proto.dims().end()};
  fuse_hard_swish(file->running, file->constants);
  fuse_layer_norms(file->running, file->constants, sizes);
  fold_into_filters(file->running, file->constants);
  turn_filters(file->running, file->constants);
  std::set<std::string> of_file = initializers;  // which save() writes again
  for (const auto& input : graph.input()) of_file.insert(input.name());
  drop_unread(file->running, of_file, file->constants);
  constexpr std::int64_t kFewNumbers = 64;  // those that steer an operator
  for (auto& [name, item] : file->constants)
    if (item.array.defined() && count(sizes_of(item)) <= kFewNumbers) item.known = std::make_shared<KnownReals>();
  for (const auto& input : graph.input())
    if (!initializers.contains(input.name())) file->inputs.push_back(input.name());
  for (const auto& output : graph.output()) file->outputs.push_back(output.name());
  model.file_ = std::move(file);
  model.eval();
  if (options.frozen) model.freeze();
  return model;
}

Model::Recorded::Recorded() : graphs(std::make_shared<detail::Recordings>(kMostKept)) {}
Model::Recorded::Recorded(const Recorded&) : Recorded() {}
Model::Recorded& Model::Recorded::operator=(const Recorded& other) {
  if (this != &other) graphs = std::make_shared<detail::Recordings>(kMostKept);
  return *this;
}

std::map<std::string, Value> Model::run(const std::map<std::string, Value>& inputs) {
  for (const auto& [name, value] : inputs)
    if (std::find(file_->inputs.begin(), file_->inputs.end(), name) == file_->inputs.end())
      throw ArgumentError("onnx: the model has no input '" + name + "'");
  std::map<std::string, Value> result;
  call([&]() -> Array {
    result = is_training() ? read(inputs) : again(inputs);
    return {};
  });
  return result;
}

// As read(), by what it built before where nothing but values can have changed.
std::map<std::string, Value> Model::again(const std::map<std::string, Value>& inputs) {
  std::vector<Array> given;
  for (const auto& [name, value] : inputs) {
    const Array* const array = std::get_if<Array>(&value);
    if (array == nullptr || !array->defined() || !is_floating(array->dtype())) return read(inputs);
    given.push_back(*array);
  }
  std::vector<detail::NodePtr> weights;
  for (const Weight& weight : weights_) weights.push_back(weight.cell.node());
  auto known = detail::Recordings::kind_of(given, std::move(weights));
  if (!known || is_tracing()) return read(inputs);
  for (const auto& [name, value] : inputs) known->names.push_back(name);

  std::map<std::string, Value> result;
  const std::vector<Array> made = recorded_.graphs->call(*known, given, [&]() -> std::vector<Array> {
    result = read(inputs);
    for (const auto& [name, item] : file_->constants)
      for (const Array& array : given)
        if (!item.host && item.array.node() == array.node()) return {};
    std::vector<Array> arrays;
    for (const std::string& name : file_->outputs) {
      const Array* const array = std::get_if<Array>(&result.at(name));
      if (array == nullptr) return {};
      arrays.push_back(*array);
    }
    return arrays;
  });
  if (!result.empty()) return result;
  for (std::size_t i = 0; i < made.size(); ++i) result[file_->outputs[i]] = made[i];
  return result;
}

std::map<std::string, Value> Model::read(const std::map<std::string, Value>& inputs) {
  const auto& graph = file_->proto.graph();
  Scope constants, scope;
  constants.fixed = &file_->constants;
  scope.outer = &constants;
  for (const Weight& weight : weights_)
    scope.values[weight.name] = weight.layout == nn::Layout::conv
                                    ? ordered(weight.cell, taps_first(std::size_t(weight.cell.shape().rank())))
                                    : item_of(weight.cell);
  std::map<std::string, std::int64_t> symbols;
  for (const auto& input : graph.input()) {
    const auto given = inputs.find(input.name());
    if (given == inputs.end()) {
      if (scope.values.contains(input.name()) || file_->constants.contains(input.name())) continue;
      throw ArgumentError("onnx: the input '" + input.name() + "' is missing");
    }
    scope.values[input.name()] = bound(input, given->second, symbols);
  }
  Runner runner(file_->functions, is_training());
  runner.nodes(file_->running.node(), scope, opset_of(file_->proto.opset_import()));
  std::map<std::string, Value> result;
  for (const std::string& name : file_->outputs) {
    const Item& item = scope.at(name);
    if (is_floating(item.type))
      result[name] = plain(item);
    else
      result[name] = on_host(item);
  }
  return result;
}

Array Model::forward(const Array& x) {
  if (file_->inputs.size() != 1)
    throw ArgumentError("onnx: the model has " + std::to_string(file_->inputs.size()) +
                        " inputs, forward() needs one; use run()");
  const auto outputs = run({{file_->inputs[0], x}});
  const Value& first = outputs.at(file_->outputs.at(0));
  if (!std::holds_alternative<Array>(first)) throw ArgumentError("onnx: the first output is not floating; use run()");
  return std::get<Array>(first);
}

void Model::visit(nn::Visitor& visitor) {
  for (const Weight& weight : weights_) {
    if (weight.is_buffer)
      visitor.buffer(weight.name, weight.cell);
    else
      visitor.parameter(weight.name, weight.cell, weight.layout);
  }
}

}  // namespace samebytes::onnx
