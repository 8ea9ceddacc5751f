// Reductions, soft-max, and what depends on order along an axis.
#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/registry.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

std::vector<int> reduced_axes(const Call& call) {
  std::vector<int> axes;
  for (const std::int64_t axis : call.has(1) ? ints_of(call.at(1)) : call.integers("axes"))
    axes.push_back(call.axis(axis, call.rank()));
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(static_cast<std::size_t>(call.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  return axes;
}

Array over(const std::string& op, const Array& a, const std::vector<int>& axes) {
  if (axes.empty()) return a;  // noop_with_empty_axes: what is done to each element stays
  // sum() takes any list; the others one axis at a time, which gives the same.
  if (op == "ReduceSum") return sum(a, std::span<const int>(axes), true);
  double n = 1;
  Array result = a;
  for (const int axis : axes) {
    n *= static_cast<double>(a.shape()[axis]);
    if (op == "ReduceMax") result = max(result, {axis}, true);
    if (op == "ReduceMin") result = min(result, {axis}, true);
  }
  return op == "ReduceMean" ? sum(a, std::span<const int>(axes), true) / n : result;
}

Array reduced(const std::string& op, const Array& a, const std::vector<int>& axes) {
  if (op == "ReduceL1") return over("ReduceSum", abs(a), axes);
  if (op == "ReduceL2") return sqrt(over("ReduceSum", square(a), axes));
  if (op == "ReduceSumSquare") return over("ReduceSum", square(a), axes);
  if (op == "ReduceLogSum") return log(over("ReduceSum", a, axes));
  if (op == "ReduceLogSumExp") {
    const Array top = over("ReduceMax", a, axes);
    return log(over("ReduceSum", exp(a - top), axes)) + top;
  }
  if (op == "ReduceProd") {
    Array result = a;
    for (const int axis : axes) {
      const Array running = cumprod(result, axis);
      result = slice(running, axis, a.shape()[axis] - 1, a.shape()[axis]);
    }
    return result;
  }
  return over(op, a, axes);
}

// The smallest integer of the type.
std::int64_t lowest(Type type) {
  if (is_unsigned(type)) return 0;
  return std::numeric_limits<std::int64_t>::min() >> (64 - 8 * static_cast<int>(bytes_of(type)));
}

// What a reduction of nothing gives.
double of_nothing(const std::string& op) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (op == "ReduceProd") return 1;
  if (op == "ReduceMean") return std::numeric_limits<double>::quiet_NaN();
  if (op == "ReduceMin") return kInfinity;
  return op == "ReduceMax" || op.starts_with("ReduceLog") ? -kInfinity : 0;
}

// Integers, exact: sum, product, largest and smallest value.
Outputs reduced_integers(const Call& call, const std::vector<int>& axes, const Sizes& kept, const Sizes& result) {
  if (call.op != "ReduceSum" && call.op != "ReduceProd" && call.op != "ReduceMax" && call.op != "ReduceMin")
    call.refuse("integers are not supported");
  if (axes.empty()) return {call.at(0)};
  const std::int64_t n = list_count(kept);
  const auto in = ints_of(call.at(0));
  const auto to = positions(kept, call.sizes());
  std::int64_t start = call.op == "ReduceProd" ? 1 : 0;
  if (in.empty() && call.op == "ReduceMax") start = lowest(call.type());
  if (in.empty() && call.op == "ReduceMin") start = ~lowest(call.type());  // two's complement: the largest
  std::vector<std::int64_t> values(static_cast<std::size_t>(n), start);
  std::vector<bool> is_set(values.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto at = static_cast<std::size_t>(to[i]);
    std::int64_t& value = values[at];
    if (call.op == "ReduceSum")
      value = static_cast<std::int64_t>(std::uint64_t(value) + std::uint64_t(in[i]));
    else if (call.op == "ReduceProd")
      value = static_cast<std::int64_t>(std::uint64_t(value) * std::uint64_t(in[i]));
    else if (!is_set[at])
      value = in[i];
    else
      value = is_below(value, in[i], call.type()) == (call.op == "ReduceMax") ? in[i] : value;
    is_set[at] = true;
  }
  return {ints_item(values, result, call.type())};
}

// An integer that is written to a file (save.cpp) as it is computed, instead of being known.
bool is_traced_integer(const Call& call) { return is_tracing() && !call.at(0).host && !call.is_floating(); }

Outputs reduce(const Call& call) {
  const std::vector<int> axes = reduced_axes(call);
  const bool keep = call.integer("keepdims", 1) != 0;
  const Sizes sizes = call.sizes();
  Sizes kept = sizes, result;
  for (const int axis : axes) kept.at(static_cast<std::size_t>(axis)) = 1;
  for (int axis = 0; axis < call.rank(); ++axis)
    if (keep || std::find(axes.begin(), axes.end(), axis) == axes.end())
      result.push_back(kept.at(static_cast<std::size_t>(axis)));
  if (is_traced_integer(call) && count(sizes) > 0 && !axes.empty() &&
      (call.op == "ReduceSum" || call.op == "ReduceMax" || call.op == "ReduceMin"))  // exact in double
    return {
        item_of(reshape(astype(over(call.op, astype(call.array(), f64), axes), i32), shape_of(result)), call.type())};
  if (!call.is_floating()) return reduced_integers(call, axes, kept, result);
  if (count(sizes) == 0) return {item_of(full(shape_of(result), of_nothing(call.op), dtype_of(call.type())))};
  const Order& order = call.at(0).order;
  std::vector<int> places = axes;
  if (!order.empty())
    for (int& place : places) place = inverse(order).at(static_cast<std::size_t>(place));
  const Item made = ordered(reduced(call.op, call.at(0).array, places), order);
  if (keep) return {made};
  return {item_of(reshape(plain(made), shape_of(result)))};
}

// `op` over the last axis, applied to another one.
template <class Op>
Array along(const Array& a, int axis, Op op) {
  const int last = a.shape().rank() - 1;
  if (axis == last) return op(a);
  Order order(static_cast<std::size_t>(last + 1));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order.at(static_cast<std::size_t>(axis)), order.back());
  const Array turned = stored(item_of(a), order);
  return stored(item_of(op(turned)), order);
}

