// Families of operators as small files: values against formulas in double, gradients against central differences.
// Over 400 lines because the families share the maker of files and the differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "onnx/one_node.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/gradcheck.h"

namespace samebytes::onnx {
namespace {

using testing::all_close;
using testing::check_gradients;
using testing::random_input;
using testing::random_values;

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

// x [T, N, C], w [1, G H, C], r [1, G H, H], b [1, 2 G H]: h after each step, of gates as `cell` computes them from the
// products W x + b and R h + d of each unit.
using Products = std::vector<double>;
using Cell = std::function<double(const Products& in, const Products& state, double h, double& c, int unit)>;
std::vector<double> unrolled(const std::vector<testing::GradientInput>& a, int gates, bool is_reversed,
                             const std::vector<int>& lengths, const Cell& cell) {
  const auto steps = int(a[0].shape[0]), samples = int(a[0].shape[1]), depth = int(a[0].shape[2]),
             units = int(a[2].shape[2]);
  std::vector<double> y(std::size_t(steps * samples * units), 0.0);
  for (int n = 0; n < samples; ++n) {
    std::vector<double> h(std::size_t(units), 0.0), c = h;
    for (int i = 0; i < steps; ++i) {
      const int t = is_reversed ? steps - 1 - i : i;
      if (t >= lengths[std::size_t(n)]) continue;
      const std::vector<double> before = h;
      for (int unit = 0; unit < units; ++unit) {
        Products in, state;
        for (int gate = 0; gate < gates; ++gate) {
          const int row = gate * units + unit;
          double sum = a[3].values[std::size_t(row)], product = a[3].values[std::size_t(gates * units + row)];
          for (int k = 0; k < depth; ++k)
            sum += a[1].values[std::size_t(row * depth + k)] * a[0].values[std::size_t((t * samples + n) * depth + k)];
          for (int k = 0; k < units; ++k) product += a[2].values[std::size_t(row * units + k)] * before[std::size_t(k)];
          in.push_back(sum);
          state.push_back(product);
        }
        h[std::size_t(unit)] = cell(in, state, before[std::size_t(unit)], c[std::size_t(unit)], unit);
        y[std::size_t((t * samples + n) * units + unit)] = h[std::size_t(unit)];
      }
    }
  }
  return y;
}

std::vector<testing::GradientInput> layer(std::int64_t gates) {
  return {random_input("x", {3, 2, 2}, 1), random_input("w", {1, gates * 2, 2}, 2),
          random_input("r", {1, gates * 2, 2}, 3), random_input("b", {1, gates * 4}, 4)};
}
class OnnxFamilies : public ::testing::Test {
 protected:
  Engine engine;
  TemporaryFolder folder;
};

TEST_F(OnnxFamilies, rnn_clips_and_reads_backwards_within_lengths) {
  OneNode file("RNN", {"x", "w", "r", "b", "lengths"});
  Maker::set(*file.node, "direction", "reverse");
  Maker::set_real(*file.node, "clip", 0.75F);
  const auto inputs = layer(1);
  const auto f = file.function(folder, inputs, {{"lengths", array<std::int32_t>({3, 2})}});
  const auto want =
      unrolled(inputs, 1, true, {3, 2}, [](const Products& in, const Products& state, double, double&, int) {
        return std::tanh(std::clamp(in[0] + state[0], -0.75, 0.75));
      });
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

// Opsets 25 to 28: a window around the queries, remainders with the divisor's sign, gates in one node, blocks of space
// behind their channels, bits read as another type, signed shifts.
TEST_F(OnnxFamilies, what_opsets_25_to_28_add_is_computed_by_its_definition) {
  const auto inputs = std::vector<testing::GradientInput>{
      random_input("q", {1, 1, 4, 2}, 1), random_input("k", {1, 1, 6, 2}, 2), random_input("v", {1, 1, 6, 2}, 3)};
  OneNode window("Attention", {"q", "k", "v"}, 25);
  Maker::set(*window.node, "left_window_size", std::int64_t{2});
  Maker::set(*window.node, "right_window_size", std::int64_t{1});
  const auto f = window.function(folder, inputs);
  std::vector<double> want;
  for (int i = 0; i < 4; ++i) {
    double total = 0, y[2] = {0, 0};
    for (int j = std::max(0, i - 2); j <= i + 1; ++j) {
      double score = 0;
      for (int d = 0; d < 2; ++d)
        score += inputs[0].values[std::size_t(i * 2 + d)] * inputs[1].values[std::size_t(j * 2 + d)];
      const double share = std::exp(score / std::sqrt(2.0));
      total += share;
      for (int d = 0; d < 2; ++d) y[d] += share * inputs[2].values[std::size_t(j * 2 + d)];
    }
    want.insert(want.end(), {y[0] / total, y[1] / total});
  }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-6));  // the scale is a float
  EXPECT_TRUE(check_gradients(f, inputs));

