// Layers that hand a state from call to call, attention with graphs of its own, real signals from half a spectrum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/one_node.h"
#include "samebytes/ops.h"
#include "support/gradcheck.h"

namespace samebytes::onnx {
namespace {

using testing::all_close;
using testing::check_gradients;
using testing::random_input;

class OnnxStates : public ::testing::Test {
 protected:
  const Engine engine;
  const TemporaryFolder folder;
};

double silu_of(double x) { return x / (1 + std::exp(-x)); }

TEST_F(OnnxStates, a_causal_convolution_goes_on_from_its_state) {
  constexpr int kSamples = 2, kChannels = 3, kLength = 5, kTaps = 3;
  OneNode file("CausalConvWithState", {"x", "w", "b", "past"}, 27);
  Maker::set(*file.node, "activation", std::string("silu"));
  const std::vector<testing::GradientInput> inputs{
      random_input("x", {kSamples, kChannels, kLength}, 1), random_input("w", {kChannels, 1, kTaps}, 2),
      random_input("b", {kChannels}, 3), random_input("past", {kSamples, kChannels, kTaps - 1}, 4)};
  const auto f = file.function(folder, inputs);
  std::vector<double> want;
  for (int row = 0; row < kSamples * kChannels; ++row)
    for (int t = 0; t < kLength; ++t) {
      double sum = inputs[2].values[std::size_t(row % kChannels)];
      for (int tap = 0; tap < kTaps; ++tap) {
        const int at = t + tap - (kTaps - 1);
        const double value = at < 0 ? inputs[3].values[std::size_t(row * (kTaps - 1) + kTaps - 1 + at)]
                                    : inputs[0].values[std::size_t(row * kLength + at)];
        sum += inputs[1].values[std::size_t(row % kChannels * kTaps + tap)] * value;
      }
      want.push_back(silu_of(sum));
    }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

// A file whose node gives its state as a second output: a sequence in two calls is the sequence in one.
void expect_handed_on(OneNode& file, const TemporaryFolder& folder, const std::vector<testing::GradientInput>& inputs,
                      const std::string& past, int axis, const std::vector<std::string>& whole) {
  file.node->add_output("state");
  file.maker.output("state");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::string> sizes;
    for (int k = 0; k < inputs[i].shape.rank(); ++k) sizes.push_back(file.names[i] + std::to_string(k));
    file.maker.input(file.names[i], sizes, kF64);
  }
  Model model = load(file.maker.saved(folder));
  const NoGrad no_grad;
  const std::vector<Array> arrays = arrays_of(inputs);
  const auto run = [&](std::int64_t first, std::int64_t last, const Array& state) {
    std::map<std::string, Value> given;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::string& name = file.names[i];
      const bool is_whole = std::find(whole.begin(), whole.end(), name) != whole.end();
      given[name] = name == past ? state : is_whole ? arrays[i] : slice(arrays[i], axis, first, last);
    }
    const auto made = model.run(given);
    return std::pair(std::get<Array>(made.at("y")), std::get<Array>(made.at("state")));
  };
  const auto at = std::find(file.names.begin(), file.names.end(), past) - file.names.begin();
  const Array start = arrays[static_cast<std::size_t>(at)];
  const std::int64_t length = arrays[0].shape()[axis];
  const auto all = run(0, length, start), first = run(0, 1, start), rest = run(1, length, first.second);
  EXPECT_TRUE(all_close(concat({first.first, rest.first}, axis), all.first.to_vector<double>(), 1e-12));
  EXPECT_TRUE(all_close(rest.second, all.second.to_vector<double>(), 1e-12));
}

TEST_F(OnnxStates, two_calls_of_a_causal_convolution_are_one) {
  OneNode file("CausalConvWithState", {"x", "w", "", "past"}, 27);
  expect_handed_on(
      file, folder,
      {random_input("x", {1, 2, 5}, 1), random_input("w", {2, 1, 4}, 2), random_input("past", {1, 2, 3}, 3)}, "past", 2,
      {"w"});
}

// Two queries share each of two heads; the decay is one of each position of the keys, the rate one of each head.
std::vector<testing::GradientInput> attention_inputs() {
  return {random_input("q", {1, 3, 12}, 1),
          random_input("k", {1, 3, 6}, 2),
          random_input("v", {1, 3, 4}, 3),
          random_input("past", {1, 2, 3, 2}, 4),
          random_input("decay", {1, 3, 6}, 5, -1.0, 0.0),
          random_input("beta", {1, 3, 2}, 6, 0.1, 0.9)};
}

TEST_F(OnnxStates, linear_attention_is_its_recurrence) {
  constexpr int kSteps = 3, kHeads = 2, kShared = 2, kDepth = 3, kWidth = 2;
  OneNode file("LinearAttention", {"q", "k", "v", "past", "decay", "beta"}, 27);
  Maker::set(*file.node, "q_num_heads", std::int64_t{kHeads * kShared});
  Maker::set(*file.node, "kv_num_heads", std::int64_t{kHeads});
  Maker::set_real(*file.node, "scale", 0.5F);
  const auto inputs = attention_inputs();
  const auto f = file.function(folder, inputs);
  const auto at = [&](int input, int step, int count, int i) {
    return inputs[std::size_t(input)].values[std::size_t(step * count + i)];
  };
  std::vector<double> state = inputs[3].values, want(std::size_t(kSteps * kHeads * kShared * kWidth), 0.0);
  for (int t = 0; t < kSteps; ++t)
    for (int head = 0; head < kHeads; ++head) {
      const auto key = [&](int d) { return at(1, t, kHeads * kDepth, head * kDepth + d); };
      const auto cell = [&](int d, int e) -> double& { return state[std::size_t((head * kDepth + d) * kWidth + e)]; };
      for (int e = 0; e < kWidth; ++e) {
        double told = 0;
        for (int d = 0; d < kDepth; ++d) {
          cell(d, e) *= std::exp(at(4, t, kHeads * kDepth, head * kDepth + d));
          told += cell(d, e) * key(d);
        }
        const double news = at(5, t, kHeads, head) * (at(2, t, kHeads * kWidth, head * kWidth + e) - told);
        for (int d = 0; d < kDepth; ++d) cell(d, e) += key(d) * news;
        for (int g = 0; g < kShared; ++g)
          for (int d = 0; d < kDepth; ++d)
            want[std::size_t(((t * kHeads + head) * kShared + g) * kWidth + e)] +=
                0.5 * at(0, t, kHeads * kShared * kDepth, (head * kShared + g) * kDepth + d) * cell(d, e);
      }
    }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxStates, two_calls_of_linear_attention_are_one) {
  OneNode file("LinearAttention", {"q", "k", "v", "past", "decay", "beta"}, 27);
  Maker::set(*file.node, "q_num_heads", std::int64_t{4});
  Maker::set(*file.node, "kv_num_heads", std::int64_t{2});
  expect_handed_on(file, folder, attention_inputs(), "past", 1, {});
}

TEST_F(OnnxStates, linear_attention_names_what_a_rule_lacks) {
  OneNode file("LinearAttention", {"q", "k", "v"}, 27);
  Maker::set(*file.node, "q_num_heads", std::int64_t{4});
  Maker::set(*file.node, "kv_num_heads", std::int64_t{2});
  auto inputs = attention_inputs();
  inputs.resize(3);
  const auto f = file.function(folder, inputs);
  EXPECT_EQ(message_of([&] { f(arrays_of(inputs)); }),
            "onnx: LinearAttention 'the LinearAttention': the rule gated_delta needs decay and needs beta");
}

// The scores are capped and the shares doubled by graphs of the node; two queries share a head.
TEST_F(OnnxStates, attention_runs_its_own_graphs) {
  OneNode file("FlexAttention", {"q", "k", "v"}, 24);
  file.node->set_domain("ai.onnx.preview");
  Maker cap(24), twice(24);
  cap.input("scores", {"n", "h", "t", "s"}, kF64);
  cap.node("Tanh", {"scores"}, "capped");
  cap.output("capped");
  twice.input("shares", {"n", "h", "t", "s"}, kF64);
  twice.node("Add", {"shares", "shares"}, "doubled");
  twice.output("doubled");
  *Maker::attribute(*file.node, "score_mod", ::onnx::AttributeProto::GRAPH).mutable_g() = cap.model.graph();
  *Maker::attribute(*file.node, "prob_mod", ::onnx::AttributeProto::GRAPH).mutable_g() = twice.model.graph();
  const std::vector<testing::GradientInput> inputs{
      random_input("q", {1, 2, 3, 4}, 1), random_input("k", {1, 1, 5, 4}, 2), random_input("v", {1, 1, 5, 2}, 3)};
  const auto f = file.function(folder, inputs);
  std::vector<double> want;
  for (int row = 0; row < 6; ++row) {
    double total = 0, y[2] = {0, 0};
    for (int j = 0; j < 5; ++j) {
      double score = 0;
      for (int d = 0; d < 4; ++d)
        score += inputs[0].values[std::size_t(row * 4 + d)] * inputs[1].values[std::size_t(j * 4 + d)] / 2;
      const double share = std::exp(std::tanh(score));
      total += share;
      for (int d = 0; d < 2; ++d) y[d] += share * inputs[2].values[std::size_t(j * 2 + d)];
    }
    want.insert(want.end(), {2 * y[0] / total, 2 * y[1] / total});
  }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxStates, half_a_spectrum_becomes_a_real_signal) {
  for (const std::int64_t length : {6, 5}) {
    OneNode file("DFT", {"x"}, 20);
    file.node->set_output(0, "half");
    Maker::set(*file.node, "onesided", std::int64_t{1});
    file.maker.ints("length", {length});
    auto& back = file.maker.node("DFT", {"half", "length"}, "y");
    Maker::set(back, "onesided", std::int64_t{1});
    Maker::set(back, "inverse", std::int64_t{1});
    const std::vector<testing::GradientInput> inputs{random_input("x", {2, length, 1}, 1)};
    const auto f = file.function(folder, inputs);
    EXPECT_TRUE(all_close(f(arrays_of(inputs)), inputs[0].values, 1e-12)) << length;
    EXPECT_TRUE(check_gradients(f, inputs)) << length;
  }
  // Bins that are missing are 0: of the first one alone all values are its part.
  OneNode file("DFT", {"x", "length"}, 20);
  file.names = {"x"};
  file.maker.ints("length", {4});
  Maker::set(*file.node, "onesided", std::int64_t{1});
  Maker::set(*file.node, "inverse", std::int64_t{1});
  const std::vector<testing::GradientInput> inputs{{"x", {1, 1, 2}, {8, 3}}};
  EXPECT_TRUE(all_close(file.function(folder, inputs)(arrays_of(inputs)), std::vector<double>(4, 2.0), 1e-12));
}

}  // namespace
}  // namespace samebytes::onnx
