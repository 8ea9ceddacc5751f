// Activation checkpointing: the same bytes from less memory, whatever stands in a segment.
#include "samebytes/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "graph/op.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

constexpr int kWidth = 16;

class CheckpointTest : public OnDevice {
 protected:
  CheckpointTest() {
    for (int l = 0; l < 8; ++l)
      weights_.push_back(uniform({kWidth, kWidth}, -0.4, 0.4, f32, {.seed = 1, .counter = 1000u * (1u + l)}));
    x_ = uniform({rows(), kWidth}, -1, 1, f32, {.seed = 2, .counter = 0});
    eval(weights_);
    x_.eval();
  }
  static std::int64_t rows() { return 24; }

  // A layer with all that may differ from one run to the next: dropout draws by counter.
  static Array layer(const Array& x, const Array& w, std::uint64_t counter) {
    return relu(dropout(layer_norm(matmul(x, w)), 0.25, {.seed = 3, .counter = counter}));
  }

  // The loss and its gradients by x and all weights, as bytes would be compared.
  std::vector<std::vector<float>> outcome(const std::function<Array()>& make_loss) const {
    std::vector<Array> wrt = weights_;
    wrt.push_back(x_);
    Array loss;
    std::vector<Array> all;
    {
      loss = make_loss();
      all = gradients(loss, wrt, {.allow_unused = true});
    }
    all.push_back(loss);
    eval(all);
    std::vector<std::vector<float>> values;
    for (const Array& a : all) values.push_back(a.to_vector<float>());
    return values;
  }

  std::vector<Array> weights_;
  Array x_;
};
SAMEBYTES_ON_EVERY_DEVICE(CheckpointTest);

// How many nodes of an op, by name, are computed for `roots`.
std::int64_t count_ops(std::span<const Array> roots, std::string_view name) {
  std::set<const detail::Node*> seen;
  std::vector<const detail::Node*> open;
  for (const Array& root : roots) open.push_back(root.node().get());
  std::int64_t count = 0;
  while (!open.empty()) {
    const detail::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    count += node->op && node->op->name() == name;
    for (const detail::Edge& edge : node->inputs) open.push_back(edge.node.get());
  }
  return count;
}

TEST_P(CheckpointTest, gradients_are_those_without_bit_for_bit_with_dropout_and_norms) {
  const auto loss = [&](bool is_checkpointed) {
    return [this, is_checkpointed] {
      Array y = x_;
      for (std::size_t l = 0; l < weights_.size(); l += 2) {
        const auto part = [&](const Array& in) {
          return layer(layer(in, weights_[l], 9000 * l), weights_[l + 1], 9000 * l + 4500) + in;
        };
        y = is_checkpointed ? checkpoint(part, y) : part(y);
      }
      return mean(square(y));
    };
  };
  EXPECT_EQ(outcome(loss(true)), outcome(loss(false)));
}

TEST_P(CheckpointTest, f_has_several_inputs_and_results_and_reads_what_it_captures) {
  const Array ids = array(std::vector<std::int32_t>{3, 0, 15, 3}, {4});  // has no gradient
  const auto part = [&](const Array& x, const Array& y, const Array& at) {
    const Array a = tanh(matmul(x, weights_[0]));
    const Array b = sigmoid(matmul(y, weights_[1])) * a;
    return std::tuple(a + b, gather(b, 1, broadcast_to(at, {rows(), 4})), reshape(a, {kWidth, rows()}));
  };
  const auto loss = [&](bool is_checkpointed) {
    return [&, is_checkpointed] {
      const Array other = exp(x_ * 0.5);
      const auto [sum_of, picked, turned] = is_checkpointed ? checkpoint(part)(x_, other, ids) : part(x_, other, ids);
      return mean(square(sum_of)) + sum(picked) + mean(turned * turned) + mean(matmul(sum_of, weights_[2]));
    };
  };
  EXPECT_EQ(outcome(loss(true)), outcome(loss(false)));
}

TEST_P(CheckpointTest, segments_within_segments_give_the_same_bytes) {
  const auto inner = [&](const Array& x, std::size_t l) { return layer(x, weights_[l], 7000 * l); };
  const auto middle = [&](const Array& x, std::size_t l) {
    const Array half = checkpoint(inner, x, l) + 0.5 * x;
    return checkpoint(inner, half, l + 1) * 0.25 + half;
  };
  const auto plain = [&](const Array& x, std::size_t l) {
    const Array half = inner(x, l) + 0.5 * x;
    return inner(half, l + 1) * 0.25 + half;
  };
  const auto nested = [&] {
    Array y = x_;
    for (std::size_t l = 0; l < 8; l += 4)
      y = checkpoint([&](const Array& in) { return checkpoint(middle, checkpoint(middle, in, l), l + 2); }, y);
    return mean(square(y));
  };
  const auto flat = [&] {
    Array y = x_;
    for (std::size_t l = 0; l < 8; l += 2) y = plain(y, l);
    return mean(square(y));
  };
  EXPECT_EQ(outcome(nested), outcome(flat));
}

