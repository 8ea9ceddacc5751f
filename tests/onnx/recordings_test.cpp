// A model that runs again builds what it built before without reading the file's nodes, wherever nothing but values can
// have changed: the third run of each kind is the first that may do so.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "graph/recording.h"
#include "onnx/maker.h"
#include "samebytes/samebytes.h"
#include "support/files.h"

namespace samebytes::onnx {
namespace {

class OnnxRecordings : public ::testing::Test {
 protected:
  std::vector<float> forward(Model& model, const Array& x) {
    const NoGrad no_grad;
    return contiguous(model.forward(x)).to_vector<float>();
  }
  Engine engine_;
  const EngineScope scope_{engine_};
  const TemporaryFolder folder_;
};

TEST_F(OnnxRecordings, inputs_weights_and_sizes_are_those_of_each_run) {
  Model model = load(linear_model().saved(folder_));
  for (const float a : {1.0F, 2.0F, 3.0F, 4.0F}) {
    EXPECT_EQ(forward(model, array({a, 0}, {1, 2})), (std::vector<float>{a + 10, 3 * a + 20, 5 * a + 30}));
    EXPECT_EQ(forward(model, array({0, a, 0, 0}, {2, 2})),
              (std::vector<float>{2 * a + 10, 4 * a + 20, 6 * a + 30, 10, 20, 30}));
  }
  assign(model.parameters()[1], array({0, 0, 1}, {3}));
  EXPECT_EQ(forward(model, array({1, 0}, {1, 2})), (std::vector<float>{1, 3, 6})) << "a weight that was overwritten";
  Model copy = nn::clone(model);
  assign(copy.parameters()[1], array({7, 7, 7}, {3}));
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(forward(copy, array({1, 0}, {1, 2})), (std::vector<float>{8, 10, 12}));
    EXPECT_EQ(forward(model, array({1, 0}, {1, 2})), (std::vector<float>{1, 3, 6}));
  }
  Model assigned = load(linear_model().saved(folder_));
  forward(assigned, zeros({1, 2}));
  assigned = nn::clone(copy);
  EXPECT_EQ(forward(assigned, array({1, 0}, {1, 2})), (std::vector<float>{8, 10, 12}));
  model.replace_head(2);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(forward(model, zeros({1, 2})).size(), 2u);
  const Array y = model.forward(array({1, 1}, {1, 2}));
  EXPECT_EQ(gradients(sum(y), model.parameters())[0].shape(), (Shape{2, 2})) << "a run with gradients";
}

TEST_F(OnnxRecordings, views_lazy_inputs_and_both_outputs) {
  Maker maker;
  maker.input("x", {"n", "2"});
  maker.node("Transpose", {"x"}, "t");
  maker.node("Relu", {"x"}, "r");
  maker.output("t");
  maker.output("r");
  Model model = load(maker.saved(folder_));
  const NoGrad no_grad;
  const Array wide = array({9, -1, 2, 9, 9, 3, -4, 9}, {2, 4});
  for (int run = 0; run < 5; ++run) {
    const Array view = slice(wide, 1, 1, 3), lazy = view * 2.0, whole = contiguous(view);
    for (const Array& x : {view, whole, lazy}) {
      const float k = x.node() == lazy.node() ? 2 : 1;
      const auto outputs = model.run({{"x", x}});
      EXPECT_EQ(contiguous(std::get<Array>(outputs.at("t"))).to_vector<float>(),
                (std::vector<float>{-1 * k, 3 * k, 2 * k, -4 * k}));
      EXPECT_EQ(std::get<Array>(outputs.at("r")).to_vector<float>(), (std::vector<float>{0, 2 * k, 3 * k, 0}));
    }
  }
}

TEST_F(OnnxRecordings, a_graph_that_looks_at_values_is_read_each_time) {
  Maker maker;
  maker.input("x", {"3"});
  maker.floats("half", {1}, {0.5});
  maker.ints("all", {-1});
  maker.node("NonZero", {"x"}, "places");
  maker.node("Reshape", {"places", "all"}, "flat");
  maker.node("Gather", {"x", "flat"}, "chosen");
  maker.node("Mul", {"chosen", "half"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder_));
  for (const float a : {2.0F, 4.0F, 0.0F, 6.0F, 8.0F}) {
    const std::vector<float> want = a == 0 ? std::vector<float>{4} : std::vector<float>{a / 2, 4};
    EXPECT_EQ(forward(model, array({a, 0, 8}, {3})), want);
  }
}

// Else a Clip would make the host wait in each run, and no run could be recorded.
TEST_F(OnnxRecordings, numbers_that_steer_an_operator_are_read_once) {
  Maker maker;
  maker.input("x", {"n", "2"});
  maker.floats("w", {2, 3}, {1, 0, 1, 0, 1, 1});
  Maker::set_real(maker.node("Constant", {}, "one"), "value_float", 1);
  maker.floats("low", {}, {-1});
  Maker::set_real(maker.node("Constant", {}, "high"), "value_float", 4);
  maker.floats("exponent", {}, {2});
  maker.node("MatMul", {"x", "w"}, "p");
  maker.node("Mul", {"high", "one"}, "most");  // as exporters write a CastLike
  maker.node("Clip", {"p", "low", "most"}, "c");
  maker.node("Pow", {"c", "exponent"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder_));
  const NoGrad no_grad;
  const Array x = array({1, 9, -3, 2}, {2, 2}).wait();
  const std::vector<float> want{1, 16, 16, 1, 4, 1};
  EXPECT_EQ(model.forward(x).to_vector<float>(), want);
  for (int run = 0; run < 4; ++run) {
    const std::uint64_t reads = samebytes::detail::host_reads();
    const Array y = model.forward(x);
    y.eval();
    EXPECT_EQ(samebytes::detail::host_reads(), reads) << run;
    EXPECT_EQ(y.to_vector<float>(), want) << run;
  }
}

TEST_F(OnnxRecordings, random_numbers_are_others_each_time) {
  Maker maker;
  maker.input("x", {"2", "3"});
  maker.node("RandomNormalLike", {"x"}, "noise");
  maker.node("Add", {"x", "noise"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder_));
  std::vector<std::vector<float>> seen;
  for (int run = 0; run < 5; ++run) {
    seen.push_back(forward(model, zeros({2, 3})));
    for (int before = 0; before < run; ++before)
      EXPECT_NE(seen[static_cast<std::size_t>(before)], seen.back()) << before << " and " << run;
  }
}

TEST_F(OnnxRecordings, training_mode_and_precision_are_their_own_kinds) {
  Maker maker;
  maker.input("x", {"n", "2"});
  for (const char* name : {"scale", "bias", "mean", "variance"})
    maker.floats(name, {2},
                 std::string(name) == "bias" || std::string(name) == "mean" ? std::vector<float>{0, 0}
                                                                            : std::vector<float>{1, 1});
  maker.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, "b");
  maker.floats("w", {2, 1}, {1, 1});
  maker.node("MatMul", {"b", "w"}, "y");
  maker.output("y");
  Model model = load(maker.saved(folder_));
  const Array x = array({0, 0, 2, 4}, {2, 2});
  for (int run = 0; run < 3; ++run) {
    EXPECT_NEAR(forward(model, x)[1], 6, 1e-3);
    {
      const NoGrad no_grad;
      const Autocast scope({.dtype = bf16});
      EXPECT_EQ(model.forward(x).dtype(), bf16);
    }
  }
  model.train();
  EXPECT_NEAR(forward(model, x)[1], 2, 1e-3) << "the batch's own statistics";
  model.eval();
  const float after = forward(model, x)[1];
  EXPECT_NE(after, 6) << "the running statistics have moved";
  EXPECT_EQ(forward(model, x)[1], after);
}

