// Weights in 16 bits without anything wider beside them: they follow the run in f32 on average where rounding to the
// nearest stands still, in the launches and with the state of that run, and go on bit for bit.
#include <cmath>

#include "optim/follows_formula.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::Optimizer;
// An optimizer, and what `steps` of its steps with the same gradient g > 0 come to.
struct Family {
  const char* name;
  std::unique_ptr<Optimizer> (*make)(std::span<const Array>, double rate);
  double (*change)(double rate, double g, int steps);
};

class WeightsTest : public FollowsFormula {
 protected:
  static std::unique_ptr<Optimizer> adamw(std::span<const Array> p, double rate) {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.rate = rate});
  }
  static std::unique_ptr<Optimizer> sgd(std::span<const Array> p, double rate) {
    return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.rate = rate});
  }
  static std::vector<Family> families() {
    return {{"Sgd", sgd, [](double rate, double g, int steps) { return -rate * g * steps; }},
            {"Adam",
             [](std::span<const Array> p, double rate) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::Adam>(p, optim::AdamOptions{.rate = rate, .moments = bf16});
             },
             [](double rate, double, int steps) { return -rate * steps; }},
            {"RmsProp",
             [](std::span<const Array> p, double rate) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::RmsProp>(p, optim::RmsPropOptions{.rate = rate / 4});
             },
             [](double rate, double, int steps) {
               double change = 0;
               for (int t = 1; t <= steps; ++t) change -= rate / 4 / std::sqrt(1 - std::pow(0.99, t));
               return change;
             }},
            {"Adagrad",
             [](std::span<const Array> p, double rate) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions{.rate = 5 * rate});
             },
             [](double rate, double, int steps) {
               double change = 0;
               for (int t = 1; t <= steps; ++t) change -= 5 * rate / std::sqrt(t);
               return change;
             }},
            {"Lion",
             [](std::span<const Array> p, double rate) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::Lion>(p, optim::LionOptions{.rate = rate, .weight_decay = 0.0});
             },
             [](double rate, double, int steps) { return -rate * steps; }}};
  }
  static Array weight(const Shape& shape, std::uint64_t seed = 1) {
    return cell(real_array(random_values(shape.size(), seed, 0.55, 0.95), shape, f32), "w" + std::to_string(seed));
  }
};
SAMEBYTES_ON_ONE_DEVICE(WeightsTest);

// Weights between 1/2 and 1 are 2^-8 apart in bf16; a change of 2e-4 is a tenth of half of that.
TEST_P(WeightsTest, a_hundred_small_steps_drift_as_in_f32_where_nearest_rounding_stands_still) {
  constexpr int kSteps = 100;
  constexpr double kRate = 2e-4;
  const Shape shape{72, 72};
  const Vector slopes = random_values(shape.size(), 3, 0.5, 1.5);
  for (const Family& family : families()) {
    const std::vector<Array> cells{weight(shape)};
    store_in_bf16(cells);
    ASSERT_EQ(cells[0].dtype(), bf16);
    const Vector begin = cells[0].to_vector<double>();
    const std::vector<Array> gradients{real_array(slopes, shape, f32)};
    const auto optimizer = family.make(cells, kRate);
    for (int step = 0; step < kSteps; ++step) optimizer->step(gradients);
    const Vector end = cells[0].to_vector<double>();
    double drift = 0, followed = 0, farthest = 0;
    for (std::size_t i = 0; i < end.size(); ++i) {
      const double change = family.change(kRate, slopes[i], kSteps);
      EXPECT_LT(std::abs(change) / kSteps, 0x1p-10) << "rounded to the nearest no step would move a weight";
      drift += change / static_cast<double>(end.size());
      followed += (end[i] - begin[i]) / static_cast<double>(end.size());
      farthest = std::max(farthest, std::abs(end[i] - begin[i] - change));
    }
    EXPECT_GT(std::abs(drift), 0x1p-8) << family.name;
    // A weight strays by sqrt(100 p (1 - p)) steps of 2^-8 or less, their mean by a 72nd of that.
    EXPECT_NEAR(followed / drift, 1.0, 0.05) << family.name;
    EXPECT_LT(farthest, 16 * 0x1p-8) << family.name;
  }
}

