// Graphs of 8-bit numbers as ONNX Runtime writes them ("QDQ"): every operator stays one of floating values, behind
// pairs of a QuantizeLinear and a DequantizeLinear. Pairs are recognised when the file is read and round on the device;
// a product or convolution with an int8 weight multiplies integers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "onnx/links.h"
#include "onnx/registry.h"
#include "onnx/settled.h"
#include "onnx/traced.h"
#include "onnx/windows.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;
using ::onnx::NodeProto;

// What a pair makes of x: scale clamp(round(x / scale), lowest, highest).
struct Steps {
  float scale = 1;
  Int lowest = 0, highest = 0;
  Type to = Type::f32;
};

std::optional<Int8Range> range_of(const Steps& steps) {
  if (steps.to != Type::f32 || steps.highest - steps.lowest != 255) return {};
  const float low = steps.scale * static_cast<float>(steps.lowest), high = low + 255.0F * steps.scale;
  const float scale = (high - low) / 255.0F, zero = std::nearbyint(-low / scale);  // as the kernels have them
  constexpr float kRounding = 4 * std::numeric_limits<float>::epsilon();
  const bool is_same = std::fabs(scale - steps.scale) <= kRounding * steps.scale &&
                       zero == static_cast<float>(-steps.lowest) && std::isnormal(scale) && std::isfinite(high);
  return is_same ? std::optional(Int8Range{low, high}) : std::nullopt;
}

void put(NodeProto& node, const char* name, ::onnx::AttributeProto::AttributeType type, Int whole, float real) {
  auto& made = *node.add_attribute();
  made.set_name(name);
  made.set_type(type);
  if (type == ::onnx::AttributeProto::FLOAT)
    made.set_f(real);
  else
    made.set_i(whole);
}
void put(NodeProto& node, const Steps& steps) {
  put(node, "input_scale", ::onnx::AttributeProto::FLOAT, 0, steps.scale);
  put(node, "lowest", ::onnx::AttributeProto::INT, steps.lowest, 0);
  put(node, "highest", ::onnx::AttributeProto::INT, steps.highest, 0);
  put(node, "to", ::onnx::AttributeProto::INT, static_cast<Int>(steps.to), 0);
}
Steps steps_of(const Call& call) {
  const Steps steps{static_cast<float>(call.real("input_scale", 1)), call.integer("lowest", 0),
                    call.integer("highest", 0), call.element_type("to", Type::f32)};
  if (!is_floating(steps.to)) call.refuse("expected a floating result");
  return steps;
}

// The integers that each channel of the result multiplies: [N, C, taps...] -> [N, taps..., C]; with `turned` a matrix
// [K, N] -> [N, K].
std::vector<std::int8_t> rows_of(const Tensor& weight, bool turned) {
  const auto* const from = reinterpret_cast<const std::int8_t*>(weight.bytes.data());
  const Int all = count(weight.sizes), n = weight.sizes[turned ? 1 : 0], k = all / n;
  const Int inner = turned ? k : weight.sizes[1], taps = k / inner;
  std::vector<std::int8_t> rows;
  rows.reserve(static_cast<std::size_t>(all));
  for (Int j = 0; j < n; ++j)
    for (Int t = 0; t < taps; ++t)
      for (Int c = 0; c < inner; ++c) rows.push_back(from[turned ? c * n + j : j * k + c * taps + t]);
  return rows;
}

class Fuser {
 public:
  Fuser(::onnx::GraphProto& graph, Constants& constants, std::size_t& bytes_left)
      : graph_(graph), constants_(constants), bytes_left_(bytes_left), links_(graph) {}

  int run() {
    for (int i = 0; i < graph_.node_size(); ++i) round(i);
    int found = 0;
    for (int i = 0; i < graph_.node_size(); ++i) found += multiply(i) ? 1 : 0;
    drop_unread();
    return found;
  }

