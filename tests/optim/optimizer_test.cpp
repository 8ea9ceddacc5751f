// Each optimizer against its formula in double, step by step, and what all of them share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "optim/follows_formula.h"
#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

using optim::Adam;
using optim::AdamW;
using optim::Optimizer;
using optim::Sgd;
class OptimizerTest : public FollowsFormula {};
SAMEBYTES_ON_EVERY_DEVICE(OptimizerTest);

TEST_P(OptimizerTest, sgd_follows_the_slope) {
  follows([](auto p) { return std::make_unique<Sgd>(p, optim::SgdOptions{.rate = 0.1}); },
          [](double p, double g, int, Vector&) { return p - 0.1 * g; });
}

TEST_P(OptimizerTest, sgd_with_momentum_dampening_and_decay_is_pytorchs) {
  follows(
      [](auto p) {
        return std::make_unique<Sgd>(
            p, optim::SgdOptions{.rate = 0.05, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01});
      },
      [](double p, double g, int step, Vector& state) {
        state.resize(1);
        g += 0.01 * p;
        state[0] = step == 0 ? g : 0.9 * state[0] + 0.7 * g;
        return p - 0.05 * state[0];
      });
}

TEST_P(OptimizerTest, sgd_with_nesterov_looks_ahead) {
  follows(
      [](auto p) {
        return std::make_unique<Sgd>(p, optim::SgdOptions{.rate = 0.05, .momentum = 0.8, .nesterov = true});
      },
      [](double p, double g, int, Vector& state) {
        state.resize(1);
        state[0] = 0.8 * state[0] + g;
        return p - 0.05 * (g + 0.8 * state[0]);
      });
}

double adam_reference(double p, double g, int step, Vector& state) {
  state.resize(2);
  state[0] = 0.9 * state[0] + 0.1 * g;
  state[1] = 0.999 * state[1] + 0.001 * g * g;
  const double m = state[0] / (1 - std::pow(0.9, step + 1)), v = state[1] / (1 - std::pow(0.999, step + 1));
  return p - 0.01 * m / (std::sqrt(v) + 1e-8);
}

TEST_P(OptimizerTest, adam_follows_algorithm_1) {
  follows([](auto p) { return std::make_unique<Adam>(p, optim::AdamOptions{.rate = 0.01}); }, adam_reference);
}

TEST_P(OptimizerTest, adam_adds_weight_decay_to_the_gradient) {
  follows([](auto p) { return std::make_unique<Adam>(p, optim::AdamOptions{.rate = 0.01, .weight_decay = 0.1}); },
          [](double p, double g, int step, Vector& state) { return adam_reference(p, g + 0.1 * p, step, state); });
}

TEST_P(OptimizerTest, adamw_decays_the_weights_themselves) {
  follows(
      [](auto p) { return std::make_unique<AdamW>(p, optim::AdamWOptions{.rate = 0.01, .weight_decay = 0.1}); },
      [](double p, double g, int step, Vector& state) { return adam_reference(p, g, step, state) - 0.01 * 0.1 * p; });
}

TEST_P(OptimizerTest, the_defaults_are_pytorchs) {
  const optim::AdamWOptions adamw;
  EXPECT_EQ(adamw.rate, 1e-3);
  EXPECT_EQ(adamw.beta1, 0.9);
  EXPECT_EQ(adamw.beta2, 0.999);
  EXPECT_EQ(adamw.eps, 1e-8);
  EXPECT_EQ(adamw.weight_decay, 1e-2);
  EXPECT_EQ(optim::AdamOptions{}.weight_decay, 0.0);
  EXPECT_EQ(optim::SgdOptions{}.rate, 1e-3);
}

TEST_P(OptimizerTest, the_update_of_a_whole_model_is_one_launch) {
  const std::vector<Array> cells = parameters(f32);
  AdamW adam(cells, {.rate = 0.01});
  Array flat = uniform({adam.arenas()[0].size()}, -1.0, 1.0);
  flat.wait();
  adam.step_flat(std::span<const Array>(&flat, 1));  // the moments' first use
  for (int step = 0; step < 3; ++step) {
    const std::uint64_t before = engine().plans().launches;
    adam.step_flat(std::span<const Array>(&flat, 1));
    EXPECT_EQ(engine().plans().launches - before, 1u) << "step " << step;
  }
}

