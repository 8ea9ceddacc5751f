#include "onnx/runner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

Outputs constant(const Call& call) {
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

bool truth(const Call& call, const Item& item) {
  const auto values = ints_of(item);
  if (values.size() != 1) call.refuse("a condition has one value, got " + std::to_string(values.size()));
  return values[0] != 0;
}

Item stacked(const Outputs& row) {
  Sizes sizes = sizes_of(row[0]);
  for (const Item& item : row)
    if (sizes_of(item) != sizes || item.type != row[0].type)
      throw ArgumentError("onnx: the values of its steps differ in size or type");
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

// Item `place` of an axis, without the axis.
Item picked(const Item& item, std::size_t axis, std::int64_t place) {
  Sizes sizes = sizes_of(item);
  if (axis >= sizes.size()) throw ArgumentError("onnx: expected a value with an axis for its steps, got a scalar");
  const std::int64_t n = sizes[axis], inner = strides_of(sizes)[axis];
  if (is_floating(item.type))
    return item_of(squeeze(slice(plain(item), static_cast<int>(axis), place, place + 1), static_cast<int>(axis)));
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
  std::vector<std::int64_t> from(static_cast<std::size_t>(list_count(sizes)));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    from[i] = (at / inner * n + place) * inner + at % inner;
  }
  return moved(item, sizes, from);
}

// One level of functions and subgraphs more, while it lives. The file is checked for their number, but an attribute
// that refers to a graph may nest it without end.
class Level {
 public:
  Level(int& depth, const Call& call) : depth_(depth) {
    if (depth > kDeepestNesting)
      call.refuse("functions or subgraphs are nested deeper than " + std::to_string(kDeepestNesting));
    ++depth_;
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

// The first axis as another one.
Item first_axis_at(const Item& item, std::size_t axis) {
  if (axis == 0) return item;
  Order order;
  for (std::size_t i = 1; i < sizes_of(item).size(); ++i) order.push_back(static_cast<int>(i));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  return item_of(stored(item, order), item.type);
}

}  // namespace

int opset_of(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) {
  for (const auto& import : imports)
    if (is_standard(import.domain())) return static_cast<int>(import.version());
  return kNewestOpset;
}

const Item& Scope::at(const std::string& name) const {
  static const Item none;
  if (name.empty()) return none;
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    if (const auto found = scope->values.find(name); found != scope->values.end()) return found->second;
    if (scope->fixed == nullptr) continue;
    if (const auto found = scope->fixed->find(name); found != scope->fixed->end()) return found->second;
  }
  throw ArgumentError("onnx: no node gives '" + name + "'");
}

void Runner::nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list, Scope& scope, int opset) {
  for (const auto& one : list) node(one, scope, opset);
}

// What the standard library throws becomes an error that names the node, too.
void Runner::node(const ::onnx::NodeProto& node, Scope& scope, int opset) {
  const Call call = call_of(node, scope, opset);
  Outputs made;
  try {
    made = outputs_of(node, call, scope);
  } catch (const ArgumentError& error) {
    if (std::string(error.what()).starts_with("onnx: " + call.name)) throw;
    throw ArgumentError("onnx: " + call.name + ": " + error.what());
  } catch (const std::out_of_range&) {  // of a list: an attribute or an input that is too short
    call.refuse("a list of it has too few values");
  } catch (const std::length_error&) {
    call.refuse("its sizes are too large");
  } catch (const std::bad_alloc&) {
    call.refuse("it needs more memory than there is");
  }
  for (const Item& item : made) {
    if (bytes_left_ == kAnyBytes || !item.defined()) continue;
    const std::size_t bytes = static_cast<std::size_t>(count(sizes_of(item))) * bytes_of(item.type);
    if (bytes > bytes_left_) call.refuse("its results are too large");
    bytes_left_ -= bytes;
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<std::size_t>(i) >= made.size() || !made.at(static_cast<std::size_t>(i)).defined())
      call.refuse("output " + std::to_string(i) + " is not supported");
    scope.values[node.output(i)] = made.at(static_cast<std::size_t>(i));
  }
}

Call Runner::call_of(const ::onnx::NodeProto& node, const Scope& scope, int opset) const {
  Call call{node.op_type(), shown(node), opset, training_, {}, {}, static_cast<std::size_t>(node.output_size())};
  for (const auto& input : node.input()) call.in.push_back(scope.at(input));
  for (const auto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty())
      call.attributes[attribute.name()] = &attribute;
    else if (scope.given != nullptr)
      if (const auto at = scope.given->find(attribute.ref_attr_name()); at != scope.given->end())
        call.attributes[attribute.name()] = at->second;
  }
  return call;
}

