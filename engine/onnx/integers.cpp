// Integers and bools on the host: arithmetic, comparison, logic and bits, exact in their own type; and casts.
#include <algorithm>

#include "onnx/registry.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;
using Bits = std::uint64_t;

Int power(Int base, Int exponent, const Call& call) {
  if (exponent < 0) call.refuse("an integer to a negative power is not supported");
  Bits result = 1, square = static_cast<Bits>(base);
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2 == 1) result *= square;
  return static_cast<Int>(result);
}

Int shifted(Int a, Int b, bool is_left, Type type) {
  const bool is_below_zero = !is_unsigned(type) && a < 0;
  if (b < 0 || b >= 8 * static_cast<Int>(bytes_of(type))) return !is_left && is_below_zero ? -1 : 0;
  if (!is_left && is_below_zero) return a >> b;
  return static_cast<Int>(is_left ? static_cast<Bits>(a) << b : static_cast<Bits>(a) >> b);
}

Int arithmetic(const Call& call, Int a, Int b, bool is_wide) {
  const std::string& op = call.op;
  if (op == "Add" || op == "Sum") return static_cast<Int>(static_cast<Bits>(a) + static_cast<Bits>(b));
  if (op == "Sub") return static_cast<Int>(static_cast<Bits>(a) - static_cast<Bits>(b));
  if (op == "Mul") return static_cast<Int>(static_cast<Bits>(a) * static_cast<Bits>(b));
  if (op == "Pow") return power(a, b, call);
  if (op == "Max") return (is_wide ? Bits(a) < Bits(b) : a < b) ? b : a;
  if (op == "Min") return (is_wide ? Bits(a) < Bits(b) : a < b) ? a : b;
  if (op == "BitwiseAnd" || op == "And") return a & b;
  if (op == "BitwiseOr" || op == "Or") return a | b;
  if (op == "BitwiseXor" || op == "Xor") return a ^ b;
  if (op == "BitShift") return shifted(a, b, call.text("direction", "") == "LEFT", call.type());
  if (op == "Div" || op == "Mod") {
    if (b == 0) call.refuse("an integer is divided by zero");
    if (is_wide) return static_cast<Int>(op == "Div" ? Bits(a) / Bits(b) : Bits(a) % Bits(b));
    if (b == -1) return op == "Div" ? static_cast<Int>(Bits{0} - Bits(a)) : 0;
    if (op == "Div") return a / b;
    const Int rest = a % b;
    return call.integer("fmod", 0) == 0 && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  call.refuse("integers are not supported");
}

bool is_comparison(const std::string& op) {
  return op == "Equal" || op == "Less" || op == "LessOrEqual" || op == "Greater" || op == "GreaterOrEqual";
}

Int compared(const std::string& op, Int a, Int b, bool is_wide) {
  const bool is_less = is_wide ? Bits(a) < Bits(b) : a < b;
  if (op == "Equal") return a == b;
  if (op == "Less") return is_less;
  if (op == "LessOrEqual") return is_less || a == b;
  if (op == "Greater") return !is_less && a != b;
  return !is_less;
}

// Whether the device computes with these inputs: one of them is there, and those of the host fit into 32 bits.
bool is_on_device(const Call& call) {
  bool any = false;
  for (const Item& item : call.in) {
    if (!item.host) {
      any = any || item.defined();
      continue;
    }
    for (const Int value : ints_of(item))
      if (value != static_cast<std::int32_t>(value)) return false;
  }
  return any;
}

// Comparisons, and logic of bools, which are exact there; undefined for others.
Array on_device(const Call& call) {
  const std::string& op = call.op;
  const bool is_logic = call.type() == Type::boolean && (op == "And" || op == "Or" || op == "Xor");
  // A written file has integers of 32 bits anyway.
  const bool is_sum = is_tracing() && call.type() != Type::boolean &&
                      (op == "Add" || op == "Sub" || op == "Mul" || op == "Max" || op == "Min");
  if (!is_logic && !is_comparison(op) && !is_sum) return {};
  const Array a = call.array(0), b = call.array(1);
  if (op == "Max" || op == "Min") return op == "Max" ? maximum(a, b) : minimum(a, b);
  if (is_sum) return op == "Add" ? a + b : op == "Sub" ? a - b : a * b;
  if (op == "And") return logical_and(a, b);
  if (op == "Or") return logical_or(a, b);
  if (op == "Xor") return logical_xor(a, b);
  if (op == "Equal") return equal(a, b);
  if (op == "Less") return less(a, b);
  if (op == "LessOrEqual") return less_equal(a, b);
  return op == "Greater" ? greater(a, b) : greater_equal(a, b);
}

Outputs negated(const Call& call) {
  if (call.op == "Not" && !call.at(0).host) return {item_of(logical_not(call.array()))};
  auto values = ints_of(call.at(0));
  for (Int& value : values) value = call.op == "Not" ? value == 0 : ~value;
  return {ints_item(values, call.sizes(), call.type())};
}

Item converted(const Call& call, Type to) {
  const Item& from = call.at(0);
  if (bytes_of(to) == 0) call.refuse("the element type " + std::to_string(int(to)) + " is not supported");
  if (from.type == to) return from;
  if (is_floating(to)) {
    if (from.host && (from.type == Type::i64 || from.type == Type::u32 || from.type == Type::u64)) {
      std::vector<double> wide;
      std::vector<float> narrow;
      for (const Int value : ints_of(from)) {
        const auto natural = static_cast<std::uint64_t>(value);
        wide.push_back(from.type == Type::u64 ? static_cast<double>(natural) : static_cast<double>(value));
        narrow.push_back(from.type == Type::u64 ? static_cast<float>(natural) : static_cast<float>(value));
      }
      const Shape shape = shape_of(call.sizes());
      if (to == Type::f64) return item_of(samebytes::array(std::span<const double>(wide), shape));
      return item_of(astype(samebytes::array(std::span<const float>(narrow), shape), dtype_of(to)));
    }
    Item result = item_of(astype(from.host ? plain(from) : from.array, dtype_of(to)));
    result.order = from.order;
    return result;
  }
  if (to == Type::boolean && is_floating(from.type)) {
    const Array a = plain(from);
    return item_of(not_equal(a, full(Shape{}, 0.0, a.dtype())));
  }
  if (is_floating(from.type) && is_tracing() && (to == Type::i64 || to == Type::i32))
    return item_of(astype(trunc(plain(from)), i32), to);
  if (is_floating(from.type)) {
    std::vector<Int> values;
    for (const double value : reals_of(from)) {
      if (is_unsigned(to) && value < 0 && to != Type::boolean) call.refuse("a negative value becomes " + name_of(to));
      values.push_back(truncated(value));
    }
    return ints_item(values, call.sizes(), to);
  }
  if (!from.host && to == Type::boolean) return item_of(not_equal(plain(from), full(Shape{}, 0.0, from.array.dtype())));
  if (!from.host && (to == Type::i64 || to == Type::i32)) {
    const bool is_wide = to == Type::i64 && from.array.dtype() == i64;
    return item_of(is_wide ? plain(from) : astype(plain(from), i32), to);
  }
  return ints_item(ints_of(from), call.sizes(), to);
}

Outputs cast(const Call& call) {
  if (call.has_attribute("round_mode")) call.refuse("a round_mode is not supported");
  return {converted(call, call.element_type("to", Type::f32))};
}
Outputs cast_like(const Call& call) { return {converted(call, call.type(1))}; }

// The same bits as another type of the same width.
Outputs bits_as(const Call& call) {
  const Type to = call.element_type("to", Type::f32);
  Tensor tensor = on_host(call.at(0));
  if (bytes_of(to) != bytes_of(tensor.type))
    call.refuse(name_of(to) + " has another width than " + name_of(tensor.type));
  tensor.type = to;
  return {item_of(std::move(tensor))};
}

Outputs logic(const Call& call) {
  if (call.is_floating()) call.refuse("floating inputs are not supported");
  return integer_binary(call);
}

}  // namespace

Outputs integer_binary(const Call& call) {
  const Sizes sizes = broadcast(call.sizes(0), call.sizes(1));
  if (is_on_device(call))
    if (const Array made = on_device(call); made.defined())
      return {item_of(made, made.dtype() == bool_ ? Type::boolean : call.type())};
  const auto a = ints_of(call.at(0)), b = ints_of(call.at(1));
  const auto of_a = positions(call.sizes(0), sizes), of_b = positions(call.sizes(1), sizes);
  const bool is_wide = call.type() == Type::u64, is_truth = is_comparison(call.op);
  std::vector<Int> values(of_a.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Int x = a.at(static_cast<std::size_t>(of_a[i])), y = b.at(static_cast<std::size_t>(of_b[i]));
    values[i] = is_truth ? compared(call.op, x, y, is_wide) : arithmetic(call, x, y, is_wide);
  }
  return {ints_item(values, sizes, is_truth ? Type::boolean : call.type())};
}

void add_integers(Registry& registry) {
  for (const char* op : {"And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"}) registry[op] = logic;
  registry.insert(
      {{"Not", negated}, {"BitwiseNot", negated}, {"Cast", cast}, {"CastLike", cast_like}, {"BitCast", bits_as}});
}

}  // namespace samebytes::onnx
