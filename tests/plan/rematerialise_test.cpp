// Rematerialisation: the same bytes from less memory.
#include "plan/rematerialise.h"

#include <limits>

#include "plan/collect.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class RematerialiseTest : public OnDevice {
 protected:
  // Another engine of the same device, the current one while the scope lives.
  std::unique_ptr<Engine> engine_with(double recompute) {
    return make_engine(GetParam(), {.seed = 7, .recompute = recompute});
  }
  std::int64_t rows() const { return is_simulated() ? 16 : 8192; }
};
SAMEBYTES_ON_EVERY_DEVICE(RematerialiseTest);

constexpr int kWidth = 16, kLayers = 4;

// Layers of matrix product, norm, ReLU, every second one with a residual, and one dropout.
Array make_loss(const Array& x, const std::vector<Array>& weights, std::int64_t dropout_counter) {
  const Array scale = ones({kWidth}), shift = zeros({kWidth});
  Array y = x;
  for (std::size_t l = 0; l < weights.size(); ++l) {
    const Array mean = cell(zeros({kWidth}), "mean"), var = cell(ones({kWidth}), "var");
    eval({mean, var});
    const Array z = batch_norm_train(matmul(y, weights[l]), scale, shift, mean, var);
    y = relu(l % 2 ? z + y : z);
    if (l == 1) y = dropout(y, 0.25, {.seed = 3, .counter = static_cast<std::uint64_t>(dropout_counter)}) * 0.5 + 0.125;
  }
  return mean(square(y));
}

struct Outcome {
  std::vector<float> values;  // weights after three steps, and the losses
  std::size_t live = 0;
};

Outcome train(Engine& engine, std::int64_t rows) {
  const EngineScope scope(engine);
  const Array x = uniform({rows, kWidth});
  std::vector<Array> weights;
  for (int l = 0; l < kLayers; ++l) weights.push_back(cell(uniform({kWidth, kWidth}), "w"));
  Outcome outcome;
  for (int step = 0; step < 3; ++step) {
    const Array loss = make_loss(x, weights, step * rows * kWidth);
    std::vector<Array> updates;
    {
      const auto d = gradients(loss, weights);
      for (std::size_t l = 0; l < weights.size(); ++l) updates.push_back(update(weights[l], weights[l] - d[l] * 0.5));
    }
    eval(updates);
    updates.clear();
    outcome.values.push_back(loss.value());
  }
  for (const Array& w : weights)
    for (const float v : w.to_vector<float>()) outcome.values.push_back(v);
  outcome.live = engine.memory().live_bytes;
  return outcome;
}

TEST_P(RematerialiseTest, training_gives_the_same_bytes_from_less_memory) {
  const auto kept_engine = engine_with(0), again_engine = engine_with(0.5);
  const Outcome kept = train(*kept_engine, rows()), again = train(*again_engine, rows());
  EXPECT_EQ(kept.values, again.values);
  if (!is_simulated()) {
    EXPECT_LE(again.live + static_cast<std::size_t>(rows()) * kWidth * sizeof(float), kept.live)
        << "one layer, or more";
  }
}

// early reads the running mean that the norm overwrites afterwards: it must not be computed from it again.
TEST_P(RematerialiseTest, a_value_of_a_cell_that_is_overwritten_in_between_is_kept) {
  const auto run = [&](double recompute) {
    const auto made = engine_with(recompute);
    const EngineScope scope(*made);
    const Array x = uniform({rows(), kWidth}), w = uniform({kWidth, kWidth});
    const Array mean = cell(ones({kWidth}), "mean"), var = cell(ones({kWidth}), "var");
    const auto build = [&] {  // without a handle left on a value in between
      const Array early = x * mean + 0.5;
      const Array product = matmul(early, w);
      const Array z = batch_norm_train(product, ones({kWidth}), zeros({kWidth}), mean, var);
      const Array far = matmul(relu(matmul(relu(z), w)), w);
      return matmul(transpose(early), far * early);
    };
    return build().to_vector<float>();
  };
  EXPECT_EQ(run(0), run(1));
}

class RematerialisePass : public OnDevice {
 protected:
  // The list of a training step, with fusion and what the pass makes of it.
  struct Result {
    detail::FuseResult fusion;
    detail::RematerialiseReport report;
  };
  Result run(detail::RematerialiseLimits limits) {
    limits.smallest = 1;
    const Array x = ones({4096, kWidth}), loss = make_loss(x, weights_, 0);
    const auto d = gradients(loss, weights_);
    std::vector<detail::NodePtr> roots, fresh;
    for (const Array& gradient : d) roots.push_back(gradient.node());
    const detail::GraphList list = detail::collect(roots, --stamp_, fresh);
    EXPECT_TRUE(fresh.empty());
    Result result{detail::fuse(list, append_epilogues(list, true), true), {}};
    result.report = detail::rematerialise(list, result.fusion, limits);
    return result;
  }
  void SetUp() override {
    for (int l = 0; l < kLayers; ++l) weights_.push_back(ones({kWidth, kWidth}));
  }
  std::vector<Array> weights_;
  std::uint64_t stamp_ = std::numeric_limits<std::uint64_t>::max();  // far from the engine's own
};
SAMEBYTES_ON_EVERY_DEVICE(RematerialisePass);

TEST_P(RematerialisePass, lowers_the_peak_within_its_cost_and_stops_at_its_target) {
  const Result none = run({});
  EXPECT_TRUE(none.fusion.again.empty());
  EXPECT_EQ(none.report.cost, 0);
  const Result most = run({.most_cost = 1});
  EXPECT_GE(most.fusion.again.size(), 2u);
  EXPECT_LT(most.report.peak_after, most.report.peak_before);
  EXPECT_GT(most.report.cost, 0);
  EXPECT_LE(most.report.cost, 1);
  for (std::size_t i = 1; i < most.fusion.again.size(); ++i)
    EXPECT_LE(most.fusion.again[i - 1].before, most.fusion.again[i].before);

  const Result some = run({.most_cost = 1, .target = most.report.peak_before - 1});
  EXPECT_LT(some.report.peak_after, some.report.peak_before);
  EXPECT_LT(some.fusion.again.size(), most.fusion.again.size());
  EXPECT_TRUE(run({.most_cost = 1, .target = most.report.peak_before}).fusion.again.empty());
  EXPECT_TRUE(run({.most_cost = most.report.cost / 1000}).fusion.again.empty()) << "too dear";
}

TEST_P(RematerialisePass, recomputes_only_what_it_may) {
  const Result result = run({.most_cost = 1, .may_be = [](const detail::Node&) { return false; }});
  EXPECT_TRUE(result.fusion.again.empty());
  EXPECT_EQ(result.report.peak_before, result.report.peak_after);
}

}  // namespace
}  // namespace samebytes::testing