TEST_P(OptimizerTest, a_step_on_a_loss_adds_one_launch_to_its_gradients) {
  nn::Sequential net(nn::Linear({.in = 6, .out = 5}), nn::Relu(), nn::Linear({.in = 5, .out = 3}));
  AdamW adam(net.parameters());
  const Array x = uniform({4, 6});
  x.wait();
  const auto loss = [&] { return mean(square(net(x))); };
  const auto launches_of = [&](const std::function<void()>& run) {
    const std::uint64_t before = engine().plans().launches;
    run();
    return engine().plans().launches - before;
  };
  const auto step = [&] { adam.step(loss()); };
  const auto gradients_only = [&] {
    std::vector<Array> roots;
    {
      const Array value = loss();
      roots = adam.flat_gradients(value);
    }
    eval(roots);
  };
  step();
  gradients_only();  // both have had their first use now
  EXPECT_LE(launches_of(step),
            launches_of(gradients_only) + 2);  // the update, and the loss itself, which the gradient does not need
}

TEST_P(OptimizerTest, a_changed_rate_or_step_makes_no_new_plan) {
  const std::vector<Array> cells = parameters(f32);
  AdamW adam(cells);
  Array flat = uniform({adam.arenas()[0].size()}, -1.0, 1.0);
  adam.step_flat(std::span<const Array>(&flat, 1));
  adam.step_flat(std::span<const Array>(&flat, 1));
  const std::uint64_t before = engine().plans().plans_made;
  for (int step = 0; step < 4; ++step) {
    adam.set_rate(0.1 / (step + 1));
    adam.step_flat(std::span<const Array>(&flat, 1));
  }
  EXPECT_EQ(engine().plans().plans_made, before);
}

TEST_P(OptimizerTest, the_gradients_of_a_loss_reach_every_parameter) {
  const std::vector<Array> cells = parameters(f32);
  Sgd sgd(cells, {.rate = 0.25});
  std::vector<Vector> want;
  for (const Array& p : cells) want.push_back(p.to_vector<double>());
  Array loss = sum(square(cells[0]));
  for (std::size_t i = 1; i < cells.size(); ++i) loss = loss + sum(square(cells[i]));
  double first = 0;
  for (const Vector& values : want)
    for (const double v : values) first += v * v;
  sgd.step(loss);
  EXPECT_NEAR(loss.value(), first, 1e-4);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (double& v : want[i]) v -= 0.25 * 2 * v;
    EXPECT_TRUE(all_close(cells[i], want[i], 1e-6));
  }
}

TEST_P(OptimizerTest, what_still_has_a_handle_is_computed_before_the_step_overwrites_its_parameter) {
  const Array p = cell(array({3.0f, 4.0f}), "p");
  const std::vector<Array> cells{p}, slope{ones({2})};
  Sgd sgd(cells, {.rate = 1.0});
  const Array kept = sum(square(p)), view = reshape(p * 2.0, {2, 1});
  sgd.step(slope);
  EXPECT_DOUBLE_EQ(kept.value(), 25.0);
  EXPECT_EQ(view.to_vector<double>(), (Vector{6.0, 8.0}));
  EXPECT_EQ(p.to_vector<double>(), (Vector{2.0, 3.0}));
}

TEST_P(OptimizerTest, gaps_between_parameters_stay_zero) {
  const std::vector<Array> cells = parameters(f32);
  AdamW adam(cells, {.rate = 0.1, .clip_norm = 0.5});
  for (int step = 0; step < 3; ++step) adam.step(gradients_of_step(step, f32));
  ASSERT_EQ(adam.arenas().size(), 1u);
  const auto& arena = adam.arenas()[0];
  const Vector flat = arena.values().to_vector<double>();
  std::vector<bool> used(flat.size(), false);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ(arena.offsets()[i] * 4 % 128, 0);
    const Vector own = cells[i].to_vector<double>();
    for (std::size_t j = 0; j < own.size(); ++j) {
      const std::size_t at = static_cast<std::size_t>(arena.offsets()[i]) + j;
      EXPECT_EQ(flat[at], own[j]);
      used[at] = true;
    }
  }
  for (std::size_t i = 0; i < flat.size(); ++i)
    if (!used[i]) {
      EXPECT_EQ(flat[i], 0.0);
    }
}

