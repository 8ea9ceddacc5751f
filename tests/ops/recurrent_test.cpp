// LSTM and GRU against the formulas, step by step in double.
#include "samebytes/ops/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class RecurrentTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RecurrentTest);

using Ints = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

struct Sizes {
  std::int64_t batch, steps, in, hidden;
};

// Inputs of a layer of `gates` gates: x, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh.
std::vector<GradientInput> layer_inputs(const Sizes& s, int gates) {
  return {random_input("x", {s.batch, s.steps, s.in}, 1),
          random_input("h0", {s.batch, s.hidden}, 2),
          random_input("c0", {s.batch, s.hidden}, 3),
          random_input("weight_ih", {gates * s.hidden, s.in}, 4),
          random_input("weight_hh", {gates * s.hidden, s.hidden}, 5, -0.5, 0.5),
          random_input("bias_ih", {gates * s.hidden}, 6),
          random_input("bias_hh", {gates * s.hidden}, 7)};
}

struct Want {
  Doubles y, h, c;
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// Four gates: lstm, three: gru.
Want reference(const Sizes& s, int gates, const std::vector<GradientInput>& in, const Ints& lengths, bool reverse) {
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t hidden = count(s.hidden), steps = count(s.steps), inputs = count(s.in);
  const auto &x = in[0].values, &w = in[3].values, &u = in[4].values, &b = in[5].values, &d = in[6].values;
  Want want{Doubles(count(s.batch) * steps * hidden, 0.0), in[1].values, in[2].values};
  for (std::size_t n = 0; n < count(s.batch); ++n) {
    const std::size_t length = lengths.empty() ? steps : static_cast<std::size_t>(lengths[n]);
    for (std::size_t step = 0; step < length; ++step) {
      const std::size_t t = reverse ? length - 1 - step : step;
      const Doubles before(want.h.begin() + static_cast<std::ptrdiff_t>(n * hidden),
                           want.h.begin() + static_cast<std::ptrdiff_t>((n + 1) * hidden));
      for (std::size_t j = 0; j < hidden; ++j) {
        double a[4], q[4];  // of the inputs, of the state
        for (std::size_t g = 0; g < count(gates); ++g) {
          const std::size_t row = g * hidden + j;
          a[g] = b[row];
          q[g] = d[row];
          for (std::size_t i = 0; i < inputs; ++i) a[g] += w[row * inputs + i] * x[(n * steps + t) * inputs + i];
          for (std::size_t k = 0; k < hidden; ++k) q[g] += u[row * hidden + k] * before[k];
        }
        double &h = want.h[n * hidden + j], &c = want.c[n * hidden + j];
        if (gates == 4) {
          c = sigmoid_of(a[1] + q[1]) * c + sigmoid_of(a[0] + q[0]) * std::tanh(a[2] + q[2]);
          h = sigmoid_of(a[3] + q[3]) * std::tanh(c);
        } else {
          const double r = sigmoid_of(a[0] + q[0]), z = sigmoid_of(a[1] + q[1]);
          h = (1 - z) * std::tanh(a[2] + r * q[2]) + z * before[j];
        }
        want.y[(n * steps + t) * hidden + j] = h;
      }
    }
  }
  return want;
}

Array lengths_array(const Ints& lengths) {
  if (lengths.empty()) return {};
  return array(std::span<const std::int32_t>(lengths), {static_cast<std::int64_t>(lengths.size())});
}

LstmResult run_lstm(std::span<const Array> x, const Ints& lengths, bool reverse) {
  return lstm(x[0], {x[3], x[4], x[5], x[6]},
              {.h0 = x[1], .c0 = x[2], .lengths = lengths_array(lengths), .reverse = reverse});
}
GruResult run_gru(std::span<const Array> x, const Ints& lengths, bool reverse) {
  return gru(x[0], {x[3], x[4], x[5], x[6]}, {.h0 = x[1], .lengths = lengths_array(lengths), .reverse = reverse});
}

std::vector<Array> real_arrays(const std::vector<GradientInput>& inputs, Dtype dtype) {
  std::vector<Array> arrays;
  for (const GradientInput& input : inputs) arrays.push_back(real_array(input.values, input.shape, dtype));
  return arrays;
}

TEST_P(RecurrentTest, states_are_those_of_the_formulas) {
  struct Case {
    Sizes sizes;
    Ints lengths;
    bool reverse;
  };
  const std::vector<Case> cases{{{1, 1, 1, 1}, {}, false},
                                {{5, 4, 3, 19}, {}, false},
                                {{5, 4, 3, 19}, {}, true},
                                {{5, 4, 3, 19}, {4, 1, 0, 3, 2}, false},
                                {{5, 4, 3, 19}, {4, 1, 0, 3, 2}, true},
                                {{70, 2, 2, 67}, {}, false},
                                {{2, 3, 2, 131}, {3, 2}, true}};
  for (const Case& c : cases)
    for (const Dtype dtype : real_dtypes()) {
      const double tolerance = 8 * sum_tolerance(dtype, c.sizes.hidden);
      const auto four = layer_inputs(c.sizes, 4), three = layer_inputs(c.sizes, 3);
      const Want want = reference(c.sizes, 4, four, c.lengths, c.reverse);
      const LstmResult came = run_lstm(real_arrays(four, dtype), c.lengths, c.reverse);
      EXPECT_TRUE(all_close(came.y, want.y, tolerance)) << c.sizes.hidden << c.reverse;
      EXPECT_TRUE(all_close(came.h_n, want.h, tolerance));
      EXPECT_TRUE(all_close(came.c_n, want.c, tolerance));
      const Want other = reference(c.sizes, 3, three, c.lengths, c.reverse);
      const GruResult gru_came = run_gru(real_arrays(three, dtype), c.lengths, c.reverse);
      EXPECT_TRUE(all_close(gru_came.y, other.y, tolerance)) << c.sizes.hidden << c.reverse;
      EXPECT_TRUE(all_close(gru_came.h_n, other.h, tolerance));
    }
}

Array joined(std::initializer_list<Array> parts) {
  std::vector<Array> flat;
  for (const Array& part : parts) flat.push_back(reshape(part, {-1}));
  return concat(flat, 0);
}

TEST_P(RecurrentTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  const Ints lengths{3, 0, 1, 2, 3};
  for (const bool padded : {false, true}) {
    const Sizes sizes = padded ? Sizes{5, 3, 2, 3} : Sizes{2, 3, 2, 9};
    const Ints used = padded ? lengths : Ints();
    EXPECT_TRUE(check_gradients(
        [&](auto x) {
          const LstmResult r = run_lstm(x, used, padded);
          return joined({r.y, r.h_n, r.c_n});
        },
        layer_inputs(sizes, 4)))
        << padded;
    auto inputs = layer_inputs(sizes, 3);
    EXPECT_TRUE(check_gradients(
        [&](auto x) {
          const GruResult r = run_gru(x, used, padded);
          return joined({r.y, r.h_n, x[2]});
        },
        inputs))
        << padded;
  }
}

TEST_P(RecurrentTest, a_single_result_has_its_gradient_and_biases_may_be_missing) {
  SAMEBYTES_NEEDS_F64();
  const auto in = layer_inputs({2, 2, 2, 3}, 4), three = layer_inputs({2, 2, 2, 3}, 3);
  EXPECT_TRUE(check_gradients([](auto x) { return lstm(x[0], {x[1], x[2]}).c_n; }, {in[0], in[3], in[4]}));
  EXPECT_TRUE(check_gradients([](auto x) { return gru(x[0], {x[1], x[2]}).h_n; }, {three[0], three[3], three[4]}));
}

TEST_P(RecurrentTest, gradients_of_many_sequences_agree_with_those_of_each_alone) {
  const Sizes sizes{37, 3, 3, 40};
  const auto inputs = layer_inputs(sizes, 4);
  const std::vector<Array> all = real_arrays(inputs, f32);
  const std::vector<Array> wrt{all[0], all[1], all[4]};
  const Array dx = gradients(sum(square(run_lstm(all, {}, false).y)), wrt)[0];
  std::vector<Array> one = all;
  for (const int k : {0, 1, 2})
    one[static_cast<std::size_t>(k)] = contiguous(slice(all[static_cast<std::size_t>(k)], 0, 36, 37));
  const Array alone = gradients(sum(square(run_lstm(one, {}, false).y)), std::vector<Array>{one[0]})[0];
  EXPECT_TRUE(all_close(slice(dx, 0, 36, 37), alone.to_vector<double>(), 8 * sum_tolerance(f32, 160)));
}

TEST_P(RecurrentTest, a_length_outside_the_steps_gives_nan) {
  const auto inputs = real_arrays(layer_inputs({3, 2, 1, 2}, 4), f32);
  const LstmResult r = run_lstm(inputs, {2, 3, -1}, false);
  const Doubles y = r.y.to_vector<double>(), h = r.h_n.to_vector<double>(), c = r.c_n.to_vector<double>();
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i >= 4) << i;
  for (std::size_t i = 0; i < h.size(); ++i) EXPECT_TRUE(std::isnan(h[i]) == (i >= 2) && std::isnan(c[i]) == (i >= 2));
  const std::vector<Array> wrt{inputs[0]};
  const Array dx = gradients(sum(slice(run_lstm(inputs, {2, 3, -1}, false).y, 0, 0, 1)), wrt)[0];
  for (const double value : dx.to_vector<double>()) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(RecurrentTest, sixteen_bit_inputs_and_empty_sequences_are_taken) {
  const auto inputs = real_arrays(layer_inputs({2, 2, 2, 3}, 3), f32);
  const RecurrentWeights weights{inputs[3], inputs[4], inputs[5], inputs[6]};
  const GruResult r = gru(astype(inputs[0], bf16), weights);
  EXPECT_EQ(r.y.dtype(), bf16);
  EXPECT_TRUE(all_close(r.y, gru(inputs[0], weights).y.to_vector<double>(), 0x1p-6));
  const GruResult none = gru(zeros({2, 0, 2}), weights, {.h0 = inputs[1]});
  EXPECT_EQ(none.y.shape(), (Shape{2, 0, 3}));
  EXPECT_TRUE(same_bytes(none.h_n, inputs[1]));
  EXPECT_EQ(gru(zeros({0, 4, 2}), weights).y.shape(), (Shape{0, 4, 3}));
}

TEST_P(RecurrentTest, wrong_arguments_are_refused) {
  const Array x = zeros({2, 3, 4}), ih = zeros({8, 4}), hh = zeros({8, 2});
  EXPECT_ERROR((lstm(zeros({2, 3}), {ih, hh})), ArgumentError,
               "lstm: needs floating x [N, T, C] of at least one input, x is f32 [2, 3]");
  EXPECT_ERROR((gru(x, {ih, hh})), ArgumentError, "gru: needs weight_hh [3 * H, H], weight_hh is f32 [8, 2]");
  EXPECT_ERROR((lstm(x, {zeros({8, 3}), hh})), ArgumentError,
               "lstm: x f32 [2, 3, 4] and 2 hidden units need weight_ih [8, 4], weight_ih is f32 [8, 3]");
  EXPECT_ERROR((lstm(x, {ih, hh, zeros({4})})), ArgumentError,
               "lstm: x f32 [2, 3, 4] and 2 hidden units need bias_ih [8], bias_ih is f32 [4]");
  EXPECT_ERROR(((lstm(x, {ih, hh}, {.h0 = zeros({3, 2})}))), ArgumentError,
               "lstm: x f32 [2, 3, 4] and 2 hidden units need h0 [2, 2], h0 is f32 [3, 2]");
  EXPECT_ERROR(((lstm(x, {ih, hh}, {.lengths = zeros({2})}))), ArgumentError,
               "lstm: needs a length of i32 or i64 for each sequence, lengths is f32 [2]");
  EXPECT_ERROR(((gru(x, {zeros({6, 4}), zeros({6, 2})}, {.c0 = zeros({2, 2})}))), ArgumentError,
               "gru: has no cell state, c0 is f32 [2, 2]");
}

class SmallShapesRecurrentTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesRecurrentTest);

TEST_P(SmallShapesRecurrentTest, lstm_and_gru) {
  using In = std::span<const Array>;
  const Ints lengths{2, 0, 1};
  const std::vector<Shape> four{{3, 2, 2}, {3, 3}, {3, 3}, {12, 2}, {12, 3}, {12}, {12}};
  const std::vector<Shape> three{{3, 2, 2}, {3, 3}, {1}, {9, 2}, {9, 3}, {9}, {9}};
  run(
      [&](In x) {
        const LstmResult r = run_lstm(x, lengths, true);
        return joined({r.y, r.c_n});
      },
      four);
  run([&](In x) { return joined({run_gru(x, {}, false).y, x[2]}); }, three);
}

}  // namespace
}  // namespace samebytes::testing