TEST_P(CheckpointTest, running_statistics_are_updated_once_and_alike) {
  struct Result {
    std::vector<std::vector<float>> gradients;
    std::vector<float> mean, var;
    bool operator==(const Result&) const = default;
  };
  const auto run = [&](bool is_checkpointed, bool by_instance) {
    const Array mean_cell = cell(zeros({kWidth}), "mean"), var_cell = cell(ones({kWidth}), "var");
    const Array scale = reshape(slice(weights_[2], 0, 0, 1), {kWidth}) + 1.0,
                shift = reshape(slice(weights_[3], 0, 0, 1), {kWidth});
    const auto part = [&](const Array& x) {
      const Array y = matmul(x, weights_[0]);
      const Array z = by_instance
                          ? instance_norm(reshape(y, {3, rows() / 3, kWidth}), scale, shift, mean_cell, var_cell)
                          : batch_norm_train(y, scale, shift, mean_cell, var_cell);
      return matmul(relu(reshape(z, {rows(), kWidth})), weights_[1]);
    };
    Result result;
    for (int step = 0; step < 2; ++step)
      result.gradients = outcome([&] { return mean(square(is_checkpointed ? checkpoint(part, x_) : part(x_))); });
    result.mean = mean_cell.to_vector<float>();
    result.var = var_cell.to_vector<float>();
    return result;
  };
  for (const bool by_instance : {false, true}) EXPECT_EQ(run(true, by_instance), run(false, by_instance));
}

TEST_P(CheckpointTest, an_update_within_a_segment_runs_once) {
  const Array calls = cell(zeros({1}), "calls");
  const Array y = checkpoint([&](const Array& x) { return x * tanh(x) * update(calls, calls + 1.0); }, x_);
  gradients(sum(y * y), std::vector<Array>{x_})[0].eval();
  EXPECT_EQ(calls.value(), 1.0);
}

TEST_P(CheckpointTest, f_is_called_once_and_what_its_end_computes_does_not_run_again) {
  int calls = 0;
  const auto part = [&](const Array& x) {
    ++calls;
    return matmul(relu(matmul(x, weights_[0])), weights_[1]);
  };
  const auto products = [&](bool is_checkpointed) {
    const Array loss = mean(square(is_checkpointed ? checkpoint(part, x_) : part(x_)));
    const std::vector<Array> roots = gradients(loss, std::vector<Array>{weights_[0], weights_[1]});
    return count_ops(roots, "matmul");
  };
  EXPECT_EQ(products(true), products(false) + 1) << "the first of the two";
  EXPECT_EQ(calls, 2);
}

TEST_P(CheckpointTest, second_derivatives_go_through_what_was_computed_anew) {
  const auto first = [&](bool is_checkpointed) {
    const auto part = [&](const Array& x) { return tanh(matmul(x, weights_[0])) * x; };
    const Array loss = sum(square(is_checkpointed ? checkpoint(part, x_) : part(x_)));
    return gradients(loss, std::vector<Array>{x_})[0];
  };
  const auto second = [&](bool is_checkpointed) {
    return [&, is_checkpointed] { return mean(square(first(is_checkpointed))); };
  };
  // Sums have other orders: what goes through the first computation is added apart from what goes through the second.
  const auto came = outcome(second(true)), want = outcome(second(false));
  ASSERT_EQ(came.size(), want.size());
  for (std::size_t a = 0; a < want.size(); ++a)
    for (std::size_t i = 0; i < want[a].size(); ++i)
      ASSERT_NEAR(came[a][i], want[a][i], sum_tolerance(f32, kWidth)) << a << " " << i;
}

TEST_P(CheckpointTest, gradients_taken_within_a_segment_do_not_compute_it_anew) {
  const auto penalty = [&](const Array& x) {
    const Array d = gradients(sum(tanh(matmul(x, weights_[0]))), std::vector<Array>{x})[0];
    return mean(square(d));
  };
  EXPECT_EQ(outcome([&] { return checkpoint(penalty, x_); }), outcome([&] { return penalty(x_); }));
}

TEST_P(CheckpointTest, a_scope_ends_where_f_throws_and_gradients_off_change_nothing) {
  EXPECT_THROW(checkpoint([](const Array&) -> Array { throw ArgumentError("no"); }, x_), ArgumentError);
  EXPECT_EQ((x_ + 1.0).node()->segment, nullptr);
  const NoGrad no_grad;
  const Array y = checkpoint([&](const Array& x) { return layer(x, weights_[0], 0); }, x_);
  EXPECT_TRUE(same_bytes(y, layer(x_, weights_[0], 0)));
}

