// Elementwise operators: floating ones are library ops and keep the stored order of axes; integers are exact on the
// host.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "onnx/registry.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

template <auto op>
Outputs unary(const Call& call) {
  if (!call.is_floating()) call.refuse("integers are not supported");
  return {ordered(op(call.at(0).array), call.at(0).order)};
}

// Applies `op` to the stored values.
Outputs kept(const Call& call, const std::function<Array(const Array&)>& op) {
  if (!call.is_floating()) call.refuse("integers are not supported");
  return {ordered(op(call.at(0).array), call.at(0).order)};
}

// Both operands in one order: that of the first one that has another than the model's.
struct Pair {
  Array a, b;
  Order order;
};
Pair pair(const Item& a, const Item& b) {
  const Order& order = !a.order.empty() ? a.order : b.order;
  if (order.empty()) return {plain(a), plain(b), {}};
  const auto in_order = [&](const Item& item) {
    Sizes sizes = sizes_of(item);
    if (sizes.size() == order.size()) return stored(item, order);
    if (count(sizes) == 1) return reshape(plain(item), Shape{});
    if (sizes.size() > order.size()) return Array();
    Sizes wide(order.size() - sizes.size(), 1);
    wide.insert(wide.end(), sizes.begin(), sizes.end());
    return stored(item_of(reshape(plain(item), shape_of(wide))), order);
  };
  const Array x = in_order(a), y = in_order(b);
  const bool has_rank = x.defined() && y.defined();
  return has_rank ? Pair{x, y, order} : Pair{plain(a), plain(b), {}};
}

template <class Op>
Outputs binary(const Call& call, Op op) {
  if (call.type(0) != call.type(1))
    call.refuse("inputs are " + name_of(call.type(0)) + " and " + name_of(call.type(1)));
  if (!call.is_floating()) return integer_binary(call);
  const Pair both = pair(call.at(0), call.at(1));
  return {ordered(op(both.a, both.b), both.order)};
}

Outputs add(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return a + b; });
}
Outputs sub(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return a - b; });
}
Outputs mul(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return a * b; });
}
Outputs div(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return a / b; });
}
Outputs equal_to(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return equal(a, b); });
}
Outputs less_than(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return less(a, b); });
}
Outputs less_or_equal(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return less_equal(a, b); });
}
Outputs greater_than(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return greater(a, b); });
}
Outputs greater_or_equal(const Call& call) {
  return binary(call, [](const Array& a, const Array& b) { return greater_equal(a, b); });
}

Outputs mod(const Call& call) {
  if (!call.is_floating()) return integer_binary(call);
  if (call.integer("fmod", 0) != 0) return binary(call, [](const Array& a, const Array& b) { return fmod(a, b); });
  if (call.opset < 28) call.refuse("floating remainders need fmod = 1 before opset 28");
  return binary(call, [](const Array& a, const Array& b) {  // the divisor's sign
    const Array rest = fmod(a, b), zero = full(Shape{}, 0.0, a.dtype());
    const Array is_other = logical_xor(less(rest, zero), less(b, zero));
    return where(logical_and(not_equal(rest, zero), is_other), rest + b, rest);
  });
}