  const auto of_two = [&](const std::string& op, const std::vector<double>& a, const std::vector<double>& b) {
    OneNode file(op, {"a", "b"}, 28);
    const Shape shape{std::ssize(a)};
    const std::vector<testing::GradientInput> two{{"a", shape, a}, {"b", shape, b}};
    return file.function(folder, two)(arrays_of(two)).to_vector<double>();
  };
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(of_two("Mod", {5, -5, 5, -5, 6, -1, 1}, {3, 3, -3, -3, 3, inf, inf}),
            (std::vector<double>{2, 1, -1, -2, 0, inf, 1}));
  EXPECT_NEAR(of_two("SwiGLU", {0.7}, {-3})[0], -3 * 0.7 * sigma(0.7), 1e-12);

  OneNode space("SpaceToDepth", {"x"}, 28);
  Maker::set(*space.node, "blocksize", std::int64_t{2});
  Maker::set(*space.node, "mode", std::string("CRD"));
  std::vector<double> counted(8);
  std::iota(counted.begin(), counted.end(), 0.0);
  const std::vector<testing::GradientInput> image{{"x", {1, 2, 2, 2}, counted}};
  EXPECT_EQ(space.function(folder, image)(arrays_of(image)).to_vector<double>(), counted)
      << "the places of a block stand behind their channel";