 private:
  static std::string input(const NodeProto& node, int i) { return i < node.input_size() ? node.input(i) : ""; }
  static Int number(const NodeProto& node, const char* name, Int otherwise) {
    const auto* const found = attribute_of(node, name);
    return found == nullptr ? otherwise : found->i();
  }
  bool is(int i, const char* op) const {
    const NodeProto& node = graph_.node(i);
    return is_standard(node.domain()) && node.op_type() == op && node.input_size() >= 2 && node.output_size() == 1;
  }
  std::optional<int> maker(const std::string& value, const char* op) const {
    const auto i = links_.maker(value);
    return i && is(*i, op) ? i : std::nullopt;
  }
  // Where they are one constant number; a zero point that is left out is 0.
  std::optional<double> scale_of(const NodeProto& node) const {
    const Item* const item = constant_of(constants_, input(node, 1));
    if (item == nullptr || !is_floating(item->type) || item->type == Type::f64 || count(sizes_of(*item)) != 1)
      return {};
    return reals_of(*item).at(0);
  }
  std::optional<Int> zero_of(const NodeProto& node) const {
    if (input(node, 2).empty()) return 0;
    const Item* const item = constant_of(constants_, input(node, 2));
    if (item == nullptr || is_floating(item->type) || count(sizes_of(*item)) != 1) return {};
    return ints_of(*item).at(0);
  }
  Type type_of_quantised(const NodeProto& node) const {
    if (!input(node, 2).empty()) return constants_.at(input(node, 2)).type;
    const Int asked = number(node, "output_dtype", 0);
    if (asked < 0 || asked > 255) return Type::none;
    return asked == 0 ? Type::u8 : static_cast<Type>(asked);
  }

  std::optional<Steps> steps_of_pair(const NodeProto& up, const NodeProto& down) const {
    const auto scale = scale_of(up);
    const auto zero = zero_of(up);
    if (!scale || !zero || scale != scale_of(down) || zero != zero_of(down)) return {};
    if (!std::isfinite(*scale) || !(*scale > 0)) return {};
    const Type type = type_of_quantised(up);
    const bool is_narrow = type == Type::u8 || type == Type::i8;
    if (!is_narrow && type != Type::u16 && type != Type::i16) return {};
    const Int least = type == Type::i8 ? -128 : type == Type::i16 ? -32768 : 0, values = is_narrow ? 256 : 65536;
    return Steps{static_cast<float>(*scale), least - *zero, least + values - 1 - *zero,
                 constant_of(constants_, input(down, 1))->type};
  }

  // A DequantizeLinear that is the second of a pair.
  void round(int i) {
    if (!is(i, "DequantizeLinear")) return;
    NodeProto& node = *graph_.mutable_node(i);
    const auto up = maker(node.input(0), "QuantizeLinear");
    if (!up || number(node, "block_size", 0) != 0 || number(graph_.node(*up), "block_size", 0) != 0) return;
    const auto steps = steps_of_pair(graph_.node(*up), node);
    if (!steps || number(node, "output_dtype", static_cast<Int>(steps->to)) != static_cast<Int>(steps->to)) return;
    const std::string x = graph_.node(*up).input(0);
    spare_.insert({node.input(0), node.output(0)});
    rounded_[node.output(0)] = {x, *steps};
    node.set_op_type("RoundToScale");
    node.set_domain("samebytes");
    node.clear_input();
    node.add_input(x);
    node.clear_attribute();
    put(node, *steps);
  }

  bool is_without_zero(const NodeProto& down) const {
    if (input(down, 2).empty()) return true;
    const Item* const zero = constant_of(constants_, input(down, 2));
    if (zero == nullptr || is_floating(zero->type)) return false;
    const auto zeros = ints_of(*zero);
    return std::all_of(zeros.begin(), zeros.end(), [](Int one) { return one == 0; });
  }

