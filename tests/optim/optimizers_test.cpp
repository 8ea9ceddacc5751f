// RmsProp, Adagrad, Lion, Lars, Lamb and the further options of Sgd and Adam against their formulas in double.
#include <cmath>

#include "optim/follows_formula.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::GroupOptions;
using optim::ParameterGroup;

class PointwiseOptimizersTest : public FollowsFormula {};
SAMEBYTES_ON_ONE_DEVICE(PointwiseOptimizersTest);

TEST_P(PointwiseOptimizersTest, rmsprop_divides_by_the_root_mean_square) {
  follows_in_widest(
      [](auto p) { return std::make_unique<optim::RmsProp>(p, optim::RmsPropOptions{.weight_decay = 0.1}); },
      [](double p, double g, int, Vector& state) {
        state.resize(1);
        g += 0.1 * p;
        state[0] = 0.99 * state[0] + 0.01 * g * g;
        return p - 0.01 * g / (std::sqrt(state[0]) + 1e-8);
      });
}

TEST_P(PointwiseOptimizersTest, rmsprop_centred_with_momentum_divides_by_the_deviation) {
  follows_in_widest(
      [](auto p) {
        return std::make_unique<optim::RmsProp>(
            p, optim::RmsPropOptions{.alpha = 0.8, .eps = 1e-3, .momentum = 0.7, .centered = true, .maximize = true});
      },
      [](double p, double g, int, Vector& state) {
        state.resize(3);
        g = -g;
        state[0] = 0.8 * state[0] + 0.2 * g * g;
        state[1] = 0.8 * state[1] + 0.2 * g;
        state[2] = 0.7 * state[2] + g / (std::sqrt(state[0] - state[1] * state[1]) + 1e-3);
        return p - 0.01 * state[2];
      });
}

TEST_P(PointwiseOptimizersTest, adagrad_divides_by_the_root_of_the_sum) {
  follows_in_widest(
      [](auto p) {
        return std::make_unique<optim::Adagrad>(
            p, optim::AdagradOptions{.rate_decay = 0.1, .weight_decay = 0.01, .initial_accumulator = 0.5});
      },
      [](double p, double g, int step, Vector& state) {
        if (state.empty()) state = {0.5};
        g += 0.01 * p;
        state[0] += g * g;
        return p - 0.01 / (1 + step * 0.1) * g / (std::sqrt(state[0]) + 1e-10);
      });
}

TEST_P(PointwiseOptimizersTest, lion_takes_the_sign_of_an_interpolation) {
  follows_in_widest(
      [](auto p) { return std::make_unique<optim::Lion>(p, optim::LionOptions{.rate = 0.01, .weight_decay = 0.1}); },
      [](double p, double g, int, Vector& state) {
        state.resize(1);
        const double c = 0.9 * state[0] + 0.1 * g;
        state[0] = 0.99 * state[0] + 0.01 * g;
        return p - 0.01 * ((c > 0) - (c < 0) + 0.1 * p);
      });
}

TEST_P(PointwiseOptimizersTest, amsgrad_divides_by_the_largest_second_moment) {
  follows_in_widest(
      [](auto p) {
        return std::make_unique<optim::Adam>(p, optim::AdamOptions{.rate = 0.01, .beta2 = 0.5, .amsgrad = true});
      },
      [](double p, double g, int step, Vector& state) {
        state.resize(3);
        state[0] = 0.9 * state[0] + 0.1 * g;
        state[1] = 0.5 * state[1] + 0.5 * g * g;
        state[2] = std::max(state[2], state[1]);
        const double m = state[0] / (1 - std::pow(0.9, step + 1));
        return p - 0.01 * m / (std::sqrt(state[2]) / std::sqrt(1 - std::pow(0.5, step + 1)) + 1e-8);
      });
}

