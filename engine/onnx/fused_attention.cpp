// Attention that a file has in single nodes: recognised when it is read, and one call of the library's when it runs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "onnx/links.h"
#include "onnx/registry.h"
#include "onnx/rewrite.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using ::onnx::NodeProto;

constexpr const char* kNanToZero = "NanToZero";  // the step behind the soft-max, if there is one

bool is_over_last_axis(const NodeProto& softmax, int opset) {
  for (const auto& attribute : softmax.attribute())
    if (attribute.name() == "axis") return attribute.i() == -1 || (opset >= 13 && attribute.i() == 3);
  return opset >= 13;
}

// One step from the scores up to the product: which input it continues with, and what it does.
struct Step {
  int scores = 0;
  std::string kind;
};
std::optional<Step> step_of(const Links& links, int i, const NodeProto& node) {
  for (int input = 0; input < node.input_size(); ++input) {
    const auto above = links.only(node.input(input));
    if (!above) continue;
    const bool is_path = links.is(*above, "MatMul", 2) || links.is(*above, "Mul", 2) || links.is(*above, "Div", 2) ||
                         links.is(*above, "Add", 2) || links.is(*above, "Where", 3);
    if (!is_path) continue;
    if (links.is(i, "Add", 2) || links.is(i, "Mul", 2)) return Step{input, node.op_type()};
    if (links.is(i, "Div", 2) && input == 0) return Step{input, "Div"};
    if (links.is(i, "Where", 3) && input == 1) return Step{input, "Where"};
  }
  return {};
}

void attribute(NodeProto& node, const std::string& name, const std::vector<std::string>& values) {
  auto& made = *node.add_attribute();
  made.set_name(name);
  made.set_type(::onnx::AttributeProto::STRINGS);
  for (const auto& value : values) made.add_strings(value);
}

// The node in place of those that end in this soft-max, and the places of all of them.
struct Fused {
  NodeProto node;
  std::set<int> parts;
  int last = 0;
};
std::optional<Fused> fused(const ::onnx::GraphProto& graph, const Links& links, int softmax) {
  const NodeProto& shares = graph.node(softmax);
  if (shares.output_size() != 1) return {};
  Fused made;
  std::vector<std::string> kinds, operands;
  std::string read = shares.output(0);
  if (const auto safe = links.nan_to_zero(read)) {
    made.parts = {safe->is_nan, safe->where};
    kinds.emplace_back(kNanToZero);
    operands.push_back(graph.node(safe->where).input(1));
    read = graph.node(safe->where).output(0);
  }
  const auto last = links.reader(read);
  if (!last || !links.is(*last, "MatMul", 2) || graph.node(*last).output_size() != 1 ||
      graph.node(*last).input(0) != read)
    return {};
  made.parts.insert({softmax, *last});
  made.last = *last;
  std::string value = shares.input(0);
  for (;;) {
    const auto at = links.only(value);
    if (!at) return {};
    const NodeProto& node = graph.node(*at);
    made.parts.insert(*at);
    if (links.is(*at, "MatMul", 2)) {
      made.node.add_input(node.input(0));
      made.node.add_input(node.input(1));
      break;
    }
    const auto step = step_of(links, *at, node);
    if (!step) return {};
    kinds.push_back(step->kind);
    for (int input = 0; input < node.input_size(); ++input)
      if (input != step->scores) operands.push_back(node.input(input));
    value = node.input(step->scores);
  }
  made.node.add_input(graph.node(*last).input(1));
  for (const auto& operand : operands) made.node.add_input(operand);
  made.node.set_op_type("Attention");
  made.node.set_domain("samebytes");
  made.node.set_name(shares.name());
  made.node.add_output(graph.node(*last).output(0));
  attribute(made.node, "steps", kinds);
  return made;
}

}  // namespace

int fuse_attention(::onnx::GraphProto& graph, int opset) {
  const Links links(graph);
  std::map<int, NodeProto> instead;
  std::set<int> gone;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!links.is(i, "Softmax", 1) || !is_over_last_axis(graph.node(i), opset)) continue;
    const auto made = fused(graph, links, i);
    // What an earlier attention has taken is no part of another one.
    if (!made || std::any_of(made->parts.begin(), made->parts.end(), [&](int part) { return gone.contains(part); }))
      continue;
    gone.insert(made->parts.begin(), made->parts.end());
    instead[made->last] = made->node;
  }
  google::protobuf::RepeatedPtrField<NodeProto> kept;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (const auto at = instead.find(i); at != instead.end())
      *kept.Add() = at->second;
    else if (!gone.contains(i))
      *kept.Add() = graph.node(i);
  }
  graph.mutable_node()->Swap(&kept);
  return static_cast<int>(instead.size());
}

