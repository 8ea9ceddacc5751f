// Moments in 16 bits: they follow the formula in double on average where rounding to the nearest stands still, take
// half the bytes, no launch more, and are saved and restored as they are.
#include <cmath>
#include <limits>

#include "optim/follows_formula.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::Optimizer;
using MakeWith = std::function<std::unique_ptr<Optimizer>(std::span<const Array>, Dtype)>;

class MomentsTest : public FollowsFormula {
 protected:
  static std::unique_ptr<Optimizer> adamw(std::span<const Array> p, Dtype moments) {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.moments = moments});
  }
  static std::vector<std::pair<const char*, MakeWith>> optimizers() {
    return {{"AdamW", adamw},
            {"Adam amsgrad",
             [](std::span<const Array> p, Dtype moments) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::Adam>(p, optim::AdamOptions{.amsgrad = true, .moments = moments});
             }},
            {"Sgd",
             [](std::span<const Array> p, Dtype moments) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::Sgd>(p, optim::SgdOptions{.momentum = 0.9, .moments = moments});
             }},
            {"Lion",
             [](std::span<const Array> p, Dtype moments) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::Lion>(p, optim::LionOptions{.moments = moments});
             }},
            {"RmsProp", [](std::span<const Array> p, Dtype moments) -> std::unique_ptr<Optimizer> {
               return std::make_unique<optim::RmsProp>(p, optim::RmsPropOptions{.momentum = 0.9, .moments = moments});
             }}};
  }
  static std::vector<Vector> values_of(std::span<const Array> cells) {
    std::vector<Vector> result;
    for (const Array& cell : cells) result.push_back(cell.to_vector<double>());
    return result;
  }
};
SAMEBYTES_ON_ONE_DEVICE(MomentsTest);

// v = 0.999 v + 0.001 g^2. Rounded to the nearest, v grows until a thousandth of what is missing is half a step.
TEST_P(MomentsTest, the_second_moment_follows_where_nearest_rounding_stands_still) {
  constexpr std::int64_t kSize = 256;
  constexpr int kSteps = 1500;
  const std::vector<double> slopes = random_values(kSize, 3, 0.5, 2.0);
  const std::vector<Array> cells{cell(real_array(random_values(kSize, 1), {kSize}, f32), "p")};
  const std::vector<Array> gradients{real_array(slopes, {kSize}, f32)};
  optim::Adam adam(cells, {.moments = bf16});
  for (int step = 0; step < kSteps; ++step) adam.step(gradients);
  const Vector came = adam.state()[1].array.to_vector<double>();
  ASSERT_EQ(adam.state()[1].array.dtype(), bf16);

  const double share = 1.0 - std::pow(0.999, kSteps);
  const auto nearest = [](double x) {  // 8 bits
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
  };
  double mean = 0.0, stalled = 0.0;
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const double squared = static_cast<double>(static_cast<float>(slopes[i])) * static_cast<float>(slopes[i]);
    EXPECT_NEAR(came[i] / (squared * share), 1.0, 0.25) << i;
    mean += came[i] / (squared * share) / kSize;
    double v = 0.0;
    for (int step = 0; step < kSteps; ++step) v = nearest(0.999 * v + 0.001 * squared);
    stalled += v / (squared * share) / kSize;
  }
  EXPECT_NEAR(mean, 1.0, 0.01);
  EXPECT_LT(stalled, 0.75);
}

TEST_P(MomentsTest, steps_are_nearly_those_with_moments_in_f32_and_take_as_many_launches) {
  for (const auto& [name, make] : optimizers()) {
    const auto run = [&, &make = make](Dtype moments) {
      const std::vector<Array> cells = parameters(f32);
      const std::vector<Vector> begin = values_of(cells);
      const auto optimizer = make(cells, moments);
      std::uint64_t launches = 0;
      for (int step = 0; step < 12; ++step) {
        const std::vector<Array> g = gradients_of_step(step / 6, f32);
        eval(g);
        const std::uint64_t before = engine().plans().launches;
        optimizer->step(g);
        launches = engine().plans().launches - before;
      }
      std::size_t bytes = 0;
      for (const auto& entry : optimizer->state()) {
        EXPECT_EQ(entry.array.dtype(), moments);
        bytes += static_cast<std::size_t>(entry.array.size()) * bytes_of(entry.array.dtype());
      }
      std::vector<Vector> moved = values_of(cells);
      for (std::size_t i = 0; i < moved.size(); ++i)
        for (std::size_t j = 0; j < moved[i].size(); ++j) moved[i][j] -= begin[i][j];
      return std::tuple(moved, launches, bytes);
    };
    const auto [wide, wide_launches, wide_bytes] = run(f32);
    const auto [narrow, narrow_launches, narrow_bytes] = run(bf16);
    EXPECT_EQ(narrow_launches, wide_launches) << name;
    EXPECT_EQ(2 * narrow_bytes, wide_bytes) << name;
    double difference = 0.0, movement = 0.0;
    for (std::size_t i = 0; i < wide.size(); ++i)
      for (std::size_t j = 0; j < wide[i].size(); ++j) {
        difference += std::abs(wide[i][j] - narrow[i][j]);
        movement += std::abs(wide[i][j]);
      }
    EXPECT_LT(difference, 0.01 * movement) << name;
  }
}