  const auto ints = [&](const std::string& op, int type, const std::vector<std::int32_t>& a,
                        const std::vector<std::int32_t>& b) {
    Maker maker(28);
    maker.input("a", {"n"}, type);
    if (!b.empty()) maker.input("b", {"n"}, type);
    auto& node = maker.node(op, b.empty() ? std::vector<std::string>{"a"} : std::vector<std::string>{"a", "b"}, "y");
    if (op == "BitCast") Maker::set(node, "to", std::int64_t{1});
    if (op == "BitShift") Maker::set(node, "direction", std::string("RIGHT"));
    maker.output("y");
    std::map<std::string, Value> given{{"a", array(std::span<const std::int32_t>(a), {std::ssize(a)})}};
    if (!b.empty()) given["b"] = array(std::span<const std::int32_t>(b), {std::ssize(b)});
    return load(maker.saved(folder)).run(given).at("y");
  };
  EXPECT_EQ(std::get<Array>(ints("BitCast", 6, {0x3fc00000, -0x40000000}, {})).to_vector<float>(),
            (std::vector<float>{1.5F, -2.0F}));
  const Tensor moved = std::get<Tensor>(ints("BitShift", 6, {-16, -16, 16, -1, 7}, {2, 40, 2, -1, 32}));
  const auto* bits = reinterpret_cast<const std::int32_t*>(moved.bytes.data());
  EXPECT_EQ(std::vector<std::int32_t>(bits, bits + 5), (std::vector<std::int32_t>{-4, -1, 4, -1, 0}));
}

TEST_F(OnnxFamilies, a_row_of_zeros_has_no_length_and_stays_zero) {
  for (const std::int64_t p : {1, 2}) {
    OneNode file("LpNormalization", {"x"}, 22);
    Maker::set(*file.node, "p", p);
    const std::vector<testing::GradientInput> rows{{"x", {2, 2}, {0, 0, 3, 4}}};
    const double length = p == 1 ? 7 : 5;
    EXPECT_TRUE(all_close(file.function(folder, rows)(arrays_of(rows)),
                          std::vector<double>{0, 0, 3 / length, 4 / length}, 1e-12));
  }
}

// As ONNX 1.23 has it: capped before anything is hidden, the queries of a cache with lengths are its last positions,
// and a query without a key gives 0.
TEST_F(OnnxFamilies, attention_caps_before_it_masks_and_ends_with_the_lengths) {
  OneNode file("Attention", {"q", "k", "v", "", "", "", "lengths"});
  Maker::set(*file.node, "is_causal", std::int64_t{1});
  Maker::set_real(*file.node, "softcap", 0.5F);
  const auto inputs = std::vector<testing::GradientInput>{
      random_input("q", {2, 1, 3, 1}, 1), random_input("k", {2, 1, 4, 1}, 2), random_input("v", {2, 1, 4, 1}, 3)};
  const std::vector<int> lengths{4, 2};
  const auto f = file.function(folder, inputs, {{"lengths", array<std::int32_t>({4, 2})}});
  std::vector<double> want;
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 3; ++i) {
      double total = 0, y = 0;
      for (int j = 0; j <= i + lengths[std::size_t(n)] - 3; ++j) {
        const double score = inputs[0].values[std::size_t(n * 3 + i)] * inputs[1].values[std::size_t(n * 4 + j)];
        const double share = std::exp(0.5 * std::tanh(score / 0.5));
        total += share;
        y += share * inputs[2].values[std::size_t(n * 4 + j)];
      }
      want.push_back(total == 0 ? 0 : y / total);
    }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxFamilies, gru_resets_before_the_product) {
  OneNode file("GRU", {"x", "w", "r", "b"});
  const auto inputs = layer(3);
  const auto f = file.function(folder, inputs);
  // The candidate's product needs r h of all units, so it is computed here and not by unrolled().
  std::vector<double> want(12), h(4, 0.0);
  const auto &x = inputs[0].values, &w = inputs[1].values, &r = inputs[2].values, &b = inputs[3].values;
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t n = 0; n < 2; ++n) {
      const auto in = [&](std::size_t row) {
        return w[row * 2] * x[(t * 2 + n) * 2] + w[row * 2 + 1] * x[(t * 2 + n) * 2 + 1] + b[row] + b[6 + row];
      };
      const auto product = [&](std::size_t row, double first, double second) {
        return r[row * 2] * first + r[row * 2 + 1] * second;
      };
      const double a = h[n * 2], c = h[n * 2 + 1];
      const double reset[2] = {sigma(in(2) + product(2, a, c)), sigma(in(3) + product(3, a, c))};
      for (std::size_t unit = 0; unit < 2; ++unit) {
        const double z = sigma(in(unit) + product(unit, a, c));
        const double fresh = std::tanh(in(4 + unit) + product(4 + unit, reset[0] * a, reset[1] * c));
        h[n * 2 + unit] = (1 - z) * fresh + z * (unit == 0 ? a : c);
        want[(t * 2 + n) * 2 + unit] = h[n * 2 + unit];
      }
    }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxFamilies, lstm_has_peepholes_and_coupled_gates) {
  OneNode file("LSTM", {"x", "w", "r", "b", "", "", "", "p"});
  Maker::set(*file.node, "input_forget", 1);
  auto inputs = layer(4);
  inputs.push_back(random_input("p", {1, 6}, 5));
  const auto f = file.function(folder, inputs);
  const auto& p = inputs[4].values;
  const auto want =
      unrolled(inputs, 4, false, {3, 3}, [&](const Products& in, const Products& state, double, double& c, int unit) {
        const auto at = std::size_t(unit);
        const double i = sigma(in[0] + state[0] + p[at] * c);
        c = (1 - i) * c + i * std::tanh(in[3] + state[3]);
        return sigma(in[1] + state[1] + p[2 + at] * c) * std::tanh(c);
      });
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxFamilies, attention_with_grouped_heads_is_the_formula) {
  OneNode file("Attention", {"q", "k", "v"});
  Maker::set(*file.node, "is_causal", 1);
  const std::vector<testing::GradientInput> inputs{
      random_input("q", {1, 2, 3, 4}, 1), random_input("k", {1, 1, 5, 4}, 2), random_input("v", {1, 1, 5, 2}, 3)};
  const auto f = file.function(folder, inputs);
  std::vector<double> want;
  for (int head = 0; head < 2; ++head)
    for (int t = 0; t < 3; ++t) {
      double total = 0, sums[2] = {0, 0};
      for (int s = 0; s <= t; ++s) {
        double score = 0;
        for (int d = 0; d < 4; ++d)
          score += inputs[0].values[std::size_t((head * 3 + t) * 4 + d)] * inputs[1].values[std::size_t(s * 4 + d)];
        const double share = std::exp(score / 2);
        total += share;
        for (int e = 0; e < 2; ++e) sums[e] += share * inputs[2].values[std::size_t(s * 2 + e)];
      }
      want.insert(want.end(), {sums[0] / total, sums[1] / total});
    }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-10));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxFamilies, rotary_embedding_has_its_gradient) {
  for (const std::int64_t interleaved : {0, 1}) {
    OneNode file("RotaryEmbedding", {"x", "c", "s"});
    Maker::set(*file.node, "interleaved", interleaved);
    Maker::set(*file.node, "rotary_embedding_dim", std::int64_t{4});
    const std::vector<testing::GradientInput> inputs{random_input("x", {1, 2, 2, 6}, 1),
                                                     random_input("c", {1, 2, 2}, 2), random_input("s", {1, 2, 2}, 3)};
    EXPECT_TRUE(check_gradients(file.function(folder, inputs), inputs));
  }
}

