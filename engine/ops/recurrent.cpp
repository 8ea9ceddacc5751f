// LSTM and GRU. The inputs' product over all steps is a linear op; the recurrence is one launch for all steps, and so
// is its gradient, which leaves the gradients of the weights to one product each. Kernels: cl/*/recurrent.cl.
#include "samebytes/ops/recurrent.h"

#include <algorithm>
#include <string>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/written.h"
#include "ops/dtypes.h"
#include "ops/indexing.h"
#include "ops/sizes.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

struct Form {
  bool is_lstm = false, is_reversed = false, has_lengths = false, has_bias = false;

  int gates() const { return is_lstm ? 4 : 3; }
  void hash(Hasher& hasher) const {
    hasher.add(std::uint64_t{is_lstm} | std::uint64_t{is_reversed} << 1 | std::uint64_t{has_lengths} << 2 |
               std::uint64_t{has_bias} << 3);
  }
};

// Batch, steps and units, and how the sequences are shared among groups; a function of the shape alone.
// Sequences of a group, of a batch and tiles of so many; how wide a panel of the weights is.
struct RecurrentTiling {
  int (*rows)(int batch, int tile);
  std::int64_t (*panel)(const Launch& run, int units, int vectors, Dtype real);
};
int cpu_sequences(int batch, int tile) {
  constexpr int kGroups = 8;  // wanted, so that the cores get equal shares
  constexpr int kMost = 16;   // of a group: their states stay in the first-level cache
  return batch < tile ? 1 : std::min(kMost, ((batch + kGroups - 1) / kGroups + tile - 1) / tile * tile);
}
constexpr PerPersonality<RecurrentTiling> kRecurrentTiling{
    {.rows = cpu_sequences,
     .panel = [](const Launch& run, int, int vectors,
                 Dtype real) { return std::int64_t{vectors} * run.device().vector_width(real); }},
    {.rows = [](int, int tile) { return tile; },
     .panel = [](const Launch&, int units, int, Dtype) { return std::int64_t{units}; }}};

struct Sharing {
  int batch, steps, hidden;
  int rows_per_group;
  std::int64_t groups;
  int group;  // work-items of a group in the gpu personality

  Sharing(const Launch& run, const Shape& states, Dtype real)
      : batch(static_cast<int>(states[0])), steps(static_cast<int>(states[1])), hidden(static_cast<int>(states[2])) {
    const int tile = static_cast<int>(run.constant("recurrent", "RECURRENT_ROWS", real));
    rows_per_group = run.pick(kRecurrentTiling).rows(batch, tile);
    groups = (batch + rows_per_group - 1) / rows_per_group;
    group = hidden <= 64 ? 64 : hidden <= 128 ? 128 : 256;
  }
};

// The recurrent weights as the kernels read them: panels of `vectors` vectors on a CPU, whole rows on a GPU.
struct Panels {
  int units, depth, gates, vectors;
  std::int64_t gate_stride, unit_stride, k_stride;

  Operand pack(Launch& run, Operand weight, Dtype real) const {
    const std::int64_t width = run.pick(kRecurrentTiling).panel(run, units, vectors, real);
    const std::int64_t panels = (units + width - 1) / width;
    const std::int64_t block = run.constant("recurrent", "RECURRENT_BLOCK", real);
    const Operand packed = run.temp(panels * depth * gates * width, real);
    run.kernel("recurrent_pack", real)
        .args(weight, packed, units, static_cast<int>(width), depth, gates, gate_stride, unit_stride, k_stride)
        .over_rows(panels * ((depth + block - 1) / block));
    return packed;
  }
};