  // The weight that a DequantizeLinear gives, packed, if the kernels can have it; `turned` says that the file has the
  // channels of the result last.
  std::shared_ptr<const Int8Weight> weight_of(const NodeProto& down, bool turned) {
    const Item* const item = constant_of(constants_, input(down, 0));
    const Item* const scale = constant_of(constants_, input(down, 1));
    if (item == nullptr || item->type != Type::i8 || !item->host || scale == nullptr || scale->type != Type::f32 ||
        number(down, "block_size", 0) != 0 || number(down, "output_dtype", 1) != 1 || !is_without_zero(down))
      return {};
    const Sizes &sizes = item->host->sizes, of_scale = sizes_of(*scale);
    const auto rank = std::ssize(sizes);
    if (rank < 2 || rank > 4 || count(sizes) == 0) return {};
    const Int axis = turned ? 1 : 0, asked = number(down, "axis", 1);
    const Int channels = sizes.at(static_cast<std::size_t>(axis)), k = count(sizes) / channels;
    const bool is_each = of_scale == Sizes{channels} && (asked < 0 ? asked + rank : asked) == axis;
    constexpr Int kMostProducts = 65536;  // of int8_weight()
    if (k > kMostProducts || (count(of_scale) != 1 && !is_each)) return {};
    const auto most_bytes = static_cast<std::size_t>((channels + 31) * (k + 63));  // with what fills up its panels
    if (most_bytes > bytes_left_) return {};
    const auto reals = reals_of(*scale);
    const auto values = rows_of(*item->host, turned);
    if (!std::all_of(reals.begin(), reals.end(), [](double one) { return std::isfinite(one); }) ||
        std::find(values.begin(), values.end(), std::numeric_limits<std::int8_t>::min()) != values.end())
      return {};
    bytes_left_ -= most_bytes;
    Sizes shape{channels, k};
    if (rank > 2) {
      shape.assign(sizes.begin() + 2, sizes.end());
      shape.insert(shape.end(), {sizes[1], channels});
    }
    const std::vector<float> scales(reals.begin(), reals.end());
    return std::make_shared<const Int8Weight>(int8_weight(values, scales, shape_of(shape)));
  }

  bool multiply(int i) {
    NodeProto& node = *graph_.mutable_node(i);
    const std::string op = node.op_type();
    const bool is_conv = op == "Conv", is_gemm = op == "Gemm";
    if (!is_standard(node.domain()) || (!is_conv && !is_gemm && op != "MatMul") || node.input_size() < 2 ||
        node.input_size() > (op == "MatMul" ? 2 : 3) || node.output_size() != 1)
      return false;
    const auto x = rounded_.find(node.input(0));
    const auto down = maker(node.input(1), "DequantizeLinear");
    if (x == rounded_.end() || !down || !range_of(x->second.steps)) return false;
    const auto one = [&](const char* name) {
      const auto* const found = attribute_of(node, name);
      return found == nullptr || found->f() == 1;
    };
    if (is_conv && number(node, "group", 1) != 1) return false;
    if (is_gemm && (number(node, "transA", 0) != 0 || !one("alpha") || !one("beta"))) return false;
    const Item* const from = constant_of(constants_, input(graph_.node(*down), 0));
    if (from == nullptr || (sizes_of(*from).size() == 2) == is_conv) return false;
    const bool turned = !is_conv && number(node, "transB", 0) == 0;
    const std::string name = node.input(1) + (turned ? "\1turned" : "\1int8");  // no file has control characters
    if (!constants_.contains(name)) {
      Item item = *from;
      item.int8 = weight_of(graph_.node(*down), turned);
      if (!item.int8) return false;
      constants_[name] = std::move(item);
    }
    spare_.insert(node.input(1));
    node.set_op_type("Int8" + op);
    node.set_domain("samebytes");
    node.set_input(0, x->second.x);
    node.set_input(1, name);
    put(node, x->second.steps);
    return true;
  }

  // Nodes of pairs and weights that nobody reads any more.
  void drop_unread() {
    leave_out_unread(graph_, [&](int i) { return spare_.contains(graph_.node(i).output(0)); });
  }

