// Loading a model and running its graph: nodes in the file's order, subgraphs with the values around them, function
// bodies in place.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <set>

#include "onnx/check.h"
#include "onnx/external.h"
#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {

struct Model::File {
  ::onnx::ModelProto proto;
  std::map<std::string, const ::onnx::FunctionProto*> functions;  // "domain:Name"
  std::map<std::string, Item> constants;                          // initializers that are not parameters
  std::vector<std::string> inputs, outputs;
};

namespace {

constexpr int kNewestOpset = 24, kOldestOpset = 7;
constexpr std::int64_t kMostSteps = 1'000'000;                      // of a Loop
constexpr std::int64_t kLargestFile = (std::int64_t{1} << 31) - 1;  // protobuf's own limit

int opset_of(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) {
  for (const auto& import : imports)
    if (is_standard(import.domain())) return static_cast<int>(import.version());
  return 1;
}

// The values of one graph, above those of the graph around it.
struct Scope {
  std::map<std::string, Item> values;
  const Scope* outer = nullptr;

  const Item& at(const std::string& name) const {
    static const Item none;
    if (name.empty()) return none;
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
      if (const auto found = scope->values.find(name); found != scope->values.end()) return found->second;
    throw ArgumentError("onnx: no node gives '" + name + "'");
  }
};

class Runner {
 public:
  Runner(const Functions& functions, bool training) : functions_(functions), training_(training) {}

  void nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list, Scope& scope, int opset,
             const Attributes& given) {
    for (const auto& node : list) {
      Call call = call_of(node, scope, opset, given);
      Outputs made;
      try {
        made = outputs_of(node, call, scope);
      } catch (const ArgumentError& error) {
        if (std::string(error.what()).starts_with("onnx: " + call.name)) throw;
        throw ArgumentError("onnx: " + call.name + ": " + error.what());
      }
      for (int i = 0; i < node.output_size(); ++i) {
        if (node.output(i).empty()) continue;
        if (static_cast<std::size_t>(i) >= made.size() || !made[static_cast<std::size_t>(i)].defined())
          call.refuse("output " + std::to_string(i) + " is not supported");
        scope.values[node.output(i)] = made[static_cast<std::size_t>(i)];
      }
    }
  }