// Inputs: gates, cells (lstm) or inner (gru), y, h0, weight_hh, c0 of an lstm, lengths if any, then those of dy, dh_n,
// dc_n that are defined. Results: dsrc, h_before, dh0, then dc0 (lstm) or dinner (gru).
class RecurrentBackward final : public Op {
 public:
  RecurrentBackward(const Form& form, bool has_dy, bool has_dh, bool has_dc)
      : form_(form), has_dy_(has_dy), has_dh_(has_dh), has_dc_(has_dc) {}
  std::string_view name() const override { return form_.is_lstm ? "lstm_backward" : "gru_backward"; }
  void hash(Hasher& hasher) const override {
    form_.hash(hasher);
    hasher.add(std::uint64_t{has_dy_} | std::uint64_t{has_dh_} << 1 | std::uint64_t{has_dc_} << 2);
  }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const Sharing at(run, run.dst_shape(1), real);
    const int depth = form_.gates() * at.hidden;
    const Panels panels{.units = at.hidden,
                        .depth = depth,
                        .gates = 1,
                        .vectors = 4,
                        .gate_stride = 0,
                        .unit_stride = 1,
                        .k_stride = at.hidden};
    const Operand weight = panels.pack(run, run.src(4), real);
    int next = 5;
    const auto taken = [&](bool is_there) { return is_there ? run.src(next++) : Launch::none(); };
    const Operand c0 = taken(form_.is_lstm), lengths = taken(form_.has_lengths);
    const Operand dy = taken(has_dy_), dh_n = taken(has_dh_), dc_n = taken(has_dc_);
    const int reversed = int{form_.is_reversed};
    if (form_.is_lstm)
      run.kernel("recurrent_lstm_bwd", real)
          .args(run.src(0), run.src(1), run.src(2), run.src(3), c0, weight, lengths, dy, dh_n, dc_n, run.dst(0),
                run.dst(1), run.dst(2), run.dst(3), at.batch, at.steps, at.hidden, at.rows_per_group, reversed)
          .over_rows(at.groups, at.group);
    else
      run.kernel("recurrent_gru_bwd", real)
          .args(run.src(0), run.src(1), run.src(2), run.src(3), weight, lengths, dy, dh_n, run.dst(0), run.dst(3),
                run.dst(1), run.dst(2), at.batch, at.steps, at.hidden, at.rows_per_group, reversed)
          .over_rows(at.groups, at.group);
  }

 private:
  Form form_;
  bool has_dy_, has_dh_, has_dc_;
};

// Inputs: src [N, T, G H] of the inputs, weight_hh, h0, c0 of an lstm, the bias of a gru if any, lengths if any.
// Results: y, h_n, c_n (lstm), gates, cells (lstm) or inner (gru).
class Recurrent final : public Op, public Written {
 public:
  explicit Recurrent(const Form& form) : form_(form) {}
  std::string_view name() const override { return form_.is_lstm ? "lstm" : "gru"; }
  void hash(Hasher& hasher) const override { form_.hash(hasher); }

  void launch(Launch& run) const override {
    const Dtype real = run.dst_dtype();
    const Sharing at(run, run.dst_shape(0), real);
    const Panels panels{.units = at.hidden,
                        .depth = at.hidden,
                        .gates = form_.gates(),
                        .vectors = 1,
                        .gate_stride = std::int64_t{at.hidden} * at.hidden,
                        .unit_stride = at.hidden,
                        .k_stride = 1};
    const Operand weight = panels.pack(run, run.src(1), real);
    int next = 3;
    const auto taken = [&](bool is_there) { return is_there ? run.src(next++) : Launch::none(); };
    const Operand c0 = taken(form_.is_lstm), bias = taken(form_.has_bias), lengths = taken(form_.has_lengths);
    const int reversed = int{form_.is_reversed};
    if (form_.is_lstm)
      run.kernel("recurrent_lstm_fwd", real)
          .args(run.src(0), weight, run.src(2), c0, lengths, run.dst(0), run.dst(1), run.dst(2), run.dst(3), run.dst(4),
                at.batch, at.steps, at.hidden, at.rows_per_group, reversed)
          .over_rows(at.groups, at.group);
    else
      run.kernel("recurrent_gru_fwd", real)
          .args(run.src(0), weight, bias, run.src(2), lengths, run.dst(0), run.dst(1), run.dst(2), run.dst(3), at.batch,
                at.steps, at.hidden, at.rows_per_group, reversed)
          .over_rows(at.groups, at.group);
  }

  std::vector<Array> gradient(const GradientRequest& request) const override {
    std::vector<Array> result(request.src.size());
    const int kept = form_.is_lstm ? 3 : 2;  // the first result that only the gradient reads
    const Array &dy = request.dy[0], &dh_n = request.dy[1], dc_n = form_.is_lstm ? request.dy[2] : Array();
    if (!dy.defined() && !dh_n.defined() && !dc_n.defined()) return result;
    const Array &src = request.src[0], &weight = request.src[1], &h0 = request.src[2];
    const Array& y = request.dst[0];
    std::vector<Array> inputs{request.dst[kept], request.dst[kept + 1], y, h0, weight};
    if (form_.is_lstm) inputs.push_back(request.src[3]);
    if (form_.has_lengths) inputs.push_back(request.src.back());
    for (const Array& d : {dy, dh_n, dc_n})
      if (d.defined()) inputs.push_back(d);
    const Dtype real = y.dtype();
    const std::vector<Result> results{
        {src.shape(), real}, {y.shape(), real}, {h0.shape(), real}, {form_.is_lstm ? h0.shape() : src.shape(), real}};
    const auto op = make_op<RecurrentBackward>(form_, dy.defined(), dh_n.defined(), dc_n.defined());
    const std::vector<Array> d = make_arrays(op, results, inputs);
    const Array& inner = form_.is_lstm ? d[0] : d[3];  // the gradient of the product with weight_hh
    result[0] = d[0];
    if (request.wanted[1])
      result[1] = matmul(transpose(reshape(inner, {-1, src.shape().back()})), reshape(d[1], {-1, h0.shape().back()}));
    result[2] = d[2];
    if (form_.is_lstm)
      result[3] = d[3];
    else if (form_.has_bias && request.wanted[3])
      result[3] = sum(inner, {0, 1});
    return result;
  }