TEST_P(MomentsTest, a_restored_state_goes_on_bit_for_bit) {
  for (const auto& [name, make] : optimizers()) {
    const std::vector<Array> cells = parameters(f32);
    const auto optimizer = make(cells, bf16);
    for (int step = 0; step < 3; ++step) optimizer->step(gradients_of_step(step, f32));
    optim::StateDict saved = optimizer->state_dict();
    for (auto& entry : saved.arrays) entry.array = cell(entry.array, "saved " + entry.name);
    std::vector<Array> others;
    for (const Array& one : cells) others.push_back(cell(one, "other " + cell_name(one)));
    eval(others);
    for (auto& entry : saved.arrays) entry.array.eval();
    optimizer->step(gradients_of_step(3, f32));

    const auto restored = make(others, bf16);
    restored->load_state_dict(saved);
    restored->step(gradients_of_step(3, f32));
    for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_TRUE(same_bytes(cells[i], others[i])) << name << " " << i;
    const auto had = optimizer->state(), has = restored->state();
    for (std::size_t i = 0; i < had.size(); ++i) EXPECT_TRUE(same_bytes(had[i].array, has[i].array)) << name;
  }
}

TEST_P(MomentsTest, a_state_of_the_other_dtype_is_refused) {
  const std::vector<Array> cells{cell(ones({3}), "p")}, others{cell(ones({3}), "q")};
  const optim::Adam wide(cells);
  optim::Adam narrow(others, {.moments = bf16});
  EXPECT_ERROR(narrow.load_state_dict(wide.state_dict()), ArgumentError,
               "Adam: 0.moment1 must be bf16 [32], the state has f32 [32]");
}

TEST_P(MomentsTest, a_scaler_skips_steps_with_them) {
  const std::vector<Array> cells{cell(ones({5}), "p")};
  optim::Adam adam(cells, {.rate = 0.1, .moments = bf16});
  optim::GradScaler scaler({.init_scale = 4.0});
  scaler.step(adam, sum(cells[0] * 0.3));
  const Vector values = cells[0].to_vector<double>(), moment = adam.state()[0].array.to_vector<double>();
  EXPECT_NEAR(moment[0], 0.03, 0.03 / 128);
  scaler.step(adam, sum(cells[0] * std::numeric_limits<double>::infinity()));
  EXPECT_EQ(adam.skipped_steps(), 1);
  EXPECT_EQ(cells[0].to_vector<double>(), values);
  EXPECT_EQ(adam.state()[0].array.to_vector<double>(), moment);
}

TEST_P(MomentsTest, what_is_not_sound_is_refused) {
  const std::vector<Array> cells{cell(ones({3}), "p")};
  EXPECT_ERROR((optim::Adam(cells, {.moments = f16})), ArgumentError,
               "Adam: moments must be f32 or bf16, got f16 (f16 is too narrow for the squares of small gradients)");
  EXPECT_ERROR((optim::RmsProp(cells, {.centered = true, .moments = bf16})), ArgumentError,
               "RmsProp: centered takes the square of one moment from another, which needs moments in f32");
  SAMEBYTES_NEEDS_F64();
  const std::vector<Array> wide{cell(ones({3}, f64), "w")};
  EXPECT_ERROR((optim::AdamW(wide, {.moments = bf16})), ArgumentError,
               "AdamW: moments in bf16 are for f32 parameters, w is f64");
}

}  // namespace
}  // namespace samebytes::testing