TEST_P(WeightsTest, a_step_takes_the_launches_of_f32_and_half_the_bytes_of_weights) {
  const auto run = [&](bool narrow) {
    const std::vector<Array> cells{weight({7, 5}), weight({33, 3}, 2)};
    if (narrow) store_in_bf16(cells);
    const auto optimizer = sgd(cells, 1e-3);
    EXPECT_EQ(optimizer->arenas().size(), 1u);
    EXPECT_EQ(optimizer->arenas()[0].dtype(), narrow ? bf16 : f32);
    std::uint64_t launches = 0;
    for (int step = 0; step < 3; ++step) {
      const std::vector<Array> g{full({7, 5}, 0.5, cells[0].dtype()), full({33, 3}, 0.25, cells[1].dtype())};
      eval(g);
      const std::uint64_t before = engine().plans().launches;
      optimizer->step(g);
      launches = engine().plans().launches - before;
    }
    return launches;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(WeightsTest, equal_weights_with_equal_gradients_are_rounded_apart) {
  const std::vector<Array> cells{cell(full({64, 64}, 0.75), "w")};
  store_in_bf16(cells);
  optim::Sgd sgd(cells, {.rate = 1.0});
  const std::vector<Array> gradients{full({64, 64}, 0x1p-10, bf16)};  // a quarter of the distance of two neighbours
  sgd.step(gradients);
  double moved = 0;
  for (const double w : cells[0].to_vector<double>()) {
    EXPECT_TRUE(w == 0.75 || w == 0.75 - 0x1p-8) << w;
    moved += w < 0.75 ? 1.0 : 0.0;
  }
  EXPECT_NEAR(moved / 4096, 0.25, 5 * std::sqrt(0.25 * 0.75 / 4096));
}

TEST_P(WeightsTest, releasing_gradients_and_running_again_give_the_same_bytes) {
  const auto run = [&](bool releases) {
    std::vector<Array> cells;
    for (std::uint64_t i = 0; i < 5; ++i) cells.push_back(weight({61, 67}, i + 1));
    store_in_bf16(cells);
    optim::AdamW adam(cells, {.rate = 1e-3, .release_gradients = releases, .moments = bf16});
    const Array x = real_array(random_values(67, 8), {1, 67}, f32);
    for (int step = 0; step < 3; ++step) {
      Array loss;
      for (const Array& w : cells) {
        const Array part = sum(square(linear(x, w)));
        loss = loss.defined() ? loss + part : part;
      }
      adam.step(loss);
    }
    std::vector<Vector> values;
    for (const Array& w : cells) values.push_back(w.to_vector<double>());
    return values;
  };
  const auto plain = run(false);
  EXPECT_EQ(run(false), plain);
  EXPECT_EQ(run(true), plain);
}

TEST_P(WeightsTest, a_restored_state_goes_on_bit_for_bit) {
  const auto g = [](int step) {
    return std::vector<Array>{real_array(random_values(91, static_cast<std::uint64_t>(step + 5)), {7, 13}, f32)};
  };
  const std::vector<Array> cells{weight({7, 13})}, others{weight({7, 13}, 2)};
  store_in_bf16(cells);
  store_in_bf16(others);
  const auto optimizer = adamw(cells, 1e-3);
  for (int step = 0; step < 3; ++step) optimizer->step(g(step));
  optim::StateDict saved = optimizer->state_dict();
  for (auto& entry : saved.arrays) {
    entry.array = cell(entry.array, "saved " + entry.name);
    entry.array.eval();
  }
  assign(others[0], cells[0]);
  optimizer->step(g(3));
  const auto restored = adamw(others, 1e-3);
  restored->load_state_dict(saved);
  restored->step(g(3));
  EXPECT_TRUE(same_bytes(cells[0], others[0]));
}

TEST_P(WeightsTest, averages_and_sums_of_gradients_are_f32) {
  const std::vector<Array> cells{weight({9, 5})};
  store_in_bf16(cells);
  optim::Sgd sgd(cells, {.rate = 0.1});
  optim::Ema ema(sgd, {.decay = 0.9});
  optim::Accumulator sums(sgd);
  const Array x = real_array(random_values(10, 8), {2, 5}, f32);
  for (int step = 0; step < 3; ++step) {
    sums.add(sum(linear(x, cells[0])), 1.0);
    sums.add(sum(linear(x, cells[0]) * 0.5), 1.0);
    sums.step();
    ema.update();
  }
  EXPECT_EQ(ema.state_dict().arrays[0].array.dtype(), f32);
  const Vector weights = cells[0].to_vector<double>(), averages = ema.state_dict().arrays[0].array.to_vector<double>();
  {
    const optim::EmaScope scope(ema);
    const Vector swapped = cells[0].to_vector<double>();
    for (std::size_t i = 0; i < swapped.size(); ++i) EXPECT_NEAR(swapped[i], averages[i], 0x1p-8);
    EXPECT_NE(swapped, weights);
  }
  EXPECT_EQ(cells[0].to_vector<double>(), weights);
  EXPECT_EQ(ema.state_dict().arrays[0].array.to_vector<double>(), averages);
}

TEST_P(WeightsTest, a_network_trains_with_them_and_casts_nothing) {
  nn::Sequential net(nn::Linear({.in = 8, .out = 32}), nn::LayerNorm({.features = 32}), nn::Relu(),
                     nn::Linear({.in = 32, .out = 4}));
  store_in_bf16(net.parameters());
  EXPECT_EQ(net.state()[0].array.dtype(), bf16);
  EXPECT_EQ(net.state()[1].array.dtype(), f32);  // a bias
  EXPECT_EQ(net.state()[2].array.dtype(), f32);  // of a norm
  optim::AdamW adam(net.parameters(), {.rate = 3e-3});
  EXPECT_EQ(adam.arenas().size(), 2u);
  const Array x = real_array(random_values(128, 4), {16, 8}, f32);
  std::vector<std::int32_t> classes;
  for (int i = 0; i < 16; ++i) classes.push_back(i % 4);
  const Array label = array(classes, {16});
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    const Autocast scope({.dtype = bf16});
    const Array loss = cross_entropy(net(x), label);
    EXPECT_LE(scope.casts(), 3);  // of x and of biases
    adam.step(loss);
    last = loss.value();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST_P(WeightsTest, what_cannot_be_is_refused) {
  const std::vector<Array> cells{weight({3, 2})}, vectors{weight({3}, 2)}, taken{weight({3, 2}, 3)},
      copied{weight({3, 2}, 4)};
  store_in_bf16(cells);
  store_in_bf16(cells);  // nothing more
  store_in_bf16(vectors);
  EXPECT_EQ(vectors[0].dtype(), f32);
  EXPECT_ERROR(optim::Lamb{cells}, ArgumentError,
               "Lamb: w1 is bf16; Adam, AdamW, Sgd, RmsProp, Adagrad and Lion round such weights by chance");
  const std::vector<Array> plain{zeros({2, 2})};
  EXPECT_ERROR(store_in_bf16(plain), ArgumentError, "store_in_bf16: a parameter must be a cell, one is f32 [2, 2]");
  const optim::Sgd sgd(taken);
  EXPECT_ERROR(store_in_bf16(taken), ArgumentError, "store_in_bf16: w3 already belongs to an optimizer");
  keep_working_copies(copied, bf16);
  EXPECT_ERROR(store_in_bf16(copied), ArgumentError, "store_in_bf16: w4 has a working copy already");
}

}  // namespace
}  // namespace samebytes::testing