  // ONNX has the inputs' product inside of the node, the gates i o f c or z r h, an axis of directions in front of all,
  // and the steps before the batch.
  void write(NodeWriter& w) const override {
    const std::int64_t batch = w.shape(0)[0], steps = w.shape(0)[1], hidden = w.shape(2)[1], rows = w.shape(0)[2];
    const Dtype real = w.result_dtype();
    const NodeWriter::Ints order = form_.is_lstm ? NodeWriter::Ints{0, 3, 1, 2} : NodeWriter::Ints{1, 0, 2};
    const auto gates = [&](const NodeWriter::Name& value) {
      std::vector<NodeWriter::Name> parts;
      for (const std::int64_t gate : order)
        parts.push_back(w.put("Slice", {value, w.ints({gate * hidden}), w.ints({(gate + 1) * hidden}), w.ints({0})}));
      return w.put("Concat", parts, {{"axis", std::int64_t{0}}});
    };
    const auto one_direction = [&](const NodeWriter::Name& value) { return w.put("Unsqueeze", {value, w.ints({0})}); };
    const auto product = w.product(w.in(0));
    if (!product) w.refuse("its inputs are no product with weights");
    std::size_t next = 3;
    const auto taken = [&](bool is_there) { return is_there ? w.in(next++) : NodeWriter::Name(); };
    const NodeWriter::Name c0 = taken(form_.is_lstm), hidden_bias = taken(form_.has_bias),
                           lengths = taken(form_.has_lengths);
    NodeWriter::Name bias;
    if (!product->bias.empty() || !hidden_bias.empty()) {
      const auto half = [&](const NodeWriter::Name& value) {
        const auto n = static_cast<std::size_t>(rows);
        return value.empty() ? w.numbers(std::vector<double>(n, 0.0), {rows}, real) : gates(value);
      };
      const NodeWriter::Name first = half(product->bias), second = half(hidden_bias);
      bias = one_direction(w.put("Concat", {first, second}, {{"axis", std::int64_t{0}}}));
    }
    const auto x = w.put("Reshape", {product->x, w.ints({batch, steps, -1})});
    std::vector<NodeWriter::Name> inputs{
        w.turned(x, {1, 0, 2}), one_direction(gates(product->weight)), one_direction(gates(w.in(1))), bias, lengths,
        one_direction(w.in(2))};
    if (form_.is_lstm) inputs.push_back(one_direction(c0));
    NodeWriter::Attributes attributes{{"hidden_size", hidden},
                                      {"direction", std::string(form_.is_reversed ? "reverse" : "forward")}};
    if (!form_.is_lstm) attributes.push_back({"linear_before_reset", std::int64_t{1}});
    const auto made = w.put_all(form_.is_lstm ? "LSTM" : "GRU", inputs, attributes, form_.is_lstm ? 3 : 2);
    w.give(w.turned(w.reshaped(made[0], {steps, batch, hidden}), {1, 0, 2}));
    for (int i = 1; i < std::ssize(made); ++i)
      w.give(w.reshaped(made[static_cast<std::size_t>(i)], {batch, hidden}), i);
  }

 private:
  Form form_;
};

struct Checked {
  Array x, weight_ih, weight_hh, bias_ih, bias_hh, h0, c0;  // of one dtype, f32 or f64
};

Checked check_recurrent(const char* op, int gates, const Array& x, const RecurrentWeights& weights,
                        const RecurrentOptions& options) {
  require(x.defined() && is_floating(x.dtype()) && x.shape().rank() == 3 && x.shape()[2] > 0, op,
          "needs floating x [N, T, C] of at least one input", x, "x");
  const Dtype real = real_of(x.dtype());
  const Array& hh = weights.weight_hh;
  require(hh.defined() && is_floating(hh.dtype()) && hh.shape().rank() == 2 && hh.shape()[1] > 0 &&
              hh.shape()[0] == gates * hh.shape()[1],
          op, ("needs weight_hh [" + std::to_string(gates) + " * H, H]").c_str(), hh, "weight_hh");
  const std::int64_t batch = x.shape()[0], hidden = hh.shape()[1];
  require_ints(op, "sequences, steps and gates of all units", {batch, x.shape()[1], hh.shape()[0]});
  const auto checked = [&](const Array& a, const Shape& shape, const char* name) {
    require(
        a.defined() && is_floating(a.dtype()) && real_of(a.dtype()) == real && a.shape() == shape, op,
        ("x " + describe(x) + " and " + std::to_string(hidden) + " hidden units need " + name + " " + shape.to_string())
            .c_str(),
        a, name);
    return a.dtype() == real ? a : astype(a, real);
  };
  const auto optional = [&](const Array& a, const Shape& shape, const char* name) {
    return a.defined() ? checked(a, shape, name) : Array();
  };
  const auto state = [&](const Array& a, const char* name) {
    return a.defined() ? checked(a, {batch, hidden}, name) : zeros({batch, hidden}, real);
  };
  const Array& lengths = options.lengths;
  if (lengths.defined())
    require((lengths.dtype() == i32 || lengths.dtype() == i64) && lengths.shape() == Shape{batch}, op,
            "needs a length of i32 or i64 for each sequence", lengths, "lengths");
  return {.x = x.dtype() == real ? x : astype(x, real),
          .weight_ih = checked(weights.weight_ih, {gates * hidden, x.shape()[2]}, "weight_ih"),
          .weight_hh = checked(hh, hh.shape(), "weight_hh"),
          .bias_ih = optional(weights.bias_ih, {gates * hidden}, "bias_ih"),
          .bias_hh = optional(weights.bias_hh, {gates * hidden}, "bias_hh"),
          .h0 = state(options.h0, "h0"),
          .c0 = state(options.c0, "c0")};
}

}  // namespace
}  // namespace detail

