#include "samebytes/nn/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class RecurrentLayersTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RecurrentLayersTest);

TEST_P(RecurrentLayersTest, parameters_have_pytorchs_names_shapes_and_range) {
  nn::Lstm layer({.in = 3, .hidden = 4, .layers = 2, .bidirectional = true});
  const std::vector<std::string> ends{"_l0", "_l0_reverse", "_l1", "_l1_reverse"};
  const std::vector<nn::NamedArray> state = layer.state();
  ASSERT_EQ(state.size(), 16u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(state[4 * i].name, "weight_ih" + ends[i]);
    EXPECT_EQ(state[4 * i].array.shape(), (Shape{16, i < 2 ? 3 : 8}));
    EXPECT_EQ(state[4 * i + 1].name, "weight_hh" + ends[i]);
    EXPECT_EQ(state[4 * i + 1].array.shape(), (Shape{16, 4}));
    EXPECT_EQ(state[4 * i + 2].name, "bias_ih" + ends[i]);
    EXPECT_EQ(state[4 * i + 3].name, "bias_hh" + ends[i]);
    EXPECT_EQ(state[4 * i + 3].array.shape(), (Shape{16}));
  }
  double largest = 0;
  for (const double value : state[0].array.to_vector<double>()) largest = std::max(largest, std::abs(value));
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.4);
  nn::Gru plain({.in = 3, .hidden = 5, .bias = false});
  EXPECT_EQ(plain.state().size(), 2u);
  EXPECT_EQ(plain.weights()[0].weight_hh.shape(), (Shape{15, 5}));
  EXPECT_EQ(plain.describe(), "Gru(3, 5, bias=false)");
  EXPECT_EQ(layer.describe(), "Lstm(3, 4, layers=2, bidirectional)");
}

TEST_P(RecurrentLayersTest, layers_and_directions_are_the_op_one_after_the_other) {
  const Array x = uniform({2, 5, 3}, -1, 1);
  const std::vector<std::int32_t> values{5, 2};
  const Array lengths = array(std::span<const std::int32_t>(values), {2});
  nn::Lstm layer({.in = 3, .hidden = 4, .layers = 2, .bidirectional = true});
  const nn::LstmState start{uniform({4, 2, 4}, -1, 1), uniform({4, 2, 4}, -1, 1)};
  const nn::LstmOutput came = layer.run(x, start, lengths);
  EXPECT_EQ(came.y.shape(), (Shape{2, 5, 8}));
  const auto at = [&](const Array& states, int i) { return squeeze(slice(states, 0, i, i + 1), 0); };
  const auto one = [&](const Array& in, int i) {
    return lstm(in, layer.weights()[static_cast<std::size_t>(i)],
                {.h0 = at(start.h, i), .c0 = at(start.c, i), .lengths = lengths, .reverse = i % 2 == 1});
  };
  const Array middle = concat({one(x, 0).y, one(x, 1).y}, 2);
  const LstmResult last = one(middle, 3);
  EXPECT_TRUE(same_bytes(slice(came.y, 2, 4, 8), last.y));
  EXPECT_TRUE(same_bytes(at(came.state.h, 3), last.h_n));
  EXPECT_TRUE(same_bytes(at(came.state.c, 3), last.c_n));
  EXPECT_TRUE(same_bytes(at(came.state.h, 0), one(x, 0).h_n));
}

TEST_P(RecurrentLayersTest, a_sequence_in_two_parts_ends_as_in_one) {
  const Array x = uniform({3, 6, 2}, -1, 1);
  nn::Gru layer({.in = 2, .hidden = 5, .layers = 2});
  const nn::GruOutput whole = layer.run(x);
  const nn::GruOutput first = layer.run(slice(x, 1, 0, 4));
  const nn::GruOutput second = layer.run(slice(x, 1, 4, 6), first.h_n);
  EXPECT_TRUE(all_close(second.h_n, whole.h_n.to_vector<double>(), 1e-6));
  EXPECT_TRUE(all_close(slice(whole.y, 1, 4, 6), second.y.to_vector<double>(), 1e-6));
  EXPECT_TRUE(same_bytes(layer(x), whole.y));
}

TEST_P(RecurrentLayersTest, dropout_lies_between_layers_in_training_only) {
  const Array x = uniform({2, 3, 2}, -1, 1);
  nn::Gru layer({.in = 2, .hidden = 6, .layers = 2, .dropout = 0.5});
  EXPECT_FALSE(same_bytes(layer(x), layer(x)));
  layer.eval();
  EXPECT_TRUE(same_bytes(layer(x), layer(x)));
}

TEST_P(RecurrentLayersTest, it_learns_to_remember_the_first_step) {
  nn::Lstm layer({.in = 1, .hidden = 8});
  nn::Linear out({.in = 8, .out = 1});
  std::vector<Array> parameters = layer.parameters();
  for (const Array& p : out.parameters()) parameters.push_back(p);
  optim::Adam adam(parameters, {.rate = 0.02f});
  double last = 0;
  for (int step = 0; step < 150; ++step) {
    const Array x = uniform({16, 5, 1}, -1, 1);
    const Array loss = mse_loss(out(squeeze(layer.run(x).state.h, 0)), squeeze(slice(x, 1, 0, 1), 1));
    adam.step(loss);
    if (step == 149) last = loss.value();
  }
  EXPECT_LT(last, 0.1);  // 1 / 3 is what a constant gets
}

TEST_P(RecurrentLayersTest, wrong_arguments_are_refused) {
  EXPECT_ERROR((nn::Lstm({.in = 0, .hidden = 2})), ArgumentError, "Lstm: in must be at least 1, got 0");
  EXPECT_ERROR((nn::Gru({.in = 1, .hidden = 2, .dropout = 1})), ArgumentError,
               "Gru: dropout must be in [0, 1), got 1.000000");
  nn::Gru layer({.in = 1, .hidden = 2});
  EXPECT_ERROR((layer(zeros({3, 1}))), ArgumentError, "Gru: needs x [N, T, C], x is [3, 1]");
  EXPECT_ERROR((layer.run(zeros({3, 1, 1}), zeros({2, 3, 2}))), ArgumentError,
               "Gru: states of x [3, 1, 1] must be [1, 3, 2], they are [2, 3, 2]");
}

}  // namespace
}  // namespace samebytes::testing