TEST_P(OptimizerTest, a_parameter_belongs_to_one_living_optimizer) {
  const std::vector<Array> cells = parameters(f32);
  const Vector before = cells[1].to_vector<double>();
  {
    const Sgd first(cells);
    EXPECT_THROW(Sgd(std::span<const Array>(cells).subspan(1, 1)), ArgumentError);
  }
  Sgd second(std::span<const Array>(cells).subspan(1, 1), {.rate = 1.0});
  EXPECT_EQ(cells[1].to_vector<double>(), before);
  const std::vector<Array> ones_of{ones(cells[1].shape())};
  second.step(ones_of);
  EXPECT_NEAR(cells[1].to_vector<double>()[0], before[0] - 1.0, 1e-6);
}

TEST_P(OptimizerTest, a_tied_parameter_counts_once) {
  const std::vector<Array> cells = parameters(f32);
  const std::vector<Array> tied{cells[0], cells[1], cells[0]};
  const Sgd sgd(tied);
  EXPECT_EQ(sgd.parameters().size(), 2u);
}

TEST_P(OptimizerTest, parameters_of_two_types_lie_in_two_arenas) {
  SAMEBYTES_NEEDS_F64();
  const Array single = cell(array({1.0f, 2.0f}), "single"), twice = cell(ones({3}, f64), "double");
  const std::vector<Array> both{twice, single};
  Sgd sgd(both, {.rate = 0.5});
  EXPECT_EQ(sgd.arenas().size(), 2u);
  const std::vector<Array> slopes{ones({3}, f64), ones({2})};
  sgd.step(slopes);
  EXPECT_EQ(twice.to_vector<double>(), (Vector{0.5, 0.5, 0.5}));
  EXPECT_EQ(single.to_vector<double>(), (Vector{0.5, 1.5}));
}

TEST_P(OptimizerTest, clipping_by_norm_covers_all_parameters) {
  const std::vector<Array> cells = parameters(f32);
  std::vector<Vector> want;
  for (const Array& p : cells) want.push_back(p.to_vector<double>());
  Sgd sgd(cells, {.rate = 1.0, .clip_norm = 0.5});
  const std::vector<Array> g = gradients_of_step(0, f32);
  double norm = 0;
  for (const Array& one : g)
    for (const double v : one.to_vector<double>()) norm += v * v;
  norm = std::sqrt(norm);
  ASSERT_GT(norm, 0.5);
  sgd.step(g);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Vector slope = g[i].to_vector<double>();
    for (std::size_t j = 0; j < slope.size(); ++j) want[i][j] -= slope[j] * 0.5 / (norm + 1e-6);
    EXPECT_TRUE(all_close(cells[i], want[i], 1e-6));
  }
}

TEST_P(OptimizerTest, clipping_leaves_small_gradients_alone_and_cuts_large_values) {
  const std::vector<Array> g{array({0.3f, -0.4f}), array({0.0f})};
  EXPECT_NEAR(optim::global_norm(g).value(), 0.5, 1e-6);
  EXPECT_TRUE(all_close(optim::clip_by_global_norm(g, 10.0)[0], Vector{0.3, -0.4}, 1e-6));
  EXPECT_TRUE(all_close(optim::clip_by_global_norm(g, 0.25)[0], Vector{0.15, -0.2}, 1e-5));
  EXPECT_TRUE(all_close(optim::clip_by_value(g, 0.35)[0], Vector{0.3, -0.35}, 1e-6));
  EXPECT_THROW(optim::clip_by_value(g, 0.0), ArgumentError);
  EXPECT_THROW(optim::clip_by_global_norm(g, -1.0), ArgumentError);
  EXPECT_THROW(optim::global_norm({}), ArgumentError);
}

TEST_P(OptimizerTest, a_schedule_sets_the_rate_of_each_step) {
  const Array p = cell(zeros({1}), "p");
  const std::vector<Array> cells{p}, slope{ones({1})};
  Sgd sgd(cells);
  sgd.set_schedule(optim::Schedule{.decay = optim::Decay::linear, .rate = 1.0, .steps = 4});
  double want = 0;
  for (const double rate : {1.0, 0.75, 0.5, 0.25, 0.0}) {
    EXPECT_DOUBLE_EQ(sgd.rate(), rate);
    sgd.step(slope);
    EXPECT_NEAR(p.value(), want -= rate, 1e-6);
  }
  sgd.set_rate(0.125);
  sgd.step(slope);
  EXPECT_NEAR(p.value(), want - 0.125, 1e-6);
}