TEST_F(OnnxFamilies, stft_is_the_sum_over_each_frame) {
  OneNode file("STFT", {"x", "step", "w"}, 17);
  file.names = {"x", "w"};
  auto& step = *file.maker.model.mutable_graph()->add_initializer();
  step.set_name("step");
  step.set_data_type(7);
  step.add_int64_data(2);
  const std::vector<testing::GradientInput> inputs{random_input("x", {1, 9, 1}, 1), random_input("w", {5}, 2)};
  const auto f = file.function(folder, inputs);
  std::vector<double> want;
  for (int frame = 0; frame < 3; ++frame)
    for (int bin = 0; bin < 3; ++bin) {
      double parts[2] = {0, 0};
      for (int i = 0; i < 5; ++i) {
        const double value = inputs[0].values[std::size_t(frame * 2 + i)] * inputs[1].values[std::size_t(i)];
        parts[0] += value * std::cos(2 * std::numbers::pi * bin * i / 5);
        parts[1] -= value * std::sin(2 * std::numbers::pi * bin * i / 5);
      }
      want.insert(want.end(), {parts[0], parts[1]});
    }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

TEST_F(OnnxFamilies, dft_turns_back_and_has_its_gradient) {
  OneNode file("DFT", {"x"}, 17);
  file.names = {"x"};
  file.node->set_output(0, "spectrum");
  auto& back = file.maker.node("DFT", {"spectrum"}, "y");
  Maker::set(back, "inverse", 1);
  const std::vector<testing::GradientInput> inputs{random_input("x", {2, 5, 2}, 1)};
  const auto f = file.function(folder, inputs);
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), inputs[0].values, 1e-12));
  EXPECT_TRUE(check_gradients(f, inputs));
}

// With whole offsets a deformed convolution is a convolution of moved pixels; between pixels its gradients reach the
// offsets, too.
TEST_F(OnnxFamilies, deformed_convolution_has_its_gradient_and_moves) {
  OneNode file("DeformConv", {"x", "w", "o", "b", "m"});
  Maker::set(*file.node, "pads", std::vector<std::int64_t>{1, 1, 1, 1});
  auto offsets = random_input("o", {1, 8, 4, 4}, 3, 0.2, 0.8);
  std::vector<testing::GradientInput> inputs{random_input("x", {1, 2, 3, 3}, 1), random_input("w", {2, 2, 2, 2}, 2),
                                             offsets, random_input("b", {2}, 4), random_input("m", {1, 4, 4, 4}, 5)};
  const auto f = file.function(folder, inputs);
  EXPECT_TRUE(check_gradients(f, inputs));
  std::fill(inputs[2].values.begin(), inputs[2].values.end(), 1.0);
  std::fill(inputs[4].values.begin(), inputs[4].values.end(), 1.0);
  std::vector<double> want;
  for (int o = 0; o < 2; ++o)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 4; ++x) {
        double sum = inputs[3].values[std::size_t(o)];
        for (int c = 0; c < 2; ++c)
          for (int tap = 0; tap < 4; ++tap) {
            const int row = y + tap / 2, column = x + tap % 2;  // one further than the pad of 1 says
            if (row < 3 && column < 3)
              sum += inputs[1].values[std::size_t((o * 2 + c) * 4 + tap)] *
                     inputs[0].values[std::size_t((c * 3 + row) * 3 + column)];
          }
        want.push_back(sum);
      }
  EXPECT_TRUE(all_close(f(arrays_of(inputs)), want, 1e-12));
}