Outputs Runner::outputs_of(const ::onnx::NodeProto& node, const Call& call, Scope& scope) {
  if (const auto at = functions_.find(key_of(node.domain(), node.op_type())); at != functions_.end())
    return function(*at->second, call);
  if (call.op == "Constant") return constant(call);
  if (call.op == "If") return branch(call, scope);
  if (call.op == "Loop") return loop(call, scope);
  if (call.op == "Scan") return scan(call, scope);
  const std::string key = registered_as(node.domain(), node.op_type());
  if (key == "ai.onnx.preview.FlexAttention") return flex_attention(call, scope);
  const auto operate = registry().find(key);
  if (operate == registry().end()) call.refuse("the operator is not supported");
  return operate->second(call);
}

void Runner::count_step(const Call& call) {
  if (++steps_ > kMostSteps) call.refuse("more than " + std::to_string(kMostSteps) + " steps");
}

Outputs Runner::function(const ::onnx::FunctionProto& body, const Call& call) {
  const Level level(depth_, call);
  Scope inside;
  inside.given = &call.attributes;
  for (int i = 0; i < body.input_size(); ++i)
    inside.values[body.input(i)] =
        static_cast<std::size_t>(i) < call.in.size() ? call.in.at(static_cast<std::size_t>(i)) : Item{};
  nodes(body.node(), inside, opset_of(body.opset_import()));
  Outputs result;
  for (const auto& output : body.output()) result.push_back(inside.at(output));
  return result;
}

// The outputs of a subgraph.
Outputs Runner::subgraph(const ::onnx::GraphProto& graph, const Outputs& inputs, const Scope& outer, const Call& call) {
  const Level level(depth_, call);
  Scope inside;
  inside.outer = &outer;
  inside.given = outer.given;
  for (const auto& tensor : graph.initializer()) inside.values[tensor.name()] = item_of(tensor_of(tensor));
  if (static_cast<std::size_t>(graph.input_size()) != inputs.size())
    call.refuse("its body has " + std::to_string(graph.input_size()) + " inputs, expected " +
                std::to_string(inputs.size()));
  for (int i = 0; i < graph.input_size(); ++i)
    inside.values[graph.input(i).name()] = inputs.at(static_cast<std::size_t>(i));
  nodes(graph.node(), inside, call.opset);
  Outputs result;
  for (const auto& output : graph.output()) result.push_back(inside.at(output.name()));
  return result;
}

Outputs Runner::branch(const Call& call, const Scope& scope) {
  const auto chosen = call.attributes.find(truth(call, call.at(0)) ? "then_branch" : "else_branch");
  if (chosen == call.attributes.end()) call.refuse("a branch is missing");
  return subgraph(chosen->second->g(), {}, scope, call);
}