Outputs soft(const Call& call) {
  const Array a = call.floating();
  const bool is_log = call.op == "LogSoftmax";
  const auto op = [&](const Array& x) { return is_log ? log_softmax(x) : softmax(x); };
  if (call.rank() == 0) call.refuse("a scalar is not supported");
  const int axis = call.axis(call.integer("axis", call.opset < 13 ? 1 : -1), call.rank());
  if (call.opset >= 13) return {item_of(along(a, axis, op))};
  std::int64_t rows = 1;
  for (int i = 0; i < axis; ++i) rows *= a.shape()[i];
  return {item_of(reshape(op(reshape(a, {rows, a.size() / std::max<std::int64_t>(rows, 1)})), a.shape()))};
}

// An axis of integers on the host: `f` gets the flat positions of each line along it, one after the other.
template <class F>
void along_lines(const Sizes& sizes, int axis, F f) {
  if (count(sizes) == 0) return;
  const auto n = sizes.at(static_cast<std::size_t>(axis)), inner = strides_of(sizes).at(static_cast<std::size_t>(axis));
  std::vector<std::int64_t> line(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < count(sizes) / n; ++i) {
    for (std::int64_t k = 0; k < n; ++k) line.at(static_cast<std::size_t>(k)) = (i / inner * n + k) * inner + i % inner;
    f(i, line);
  }
}

// The positions along the axis of the first `k` of each line's integers in their order, equal ones as they stand.
std::vector<std::int64_t> ranked(const Call& call, int axis, std::int64_t k, bool is_largest, bool is_last_first) {
  const auto values = ints_of(call.at(0));
  const Sizes sizes = call.sizes();
  const std::int64_t inner = strides_of(sizes).at(static_cast<std::size_t>(axis));
  std::vector<std::int64_t> result(
      static_cast<std::size_t>(count(sizes) / std::max<std::int64_t>(sizes.at(static_cast<std::size_t>(axis)), 1) * k));
  along_lines(sizes, axis, [&](std::int64_t i, const std::vector<std::int64_t>& line) {
    std::vector<std::int64_t> order(line.size());
    std::iota(order.begin(), order.end(), 0);
    if (is_last_first) std::reverse(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const auto x = values.at(std::size_t(line[std::size_t(a)])), y = values.at(std::size_t(line[std::size_t(b)]));
      return is_largest ? is_below(y, x, call.type()) : is_below(x, y, call.type());
    });
    for (std::int64_t j = 0; j < k; ++j)
      result.at(static_cast<std::size_t>((i / inner * k + j) * inner + i % inner)) =
          order.at(static_cast<std::size_t>(j));
  });
  return result;
}

