#include "onnx/settled.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "onnx/call.h"
#include "onnx/links.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {

const Item* constant_of(const Constants& constants, const std::string& name) {
  const auto at = constants.find(name);
  return at == constants.end() || !at->second.defined() ? nullptr : &at->second;
}

namespace {

// The one floating number that a value is.
std::optional<double> number_of(const Constants& constants, const std::string& name) {
  const Item* const item = constant_of(constants, name);
  if (item == nullptr || !is_floating(item->type)) return {};
  const Sizes sizes = sizes_of(*item);
  if (sizes.size() > 1 || count(sizes) != 1) return {};
  return reals_of(*item).at(0);
}

bool is_number(const Constants& constants, const std::string& name, double value) {
  const auto number = number_of(constants, name);
  return number && *number == value;
}

// Of a node with two inputs, the one that is not this number.
std::optional<std::string> beside_number(const ::onnx::NodeProto& node, const Constants& constants, double value) {
  for (int i = 0; i < 2; ++i)
    if (is_number(constants, node.input(1 - i), value)) return node.input(i);
  return {};
}

// A Clip to 0 .. 6, by inputs or by attributes.
bool clips_to_six(const ::onnx::NodeProto& node, const Constants& constants) {
  if (node.op_type() != "Clip" || !is_standard(node.domain())) return false;
  if (node.input_size() == 3) return is_number(constants, node.input(1), 0) && is_number(constants, node.input(2), 6);
  const auto *low = attribute_of(node, "min"), *high = attribute_of(node, "max");
  return node.input_size() == 1 && low != nullptr && high != nullptr && low->f() == 0 && high->f() == 6;
}

// [..., K]: the numbers that an operand has for each of the K channels of [N, K, ...], or the one that it has.
std::optional<Array> of_channels(const Item* item, std::int64_t channels, std::size_t rank) {
  if (item == nullptr || !is_floating(item->type)) return {};
  const Sizes sizes = sizes_of(*item);
  if (sizes.size() > rank) return {};
  if (count(sizes) == 1) return reshape(plain(*item), Shape{1});
  const std::size_t behind = rank - 2;  // axes behind the channels
  if (sizes.size() < behind + 1) return {};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != (i + behind + 1 == sizes.size() ? channels : 1)) return {};
  return reshape(plain(*item), Shape{channels});
}

// A convolution while things are folded into it: [taps..., C, K] and [K].
struct Folded {
  Array filter, bias;
  std::int64_t channels = 0;
  std::size_t rank = 0;

  void scale(const Array& by) {
    filter = filter * by;
    if (bias.defined()) bias = bias * by;
  }
  void shift(const Array& by) {
    bias = bias.defined() ? bias + by : by.size() == channels ? by : broadcast_to(by, Shape{channels});
  }
};

// The convolution of a node, its own norm folded in.
std::optional<Folded> folded_of(const ::onnx::NodeProto& node, const Constants& constants) {
  const bool is_plain = is_standard(node.domain()) && node.op_type() == "Conv",
             has_norm = node.domain() == "samebytes" && node.op_type() == "ConvBatchNormalization";
  if ((!is_plain && !has_norm) || node.output_size() != 1) return {};
  const int own = node.input_size() - (has_norm ? 4 : 0);
  if (own < 2 || own > 3) return {};
  std::vector<const Item*> items;
  for (int i = 1; i < node.input_size(); ++i) {
    if (i == 2 && own == 3 && node.input(i).empty()) {
      items.push_back(nullptr);
      continue;
    }
    const Item* const item = constant_of(constants, node.input(i));
    if (item == nullptr || item->type != Type::f32 || item->array.size() == 0) return {};
    items.push_back(item);
  }
  Folded made;
  made.rank = sizes_of(*items[0]).size();
  if (made.rank < 3 || made.rank > 5) return {};
  made.filter = stored(*items[0], taps_first(made.rank));
  made.channels = made.filter.shape().back();
  if (own == 3 && items[1] != nullptr) made.bias = plain(*items[1]);
  const auto is_row = [&](const Array& a) { return a.shape() == Shape{made.channels}; };
  if (made.bias.defined() && !is_row(made.bias)) return {};
  if (!has_norm) return made;
  const auto* const training = attribute_of(node, "training_mode");
  if (training != nullptr && training->i() != 0) return {};
  const std::size_t first = items.size() - 4;
  const Array scale = plain(*items[first]), shift = plain(*items[first + 1]), mean = plain(*items[first + 2]),
              variance = plain(*items[first + 3]);
  if (!is_row(scale) || !is_row(shift) || !is_row(mean) || !is_row(variance)) return {};
  const auto* const eps = attribute_of(node, "epsilon");
  const Array by = scale * rsqrt(variance + (eps != nullptr ? static_cast<double>(eps->f()) : double(1e-5F)));
  made.scale(by);
  made.shift(shift - mean * by);
  return made;
}