Outputs Runner::loop(const Call& call, const Scope& scope) {
  const auto body = call.attributes.find("body");
  if (body == call.attributes.end()) call.refuse("its body is missing");
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (call.has(0)) most = ints_of(call.at(0)).at(0);
  bool goes_on = !call.has(1) || truth(call, call.at(1));
  Outputs state(call.in.begin() + std::min<std::ptrdiff_t>(2, std::ssize(call.in)), call.in.end());
  const std::size_t scans = call.outputs >= state.size() ? call.outputs - state.size() : 0;
  std::vector<Outputs> rows(scans);
  for (std::int64_t step = 0; step < most && goes_on; ++step) {
    count_step(call);
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

// Attention over [N, H, T, D], whose scores and shares go through graphs of the node.
Outputs Runner::flex_attention(const Call& call, const Scope& scope) {
  const Array q = call.floating(0);
  Array k = call.floating(1), v = call.floating(2);
  if (q.shape().rank() != 4 || k.shape().rank() != 4 || v.shape().rank() != 4) call.refuse("expected [N, H, T, D]");
  const std::int64_t heads = q.shape()[1], groups = k.shape()[1];
  if (groups < 1 || heads % groups != 0 || v.shape()[1] != groups)
    call.refuse("the heads of the queries are no multiple of those of the keys");
  if (heads != groups) {
    k = repeat_interleave(k, heads / groups, 1);
    v = repeat_interleave(v, heads / groups, 1);
  }
  const Type asked = call.element_type("softmax_precision", Type::none);
  const Dtype precision = asked != Type::none ? dtype_of(asked) : q.dtype() == f64 ? f64 : f32;
  const auto changed = [&](const Array& a, const char* by) {
    const auto graph = call.attributes.find(by);
    if (graph == call.attributes.end()) return a;
    const Outputs made = subgraph(graph->second->g(), {item_of(a)}, scope, call);
    if (made.size() != 1 || sizes_of(made[0]) != sizes_of(item_of(a)) || made[0].type != type_of(precision))
      call.refuse(std::string(by) + " must give one value of its input's size and type");
    return plain(made[0]);
  };
  const double scale = call.real("scale", 1 / std::sqrt(static_cast<double>(q.shape()[3])));
  const Array scores = changed(astype(matmul(q, transpose(k)), precision) * scale, "score_mod");
  const Array shares = changed(softmax(scores), "prob_mod");
  return {item_of(astype(matmul(shares, astype(v, precision)), v.dtype()))};
}

// Before opset 9 all values have a batch in front, and the first input has lengths.
Outputs Runner::scan(const Call& call, const Scope& scope) {
  if (call.opset >= 9) return scanned(call, scope, call.in);
  if (call.has(0)) call.refuse("lengths of the sequences are not supported");
  const Outputs in(call.in.begin() + std::min<std::ptrdiff_t>(1, std::ssize(call.in)), call.in.end());
  if (in.empty() || sizes_of(in[0]).empty() || sizes_of(in[0])[0] < 1) call.refuse("expected values with a batch");
  std::vector<Outputs> samples;
  for (std::int64_t sample = 0; sample < sizes_of(in[0])[0]; ++sample) {
    count_step(call);
    Outputs own;
    for (const Item& item : in) own.push_back(picked(item, 0, sample));
    samples.push_back(scanned(call, scope, own));
  }
  Outputs result;
  for (std::size_t i = 0; i < samples[0].size(); ++i) {
    Outputs row;
    for (const Outputs& sample : samples) row.push_back(sample[i]);
    result.push_back(stacked(row));
  }
  return result;
}

// The states of the body go from step to step; of the other inputs each step has one item of their axis.
Outputs Runner::scanned(const Call& call, const Scope& scope, const Outputs& in) {
  const auto body = call.attributes.find("body");
  const std::int64_t scans = call.integer("num_scan_inputs", 0);
  if (body == call.attributes.end()) call.refuse("its body is missing");
  if (scans < 1 || scans > std::ssize(in)) call.refuse("num_scan_inputs does not fit its inputs");
  const auto first = static_cast<std::size_t>(std::ssize(in) - scans),
             of_body = std::size_t(body->second->g().output_size());
  if (of_body < first) call.refuse("its body has fewer outputs than states");
  const auto list = [&](const char* key, std::size_t size) {
    auto values = call.integers(key, Sizes(size, 0));
    if (values.size() != size) call.refuse(std::string(key) + " has " + std::to_string(values.size()) + " values");
    return values;
  };
  const bool is_old = call.opset < 9;
  const auto axes = list("scan_input_axes", std::size_t(scans)),
             directions = list(is_old ? "directions" : "scan_input_directions", std::size_t(scans)),
             out_axes = list("scan_output_axes", of_body - first),
             out_directions = list("scan_output_directions", of_body - first);
  Outputs state(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(first));
  std::vector<std::size_t> along;
  std::int64_t steps = -1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Sizes sizes = sizes_of(in[first + i]);
    along.push_back(static_cast<std::size_t>(call.axis(axes[i], static_cast<int>(sizes.size()))));
    if (steps >= 0 && sizes[along[i]] != steps) call.refuse("its inputs have different lengths");
    steps = sizes[along[i]];
  }
  std::vector<Outputs> rows(of_body - first);
  for (std::int64_t step = 0; step < steps; ++step) {
    count_step(call);
    Outputs inputs = state;
    for (std::size_t i = 0; i < axes.size(); ++i)
      inputs.push_back(picked(in[first + i], along[i], directions[i] != 0 ? steps - 1 - step : step));
    const Outputs made = subgraph(body->second->g(), inputs, scope, call);
    std::copy_n(made.begin(), first, state.begin());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(made[first + i]);
  }
  Outputs result = state;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) call.refuse("a scan without a step has no scanned output");
    if (out_directions[i] != 0) std::reverse(rows[i].begin(), rows[i].end());
    const Item all = stacked(rows[i]);
    result.push_back(
        first_axis_at(all, static_cast<std::size_t>(call.axis(out_axes[i], static_cast<int>(sizes_of(all).size())))));
  }
  return result;
}

}  // namespace samebytes::onnx