 private:
  Call call_of(const ::onnx::NodeProto& node, const Scope& scope, int opset, const Attributes& given) const {
    Call call{node.op_type(), shown(node), opset, training_, {}, {}, static_cast<std::size_t>(node.output_size())};
    for (const auto& input : node.input()) call.in.push_back(scope.at(input));
    for (const auto& attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty())
        call.attributes[attribute.name()] = &attribute;
      else if (const auto at = given.find(attribute.ref_attr_name()); at != given.end())
        call.attributes[attribute.name()] = at->second;
    }
    return call;
  }

  Outputs outputs_of(const ::onnx::NodeProto& node, const Call& call, Scope& scope) {
    if (const auto at = functions_.find(key_of(node.domain(), node.op_type())); at != functions_.end())
      return function(*at->second, call);
    if (call.op == "Constant") return constant(call);
    if (call.op == "If") return branch(call, scope);
    if (call.op == "Loop") return loop(call, scope);
    return registry().at(call.op)(call);
  }

  Outputs function(const ::onnx::FunctionProto& body, const Call& call) {
    Scope inside;
    for (int i = 0; i < body.input_size(); ++i)
      inside.values[body.input(i)] =
          static_cast<std::size_t>(i) < call.in.size() ? call.in[static_cast<std::size_t>(i)] : Item{};
    nodes(body.node(), inside, opset_of(body.opset_import()), call.attributes);
    Outputs result;
    for (const auto& output : body.output()) result.push_back(inside.at(output));
    return result;
  }

  static Outputs constant(const Call& call) {
    for (const auto& [name, attribute] : call.attributes) {
      if (name == "value") return {item_of(tensor_of(attribute->t()))};
      if (name == "value_int") return {ints_item({attribute->i()}, {})};
      if (name == "value_ints") {
        const std::vector<std::int64_t> values(attribute->ints().begin(), attribute->ints().end());
        return {ints_item(values, {static_cast<std::int64_t>(values.size())})};
      }
      if (name == "value_float") return {item_of(samebytes::full(Shape{}, static_cast<double>(attribute->f())))};
      if (name == "value_floats") {
        const std::vector<float> values(attribute->floats().begin(), attribute->floats().end());
        return {item_of(samebytes::array(std::span<const float>(values), {std::int64_t(values.size())}))};
      }
    }
    call.refuse("a constant of numbers was expected");
  }

  // The outputs of a subgraph.
  Outputs subgraph(const ::onnx::GraphProto& graph, const Outputs& inputs, const Scope& outer, const Call& call) {
    Scope inside;
    inside.outer = &outer;
    for (const auto& tensor : graph.initializer()) inside.values[tensor.name()] = item_of(tensor_of(tensor));
    if (static_cast<std::size_t>(graph.input_size()) != inputs.size())
      call.refuse("its body has " + std::to_string(graph.input_size()) + " inputs, expected " +
                  std::to_string(inputs.size()));
    for (int i = 0; i < graph.input_size(); ++i)
      inside.values[graph.input(i).name()] = inputs[static_cast<std::size_t>(i)];
    nodes(graph.node(), inside, call.opset, call.attributes);
    Outputs result;
    for (const auto& output : graph.output()) result.push_back(inside.at(output.name()));
    return result;
  }

  static bool truth(const Call& call, const Item& item) {
    const auto values = ints_of(item);
    if (values.size() != 1) call.refuse("a condition has one value, got " + std::to_string(values.size()));
    return values[0] != 0;
  }

  Outputs branch(const Call& call, const Scope& scope) {
    const auto chosen = call.attributes.find(truth(call, call.at(0)) ? "then_branch" : "else_branch");
    if (chosen == call.attributes.end()) call.refuse("a branch is missing");
    return subgraph(chosen->second->g(), {}, scope, call);
  }

  Outputs loop(const Call& call, const Scope& scope) {
    const auto body = call.attributes.find("body");
    if (body == call.attributes.end()) call.refuse("its body is missing");
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (call.has(0)) most = ints_of(call.at(0)).at(0);
    bool goes_on = !call.has(1) || truth(call, call.at(1));
    Outputs state(call.in.begin() + std::min<std::ptrdiff_t>(2, std::ssize(call.in)), call.in.end());
    const std::size_t scans = call.outputs >= state.size() ? call.outputs - state.size() : 0;
    std::vector<Outputs> rows(scans);
    for (std::int64_t step = 0; step < most && goes_on; ++step) {
      if (step == kMostSteps) call.refuse("more than " + std::to_string(kMostSteps) + " steps");
      Outputs inputs{ints_item({step}, {}), ints_item({1}, {}, Type::boolean)};
      inputs.insert(inputs.end(), state.begin(), state.end());
      Outputs made = subgraph(body->second->g(), inputs, scope, call);
      if (made.size() != 1 + state.size() + scans) call.refuse("its body has another number of outputs");
      goes_on = truth(call, made[0]);
      std::copy_n(made.begin() + 1, state.size(), state.begin());
      for (std::size_t i = 0; i < scans; ++i) rows[i].push_back(made[1 + state.size() + i]);
    }
    Outputs result = state;
    for (const Outputs& row : rows) {
      if (row.empty()) call.refuse("a loop without a step has no scanned output");
      result.push_back(stacked(row));
    }
    return result;
  }

  static Item stacked(const Outputs& row) {
    Sizes sizes = sizes_of(row[0]);
    sizes.insert(sizes.begin(), static_cast<std::int64_t>(row.size()));
    if (is_floating(row[0].type)) {
      std::vector<Array> arrays;
      for (const Item& item : row) arrays.push_back(plain(item));
      return item_of(stack(arrays));
    }
    std::vector<std::int64_t> values;
    for (const Item& item : row)
      for (const std::int64_t value : ints_of(item)) values.push_back(value);
    return ints_item(values, sizes, row[0].type);
  }

  const Functions& functions_;
  bool training_;
};

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

// Numbers that steer an operator and are no weights.
bool is_setting(const Use& use) {
  if (use.op == "Clip" || use.op == "Resize" || use.op == "Upsample" || use.op == "Dropout" || use.op == "Range")
    return use.input > 0 || use.op == "Range";
  return use.op == "Pad" && use.input == 2;
}

Port port_of(const ::onnx::ValueInfoProto& info) {
  Port port{info.name(), Type::none, {}};
  if (!info.type().has_tensor_type()) return port;
  const auto& tensor = info.type().tensor_type();
  const int type = tensor.elem_type();
  if (type > 0 && type <= static_cast<int>(Type::bf16) && bytes_of(static_cast<Type>(type)) > 0)
    port.type = static_cast<Type>(type);
  for (const auto& dim : tensor.shape().dim())
    port.sizes.push_back(dim.has_dim_value()       ? std::to_string(dim.dim_value())
                         : dim.dim_param().empty() ? "?"
                                                   : dim.dim_param());
  return port;
}

