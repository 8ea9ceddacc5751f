// LSTM, GRU and RNN. The library's own layers where a node has their form; other forms (peepholes, the reset gate
// before the product, coupled gates, clipping, other activations) step by step.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;
using Function = std::function<Array(const Array&)>;

Array part(const Array& a, int direction) { return squeeze(slice(a, 0, direction, direction + 1), 0); }

// The gates of a [gates * hidden, ...] array in another order.
Array gates(const Array& a, const std::vector<int>& order) {
  const Int hidden = a.shape()[0] / static_cast<Int>(order.size());
  std::vector<Array> parts;
  parts.reserve(order.size());
  for (const int gate : order) parts.push_back(slice(a, 0, gate * hidden, (gate + 1) * hidden));
  return concat(parts, 0);
}

// One direction of a layer, without its axis: x [N, T, C], weights as ONNX orders them, biases of both products.
struct Layer {
  std::string op;
  Array x, weight, recurrent, bias, recurrent_bias, peepholes, h0, c0, lengths;
  std::vector<Int> ends;  // of the sequences; empty: all are whole
  bool is_reversed = false, is_linear_before_reset = false, is_coupled = false;
  double clip = 0;
  std::vector<Function> activations;  // f, g, h
};
struct States {
  Array y, h, c;  // [N, T, H], [N, H], [N, H]
};

// ONNX has the gates i, o, f, c and z, r, h; the library i, f, g, o and r, z, n.
States whole(const Layer& layer) {
  const bool is_lstm = layer.op == "LSTM";
  const std::vector<int> order = is_lstm ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{1, 0, 2};
  RecurrentWeights weights{gates(layer.weight, order), gates(layer.recurrent, order)};
  if (layer.bias.defined()) {
    weights.bias_ih = gates(layer.bias, order);
    weights.bias_hh = gates(layer.recurrent_bias, order);
  }
  const RecurrentOptions options{layer.h0, layer.c0, layer.lengths, layer.is_reversed};
  if (is_lstm) {
    const LstmResult made = lstm(layer.x, weights, options);
    return {made.y, made.h_n, made.c_n};
  }
  const GruResult made = gru(layer.x, weights, options);
  return {made.y, made.h_n, {}};
}

// The state after one step; `in` are the inputs' products of this step, [N, gates * H].
States step(const Layer& layer, const Array& in, const States& before) {
  const Int width = before.h.shape()[1];
  const auto gate = [&](const Array& a, Int i) { return slice(a, 1, i * width, (i + 1) * width); };
  const auto peephole = [&](Int i, const Array& c) {
    return layer.peepholes.defined() ? slice(layer.peepholes, 0, i * width, (i + 1) * width) * c : Array();
  };
  const auto active = [&](std::size_t f, const Array& a, const Array& extra = {}) {
    const Array all = extra.defined() ? a + extra : a;
    return layer.activations.at(f)(layer.clip > 0 ? clip(all, -layer.clip, layer.clip) : all);
  };
  const Array& bias = layer.recurrent_bias;
  if (layer.op == "LSTM") {
    const Array all = in + linear(before.h, layer.recurrent, bias);
    const Array i = active(0, gate(all, 0), peephole(0, before.c));
    const Array f = layer.is_coupled ? 1.0 - i : active(0, gate(all, 2), peephole(2, before.c));
    const Array c = f * before.c + i * active(1, gate(all, 3));
    const Array o = active(0, gate(all, 1), peephole(1, c));
    return {{}, o * layer.activations.at(2)(c), c};
  }
  if (layer.op == "RNN") return {{}, active(0, in + linear(before.h, layer.recurrent, bias)), {}};
  const auto rows = [&](const Array& a, Int first, Int last) {
    return a.defined() ? slice(a, 0, first * width, last * width) : a;
  };
  const Array two = linear(before.h, rows(layer.recurrent, 0, 2), rows(bias, 0, 2));
  const Array z = active(0, gate(in, 0) + gate(two, 0)), r = active(0, gate(in, 1) + gate(two, 1));
  const Array matrix = rows(layer.recurrent, 2, 3), shift = rows(bias, 2, 3);
  const Array inner =
      layer.is_linear_before_reset ? r * linear(before.h, matrix, shift) : linear(r * before.h, matrix, shift);
  return {{}, (1.0 - z) * active(1, gate(in, 2) + inner) + z * before.h, {}};
}