// Folds a node that reads the convolution's value `from`; false where it is none that can be.
bool fold(Folded& made, const ::onnx::NodeProto& node, const std::string& from, const Constants& constants) {
  if (!is_standard(node.domain()) || node.input_size() != 2 || node.output_size() != 1) return false;
  const bool is_first = node.input(0) == from;
  const std::string& op = node.op_type();
  const bool keeps_sides = op == "Sub" || op == "Div";
  if ((op != "Mul" && op != "Add" && !keeps_sides) || (keeps_sides && !is_first)) return false;
  const Item* const item = constant_of(constants, node.input(is_first ? 1 : 0));
  const auto other = of_channels(item, made.channels, made.rank);
  if (!other || other->dtype() != made.filter.dtype()) return false;
  if (op == "Mul") made.scale(*other);
  if (op == "Div") made.scale(1.0 / *other);
  if (op == "Add") made.shift(*other);
  if (op == "Sub") made.shift(-*other);
  return true;
}

}  // namespace

int fuse_hard_swish(::onnx::GraphProto& graph, const Constants& constants) {
  const Links links(graph);
  std::set<int> gone;
  int found = 0;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!links.is(i, "Div", 2) || !is_number(constants, graph.node(i).input(1), 6)) continue;
    const auto product = links.only(graph.node(i).input(0));
    if (!product || !links.is(*product, "Mul", 2)) continue;
    for (int side = 0; side < 2; ++side) {
      const std::string& x = graph.node(*product).input(side);
      const auto clip = links.only(graph.node(*product).input(1 - side));
      if (!clip || !clips_to_six(graph.node(*clip), constants)) continue;
      const auto sum = links.only(graph.node(*clip).input(0));
      if (!sum || !links.is(*sum, "Add", 2) || beside_number(graph.node(*sum), constants, 3) != x) continue;
      gone.insert({*product, *clip, *sum});
      auto& node = *graph.mutable_node(i);
      const std::string kept = x;
      node.set_op_type("HardSwish");
      node.clear_input();
      node.add_input(kept);
      ++found;
      break;
    }
  }
  leave_out(graph, gone);
  return found;
}

int fuse_layer_norms(::onnx::GraphProto& graph, const Constants& constants, const std::map<std::string, Sizes>& sizes) {
  const Links links(graph);
  const auto is_row = [&](const std::string& name) {  // and no single number
    const Item* const item = constant_of(constants, name);
    const auto at = sizes.find(name);
    if (item == nullptr && at == sizes.end()) return false;
    const Sizes own = item != nullptr ? sizes_of(*item) : at->second;
    return own.size() == 1 && own[0] > 1 && (item == nullptr || is_floating(item->type));
  };
  const auto is_mean = [&](std::optional<int> i) {
    if (!i || !is_standard(graph.node(*i).domain()) || graph.node(*i).op_type() != "ReduceMean") return false;
    const auto& node = graph.node(*i);
    const auto *keeps = attribute_of(node, "keepdims"), *axes = attribute_of(node, "axes");
    if (keeps != nullptr && keeps->i() != 1) return false;
    if (axes != nullptr) return node.input_size() == 1 && axes->ints_size() == 1 && axes->ints(0) == -1;
    const Item* const item = node.input_size() == 2 ? constant_of(constants, node.input(1)) : nullptr;
    return item != nullptr && !is_floating(item->type) && ints_of(*item) == std::vector<std::int64_t>{-1};
  };
  // The value whose mean is taken from it by this node.
  const auto centred = [&](std::optional<int> i) -> std::optional<std::string> {
    if (!i || !links.is(*i, "Sub", 2)) return {};
    const auto mean = links.maker(graph.node(*i).input(1));
    const std::string& x = graph.node(*i).input(0);
    return is_mean(mean) && graph.node(*mean).input(0) == x ? std::optional(x) : std::nullopt;
  };
  const auto squared = [&](std::optional<int> i) -> std::optional<int> {
    if (!i) return {};
    const auto& node = graph.node(*i);
    const bool is_square = (links.is(*i, "Pow", 2) && is_number(constants, node.input(1), 2)) ||
                           (links.is(*i, "Mul", 2) && node.input(0) == node.input(1));
    return is_square ? links.maker(node.input(0)) : std::nullopt;
  };
  int found = 0;
  std::set<int> gone;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (!links.is(i, "Div", 2) || graph.node(i).output_size() != 1) continue;
    const auto x = centred(links.maker(graph.node(i).input(0)));
    const auto root = links.only(graph.node(i).input(1));
    if (!x || !root || !links.is(*root, "Sqrt", 1)) continue;
    const auto sum = links.only(graph.node(*root).input(0));
    if (!sum || !links.is(*sum, "Add", 2)) continue;
    for (int side = 0; side < 2; ++side) {
      const auto eps = number_of(constants, graph.node(*sum).input(1 - side));
      const auto variance = links.only(graph.node(*sum).input(side));
      if (!eps || !is_mean(variance)) continue;
      const auto square = links.only(graph.node(*variance).input(0));
      if (centred(squared(square)) != x) continue;
      const auto product = links.reader(graph.node(i).output(0));
      if (!product || !links.is(*product, "Mul", 2) || graph.node(*product).output_size() != 1) continue;
      const auto shift = links.reader(graph.node(*product).output(0));
      if (!shift || !links.is(*shift, "Add", 2)) continue;
      const auto other = [&](int node, const std::string& value) {
        return graph.node(node).input(graph.node(node).input(0) == value ? 1 : 0);
      };
      const std::string scale = other(*product, graph.node(i).output(0)),
                        bias = other(*shift, graph.node(*product).output(0));
      const std::string& input = *x;
      if (!is_row(scale) || !is_row(bias)) continue;
      gone.insert({i, *root, *sum, *variance, *square, *product});
      auto& node = *graph.mutable_node(*shift);
      node.set_op_type("LayerNormalization");
      node.clear_input();
      for (const std::string& name : {input, scale, bias}) node.add_input(name);
      auto& epsilon = *node.add_attribute();
      epsilon.set_name("epsilon");
      epsilon.set_type(::onnx::AttributeProto::FLOAT);
      epsilon.set_f(static_cast<float>(*eps));
      ++found;
      break;
    }
  }
  leave_out(graph, gone);
  // The means and differences that nobody reads any more.
  if (found > 0) leave_out_unread(graph, [&](int node) { return links.is(node, "Sub", 2) || is_mean(node); });
  return found;
}