Outputs arg(const Call& call) {
  const int axis = call.axis(call.integer("axis", 0), call.rank());
  const bool is_last = call.integer("select_last_index", 0) != 0, keep = call.integer("keepdims", 1) != 0;
  Sizes sizes = call.sizes();
  if (count(sizes) == 0) call.refuse("an empty tensor has no largest element");
  if (!call.is_floating() && !is_traced_integer(call)) {
    const auto index = ranked(call, axis, 1, call.op == "ArgMax", is_last);
    sizes.at(static_cast<std::size_t>(axis)) = 1;
    if (!keep) sizes.erase(sizes.begin() + axis);
    return {ints_item(index, sizes)};
  }
  const Array a = call.is_floating() ? call.array() : astype(call.array(), f64);  // exact
  const Array signs = call.op == "ArgMin" ? -a : a;
  Array index = argmax(is_last ? flip(signs, {axis}) : signs, axis);
  if (is_last) index = full(Shape{}, static_cast<double>(a.shape()[axis] - 1), i32) - index;
  return {item_of(keep ? unsqueeze(index, axis) : index, Type::i64)};
}

Outputs largest(const Call& call) {
  const int axis = call.axis(call.integer("axis", -1), call.rank());
  const std::int64_t k = call.has(1) ? ints_of(call.at(1)).at(0) : call.integer("k", 1);
  const bool is_largest = call.integer("largest", 1) != 0;
  if (call.is_floating()) {
    const auto best = top_k(call.array(), k, axis, is_largest);
    return {item_of(best.values), item_of(best.indices, Type::i64)};
  }
  Sizes sizes = call.sizes();
  const std::int64_t n = sizes.at(static_cast<std::size_t>(axis)),
                     inner = strides_of(sizes).at(static_cast<std::size_t>(axis));
  if (k < 0 || k > n) call.refuse("k is " + std::to_string(k) + ", expected 0 to " + std::to_string(n));
  const auto index = ranked(call, axis, k, is_largest, false);
  sizes.at(static_cast<std::size_t>(axis)) = k;
  std::vector<std::int64_t> from(index.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    from[i] = (at / inner / k * n + index[i]) * inner + at % inner;
  }
  return {moved(call.at(0), sizes, from), ints_item(index, sizes)};
}

// Exact running sums and products of integers.
Outputs running_integers(const Call& call, int axis, bool is_reverse, bool is_exclusive) {
  auto values = ints_of(call.at(0));
  const bool is_sum = call.op == "CumSum";
  along_lines(call.sizes(), axis, [&](std::int64_t, std::vector<std::int64_t> line) {
    if (is_reverse) std::reverse(line.begin(), line.end());
    std::uint64_t total = is_sum ? 0 : 1;
    for (const std::int64_t at : line) {
      std::int64_t& value = values.at(static_cast<std::size_t>(at));
      const std::uint64_t before = total, own = static_cast<std::uint64_t>(value);
      total = is_sum ? total + own : total * own;
      value = static_cast<std::int64_t>(is_exclusive ? before : total);
    }
  });
  return {ints_item(values, call.sizes(), call.type())};
}

Outputs running(const Call& call) {
  const int axis = call.axis(ints_of(call.at(1)).at(0), call.rank());
  const bool is_reverse = call.integer("reverse", 0) != 0, is_exclusive = call.integer("exclusive", 0) != 0;
  const bool is_integer = !call.is_floating();
  if (is_integer && !is_traced_integer(call)) return running_integers(call, axis, is_reverse, is_exclusive);
  Array a = is_integer ? astype(call.array(), f64) : call.array();  // exact
  if (is_reverse) a = flip(a, {axis});
  Array total = call.op == "CumSum" ? cumsum(a, axis) : cumprod(a, axis);
  if (is_exclusive) {
    const std::int64_t n = a.shape()[axis];
    std::vector<PadWidth> widths(static_cast<std::size_t>(call.rank()));
    widths.at(static_cast<std::size_t>(axis)).before = 1;
    total = slice(pad(total, widths, PadMode::constant, call.op == "CumSum" ? 0.0 : 1.0), axis, 0, n);
  }
  if (is_reverse) total = flip(total, {axis});
  return {is_integer ? item_of(astype(total, i32), call.type()) : item_of(total)};
}

}  // namespace

void add_reductions(Registry& registry) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    registry[op] = reduce;
  registry.insert({{"Softmax", soft}, {"LogSoftmax", soft}, {"ArgMax", arg}, {"ArgMin", arg}, {"TopK", largest}});
  registry.insert({{"CumSum", running}, {"CumProd", running}});
}

}  // namespace samebytes::onnx