  struct Rounded {
    std::string x;
    Steps steps;
  };
  ::onnx::GraphProto& graph_;
  Constants& constants_;
  std::size_t& bytes_left_;
  const Links links_;
  std::map<std::string, Rounded> rounded_;
  std::set<std::string> spare_;
};

// Of any layout, which the result keeps.
Item rounded(const Item& x, const Steps& steps) {
  const Array values = x.host ? plain(x) : x.array;
  const double scale = static_cast<double>(steps.scale);
  const Array whole = clip(samebytes::round(astype(values, f32) / scale), static_cast<double>(steps.lowest),
                           static_cast<double>(steps.highest));
  return ordered(astype(whole * scale, dtype_of(steps.to)), x.host ? Order{} : x.order);
}

Outputs rounded_to_scale(const Call& call) { return {rounded(call.at(0), steps_of(call))}; }

// What the DequantizeLinear gives that stood there.
Array weight_in_f32(const Item& item, bool has_channels_first) {
  const auto& bytes = item.host->bytes;
  const std::span<const std::uint8_t> all(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const Array values = astype(samebytes::array(all, shape_of(item.host->sizes)), f32);
  Sizes of_scale(item.host->sizes.size(), 1);
  (has_channels_first ? of_scale.front() : of_scale.back()) = item.int8->scales.size();
  return where(greater(values, 127.0), values - 256.0, values) * reshape(item.int8->scales, shape_of(of_scale));
}

// A Conv, Gemm or MatMul of the values that are rounded and the weight as a DequantizeLinear gives it: for gradients,
// for files, and for what the kernels do not have.
Outputs in_f32(const Call& call, const std::string& op, const Steps& steps) {
  Call own = call;
  own.op = op;
  own.in[0] = rounded(call.at(0), steps);
  own.in[1] = item_of(weight_in_f32(call.at(1), op == "Conv" || call.integer("transB", 0) != 0));
  return registry().at(op)(own);
}

Outputs multiplied(const Call& call) {
  const std::string op = call.op.substr(std::string("Int8").size());
  const Item& item = call.at(1);
  if (!item.int8) call.refuse("its weight was not prepared; no file has this operator");
  const Steps steps = steps_of(call);
  const auto range = range_of(steps);
  const bool needs_f32 = call.training || is_grad_enabled() || is_tracing() || !range || call.type() != Type::f32;
  const Sizes of_weight = sizes_of(item);
  const std::size_t rank = call.sizes().size();
  const bool fits = op == "MatMul" ? rank > 0 : rank == of_weight.size();
  if (needs_f32 || !fits) return in_f32(call, op, steps);
  const Int8Weight& weight = *item.int8;
  const Array bias = call.optional(2);
  if (op == "Conv") {
    const Windows w = windows(call, {of_weight.begin() + 2, of_weight.end()});
    const Order order = channels_last(rank);
    const Array x = stored(call.at(0), order);
    return {ordered(rank == 3 ? int8_conv1d(x, weight, bias, conv1d_options(w, 1), range)
                              : int8_conv2d(x, weight, bias, conv2d_options(w, 1), range),
                    order)};
  }
  const bool is_row = bias.defined() && bias.shape() == Shape{weight.shape[0]};
  const Array y = int8_linear(call.array(), weight, is_row ? bias : Array(), range);
  return {item_of(bias.defined() && !is_row ? y + bias : y)};
}

}  // namespace

int fuse_quantised(::onnx::GraphProto& graph, Constants& constants, std::size_t& bytes_left) {
  const NoGrad no_grad;
  return Fuser(graph, constants, bytes_left).run();
}

void add_int8(Registry& registry) {
  registry.insert({{"samebytes.RoundToScale", rounded_to_scale}, {"samebytes.Int8Conv", multiplied}});
  registry.insert({{"samebytes.Int8Gemm", multiplied}, {"samebytes.Int8MatMul", multiplied}});
}

}  // namespace samebytes::onnx