// PyTorch 2.15 itself, f64: p = {1, -2, 3}, gradients {0.1, -0.2, 0.3} * (step + 1), three steps.
TEST_P(PointwiseOptimizersTest, numbers_are_pytorchs) {
  SAMEBYTES_NEEDS_F64();
  const auto run = [](const auto& make) {
    const Array p = cell(array(std::vector<double>{1, -2, 3}, Shape{3}), "p");
    const std::vector<Array> cells{p};
    const auto optimizer = make(std::span<const Array>(cells));
    for (int step = 1; step <= 3; ++step) {
      const std::vector<Array> g{array(std::vector<double>{0.1 * step, -0.2 * step, 0.3 * step}, Shape{3})};
      optimizer->step(g);
    }
    return p.to_vector<double>();
  };
  const auto expect = [](const Vector& got, const Vector& want) {
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
  };
  expect(run([](auto p) {
           return std::make_unique<optim::Sgd>(
               p, optim::SgdOptions{
                      .rate = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01, .maximize = true});
         }),
         {1.08293383729, -2.16586767458, 3.24880151187});
  expect(run([](auto p) {
           return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.rate = 0.1, .momentum = 0.9, .nesterov = true});
         }),
         {0.8544099999999999, -1.7088199999999998, 2.56323});
  expect(run([](auto p) {
           return std::make_unique<optim::Adam>(p, optim::AdamOptions{.weight_decay = 0.1, .amsgrad = true});
         }),
         {0.9970218933434518, -1.9970219195847245, 2.997021928332781});
  expect(run([](auto p) { return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{}); }),
         {0.9970468469071652, -1.9970168471044811, 2.9969868473702532});
  expect(run([](auto p) { return std::make_unique<optim::RmsProp>(p, optim::RmsPropOptions{}); }),
         {0.7301174159932009, -1.730117335192889, 2.730117308259438});
  expect(run([](auto p) {
           return std::make_unique<optim::RmsProp>(
               p, optim::RmsPropOptions{.alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5, .centered = true});
         }),
         {0.8695821416507169, -1.8694523984519076, 2.86940963354841});
  expect(run([](auto p) { return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions{}); }),
         {0.973037890848771, -1.9730378908406996, 2.9730378908380093});
  expect(run([](auto p) {
           return std::make_unique<optim::Adagrad>(
               p,
               optim::AdagradOptions{
                   .rate = 0.1, .rate_decay = 0.5, .weight_decay = 0.1, .initial_accumulator = 0.25, .maximize = true});
         }),
         {1.0312282536304767, -2.0544542955410074, 3.0700565731964558});
}

TEST_P(PointwiseOptimizersTest, the_defaults_are_those_of_pytorch_and_of_the_papers) {
  const optim::RmsPropOptions rmsprop;
  EXPECT_EQ(rmsprop.rate, 1e-2);
  EXPECT_EQ(rmsprop.alpha, 0.99);
  EXPECT_EQ(rmsprop.eps, 1e-8);
  EXPECT_EQ(rmsprop.momentum, 0.0);
  EXPECT_FALSE(rmsprop.centered);
  const optim::AdagradOptions adagrad;
  EXPECT_EQ(adagrad.rate, 1e-2);
  EXPECT_EQ(adagrad.eps, 1e-10);
  EXPECT_EQ(adagrad.initial_accumulator, 0.0);
  const optim::LionOptions lion;
  EXPECT_EQ(lion.rate, 1e-4);
  EXPECT_EQ(lion.beta1, 0.9);
  EXPECT_EQ(lion.beta2, 0.99);
  EXPECT_EQ(lion.weight_decay, 0.0);
  const optim::LarsOptions lars;
  EXPECT_EQ(lars.rate, 1e-2);
  EXPECT_EQ(lars.momentum, 0.9);
  EXPECT_EQ(lars.weight_decay, 1e-4);
  EXPECT_EQ(lars.trust, 1e-3);
  const optim::LambOptions lamb;
  EXPECT_EQ(lamb.rate, 1e-3);
  EXPECT_EQ(lamb.eps, 1e-6);
  EXPECT_EQ(lamb.weight_decay, 1e-2);
}

TEST_P(PointwiseOptimizersTest, wrong_options_are_named) {
  const std::vector<Array> cells = parameters(f32);
  EXPECT_THROW(optim::RmsProp(cells, {.alpha = -0.1}), ArgumentError);
  EXPECT_THROW(optim::RmsProp(cells, {.eps = -1.0}), ArgumentError);
  EXPECT_THROW(optim::Adagrad(cells, {.rate_decay = -1.0}), ArgumentError);
  EXPECT_THROW(optim::Adagrad(cells, {.initial_accumulator = -1.0}), ArgumentError);
  EXPECT_THROW(optim::Lion(cells, {.beta2 = 1.0}), ArgumentError);
  EXPECT_THROW(optim::Lars(cells, {.trust = -1.0}), ArgumentError);
  EXPECT_THROW(optim::Lamb(cells, {.eps = 0.0}), ArgumentError);
  EXPECT_ERROR((optim::Lion(std::vector<ParameterGroup>{{cells, {.adapts = false}}})), ArgumentError,
               "Lion: it has no option adapts, got a group with one");
  EXPECT_ERROR(optim::Lars(cells, {.momentum = -1.0}), ArgumentError,
               "Lars: momentum must be in [0.000000, inf), got -1.000000");
}