TEST_F(OnnxFamilies, scan_keeps_states_and_reads_backwards) {
  Maker maker(17);
  maker.input("start", {"2"});
  maker.input("x", {"2", "3"});
  auto& node = maker.node("Scan", {"start", "x"}, "end");
  node.add_output("all");
  Maker::set(node, "num_scan_inputs", std::int64_t{1});
  Maker::set(node, "scan_input_axes", std::vector<std::int64_t>{1});
  Maker::set(node, "scan_input_directions", std::vector<std::int64_t>{1});
  Maker::set(node, "scan_output_axes", std::vector<std::int64_t>{1});
  Maker body(17);
  body.input("sum", {"2"});
  body.input("item", {"2"});
  body.node("Add", {"sum", "item"}, "next");
  body.node("Identity", {"next"}, "row");
  body.output("next");
  body.output("row");
  *Maker::attribute(node, "body", ::onnx::AttributeProto::GRAPH).mutable_g() = body.model.graph();
  maker.output("end");
  maker.output("all");
  Model model = load(maker.saved(folder));
  const auto made = model.run({{"start", array({10, 20})}, {"x", array({1, 2, 3, 4, 5, 6}, {2, 3})}});
  EXPECT_EQ(std::get<Array>(made.at("end")).to_vector<float>(), (std::vector<float>{16, 35}));
  EXPECT_EQ(contiguous(std::get<Array>(made.at("all"))).to_vector<float>(),
            (std::vector<float>{13, 15, 16, 26, 31, 35}));
}

TEST_F(OnnxFamilies, numbers_drawn_with_a_seed_are_the_same_again) {
  Maker maker(17);
  auto& node = maker.node("RandomNormal", {}, "y");
  Maker::set(node, "shape", std::vector<std::int64_t>{1000});
  Maker::set_real(node, "seed", 3.0F);
  Maker::set_real(node, "mean", 2.0F);
  maker.output("y");
  Model model = load(maker.saved(folder));
  const auto draw = [&] { return std::get<Array>(model.run({}).at("y")).to_vector<float>(); };
  const auto first = draw();
  EXPECT_EQ(first, draw());
  EXPECT_NEAR(std::accumulate(first.begin(), first.end(), 0.0) / 1000, 2.0, 0.15);
}

TEST_F(OnnxFamilies, a_range_ends_where_it_should_at_the_ends_of_64_bits) {
  const auto range = [](std::int64_t start, std::int64_t limit, std::int64_t delta) {
    const TemporaryFolder place;
    Maker maker;
    for (const auto& [name, value] :
         {std::pair{"start", start}, std::pair{"limit", limit}, std::pair{"delta", delta}}) {
      maker.ints(name, {value});
      maker.model.mutable_graph()->mutable_initializer()->rbegin()->clear_dims();
    }
    maker.node("Range", {"start", "limit", "delta"}, "y");
    maker.output("y");
    const auto made = load(maker.saved(place)).run({});
    const Tensor& tensor = std::get<Tensor>(made.at("y"));
    std::vector<std::int64_t> values(tensor.bytes.size() / sizeof(std::int64_t));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  };
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(range(0, 10, 3), (Values{0, 3, 6, 9}));
  EXPECT_EQ(range(10, 0, -5), (Values{10, 5}));
  EXPECT_EQ(range(3, 3, 1), Values());
  EXPECT_EQ(range(3, 9, -1), Values());
  EXPECT_EQ(range(INT64_MAX - 1, INT64_MAX, 5), (Values{INT64_MAX - 1}));
  EXPECT_EQ(range(INT64_MIN, INT64_MAX, INT64_MAX), (Values{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(range(INT64_MAX, INT64_MIN, INT64_MIN), (Values{INT64_MAX, -1}));
}

}  // namespace
}  // namespace samebytes::onnx