const detail::CastRow kLstmCast{"lstm", CastRule::lower};
LstmResult lstm(const Input& x, const RecurrentWeights& weights, const RecurrentOptions& options) {
  if (const detail::Casts cast(kLstmCast); cast)
    return lstm(cast(x), {cast(weights.weight_ih), cast(weights.weight_hh), weights.bias_ih, weights.bias_hh}, options);
  constexpr int kGates = 4;
  const detail::Checked in = detail::check_recurrent("lstm", kGates, x, weights, options);
  const Dtype real = in.x.dtype();
  const Shape &state = in.h0.shape(), states{x.shape()[0], x.shape()[1], state[1]};
  if (states.size() == 0)
    return {zeros(states, x.dtype()), detail::as_dtype(in.h0, x.dtype()), detail::as_dtype(in.c0, x.dtype())};
  // Both biases are added to the same sums.
  const Array bias = in.bias_ih.defined() && in.bias_hh.defined() ? in.bias_ih + in.bias_hh
                     : in.bias_ih.defined()                       ? in.bias_ih
                                                                  : in.bias_hh;
  const Array src = linear(in.x, in.weight_ih, bias);
  std::vector<Array> inputs{src, in.weight_hh, in.h0, in.c0};
  if (options.lengths.defined()) inputs.push_back(detail::as_i32(options.lengths));
  const std::vector<detail::Result> results{
      {states, real}, {state, real}, {state, real}, {src.shape(), real}, {states, real}};
  const detail::Form form{.is_lstm = true, .is_reversed = options.reverse, .has_lengths = options.lengths.defined()};
  const auto d = detail::make_arrays(detail::make_op<detail::Recurrent>(form), results, inputs);
  return {detail::as_dtype(d[0], x.dtype()), detail::as_dtype(d[1], x.dtype()), detail::as_dtype(d[2], x.dtype())};
}

const detail::CastRow kGruCast{"gru", CastRule::lower};
GruResult gru(const Input& x, const RecurrentWeights& weights, const RecurrentOptions& options) {
  if (const detail::Casts cast(kGruCast); cast)
    return gru(cast(x), {cast(weights.weight_ih), cast(weights.weight_hh), weights.bias_ih, weights.bias_hh}, options);
  constexpr int kGates = 3;
  if (options.c0.defined()) throw ArgumentError("gru: has no cell state, c0 is " + detail::describe(options.c0));
  const detail::Checked in = detail::check_recurrent("gru", kGates, x, weights, options);
  const Dtype real = in.x.dtype();
  const Shape &state = in.h0.shape(), states{x.shape()[0], x.shape()[1], state[1]};
  if (states.size() == 0) return {zeros(states, x.dtype()), detail::as_dtype(in.h0, x.dtype())};
  const Array src = linear(in.x, in.weight_ih, in.bias_ih);
  std::vector<Array> inputs{src, in.weight_hh, in.h0};
  if (in.bias_hh.defined()) inputs.push_back(in.bias_hh);
  if (options.lengths.defined()) inputs.push_back(detail::as_i32(options.lengths));
  const std::vector<detail::Result> results{{states, real}, {state, real}, {src.shape(), real}, {states, real}};
  const detail::Form form{
      .is_reversed = options.reverse, .has_lengths = options.lengths.defined(), .has_bias = in.bias_hh.defined()};
  const auto d = detail::make_arrays(detail::make_op<detail::Recurrent>(form), results, inputs);
  return {detail::as_dtype(d[0], x.dtype()), detail::as_dtype(d[1], x.dtype())};
}

}  // namespace samebytes