// The trust ratios have kernels of their own.
class TrustOptimizersTest : public FollowsFormula {
 protected:
  // Values of a parameter, its gradient, the number of the step and what the formula keeps, to the new values.
  using Whole = std::function<void(Vector& p, const Vector& g, int step, std::vector<Vector>& state)>;

  static double norm(const Vector& v) {
    double sum = 0;
    for (const double x : v) sum += x * x;
    return std::sqrt(sum);
  }

  void follows_whole(std::span<const Array> cells, optim::Optimizer& optimizer, Dtype dtype, double tolerance,
                     const std::function<Whole(std::size_t parameter)>& reference) {
    std::vector<Vector> want;
    std::vector<std::vector<Vector>> states(cells.size());
    for (const Array& p : cells) want.push_back(p.to_vector<double>());
    for (int step = 0; step < 3; ++step) {
      std::vector<Array> g;
      for (std::size_t i = 0; i < cells.size(); ++i)
        g.push_back(real_array(random_values(cells[i].size(), 50 + 10 * static_cast<std::uint64_t>(step) + i),
                               cells[i].shape(), dtype));
      if (step == 0) g[2] = zeros(cells[2].shape(), dtype);
      optimizer.step(g);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        states[i].resize(2, Vector(want[i].size()));
        reference(i)(want[i], g[i].to_vector<double>(), step, states[i]);
      }
    }
    for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_TRUE(all_close(cells[i], want[i], tolerance)) << i;
  }

  // A matrix of several chunks, one of odd sizes, one that meets a zero gradient, and zeros; in an order that leaves
  // gaps.
  static std::vector<Array> layers(Dtype dtype) {
    std::vector<Array> cells;
    const Shape shapes[] = {{3}, {131, 127}, {5, 7}, {33}};
    std::uint64_t seed = 1;
    for (const Shape& shape : shapes) {
      cells.push_back(cell(real_array(random_values(shape.size(), seed), shape, dtype), "p" + std::to_string(seed)));
      ++seed;
    }
    cells.push_back(cell(zeros({4, 3}, dtype), "p5"));
    return cells;
  }

  static Whole lars(double trust, double decay, bool nesterov) {
    return [=](Vector& p, const Vector& g, int, std::vector<Vector>& state) {
      const double w = norm(p), slope = norm(g);
      const double ratio = trust < 0 || w == 0 || slope == 0 ? 1.0 : trust * w / (slope + decay * w + 1e-8);
      for (std::size_t j = 0; j < p.size(); ++j) {
        const double d = ratio * (g[j] + decay * p[j]);
        state[0][j] = 0.9 * state[0][j] + d;
        p[j] -= 0.5 * (nesterov ? d + 0.9 * state[0][j] : state[0][j]);
      }
    };
  }

  static Whole lamb(bool adapts, double decay) {
    return [=](Vector& p, const Vector& g, int step, std::vector<Vector>& state) {
      Vector r(p.size());
      for (std::size_t j = 0; j < p.size(); ++j) {
        state[0][j] = 0.9 * state[0][j] + 0.1 * g[j];
        state[1][j] = 0.999 * state[1][j] + 0.001 * g[j] * g[j];
        const double m = state[0][j] / (1 - std::pow(0.9, step + 1)), v = state[1][j] / (1 - std::pow(0.999, step + 1));
        r[j] = m / (std::sqrt(v) + 1e-6) + decay * p[j];
      }
      const double w = norm(p), length = norm(r);
      const double ratio = !adapts || w == 0 || length == 0 ? 1.0 : w / length;
      for (std::size_t j = 0; j < p.size(); ++j) p[j] -= 0.1 * ratio * r[j];
    };
  }

  // Norms of up to 17 000 elements are sums in f32.
  static double sums_tolerance(Dtype dtype) { return dtype == f64 ? 1e-12 : 4e-6; }
};
SAMEBYTES_ON_EVERY_DEVICE(TrustOptimizersTest);

TEST_P(TrustOptimizersTest, lars_follows_algorithm_1_and_zero_norms_have_ratio_1) {
  for (const Dtype dtype : real_dtypes()) {
    const std::vector<Array> cells = layers(dtype);
    optim::Lars optimizer(cells, {.rate = 0.5, .weight_decay = 0.1, .trust = 0.02});
    follows_whole(cells, optimizer, dtype, sums_tolerance(dtype), [](std::size_t) { return lars(0.02, 0.1, false); });
    EXPECT_NE(cells[4].to_vector<double>()[0], 0.0);  // zeros are not stuck
  }
}