// Integers to floating powers, computed in double and cut to the integers' type.
Outputs whole_powers(const Call& call) {
  const Sizes sizes = broadcast(call.sizes(0), call.sizes(1));
  const auto a = reals_of(call.at(0)), b = reals_of(call.at(1));
  const auto of_a = positions(call.sizes(0), sizes), of_b = positions(call.sizes(1), sizes);
  std::vector<std::int64_t> values(of_a.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = truncated(std::pow(a.at(std::size_t(of_a[i])), b.at(std::size_t(of_b[i]))));
  return {ints_item(values, sizes, call.type())};
}

Outputs power(const Call& call) {
  if (!call.is_floating(0)) return call.is_floating(1) ? whole_powers(call) : integer_binary(call);
  if (count(call.sizes(1)) != 1 || call.rank(1) > call.rank(0))
    return {item_of(power_of(call.array(0), astype(call.array(1), call.array(0).dtype())))};
  const double exponent = reals_of(call.at(1)).at(0);
  return kept(call, [&](const Array& a) { return pow(a, exponent); });
}

// Folds a list of inputs.
template <class Op>
Outputs folded(const Call& call, Op op) {
  Call two = call;
  two.in = {call.at(0)};
  for (std::size_t i = 1; i < call.in.size(); ++i) {
    two.in = {two.in[0], call.at(i)};
    two.in = {op(two).at(0)};
  }
  return two.in;
}
Outputs larger(const Call& call) {
  return folded(
      call, [](const Call& two) { return binary(two, [](const Array& a, const Array& b) { return maximum(a, b); }); });
}
Outputs smaller(const Call& call) {
  return folded(
      call, [](const Call& two) { return binary(two, [](const Array& a, const Array& b) { return minimum(a, b); }); });
}
Outputs total(const Call& call) { return folded(call, add); }
Outputs average(const Call& call) {
  const Item all = folded(call, add).at(0);
  if (!is_floating(all.type)) call.refuse("integers are not supported");
  return {ordered(all.array / static_cast<double>(call.in.size()), all.order)};
}

Outputs identity(const Call& call) { return {call.at(0)}; }

Outputs clipped(const Call& call) {
  double low = call.real("min", -std::numeric_limits<double>::infinity());
  double high = call.real("max", std::numeric_limits<double>::infinity());
  if (!call.is_floating()) {
    auto values = ints_of(call.at(0));
    if (call.type() == Type::u64) call.refuse("uint64 is not supported");
    const std::int64_t least = call.has(1) ? ints_of(call.at(1)).at(0) : std::numeric_limits<std::int64_t>::min();
    const std::int64_t most = call.has(2) ? ints_of(call.at(2)).at(0) : std::numeric_limits<std::int64_t>::max();
    for (auto& value : values) value = std::min(std::max(value, least), most);
    return {ints_item(values, call.sizes(), call.type())};
  }
  if (call.has(1)) low = reals_of(call.at(1)).at(0);
  if (call.has(2)) high = reals_of(call.at(2)).at(0);
  if (low > high) low = high;  // the upper bound wins
  return kept(call, [&](const Array& a) {
    ClipBounds bounds;
    if (std::isfinite(low)) bounds.low = low;
    if (std::isfinite(high)) bounds.high = high;
    return bounds.low || bounds.high ? clip(a, bounds) : a;
  });
}

Outputs leaky(const Call& call) {
  return kept(call, [&](const Array& a) { return leaky_relu(a, call.real("alpha", double(0.01f))); });
}
Outputs parametric(const Call& call) {
  if (!call.is_floating()) call.refuse("integers are not supported");
  const Pair both = pair(call.at(0), call.at(1));
  return {ordered(relu(both.a) - relu(-both.a) * both.b, both.order)};
}
Outputs exponential_linear(const Call& call) {
  return kept(call, [&](const Array& a) { return elu(a, call.real("alpha", 1.0)); });
}
Outputs scaled_linear(const Call& call) {
  const double alpha = call.real("alpha", double(1.67326319217681884765625f));
  const double gamma = call.real("gamma", double(1.05070102214813232421875f));
  return kept(call, [&](const Array& a) { return elu(a, alpha) * gamma; });
}
Outputs celu(const Call& call) {
  const double alpha = call.real("alpha", 1.0);
  return kept(call, [&](const Array& a) { return elu(a / alpha, 1.0) * alpha; });
}
Outputs gelu_of(const Call& call) {
  const bool is_tanh = call.text("approximate", "none") == "tanh";
  return kept(call, [&](const Array& a) { return gelu(a, is_tanh ? GeluForm::tanh : GeluForm::exact); });
}
Outputs hard_sigmoid_of(const Call& call) {
  const double alpha = call.real("alpha", double(0.2f)), beta = call.real("beta", 0.5);
  return kept(call, [&](const Array& a) { return clip(a * alpha + beta, 0.0, 1.0); });
}
Outputs thresholded(const Call& call) {
  const double alpha = call.real("alpha", 1.0);
  return kept(call, [&](const Array& a) { return where(greater(a, full(Shape{}, alpha, a.dtype())), a, a * 0.0); });
}
Outputs swish(const Call& call) {
  const double alpha = call.real("alpha", 1.0);
  return kept(call, [&](const Array& a) { return a * sigmoid(a * alpha); });
}
Outputs gated_swish(const Call& call) {
  if (call.sizes(0) != call.sizes(1)) call.refuse("its inputs have different sizes");
  const double alpha = call.real("alpha", 1.0);
  return binary(call, [&](const Array& a, const Array& b) { return a * sigmoid(a * alpha) * b; });
}
Outputs shrink(const Call& call) {
  const double lambda = call.real("lambd", 0.5), bias = call.real("bias", 0.0);
  return kept(call, [&](const Array& a) {
    const Array zero = a * 0.0;
    return where(less(a, full(Shape{}, -lambda, a.dtype())), a + bias,
                 where(greater(a, full(Shape{}, lambda, a.dtype())), a - bias, zero));
  });
}
Array reciprocal(const Array& a) { return 1.0 / a; }
Array negative(const Array& a) { return -a; }
Array soft_sign(const Array& a) { return a / (abs(a) + 1.0); }
Array soft_plus(const Array& a) { return maximum(a, a * 0.0) + log(exp(-abs(a)) + 1.0); }
Array upward(const Array& a) { return -floor(-a); }
Array tangent(const Array& a) { return sin(a) / cos(a); }
Array gelu_sigmoid(const Array& a) { return mish(a); }
Array not_a_number(const Array& a) { return not_equal(a, a); }

Outputs infinite(const Call& call) {
  const bool high = call.integer("detect_positive", 1) != 0, low = call.integer("detect_negative", 1) != 0;
  const Array a = call.floating();
  const double infinity = std::numeric_limits<double>::infinity();
  if (high && low) return {item_of(equal(abs(a), full(Shape{}, infinity, a.dtype())))};
  if (!high && !low) return {item_of(not_equal(a * 0.0, a * 0.0))};
  return {item_of(equal(a, full(Shape{}, high ? infinity : -infinity, a.dtype())))};
}

Outputs chosen(const Call& call) {
  if (call.is_floating(1)) {
    const Item &a = call.at(1), &b = call.at(2), &mask = call.at(0);
    return {item_of(where(plain(mask), plain(a), plain(b)))};
  }
  if (stays_on_device(call)) return {item_of(where(call.array(0), call.array(1), call.array(2)), call.type(1))};
  const Sizes sizes = broadcast(call.sizes(0), broadcast(call.sizes(1), call.sizes(2)));
  const auto mask = ints_of(call.at(0)), a = ints_of(call.at(1)), b = ints_of(call.at(2));
  const auto of_mask = positions(call.sizes(0), sizes), of_a = positions(call.sizes(1), sizes),
             of_b = positions(call.sizes(2), sizes);
  std::vector<std::int64_t> values(of_mask.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = mask.at(std::size_t(of_mask[i])) != 0 ? a.at(std::size_t(of_a[i])) : b.at(std::size_t(of_b[i]));
  return {ints_item(values, sizes, call.type(1))};
}

// The mask is bool, and of the input's type before opset 10.
Outputs drop(const Call& call) {
  double ratio = call.real("ratio", 0.5);
  if (call.has(1)) ratio = reals_of(call.at(1)).at(0);
  const bool asked = call.opset >= 12 && call.has(2) && ints_of(call.at(2)).at(0) != 0;
  if (!call.training && asked && ratio != 0) call.refuse("training_mode is set, and the model is in evaluation mode");
  const bool drops = call.training && ratio != 0;
  if (call.outputs < 2)
    return {drops ? kept(call, [&](const Array& a) { return dropout(a, ratio); }).at(0) : call.at(0)};
  const Array x = call.floating(), ones = samebytes::ones(x.shape(), x.dtype());
  const Array scales = drops ? dropout(ones, ratio) : ones, mask = greater(scales, 0.0);
  return {drops ? item_of(x * scales) : call.at(0), item_of(call.opset < 10 ? astype(mask, x.dtype()) : mask)};
}

Outputs has_element(const Call& call) { return {ints_item({call.has(0) ? 1 : 0}, {}, Type::boolean)}; }

// 1 above the threshold, else 0.
Outputs binarized(const Call& call) {
  const double threshold = call.real("threshold", 0.0);
  if (call.is_floating()) return kept(call, [&](const Array& a) { return astype(greater(a, threshold), a.dtype()); });
  auto values = ints_of(call.at(0));
  for (auto& value : values) value = static_cast<double>(value) > threshold ? 1 : 0;
  return {ints_item(values, call.sizes(), call.type())};
}

}  // namespace

void add_elementwise(Registry& registry) {
  registry.insert({{"Add", add}, {"Sub", sub}, {"Mul", mul}, {"Div", div}, {"Pow", power}, {"Mod", mod}});
  registry.insert({{"Equal", equal_to}, {"Less", less_than}, {"LessOrEqual", less_or_equal}});
  registry.insert({{"Greater", greater_than}, {"GreaterOrEqual", greater_or_equal}, {"Where", chosen}});
  registry.insert({{"Max", larger}, {"Min", smaller}, {"Sum", total}, {"Mean", average}, {"Clip", clipped}});
  registry.insert({{"Identity", identity}, {"Dropout", drop}, {"IsInf", infinite}, {"IsNaN", unary<not_a_number>}});
  registry.insert({{"Relu", unary<relu>}, {"Sigmoid", unary<sigmoid>}, {"Tanh", unary<samebytes::tanh>}});
  registry.insert({{"Exp", unary<samebytes::exp>}, {"Log", unary<samebytes::log>}, {"Sqrt", unary<samebytes::sqrt>}});
  registry.insert({{"Sin", unary<samebytes::sin>}, {"Cos", unary<samebytes::cos>}, {"Tan", unary<tangent>}});
  registry.insert({{"Floor", unary<samebytes::floor>}, {"Ceil", unary<upward>}, {"Round", unary<samebytes::round>}});
  registry.insert({{"Erf", unary<samebytes::erf>}, {"Reciprocal", unary<reciprocal>}});
  registry.insert({{"Softsign", unary<soft_sign>}, {"Softplus", unary<soft_plus>}, {"Mish", unary<gelu_sigmoid>}});
  registry.insert({{"HardSwish", unary<hard_swish>}, {"LeakyRelu", leaky}, {"PRelu", parametric}});
  registry.insert({{"Elu", exponential_linear}, {"Selu", scaled_linear}, {"Celu", celu}, {"Gelu", gelu_of}});
  registry.insert({{"HardSigmoid", hard_sigmoid_of}, {"ThresholdedRelu", thresholded}, {"Shrink", shrink}});
  registry.insert({{"Swish", swish},
                   {"SwiGLU", gated_swish},
                   {"OptionalHasElement", has_element},
                   {"OptionalGetElement", identity}});
  registry.insert({{"ai.onnx.ml.Binarizer", binarized}});
  const auto signless = [](const Call& call) -> Outputs {
    if (call.is_floating()) {
      if (call.op == "Abs") return unary<samebytes::abs>(call);
      return call.op == "Neg" ? unary<negative>(call) : unary<samebytes::sign>(call);
    }
    if (stays_on_device(call) && call.op != "Sign")
      return {item_of(call.op == "Neg" ? 0 - call.array() : abs(call.array()), call.type())};
    auto values = ints_of(call.at(0));
    for (auto& value : values) {
      const bool is_below = value < 0 && call.type() != Type::u64;
      if (call.op == "Sign")
        value = value == 0 ? 0 : is_below ? -1 : 1;
      else if (call.op == "Neg" || is_below)
        value = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));
    }
    return {ints_item(values, call.sizes(), call.type())};
  };
  registry.insert({{"Abs", signless}, {"Neg", signless}, {"Sign", signless}});
}

}  // namespace samebytes::onnx