void count_operators(const ::onnx::GraphProto& graph, std::map<std::string, std::int64_t>& operators) {
  for (const auto& node : graph.node()) {
    ++operators[node.op_type()];
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) count_operators(attribute.g(), operators);
  }
}

}  // namespace

Summary Model::summary() const {
  const ::onnx::ModelProto& proto = file_->proto;
  Summary result{opset_of(proto.opset_import()), proto.producer_name(), {}, {}, {}};
  for (const auto& input : proto.graph().input())
    if (std::find(file_->inputs.begin(), file_->inputs.end(), input.name()) != file_->inputs.end())
      result.inputs.push_back(port_of(input));
  for (const auto& output : proto.graph().output()) result.outputs.push_back(port_of(output));
  count_operators(proto.graph(), result.operators);
  return result;
}

const std::vector<std::string>& Model::inputs() const { return file_->inputs; }
const std::vector<std::string>& Model::outputs() const { return file_->outputs; }

Model load(const std::string& path, const LoadOptions& options) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(path, code);
  if (code) throw IoError("onnx: cannot open the file " + path, path);
  if (bytes > static_cast<std::uintmax_t>(kLargestFile))
    throw IoError("onnx: " + path + " is over 2 GB; such a model keeps its weights in external data", path);
  auto file = std::make_shared<Model::File>();
  std::ifstream in(path, std::ios::binary);
  if (!in || !file->proto.ParseFromIstream(&in) || !file->proto.has_graph())
    throw IoError("onnx: " + path + " is not an ONNX model, or it is damaged", path);
  const auto& graph = file->proto.graph();
  const int opset = opset_of(file->proto.opset_import());
  if (opset < kOldestOpset || opset > kNewestOpset)
    throw ArgumentError("onnx: " + path + " has opset " + std::to_string(opset) + ", expected " +
                        std::to_string(kOldestOpset) + " to " + std::to_string(kNewestOpset));
  for (const auto& function : file->proto.functions())
    file->functions[key_of(function.domain(), function.name())] = &function;
  check(graph, file->functions);
  if (graph.sparse_initializer_size() > 0) throw ArgumentError("onnx: sparse initializers are not supported");

  Uses uses;
  collect(graph, uses);
  std::set<std::string> initializers;
  Model model;
  ExternalData external(std::filesystem::path(path).parent_path());
  for (const auto& proto : graph.initializer()) {
    if (!initializers.insert(proto.name()).second)
      throw ArgumentError("onnx: the initializer '" + proto.name() + "' exists twice");
    const Item item = external.item(proto);
    if (!is_floating(item.type) || all_uses(uses, proto.name(), is_setting)) {
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
    model.weights_.push_back(std::move(weight));
  }
  for (const auto& input : graph.input())
    if (!initializers.contains(input.name())) file->inputs.push_back(input.name());
  for (const auto& output : graph.output()) file->outputs.push_back(output.name());
  model.file_ = std::move(file);
  model.eval();
  if (options.frozen) model.freeze();
  return model;
}

std::map<std::string, Value> Model::run(const std::map<std::string, Value>& inputs) {
  const auto& graph = file_->proto.graph();
  for (const auto& [name, value] : inputs)
    if (std::find(file_->inputs.begin(), file_->inputs.end(), name) == file_->inputs.end())
      throw ArgumentError("onnx: the model has no input '" + name + "'");
  std::map<std::string, Value> result;
  const auto body = [&]() -> Array {
    Scope scope;
    scope.values = file_->constants;
    for (const Weight& weight : weights_)
      scope.values[weight.name] = weight.layout == nn::Layout::conv
                                      ? ordered(weight.cell, taps_first(std::size_t(weight.cell.shape().rank())))
                                      : item_of(weight.cell);
    std::map<std::string, std::int64_t> symbols;
    for (const auto& input : graph.input()) {
      const auto given = inputs.find(input.name());
      if (given == inputs.end()) {
        if (scope.values.contains(input.name())) continue;
        throw ArgumentError("onnx: the input '" + input.name() + "' is missing");
      }
      scope.values[input.name()] = bound(input, given->second, symbols);
    }
    Runner runner(file_->functions, is_training());
    runner.nodes(graph.node(), scope, opset_of(file_->proto.opset_import()), {});
    for (const std::string& name : file_->outputs) {
      const Item& item = scope.at(name);
      if (is_floating(item.type))
        result[name] = plain(item);
      else
        result[name] = on_host(item);
    }
    return {};
  };
  call(body);
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
