// Layers of sequences that hand a state from call to call: the causal convolution in front of gated networks, and
// linear attention with decay and the delta rule.
#include <cmath>
#include <limits>

#include "onnx/registry.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;

// x [N, C, L] behind the last k - 1 positions of the sequence so far, which are zeros at its begin; w [C, 1, k].
Outputs causal_convolution(const Call& call) {
  const std::string activation = call.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    call.refuse("its activation is '" + activation + "', expected none, silu or swish");
  const Sizes of_x = call.sizes(), of_weight = call.sizes(1);
  if (!call.is_floating() || of_x.size() != 3 || of_weight.size() != 3)
    call.refuse("expected floating [N, C, L] and [C, 1, k]");
  const Int length = of_x[2], channels = of_x[1], before = of_weight[2] - 1;
  if (of_weight[0] != channels || of_weight[1] != 1 || before < 0) call.refuse("the filter does not fit the channels");
  if (channels > std::numeric_limits<int>::max()) call.refuse("it has " + std::to_string(channels) + " channels");
  const Sizes of_state{of_x[0], channels, before};
  if (call.has(3) && call.sizes(3) != of_state)
    call.refuse("the state has another size than " + shape_of(of_state).to_string());
  const Order order = channels_last(3);
  const Array x = stored(call.at(0), order), weight = stored(call.at(1), taps_first(3));
  Array all = x;
  if (before > 0) {
    const Array past = call.has(3) ? stored(call.at(3), order) : zeros({of_x[0], before, channels}, x.dtype());
    all = concat({past, x}, 1);
  }
  const Array y = conv1d(all, weight, call.optional(2), {.groups = static_cast<int>(channels)});
  return {ordered(activation == "none" ? y : silu(y), order), ordered(slice(all, 1, length, length + before), order)};
}

// What the node's inputs are, with heads as an axis of their own: keys [N, T, H, D, 1], values [N, T, H, 1, E], queries
// [N, T, H, G, D] for G of them that share a head, decay [N, T, H, D or 1, 1], beta [N, T, H or 1, 1, 1].
struct Heads {
  Array q, k, v, decay, beta;
  Int samples = 0, steps = 0, count = 0, shared = 0;
};

Heads heads_of(const Call& call) {
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear")
    call.refuse("its update_rule is '" + rule + "', expected linear, gated, delta or gated_delta");
  if (call.has(4) != decays || call.has(5) != corrects)
    call.refuse("the rule " + rule + (decays ? " needs" : " has no") + " decay and" +
                (corrects ? " needs" : " has no") + " beta");
  Heads h;
  const Int queries = call.integer("q_num_heads", 0);
  h.count = call.integer("kv_num_heads", 0);
  if (h.count < 1 || queries < 1 || queries % h.count != 0)
    call.refuse("q_num_heads must be a multiple of kv_num_heads, got " + std::to_string(queries) + " and " +
                std::to_string(h.count));
  h.shared = queries / h.count;
  const Sizes first = call.sizes();
  if (first.size() != 3) call.refuse("expected queries [N, T, H D]");
  h.samples = first[0];
  h.steps = first[1];
  if (h.samples < 1 || h.steps < 1) call.refuse("the sequence is empty");
  if (h.steps > kMostSteps)
    call.refuse("it has " + std::to_string(h.steps) + " steps, expected at most " + std::to_string(kMostSteps));
  const bool is_double = call.type() == Type::f64;
  // [N, T, parts * width] as [N, T, parts, tail...], of which one size is -1.
  const auto apart = [&](std::size_t input, Int parts, const Sizes& tail) {
    const Sizes sizes = call.sizes(input);
    if (sizes.size() != 3 || sizes[0] != h.samples || sizes[1] != h.steps || sizes[2] < 1 || sizes[2] % parts != 0)
      call.refuse("input " + std::to_string(input) + " is " + shape_of(sizes).to_string() + ", expected [" +
                  std::to_string(h.samples) + ", " + std::to_string(h.steps) + ", a multiple of " +
                  std::to_string(parts) + "]");
    Sizes shape{h.samples, h.steps, parts};
    for (const Int size : tail) shape.push_back(size == -1 ? sizes[2] / parts : size);
    return reshape(astype(call.floating(input), is_double ? f64 : f32), shape_of(shape));
  };
  h.q = reshape(apart(0, queries, {-1}), shape_of({h.samples, h.steps, h.count, h.shared, first[2] / queries}));
  h.k = apart(1, h.count, {-1, 1});
  h.v = apart(2, h.count, {1, -1});
  const Int depth = h.k.shape()[3];
  if (h.q.shape()[4] != depth) call.refuse("queries and keys have different widths");
  if (decays) h.decay = apart(4, h.count, {-1, 1});
  if (decays && h.decay.shape()[3] != 1 && h.decay.shape()[3] != depth) call.refuse("the decay does not fit the keys");
  if (!corrects) return h;
  const Sizes of_beta = call.sizes(5);
  h.beta = apart(5, !of_beta.empty() && of_beta.back() == 1 ? 1 : h.count, {1, 1});
  return h;
}

// The recurrence, step by step: S = exp(g) S + beta k (v - S^T k)^T, y = scale q^T S; S [N, H, D, E].
Outputs linear_attention(const Call& call) {
  const Heads h = heads_of(call);
  const Int depth = h.k.shape()[3], width = h.v.shape()[4];
  const Sizes of_state{h.samples, h.count, depth, width};
  if (call.has(3) && call.sizes(3) != of_state)
    call.refuse("the state is " + shape_of(call.sizes(3)).to_string() + ", expected " + shape_of(of_state).to_string());
  Array state = call.has(3) ? astype(call.floating(3), h.q.dtype()) : zeros(shape_of(of_state), h.q.dtype());
  const double asked = call.real("scale", 0.0),
               scale = asked == 0.0 ? 1 / std::sqrt(static_cast<double>(depth)) : asked;
  const auto step = [](const Array& a, Int t) { return squeeze(slice(a, 1, t, t + 1), 1); };
  std::vector<Array> rows;
  for (Int t = 0; t < h.steps; ++t) {
    const Array key = step(h.k, t);
    Array value = step(h.v, t);
    if (h.decay.defined()) state = state * exp(step(h.decay, t));
    if (h.beta.defined()) value = (value - matmul(transpose(key), state)) * step(h.beta, t);
    state = state + key * value;
    rows.push_back(matmul(step(h.q, t), state));
  }
  const Array y = reshape(stack(rows, 1), shape_of({h.samples, h.steps, h.count * h.shared * width})) * scale;
  return {item_of(astype(y, dtype_of(call.type()))), item_of(astype(state, dtype_of(call.type(call.has(3) ? 3 : 0))))};
}

}  // namespace

void add_states(Registry& registry) {
  registry.insert({{"CausalConvWithState", causal_convolution}, {"LinearAttention", linear_attention}});
}

}  // namespace samebytes::onnx