int fold_into_filters(::onnx::GraphProto& graph, Constants& constants) {
  const NoGrad no_grad;
  const Links links(graph);
  std::set<int> gone;
  int folded = 0;
  for (int i = 0; i < graph.node_size(); ++i) {
    auto made = folded_of(graph.node(i), constants);
    if (!made) continue;
    auto& node = *graph.mutable_node(i);
    int taken = node.domain() == "samebytes" ? 1 : 0;
    std::string value = node.output(0);
    for (auto next = links.reader(value); next && fold(*made, graph.node(*next), value, constants);
         next = links.reader(value)) {
      gone.insert(*next);
      value = graph.node(*next).output(0);
      ++taken;
    }
    if (taken == 0) continue;
    folded += taken;
    const auto put = [&](const char* what, Item item) {  // names with control characters are no file's
      std::string name = value + what;
      item.array.eval();
      constants[name] = std::move(item);
      return name;
    };
    const std::string input = node.input(0);
    node.set_op_type("Conv");
    node.clear_domain();
    node.clear_input();
    node.add_input(input);
    node.add_input(put("\1filter", ordered(contiguous(made->filter), taps_first(made->rank))));
    if (made->bias.defined()) node.add_input(put("\1bias", item_of(contiguous(made->bias))));
    node.set_output(0, value);
  }
  leave_out(graph, gone);
  return folded;
}

int turn_filters(const ::onnx::GraphProto& graph, Constants& constants) {
  std::set<std::string> filters, others;
  const auto look = [&](const auto& self, const ::onnx::GraphProto& part) -> void {
    for (const auto& node : part.node()) {
      const bool is_conv =
          is_standard(node.domain()) && (node.op_type() == "Conv" || node.op_type() == "ConvTranspose");
      for (int i = 0; i < node.input_size(); ++i) (is_conv && i == 1 ? filters : others).insert(node.input(i));
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) self(self, attribute.g());
    }
    for (const auto& output : part.output()) others.insert(output.name());
  };
  look(look, graph);
  const NoGrad no_grad;
  int turned = 0;
  for (const std::string& name : filters) {
    const auto at = constants.find(name);
    if (at == constants.end() || others.contains(name) || !is_floating(at->second.type)) continue;
    const std::size_t rank = sizes_of(at->second).size();
    if (rank < 3 || rank > 5 || at->second.order == taps_first(rank) || at->second.array.size() == 0) continue;
    Item item = ordered(contiguous(stored(at->second, taps_first(rank))), taps_first(rank), at->second.type);
    item.array.eval();
    at->second = std::move(item);
    ++turned;
  }
  return turned;
}

void drop_unread(const ::onnx::GraphProto& graph, const std::set<std::string>& others, Constants& constants) {
  std::set<std::string> read = others;
  const auto look = [&](const auto& self, const ::onnx::GraphProto& part) -> void {
    for (const auto& node : part.node()) {
      read.insert(node.input().begin(), node.input().end());
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) self(self, attribute.g());
    }
    for (const auto& output : part.output()) read.insert(output.name());
  };
  look(look, graph);
  std::erase_if(constants, [&](const auto& one) { return !read.contains(one.first); });
}

}  // namespace samebytes::onnx