TEST_P(OptimizerTest, a_restored_state_goes_on_as_if_never_interrupted) {
  const auto run = [&](bool interrupted) {
    const std::vector<Array> cells = parameters(f32);
    auto adam = std::make_unique<AdamW>(cells, optim::AdamWOptions{.rate = 0.01});
    for (int step = 0; step < 3; ++step) adam->step(gradients_of_step(step, f32));
    if (interrupted) {
      std::vector<std::vector<float>> saved;
      for (const auto& entry : adam->state()) saved.push_back(entry.array.to_vector<float>());
      const std::int64_t count = adam->step_count();
      adam.reset();
      adam = std::make_unique<AdamW>(cells, optim::AdamWOptions{.rate = 0.01});
      const auto state = adam->state();
      for (std::size_t i = 0; i < state.size(); ++i) assign(state[i].array, array(saved[i], state[i].array.shape()));
      adam->set_step_count(count);
    }
    for (int step = 3; step < 6; ++step) adam->step(gradients_of_step(step, f32));
    return cells[1].to_vector<float>();
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(OptimizerTest, micro_batches_add_up_to_the_whole_batch) {
  const std::vector<float> data{1, -2, 3, 0.5f, 4, -1, 2};
  const auto loss_of = [&](const Array& p, std::size_t begin, std::size_t end) {
    const auto part = std::span<const float>(data).subspan(begin, end - begin);
    return mean(square(array(part, {static_cast<std::int64_t>(part.size())}) - p));
  };
  const Array whole = cell(zeros({1}), "whole"), parts = cell(zeros({1}), "parts");
  const std::vector<Array> of_whole{whole}, of_parts{parts};
  Sgd sgd_whole(of_whole, {.rate = 0.1}), sgd_parts(of_parts, {.rate = 0.1});
  optim::Accumulator accumulator(sgd_parts);
  for (int step = 0; step < 3; ++step) {
    sgd_whole.step(loss_of(whole, 0, 7));
    accumulator.add(loss_of(parts, 0, 3), 3);
    accumulator.add(loss_of(parts, 3, 6), 3);
    accumulator.add(loss_of(parts, 6, 7), 1);
    accumulator.step();
    accumulator.step();  // nothing was added: nothing happens
    EXPECT_NEAR(whole.value(), parts.value(), 1e-6);
  }
  EXPECT_EQ(sgd_parts.step_count(), 3);
  EXPECT_THROW(accumulator.add(loss_of(parts, 0, 1), 0.0), ArgumentError);
}

TEST_P(OptimizerTest, wrong_arguments_are_named) {
  const std::vector<Array> cells = parameters(f32);
  EXPECT_THROW(Sgd(std::span<const Array>()), ArgumentError);
  EXPECT_THROW(Sgd(cells, {.rate = -1.0}), ArgumentError);
  EXPECT_THROW(Sgd(cells, {.momentum = 0.0, .nesterov = true}), ArgumentError);
  EXPECT_THROW(Adam(cells, {.beta1 = 1.0}), ArgumentError);
  EXPECT_THROW(Adam(cells, {.eps = -1.0}), ArgumentError);
  EXPECT_THROW(AdamW(cells, {.weight_decay = std::nan("")}), ArgumentError);
  const std::vector<Array> not_a_cell{ones({2})}, small{cell(zeros({2}, f16), "half")};
  EXPECT_THROW(Sgd sgd(not_a_cell), ArgumentError);
  EXPECT_THROW(Sgd sgd(small), ArgumentError);
  Sgd sgd(cells);
  EXPECT_THROW(sgd.step(std::span<const Array>(cells).first(1)), ArgumentError);
  EXPECT_THROW(sgd.set_rate(-1.0), ArgumentError);
  EXPECT_THROW(sgd.set_step_count(-1), ArgumentError);
  const std::vector<Array> wrong_shape{zeros({4}), zeros({5, 7}), zeros({1}), zeros({2, 2, 9})};
  EXPECT_THROW(sgd.step(wrong_shape), ArgumentError);
  EXPECT_EQ(sgd.step_count(), 0);
}

}  // namespace
}  // namespace samebytes::testing
