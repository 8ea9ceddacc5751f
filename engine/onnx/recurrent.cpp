// LSTM and GRU. ONNX orders gates i, o, f, c and z, r, h; the library i, f, g, o and r, z, n.
#include <vector>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// The gates of a [gates * hidden, ...] array in the library's order.
Array gates(const Array& a, const std::vector<int>& order) {
  const std::int64_t hidden = a.shape()[0] / static_cast<std::int64_t>(order.size());
  std::vector<Array> parts;
  for (const int gate : order) parts.push_back(slice(a, 0, gate * hidden, (gate + 1) * hidden));
  return concat(parts, 0);
}

Array part(const Array& a, int direction) { return squeeze(slice(a, 0, direction, direction + 1), 0); }

Outputs recurrent(const Call& call) {
  const bool is_lstm = call.op == "LSTM";
  const std::vector<int> order = is_lstm ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{1, 0, 2};
  if (call.has_attribute("activations") || call.has_attribute("clip") || call.integer("input_forget", 0) != 0)
    call.refuse("other activations, clipping and input_forget are not supported");
  if (call.has(7)) call.refuse("peepholes are not supported");
  if (!is_lstm && call.integer("linear_before_reset", 0) == 0)
    call.refuse("the GRU with linear_before_reset = 0 is not supported");
  const bool is_batch_first = call.integer("layout", 0) != 0;
  const std::string direction = call.text("direction", "forward");
  const int directions = direction == "bidirectional" ? 2 : 1;
  const Array given = call.floating(0), weight = call.floating(1), hidden = call.floating(2);
  if (weight.shape().rank() != 3 || weight.shape()[0] != directions || call.rank() != 3)
    call.refuse("expected x and weights of three axes, and weights for each direction");
  const Array x = is_batch_first ? given : transpose(given, {1, 0, 2});
  const std::int64_t width = hidden.shape()[2], rows = std::ssize(order) * width;
  const auto initial = [&](std::size_t i, int d) {
    if (!call.has(i)) return Array();
    const Array a = call.array(i);
    return part(is_batch_first ? transpose(a, {1, 0, 2}) : a, d);
  };
  std::vector<Array> ys, hs, cs;
  for (int d = 0; d < directions; ++d) {
    RecurrentWeights weights{gates(part(weight, d), order), gates(part(hidden, d), order)};
    if (call.has(3)) {
      const Array bias = part(call.array(3), d);
      weights.bias_ih = gates(slice(bias, 0, 0, rows), order);
      weights.bias_hh = gates(slice(bias, 0, rows, 2 * rows), order);
    }
    RecurrentOptions options;
    options.reverse = direction == "reverse" || d == 1;
    options.h0 = initial(5, d);
    if (call.has(4)) options.lengths = call.array(4);
    if (is_lstm) {
      options.c0 = initial(6, d);
      const auto result = lstm(x, weights, options);
      ys.push_back(result.y);
      hs.push_back(result.h_n);
      cs.push_back(result.c_n);
    } else {
      const auto result = gru(x, weights, options);
      ys.push_back(result.y);
      hs.push_back(result.h_n);
    }
  }
  // [directions, N, T, H] -> [T, directions, N, H] or [N, T, directions, H]
  const Array y = is_batch_first ? transpose(stack(ys), {1, 2, 0, 3}) : transpose(stack(ys), {2, 0, 1, 3});
  const auto last = [&](const std::vector<Array>& states) { return item_of(stack(states, is_batch_first ? 1 : 0)); };
  Outputs result{item_of(y), last(hs)};
  if (is_lstm) result.push_back(last(cs));
  return result;
}

}  // namespace

void add_recurrent(Registry& registry) { registry.insert({{"LSTM", recurrent}, {"GRU", recurrent}}); }

}  // namespace samebytes::onnx