States stepwise(const Layer& layer) {
  const Int samples = layer.x.shape()[0], steps = layer.x.shape()[1], width = layer.recurrent.shape()[1];
  const Array products = linear(layer.x, layer.weight, layer.bias), none = zeros({samples, width}, layer.x.dtype());
  States state{{}, layer.h0.defined() ? layer.h0 : none, {}};
  if (layer.op == "LSTM") state.c = layer.c0.defined() ? layer.c0 : none;
  std::vector<Array> ys(static_cast<std::size_t>(steps));
  for (Int i = 0; i < steps; ++i) {
    const Int t = layer.is_reversed ? steps - 1 - i : i;
    States next = step(layer, squeeze(slice(products, 1, t, t + 1), 1), state);
    Array y = next.h;
    if (std::any_of(layer.ends.begin(), layer.ends.end(), [&](Int end) { return t >= end; })) {
      std::vector<Int> is_inside;
      for (const Int end : layer.ends) is_inside.push_back(t < end ? 1 : 0);
      const Array mask = plain(ints_item(is_inside, {samples, 1}, Type::boolean));
      y = where(mask, y, none);
      next.h = where(mask, next.h, state.h);
      if (next.c.defined()) next.c = where(mask, next.c, state.c);
    }
    ys.at(static_cast<std::size_t>(t)) = y;
    state = next;
  }
  state.y = stack(ys, 1);
  return state;
}

// An activation by its name; alpha and beta are taken from the node's lists, in the order of what needs them.
struct Activations {
  const Call& call;
  std::vector<double> alphas = call.reals("activation_alpha"), betas = call.reals("activation_beta");

  static double next(std::vector<double>& list, double otherwise) {
    if (list.empty()) return otherwise;
    const double value = list.front();
    list.erase(list.begin());
    return value;
  }
  Function named(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name == "sigmoid") return [](const Array& a) { return sigmoid(a); };
    if (name == "tanh") return [](const Array& a) { return tanh(a); };
    if (name == "relu") return [](const Array& a) { return relu(a); };
    if (name == "softsign") return [](const Array& a) { return a / (abs(a) + 1.0); };
    if (name == "softplus") return [](const Array& a) { return softplus(a); };
    const bool has_beta = name == "affine" || name == "scaledtanh" || name == "hardsigmoid";
    const double alpha = next(alphas, name == "leakyrelu" ? 0.01 : name == "hardsigmoid" ? 0.2 : 1.0);
    const double beta = has_beta ? next(betas, name == "hardsigmoid" ? 0.5 : name == "affine" ? 0.0 : 1.0) : 0.0;
    if (name == "affine") return [=](const Array& a) { return a * alpha + beta; };
    if (name == "scaledtanh") return [=](const Array& a) { return tanh(a * beta) * alpha; };
    if (name == "hardsigmoid") return [=](const Array& a) { return clip(a * alpha + beta, 0.0, 1.0); };
    if (name == "leakyrelu") return [=](const Array& a) { return leaky_relu(a, alpha); };
    if (name == "elu") return [=](const Array& a) { return elu(a, alpha); };
    if (name == "thresholdedrelu")
      return [=](const Array& a) { return masked_fill(a, logical_not(greater(a, alpha)), 0.0); };
    call.refuse("the activation " + name + " is not supported");
  }
};