TEST_P(TrustOptimizersTest, lars_leaves_vectors_out_and_looks_ahead) {
  const std::vector<Array> cells = layers(f32);
  optim::Lars optimizer(cells,
                        {.rate = 0.5, .weight_decay = 0.1, .trust = 0.02, .nesterov = true, .exclude_vectors = true});
  ASSERT_EQ(optimizer.parameters().size(), 5u);  // matrices first
  const std::vector<Array> by_group = optimizer.parameters();
  EXPECT_EQ(cell_name(by_group[3]), "p1");
  follows_whole(by_group, optimizer, f32, sums_tolerance(f32),
                [](std::size_t i) { return i < 3 ? lars(0.02, 0.1, true) : lars(-1.0, 0.0, true); });
}

TEST_P(TrustOptimizersTest, lamb_follows_algorithm_2) {
  for (const Dtype dtype : real_dtypes()) {
    const std::vector<Array> cells = layers(dtype);
    optim::Lamb optimizer(cells, {.rate = 0.1, .weight_decay = 0.05});
    follows_whole(cells, optimizer, dtype, sums_tolerance(dtype), [](std::size_t) { return lamb(true, 0.05); });
  }
}

TEST_P(TrustOptimizersTest, a_group_of_lamb_that_does_not_adapt_has_ratio_1) {
  const std::vector<Array> cells = layers(f32);
  optim::Lamb optimizer(std::vector<ParameterGroup>{{{cells[0], cells[1], cells[2], cells[3]}},
                                                    {{cells[4]}, {.weight_decay = 0.0, .adapts = false}}},
                        {.rate = 0.1, .weight_decay = 0.05});
  follows_whole(cells, optimizer, f32, sums_tolerance(f32),
                [](std::size_t i) { return i < 4 ? lamb(true, 0.05) : lamb(false, 0.0); });
}

TEST_P(TrustOptimizersTest, a_step_is_two_launches_whatever_the_number_of_layers) {
  const std::vector<Array> cells = layers(f32);
  const auto launches = [&](optim::Optimizer& optimizer) {
    const Array flat = zeros({optimizer.arenas()[0].size()});
    flat.wait();
    const std::span<const Array> gradient(&flat, 1);
    optimizer.step_flat(gradient);
    const std::uint64_t before = engine().plans().launches, plans = engine().plans().plans_made;
    optimizer.set_rate(0.5);
    optimizer.step_flat(gradient);
    const std::uint64_t first = engine().plans().launches;
    optimizer.step_flat(gradient);
    EXPECT_EQ(engine().plans().plans_made, plans);
    EXPECT_EQ(engine().plans().launches - first, first - before);
    return first - before;
  };
  {
    optim::Lars lars_optimizer(cells);
    EXPECT_EQ(launches(lars_optimizer), 2u);
  }
  optim::Lamb lamb_optimizer(cells);
  EXPECT_EQ(launches(lamb_optimizer), 2u);
}

TEST_P(TrustOptimizersTest, weights_read_in_the_forward_pass_are_those_before_the_step) {
  const std::vector<Array> cells = layers(f32);
  optim::Lamb lamb_optimizer(cells, {.rate = 0.1});
  lamb_optimizer.set_allow_unused(true);
  const double before = sum(square(cells[1])).value();
  const Array kept = sum(square(cells[1]));
  const Array loss = kept + sum(square(cells[2]));
  lamb_optimizer.step(loss);
  EXPECT_NEAR(kept.value(), before, 1e-6 * before);
  EXPECT_LT(sum(square(cells[1])).value(), before);
}

TEST_P(TrustOptimizersTest, a_restored_state_goes_on_as_if_never_interrupted) {
  const auto run = [&](bool interrupted) {
    const std::vector<Array> cells = layers(f32);
    auto lamb_optimizer = std::make_unique<optim::Lamb>(cells);
    const auto step = [&](std::uint64_t k) {
      std::vector<Array> g;
      for (const Array& p : cells) g.push_back(real_array(random_values(p.size(), k + 5), p.shape(), f32));
      lamb_optimizer->step(g);
    };
    for (std::uint64_t k = 0; k < 2; ++k) step(k);
    if (interrupted) {
      optim::StateDict saved = lamb_optimizer->state_dict();
      for (auto& entry : saved.arrays) entry.array = array(entry.array.to_vector<float>(), entry.array.shape());
      lamb_optimizer.reset();
      lamb_optimizer = std::make_unique<optim::Lamb>(cells);
      lamb_optimizer->load_state_dict(saved);
    }
    for (std::uint64_t k = 2; k < 4; ++k) step(k);
    return cells[1].to_vector<float>();
  };
  EXPECT_EQ(run(false), run(true));
}

}  // namespace
}  // namespace samebytes::testing
