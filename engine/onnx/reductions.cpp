// Reductions, soft-max, matrix products, and what depends on order along an axis.
#include <algorithm>
#include <numeric>

#include "onnx/registry.h"
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

// Integers, exact: sum, product, largest and smallest value.
Outputs reduced_integers(const Call& call, const std::vector<int>& axes, const Sizes& kept, const Sizes& result) {
  if (call.op != "ReduceSum" && call.op != "ReduceProd" && call.op != "ReduceMax" && call.op != "ReduceMin")
    call.refuse("integers are not supported");
  if (call.type() == Type::u64) call.refuse("uint64 is not supported");
  if (axes.empty()) return {call.at(0)};
  const auto in = ints_of(call.at(0));
  const auto to = positions(kept, call.sizes());
  if (in.empty()) call.refuse("an empty tensor of integers is not supported");
  std::vector<std::int64_t> values(static_cast<std::size_t>(count(kept)), call.op == "ReduceProd" ? 1 : 0);
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
      value = call.op == "ReduceMax" ? std::max(value, in[i]) : std::min(value, in[i]);
    is_set[at] = true;
  }
  return {ints_item(values, result, call.type())};
}

Outputs reduce(const Call& call) {
  const std::vector<int> axes = reduced_axes(call);
  const bool keep = call.integer("keepdims", 1) != 0;
  const Sizes sizes = call.sizes();
  Sizes kept = sizes, result;
  for (const int axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
  for (int axis = 0; axis < call.rank(); ++axis)
    if (keep || std::find(axes.begin(), axes.end(), axis) == axes.end())
      result.push_back(kept[static_cast<std::size_t>(axis)]);
  if (!call.is_floating()) return reduced_integers(call, axes, kept, result);
  if (count(sizes) == 0) call.refuse("an empty tensor is not supported");
  if (axes.empty() && call.op.find("Log") == std::string::npos && call.op.find('L') == std::string::npos &&
      call.op != "ReduceSumSquare")
    return {call.at(0)};
  const Order& order = call.at(0).order;
  std::vector<int> places = axes;
  if (!order.empty())
    for (int& place : places) place = inverse(order)[static_cast<std::size_t>(place)];
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
  std::swap(order[static_cast<std::size_t>(axis)], order.back());
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

// The loss of log-probabilities [N, C, ...] at classes [N, ...].
Array likelihood_loss(const Call& call, const Array& logs) {
  const Sizes sizes = call.sizes(), result = call.sizes(1);
  if (sizes.size() < 2 || result.size() + 1 != sizes.size()) call.refuse("expected [N, C, ...] and classes [N, ...]");
  const std::int64_t classes = sizes[1], inner = count({sizes.begin() + 2, sizes.end()});
  const auto target = ints_of(call.at(1));
  if (count(result) * classes != count(sizes) || target.empty())
    call.refuse("its classes do not fit, or there are none");
  const bool ignores = call.has_attribute("ignore_index");
  const std::int64_t ignored = call.integer("ignore_index", 0);
  std::vector<std::int64_t> from, of_class;
  std::vector<float> counts;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool is_ignored = ignores && target[i] == ignored;
    const std::int64_t at = is_ignored ? 0 : target[i], place = static_cast<std::int64_t>(i);
    if (at < 0 || at >= classes)
      call.refuse("class " + std::to_string(at) + " is outside of " + std::to_string(classes));
    from.push_back((place / inner * classes + at) * inner + place % inner);
    of_class.push_back(at);
    counts.push_back(is_ignored ? 0.0f : 1.0f);
  }
  const Shape shape = shape_of(result);
  Array share = astype(samebytes::array(std::span<const float>(counts), shape), logs.dtype());
  if (call.has(2)) share = share * plain(moved(call.at(2), result, of_class));
  const Array loss = -plain(moved(item_of(logs), result, from)) * share;
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return loss;
  return reduction == "sum" ? sum(loss) : sum(loss) / sum(share);
}

Outputs losses(const Call& call) {
  const Array x = call.floating();
  if (call.op == "NegativeLogLikelihoodLoss") return {item_of(likelihood_loss(call, x))};
  if (call.rank() < 2) call.refuse("expected [N, C, ...]");
  const Array logs = along(x, 1, [](const Array& a) { return log_softmax(a); });
  return {item_of(likelihood_loss(call, logs)), item_of(logs)};
}

Outputs arg(const Call& call) {
  const Array a = call.floating();
  const int axis = call.axis(call.integer("axis", 0), call.rank());
  const bool is_last = call.integer("select_last_index", 0) != 0, keep = call.integer("keepdims", 1) != 0;
  if (a.size() == 0) call.refuse("an empty tensor is not supported");
  const Array signs = call.op == "ArgMin" ? -a : a;
  Array index = argmax(is_last ? flip(signs, {axis}) : signs, axis);
  if (is_last) index = full(Shape{}, static_cast<double>(a.shape()[axis] - 1), i32) - index;
  return {item_of(keep ? unsqueeze(index, axis) : index, Type::i64)};
}

Outputs largest(const Call& call) {
  const Array a = call.floating();
  const int axis = call.axis(call.integer("axis", -1), call.rank());
  const std::int64_t k = call.has(1) ? ints_of(call.at(1)).at(0) : call.integer("k", 1);
  const auto best = top_k(a, k, axis, call.integer("largest", 1) != 0);
  return {item_of(best.values), item_of(best.indices, Type::i64)};
}

Outputs running(const Call& call) {
  Array a = call.floating();
  const int axis = call.axis(ints_of(call.at(1)).at(0), call.rank());
  const bool is_reverse = call.integer("reverse", 0) != 0;
  if (is_reverse) a = flip(a, {axis});
  Array total = call.op == "CumSum" ? cumsum(a, axis) : cumprod(a, axis);
  if (call.integer("exclusive", 0) != 0) {
    const std::int64_t n = a.shape()[axis];
    std::vector<PadWidth> widths(static_cast<std::size_t>(call.rank()));
    widths[static_cast<std::size_t>(axis)].before = 1;
    total = slice(pad(total, widths, PadMode::constant, call.op == "CumSum" ? 0.0 : 1.0), axis, 0, n);
  }
  return {item_of(is_reverse ? flip(total, {axis}) : total)};
}

Outputs product(const Call& call) {
  Array a = call.floating(0), b = call.floating(1);
  const int ra = a.shape().rank(), rb = b.shape().rank();
  if (ra == 0 || rb == 0) call.refuse("a scalar is not supported");
  if (ra == 1) a = unsqueeze(a, 0);
  if (rb == 1) b = unsqueeze(b, 1);
  Array y = matmul(a, b);
  if (rb == 1) y = squeeze(y, -1);
  if (ra == 1) y = squeeze(y, rb == 1 ? -1 : -2);
  return {item_of(y)};
}

Outputs gemm(const Call& call) {
  Array a = call.floating(0);
  const Array b = call.floating(1), c = call.optional(2);
  const double alpha = call.real("alpha", 1.0), beta = call.real("beta", 1.0);
  if (call.rank(0) != 2 || call.rank(1) != 2) call.refuse("expected two matrices");
  if (call.integer("transA", 0) != 0) a = transpose(a);
  const bool is_linear = call.integer("transB", 0) != 0;
  const bool has_bias =
      is_linear && c.defined() && c.shape().rank() == 1 && c.shape()[0] == b.shape()[0] && alpha == 1 && beta == 1;
  if (has_bias) return {item_of(linear(a, b, c))};
  Array y = is_linear ? linear(a, b) : matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (c.defined()) y = y + (beta == 1 ? c : c * beta);
  return {item_of(y)};
}

}  // namespace

void add_reductions(Registry& registry) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                         "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    registry[op] = reduce;
  registry.insert({{"Softmax", soft},
                   {"LogSoftmax", soft},
                   {"NegativeLogLikelihoodLoss", losses},
                   {"SoftmaxCrossEntropyLoss", losses},
                   {"ArgMax", arg},
                   {"ArgMin", arg},
                   {"TopK", largest}});
  registry.insert({{"CumSum", running}, {"MatMul", product}, {"Gemm", gemm}});
}

}  // namespace samebytes::onnx