namespace {

// What the steps between the products say, from the first one on.
struct Between {
  Array scale;                           // one number, or undefined
  Array bias;                            // added
  std::optional<std::int64_t> diagonal;  // keys j <= diagonal + i are seen
  Array seen;                            // bool
};

// A mask of the host that leaves each query a key: the diagonal that it is a triangle below, or the mask itself.
bool hides(const Item& mask, Between& result) {
  const Sizes sizes = sizes_of(mask);
  if (!mask.host || sizes.size() < 2 || count(sizes) == 0 || result.seen.defined() || result.diagonal) return false;
  const auto values = ints_of(mask);
  const std::int64_t keys = sizes.back(), queries = sizes[sizes.size() - 2], rows = std::ssize(values) / keys;
  std::optional<std::int64_t> diagonal;
  bool is_triangle = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = values.begin() + row * keys, end = first + keys;
    const std::int64_t seen = std::find(first, end, 0) - first;
    if (std::all_of(first, end, [](std::int64_t value) { return value == 0; })) return false;
    const std::int64_t own = seen - 1 - row % queries;
    if (seen < keys && !diagonal) diagonal = own;
    is_triangle = is_triangle && std::none_of(first + seen, end, [](std::int64_t value) { return value != 0; }) &&
                  (seen == keys ? !diagonal || own <= *diagonal : own == diagonal);
  }
  if (is_triangle && diagonal)
    result.diagonal = diagonal;
  else
    result.seen = plain(mask);
  return true;
}

// False where the steps are another function than the library's.
bool read(const Call& call, Between& result) {
  const auto steps = call.texts("steps");
  std::size_t at = call.in.size();
  constexpr double kHidden = -6e4;  // exp() of less than this beside any score is 0
  // A query without a key gives 0 then, as it does in the library.
  const bool may_hide_all = !steps.empty() && steps[0] == kNanToZero;
  for (std::size_t i = steps.size(); i-- > 0;) {
    const Item& last = call.at(--at);
    if (steps[i] == kNanToZero) {
      if (!is_floating(last.type) || count(sizes_of(last)) != 1 || reals_of(last).at(0) != 0) return false;
      continue;
    }
    if (steps[i] == "Where") {
      const Item& mask = call.at(--at);
      if (!last.array.defined() || count(sizes_of(last)) != 1 || reals_of(last).at(0) > kHidden) return false;
      if (may_hide_all && std::isinf(reals_of(last).at(0)) && !result.seen.defined())
        result.seen = plain(mask);
      else if (!hides(mask, result))
        return false;
      continue;
    }
    if (!is_floating(last.type)) return false;
    if (steps[i] == "Add") {
      result.bias = result.bias.defined() ? result.bias + plain(last) : plain(last);
      continue;
    }
    const bool is_late = result.bias.defined() || result.seen.defined() || result.diagonal;
    if (count(sizes_of(last)) != 1 || is_late) return false;
    const Array scale = reshape(plain(last), Shape{});
    const Array factor = steps[i] == "Div" ? 1.0 / scale : scale;
    result.scale = result.scale.defined() ? result.scale * factor : factor;
  }
  return true;
}

Array written_out(const Call& call) {
  Array scores = matmul(call.array(0), call.array(1)), zero;
  const auto steps = call.texts("steps");
  std::size_t at = call.in.size();
  for (std::size_t i = steps.size(); i-- > 0;) {
    const Array last = call.array(--at);
    if (steps[i] == "Add") scores = scores + last;
    if (steps[i] == "Mul") scores = scores * last;
    if (steps[i] == "Div") scores = scores / last;
    if (steps[i] == "Where") scores = where(call.array(--at), scores, last);
    if (steps[i] == kNanToZero) zero = last;
  }
  const Array shares = softmax(scores);
  return matmul(zero.defined() ? where(not_equal(shares, shares), zero, shares) : shares, call.array(2));
}

// q [N, H, T, D], k [N, H, D, S] and v [N, H, S, E], or one axis N H; then what the steps of `steps` read, the last
// step first.
Outputs attention_of_steps(const Call& call) {
  const Array q = call.floating(0), k = call.floating(1), v = call.floating(2);
  const int rank = q.shape().rank();
  bool is_whole = (rank == 3 || rank == 4) && k.shape().rank() == rank && v.shape().rank() == rank;
  for (int axis = 0; is_whole && axis < rank - 2; ++axis)
    is_whole = q.shape()[axis] == k.shape()[axis] && q.shape()[axis] == v.shape()[axis];
  Between between;
  if (!is_whole || q.size() == 0 || v.size() == 0 || !read(call, between)) return {item_of(written_out(call))};
  const auto heads = [&](const Array& a) { return rank == 4 ? transpose(a, {0, 2, 1, 3}) : unsqueeze(a, 2); };
  const std::int64_t queries = q.shape()[rank - 2], keys = v.shape()[rank - 2];
  AttentionOptions options{.scale = 1.0};
  Array bias = between.bias;
  if (between.seen.defined() && bias.defined())
    bias = where(between.seen, bias, -std::numeric_limits<double>::infinity());
  options.mask = bias.defined() ? bias : between.seen;
  if (options.mask.defined() && rank == 3 && options.mask.shape().rank() == 3)
    options.mask = unsqueeze(options.mask, 1);
  if (options.mask.defined() && options.mask.shape().rank() > 4) return {item_of(written_out(call))};
  options.causal = between.diagonal.has_value();
  if (options.causal) options.offset = *between.diagonal;
  if (k.shape()[rank - 1] != keys || queries < 1) call.refuse("keys and values have different lengths");
  const Array scaled = between.scale.defined() ? q * between.scale : q;
  const Array y = scaled_dot_product_attention(heads(scaled), heads(transpose(k)), heads(v), options);
  return {item_of(rank == 4 ? transpose(y, {0, 2, 1, 3}) : squeeze(y, 2))};
}

}  // namespace

void add_fused(Registry& registry) { registry["samebytes.Attention"] = attention_of_steps; }

}  // namespace samebytes::onnx