TEST_F(OnnxRecordings, threads_share_a_model) {
  Model model = load(linear_model().saved(folder_));
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const EngineScope scope(engine_);
      const auto a = static_cast<float>(t);
      for (int run = 0; run < 50; ++run)
        wrong[static_cast<std::size_t>(t)] += forward(model, array({a, 0}, {1, 2}))[0] != a + 10;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_F(OnnxRecordings, a_run_again_costs_less_of_the_host) {
  Maker maker;
  maker.input("x", {"4"});
  std::string last = "x";
  for (int i = 0; i < 200; ++i) {
    maker.floats("w" + std::to_string(i), {4}, {1, 2, 3, 4});
    maker.node(i % 2 == 0 ? "Add" : "Mul", {last, "w" + std::to_string(i)}, "y" + std::to_string(i));
    last = "y" + std::to_string(i);
  }
  maker.output(last);
  Model model = load(maker.saved(folder_));
  const Array x = ones({4}).wait();
  const auto least_seconds = [&] {
    double least = 1;
    for (int run = 0; run < 30; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      const Array y = model.forward(x);
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return least;
  };
  const double with_gradients = least_seconds();
  const NoGrad no_grad;
  EXPECT_LT(least_seconds(), 0.7 * with_gradients);
}

}  // namespace
}  // namespace samebytes::onnx