Outputs recurrent(const Call& call) {
  const bool is_lstm = call.op == "LSTM", is_batch_first = call.integer("layout", 0) != 0;
  const std::vector<std::string> usual = is_lstm            ? std::vector<std::string>{"sigmoid", "tanh", "tanh"}
                                         : call.op == "GRU" ? std::vector<std::string>{"sigmoid", "tanh"}
                                                            : std::vector<std::string>{"tanh"};
  const Int n_gates = is_lstm ? 4 : call.op == "GRU" ? 3 : 1;
  const std::string direction = call.text("direction", "forward");
  const int directions = direction == "bidirectional" ? 2 : 1;
  const Array given = call.floating(0), weight = call.floating(1), hidden = call.floating(2);
  if (weight.shape().rank() != 3 || hidden.shape().rank() != 3 || weight.shape()[0] != directions || call.rank() != 3)
    call.refuse("expected x and weights of three axes, and weights for each direction");
  const Int width = hidden.shape()[2], rows = n_gates * width, samples = given.shape()[is_batch_first ? 0 : 1],
            steps = given.shape()[is_batch_first ? 1 : 0];
  if (call.has(4) && call.sizes(4) != Sizes{samples})
    call.refuse("expected " + std::to_string(samples) + " lengths of sequences, got " +
                shape_of(call.sizes(4)).to_string());
  const auto initial = [&](std::size_t i, int d) {
    if (!call.has(i)) return Array();
    return part(is_batch_first ? transpose(call.array(i), {1, 0, 2}) : call.array(i), d);
  };
  std::vector<std::string> names = call.texts("activations");
  if (!names.empty() && names.size() != usual.size() * static_cast<std::size_t>(directions))
    call.refuse("expected " + std::to_string(usual.size()) + " activations for each direction");
  Activations activations{call};
  std::vector<Array> ys, hs, cs;
  for (int d = 0; d < directions; ++d) {
    Layer layer;
    layer.op = call.op;
    layer.x = is_batch_first ? given : transpose(given, {1, 0, 2});
    layer.weight = part(weight, d);
    layer.recurrent = part(hidden, d);
    if (call.has(3)) {
      layer.bias = slice(part(call.array(3), d), 0, 0, rows);
      layer.recurrent_bias = slice(part(call.array(3), d), 0, rows, 2 * rows);
    }
    layer.h0 = initial(5, d);
    if (is_lstm) layer.c0 = initial(6, d);
    if (is_lstm && call.has(7)) layer.peepholes = part(call.floating(7), d);
    layer.is_reversed = direction == "reverse" || d == 1;
    layer.is_linear_before_reset = call.integer("linear_before_reset", 0) != 0;
    layer.is_coupled = is_lstm && call.integer("input_forget", 0) != 0;
    layer.clip = call.real("clip", 0.0);
    const bool is_plain = names.empty() && layer.clip == 0 && !layer.is_coupled && !layer.peepholes.defined();
    if (call.has(4)) layer.lengths = call.array(4);
    if (is_plain && (is_lstm || (call.op == "GRU" && layer.is_linear_before_reset))) {
      const States made = whole(layer);
      ys.push_back(made.y);
      hs.push_back(made.h);
      cs.push_back(made.c);
      continue;
    }
    if (given.size() == 0 || steps > kMostSteps)
      call.refuse("expected 1 to " + std::to_string(kMostSteps) + " steps of sequences that are not empty, got " +
                  given.shape().to_string());
    if (call.has(4)) layer.ends = ints_of(call.at(4));
    const std::size_t first = names.empty() ? 0 : static_cast<std::size_t>(d) * usual.size();
    for (std::size_t i = 0; i < usual.size(); ++i)
      layer.activations.push_back(activations.named(names.empty() ? usual[i] : names[first + i]));
    const States made = stepwise(layer);
    ys.push_back(made.y);
    hs.push_back(made.h);
    cs.push_back(made.c);
  }
  // [directions, N, T, H] -> [T, directions, N, H] or [N, T, directions, H]
  const Array y = is_batch_first ? transpose(stack(ys), {1, 2, 0, 3}) : transpose(stack(ys), {2, 0, 1, 3});
  const auto last = [&](const std::vector<Array>& states) { return item_of(stack(states, is_batch_first ? 1 : 0)); };
  Outputs result{item_of(y), last(hs)};
  if (is_lstm) result.push_back(last(cs));
  return result;
}

}  // namespace

void add_recurrent(Registry& registry) {
  registry.insert({{"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}});
}

}  // namespace samebytes::onnx