TEST_P(CheckpointTest, functions_in_segments_are_the_functions_one_after_the_other) {
  std::vector<std::function<Array(const Array&)>> functions;
  for (std::size_t l = 0; l < 7; ++l)
    functions.emplace_back([&, l](const Array& x) { return layer(x, weights_[l], 5000 * l); });
  const auto in_segments = [&](int segments) {
    return [&, segments] { return mean(square(checkpoint_sequential(functions, segments, x_))); };
  };
  const auto plain = outcome(in_segments(1));
  EXPECT_EQ(outcome(in_segments(3)), plain);
  EXPECT_EQ(outcome(in_segments(7)), plain);
  EXPECT_ERROR((checkpoint_sequential(functions, 8, x_)), ArgumentError,
               "checkpoint_sequential: segments must be from 1 to the number of functions, got 8 for 7");
}

TEST_P(CheckpointTest, a_stack_is_divided_by_blocks_or_by_the_square_root) {
  EXPECT_FALSE(Checkpointing().is_on());
  EXPECT_EQ(Checkpointing::off().length(12), 0);
  EXPECT_EQ(Checkpointing::every(3).length(12), 3);
  EXPECT_EQ(Checkpointing::sqrt().length(12), 3);
  EXPECT_EQ(Checkpointing::sqrt().length(64), 8);
  for (const char* text : {"off", "block", "sqrt", "5"}) EXPECT_EQ(Checkpointing::parse(text).to_text(), text);
  EXPECT_ERROR((Checkpointing::every(0)), ArgumentError, "Checkpointing: a segment has at least 1 block, got 0");
  for (const char* text : {"", "0", "-2", "2x", "blocks"}) {
    const std::string want =
        std::string("Checkpointing: expected off, block, sqrt or a number of blocks above 0, got '") + text + "'";
    EXPECT_ERROR((Checkpointing::parse(text)), ArgumentError, want.c_str());
  }
}

// Bytes of temporaries that a training step of equal layers needs.
double activation_bytes(Engine& engine, int layers, const Checkpointing& how) {
  const EngineScope scope(engine);
  constexpr std::int64_t kRows = 2048;
  const Array x = uniform({kRows, kWidth});
  std::vector<Array> weights;
  for (int l = 0; l < layers; ++l) weights.push_back(uniform({kWidth, kWidth}, -0.4, 0.4));
  eval(weights);
  x.wait();
  engine.clear_cache();
  const std::size_t before = engine.memory().live_bytes;
  std::vector<Array> d;
  {
    Array y = x;
    const int length = how.is_on() ? static_cast<int>(how.length(layers)) : layers;
    for (int l = 0; l < layers; l += length) {
      std::optional<CheckpointScope> segment;
      if (how.is_on()) segment.emplace();
      for (int i = l; i < std::min(layers, l + length); ++i) y = relu(matmul(y, weights[static_cast<std::size_t>(i)]));
    }
    d = gradients(mean(square(y)), weights);
  }
  eval(d);
  engine.wait();
  const std::size_t results = static_cast<std::size_t>(layers) * kWidth * kWidth * sizeof(float);
  return static_cast<double>(engine.memory().live_bytes - before - results);
}

// The exponent of a power of the depth that fits best.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [depth, bytes] : points) {
    x += std::log(depth);
    y += std::log(bytes);
    xx += std::log(depth) * std::log(depth);
    xy += std::log(depth) * std::log(bytes);
  }
  const auto n = static_cast<double>(points.size());
  return (n * xy - x * y) / (n * xx - x * x);
}

TEST_P(CheckpointTest, activations_grow_with_the_square_root_of_the_depth) {
  if (is_simulated() || GetParam().personality == Personality::gpu)
    GTEST_SKIP() << "sixty-four layers are many, and the layout of memory is the same";
  std::vector<std::pair<double, double>> kept, by_root;
  for (const int layers : {4, 16, 64}) {  // an arena does not shrink, so each has an engine of its own
    kept.emplace_back(layers, activation_bytes(*make_engine(GetParam()), layers, Checkpointing::off()));
    by_root.emplace_back(layers, activation_bytes(*make_engine(GetParam()), layers, Checkpointing::sqrt()));
  }
  RecordProperty("exponent_kept", std::to_string(exponent(kept)));
  RecordProperty("exponent_by_root", std::to_string(exponent(by_root)));
  EXPECT_GE(exponent(kept), 0.75);
  EXPECT_LE(exponent(by_root), 0.6);
  EXPECT_LE(by_root.back().second, 0.4 * kept.back().second);
}

}  // namespace
}  // namespace samebytes::testing
