// Lstm and Gru share their parameters' shapes and the walk over layers and directions.
#include "samebytes/nn/recurrent.h"

#include <functional>

#include "nn/initial.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

int directions(const LstmOptions& options) { return options.bidirectional ? 2 : 1; }

std::string described(const char* kind, const LstmOptions& options) {
  std::string text = std::string(kind) + "(" + std::to_string(options.in) + ", " + std::to_string(options.hidden);
  if (options.layers != 1) text += ", layers=" + std::to_string(options.layers);
  if (!options.bias) text += ", bias=false";
  if (options.bidirectional) text += ", bidirectional";
  return text + ")";
}

// "_l1_reverse" for the second layer's reverse direction.
std::string suffix(const LstmOptions& options, int index) {
  const int layer = index / directions(options);
  return "_l" + std::to_string(layer) + (index > layer * directions(options) ? "_reverse" : "");
}

std::vector<RecurrentParameters> make_weights(const char* kind, int gates, const LstmOptions& options) {
  require_positive(kind, "in", options.in);
  require_positive(kind, "hidden", options.hidden);
  require_positive(kind, "layers", options.layers);
  require_real(kind, options.dtype);
  if (!(options.dropout >= 0.0 && options.dropout < 1.0))
    throw ArgumentError(std::string(kind) + ": dropout must be in [0, 1), got " + std::to_string(options.dropout));
  const std::int64_t hidden = options.hidden, rows = gates * hidden;
  std::vector<RecurrentParameters> weights;
  for (int i = 0; i < options.layers * directions(options); ++i) {
    const std::int64_t in = i < directions(options) ? options.in : directions(options) * hidden;
    const auto made = [&](const char* name, const Shape& shape) {
      return uniform_cell(shape, hidden, options.dtype, described(kind, options) + "." + name + suffix(options, i));
    };
    RecurrentParameters w{.weight_ih = made("weight_ih", {rows, in}), .weight_hh = made("weight_hh", {rows, hidden})};
    if (options.bias) {
      w.bias_ih = made("bias_ih", {rows});
      w.bias_hh = made("bias_hh", {rows});
    }
    weights.push_back(std::move(w));
  }
  return weights;
}

void visit_weights(Visitor& visitor, const LstmOptions& options, const std::vector<RecurrentParameters>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string end = suffix(options, static_cast<int>(i));
    visitor.parameter("weight_ih" + end, weights[i].weight_ih);
    visitor.parameter("weight_hh" + end, weights[i].weight_hh);
    if (!options.bias) continue;
    visitor.parameter("bias_ih" + end, weights[i].bias_ih);
    visitor.parameter("bias_hh" + end, weights[i].bias_hh);
  }
}

// The part of states [L * D, N, H] for one layer and direction; an empty handle stays empty.
Array state_at(const char* kind, const LstmOptions& options, const Array& states, const Array& x, int index) {
  if (!states.defined()) return {};
  const Shape want{options.layers * directions(options), x.shape()[0], options.hidden};
  if (states.shape() != want)
    throw ArgumentError(std::string(kind) + ": states of x " + x.shape().to_string() + " must be " + want.to_string() +
                        ", they are " + states.shape().to_string());
  return squeeze(slice(states, 0, index, index + 1), 0);
}

// Runs `one(x, index)` for each layer and direction; returns the last layer's outputs.
Array walk(const LstmOptions& options, bool is_training, Array x,
           const std::function<Array(const Array& x, int index)>& one) {
  for (int layer = 0; layer < options.layers; ++layer) {
    if (layer > 0 && options.dropout > 0 && is_training) x = dropout(x, options.dropout);
    const int first = layer * directions(options);
    x = options.bidirectional ? concat({one(x, first), one(x, first + 1)}, 2) : one(x, first);
  }
  return x;
}

Array stacked(std::vector<Array> states) {
  for (Array& state : states) state = unsqueeze(state, 0);
  return concat(states, 0);
}

void check_input(const char* kind, const Array& x) {
  if (!x.defined() || x.shape().rank() != 3)
    throw ArgumentError(std::string(kind) + ": needs x [N, T, C], x is " +
                        (x.defined() ? x.shape().to_string() : std::string("an empty handle")));
}

}  // namespace

Lstm::Lstm(const LstmOptions& options) : options_(options), weights_(make_weights("Lstm", 4, options)) {}

LstmOutput Lstm::run(const Input& x, const LstmState& state, const Input& lengths) {
  check_input("Lstm", x);
  std::vector<Array> h, c;
  const Array y = walk(options_, is_training(), x, [&](const Array& in, int i) {
    const LstmResult result = lstm(in, weights_[static_cast<std::size_t>(i)],
                                   {.h0 = state_at("Lstm", options_, state.h, x, i),
                                    .c0 = state_at("Lstm", options_, state.c, x, i),
                                    .lengths = lengths,
                                    .reverse = i % directions(options_) == 1});
    h.push_back(result.h_n);
    c.push_back(result.c_n);
    return result.y;
  });
  return {y, {stacked(h), stacked(c)}};
}

void Lstm::visit(Visitor& visitor) { visit_weights(visitor, options_, weights_); }

std::string Lstm::describe() const { return described("Lstm", options_); }

Gru::Gru(const GruOptions& options) : options_(options), weights_(make_weights("Gru", 3, options)) {}

GruOutput Gru::run(const Input& x, const Input& h0, const Input& lengths) {
  check_input("Gru", x);
  std::vector<Array> h;
  const Array y = walk(options_, is_training(), x, [&](const Array& in, int i) {
    const GruResult result =
        gru(in, weights_[static_cast<std::size_t>(i)],
            {.h0 = state_at("Gru", options_, h0, x, i), .lengths = lengths, .reverse = i % directions(options_) == 1});
    h.push_back(result.h_n);
    return result.y;
  });
  return {y, stacked(h)};
}

void Gru::visit(Visitor& visitor) { visit_weights(visitor, options_, weights_); }

std::string Gru::describe() const { return described("Gru", options_); }

}  // namespace samebytes::nn
