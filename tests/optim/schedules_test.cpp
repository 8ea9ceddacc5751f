// Schedules against PyTorch 2.15's own numbers, their composition, the plateau, and rates scaled with the batch.
#include "samebytes/optim/schedules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/optim/plateau.h"
#include "samebytes/optim/scale_rate.h"
#include "samebytes/optim/schedule.h"
#include "support/errors.h"

namespace samebytes::optim {
namespace {

void expect_rates(const RateSchedule& schedule, const std::vector<double>& want) {
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(schedule(static_cast<std::int64_t>(i)), want[i], 1e-15) << "step " << i;
}

TEST(Schedules, one_cycle_is_pytorchs) {
  const OneCycle cycle{.max_rate = 0.5, .total_steps = 10};
  expect_rates(cycle, {0.02, 0.26, 0.5, 0.47524231600673683, 0.40587282697488153, 0.30563101096814466,
                       0.19437098903185537, 0.09412917302511849, 0.024759683993263143, 2e-06});
  expect_rates([&](std::int64_t step) { return cycle.momentum(step); },
               {0.95, 0.9, 0.85, 0.854951556604879, 0.8688255099070633, 0.8888739533021842, 0.9111260466978157,
                0.9311744900929366, 0.945048443395121, 0.95});
  EXPECT_DOUBLE_EQ(cycle(10), 2e-6);  // where PyTorch would throw
  EXPECT_DOUBLE_EQ(cycle(1000), 2e-6);
}

TEST(Schedules, one_cycle_in_three_straight_phases_is_pytorchs) {
  const OneCycle cycle{.max_rate = 0.5,
                       .total_steps = 12,
                       .pct_start = 0.4,
                       .anneal = Anneal::linear,
                       .div_factor = 10,
                       .final_div_factor = 100,
                       .three_phase = true,
                       .base_momentum = 0.8,
                       .max_momentum = 0.9};
  expect_rates(cycle, {0.05, 0.16842105263157892, 0.28684210526315784, 0.40526315789473677, 0.4763157894736843,
                       0.3578947368421054, 0.23947368421052645, 0.12105263157894752, 0.04417647058823532,
                       0.029617647058823544, 0.015058823529411777, 0.0005});
  expect_rates([&](std::int64_t step) { return cycle.momentum(step); },
               {0.9, 0.8736842105263158, 0.8473684210526317, 0.8210526315789475, 0.8052631578947369, 0.8315789473684211,
                0.8578947368421053, 0.8842105263157894, 0.9, 0.9, 0.9, 0.9});
}

TEST(Schedules, one_cycle_of_few_steps_has_no_gap) {
  for (const double pct : {0.0, 0.1, 0.5, 1.0})
    for (std::int64_t steps = 1; steps < 12; ++steps)
      for (std::int64_t step = 0; step < steps; ++step) {
        const double rate = OneCycle{.max_rate = 1.0, .total_steps = steps, .pct_start = pct}(step);
        EXPECT_TRUE(rate > 0.0 && rate <= 1.0) << pct << " " << steps << " " << step << " " << rate;
      }
}

TEST(Schedules, decays_are_pytorchs) {
  expect_rates(StepDecay{.rate = 1, .every = 3, .gamma = 0.5}, {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25});
  expect_rates(MultiStep{.rate = 1, .milestones = {2, 5}}, {1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01});
  expect_rates(Exponential{.rate = 1, .gamma = 0.9}, {1, 0.9, 0.81, 0.729, 0.6561});
  expect_rates(Polynomial{.rate = 1, .power = 2}, {1, 0.64, 0.36, 0.16, 0.04, 0, 0});
  expect_rates(Linear{.rate = 1}, {1.0 / 3, 7.0 / 15, 0.6, 11.0 / 15, 13.0 / 15, 1, 1});
}

TEST(Schedules, cosine_restarts_are_pytorchs) {
  expect_rates(CosineRestarts{.rate = 1, .period = 3, .growth = 2, .final_rate = 0.1},
               {1.0, 0.775, 0.325, 1.0, 0.9397114317029974, 0.775, 0.55, 0.325, 0.16028856829700258, 1.0,
                0.9846666218300807, 0.9397114317029974});
  expect_rates(CosineRestarts{.rate = 1, .period = 4},
               {1.0, 0.8535533905932737, 0.5, 0.14644660940672627, 1.0, 0.8535533905932737, 0.5});
}

TEST(Schedules, follow_one_another_and_multiply_as_pytorchs) {
  expect_rates(sequential({[](std::int64_t) { return 0.1; }, Exponential{.rate = 1, .gamma = 0.9}}, {3}),
               {0.1, 0.1, 0.1, 1.0, 0.9, 0.81});
  expect_rates(chained({Linear{.rate = 1, .start_factor = 0.1, .steps = 4}, Exponential{.rate = 1, .gamma = 0.9}}),
               {0.1, 0.2925, 0.4455, 0.564975, 0.6561, 0.59049});
}

TEST(Schedules, any_of_them_warms_up) {
  expect_rates(warm_up(Exponential{.rate = 0.8, .gamma = 0.5}, 4), {0.2, 0.4, 0.6, 0.8, 0.8, 0.4, 0.2});
  expect_rates(warm_up(Exponential{.rate = 0.8, .gamma = 0.5}, 4, 0.25), {0.2, 0.35, 0.5, 0.65, 0.8, 0.4});
  expect_rates(warm_up(Polynomial{.rate = 1, .steps = 2}, 0), {1, 0.5, 0});
  const Schedule own{.decay = Decay::cosine, .rate = 0.5, .warmup = 4, .steps = 20};
  const RateSchedule same = warm_up(Schedule{.decay = Decay::cosine, .rate = 0.5, .steps = 16}, 4);
  for (std::int64_t step = 0; step < 25; ++step) EXPECT_DOUBLE_EQ(own(step), same(step));
}

TEST(Schedules, wrong_arguments_are_named) {
  EXPECT_THROW((OneCycle{}(0)), ArgumentError);
  EXPECT_THROW((OneCycle{.total_steps = 5}(-1)), ArgumentError);
  EXPECT_THROW((OneCycle{.total_steps = 5, .pct_start = 1.5}(0)), ArgumentError);
  EXPECT_THROW((OneCycle{.total_steps = 5, .div_factor = 0}(0)), ArgumentError);
  EXPECT_ERROR((StepDecay{.every = 0}(0)), ArgumentError, "StepDecay: every must be above 0, got 0.000000");
  EXPECT_THROW((MultiStep{.gamma = -1}(0)), ArgumentError);
  EXPECT_THROW((Exponential{}(-1)), ArgumentError);
  EXPECT_THROW((Polynomial{.steps = 0}(0)), ArgumentError);
  EXPECT_THROW((Linear{.start_factor = 2}(0)), ArgumentError);
  EXPECT_THROW((CosineRestarts{}(0)), ArgumentError);
  EXPECT_THROW((CosineRestarts{.period = 2, .growth = 0}(0)), ArgumentError);
  EXPECT_THROW(warm_up({}, 3), ArgumentError);
  EXPECT_THROW(warm_up(Exponential{}, -1), ArgumentError);
  EXPECT_THROW(sequential({Exponential{}}, {1}), ArgumentError);
  EXPECT_THROW(sequential({Exponential{}, Exponential{}, Exponential{}}, {3, 3}), ArgumentError);
  EXPECT_THROW(chained({}), ArgumentError);
}

const std::vector<double> kWatched{1.0, 0.9, 0.9, 0.91, 0.89995, 0.95, 0.95, 0.95, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6};

TEST(Plateau, is_pytorchs) {
  Plateau plateau({.rate = 1.0, .factor = 0.5, .patience = 2, .cooldown = 1});
  const std::vector<double> want{1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25};
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double before = plateau.rate();
    EXPECT_EQ(plateau.step(kWatched[i]), want[i] != before) << i;
    EXPECT_DOUBLE_EQ(plateau.rate(), want[i]) << i;
  }
}

TEST(Plateau, of_a_number_that_should_grow_is_pytorchs) {
  Plateau plateau({.rate = 1.0,
                   .mode = PlateauMode::max,
                   .patience = 1,
                   .threshold = 0.02,
                   .threshold_mode = PlateauThreshold::absolute,
                   .min_rate = 0.005});
  const std::vector<double> want{1, 1, 1, 0.1, 0.1, 0.01, 0.01, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005};
  for (std::size_t i = 0; i < want.size(); ++i) {
    plateau.step(-kWatched[i]);
    EXPECT_DOUBLE_EQ(plateau.rate(), want[i]) << i;
  }
}

TEST(Plateau, goes_on_from_a_saved_state) {
  const PlateauOptions options{.rate = 1.0, .factor = 0.5, .patience = 2, .cooldown = 1};
  Plateau whole(options), first(options), second(options);
  for (std::size_t i = 0; i < kWatched.size(); ++i) {
    whole.step(kWatched[i]);
    if (i < 6) first.step(kWatched[i]);
    if (i == 6) second.load_state_dict(first.state_dict());
    if (i >= 6) second.step(kWatched[i]);
  }
  EXPECT_EQ(second.rate(), whole.rate());
  EXPECT_EQ(second.best(), whole.best());
  EXPECT_THROW(second.load_state_dict({}), ArgumentError);
}

TEST(Plateau, nan_is_not_better_and_wrong_options_are_named) {
  Plateau plateau({.rate = 1.0, .patience = 0});
  EXPECT_TRUE(plateau.step(std::nan("")));
  EXPECT_THROW(Plateau({.factor = 1.0}), ArgumentError);
  EXPECT_THROW(Plateau({.patience = -1}), ArgumentError);
  EXPECT_THROW(Plateau({.min_rate = -1}), ArgumentError);
}

TEST(ScaleRate, grows_with_the_batch_or_with_its_root) {
  EXPECT_DOUBLE_EQ(scale_rate(0.1, {.batch = 1024, .base_batch = 256}).rate, 0.4);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, {.rule = ScaleRule::square_root, .batch = 1024, .base_batch = 256}).rate, 0.2);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, {.batch = 64, .base_batch = 256}).rate, 0.025);
  EXPECT_DOUBLE_EQ(scale_rate(0.1, {.rule = ScaleRule::none, .batch = 64, .base_batch = 256}).rate, 0.1);
}

TEST(ScaleRate, has_a_ceiling) {
  const ScaledRate factor = scale_rate(0.1, {.batch = 65536, .base_batch = 256});
  EXPECT_TRUE(factor.is_clamped);
  EXPECT_DOUBLE_EQ(factor.factor, 32.0);
  const ScaledRate most = scale_rate(0.1, {.batch = 1024, .base_batch = 256, .most_rate = 0.3});
  EXPECT_TRUE(most.is_clamped);
  EXPECT_NEAR(most.rate, 0.3, 1e-15);
  EXPECT_FALSE(scale_rate(0.1, {.batch = 1024, .base_batch = 256}).is_clamped);
}

TEST(ScaleRate, a_larger_rate_comes_with_a_warm_up_from_the_known_one) {
  const ScaleRateOptions options{.batch = 1024, .base_batch = 256, .warmup = 3, .epoch_steps = 10, .total_steps = 400};
  const ScaledRate scaled = scale_rate(0.1, options);
  EXPECT_EQ(scaled.warmup, 50);  // five epochs
  EXPECT_DOUBLE_EQ(scaled.start_factor, 0.25);
  const RateSchedule schedule = scaled.schedule(Exponential{.rate = scaled.rate});
  EXPECT_DOUBLE_EQ(schedule(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule(50), 0.4);
  ScaleRateOptions brief = options;
  brief.total_steps = 80;
  EXPECT_EQ(scale_rate(0.1, brief).warmup, 20);  // a quarter of the run
  brief.batch = 64;
  EXPECT_EQ(scale_rate(0.1, brief).warmup, 3);  // what was asked for
  EXPECT_DOUBLE_EQ(scale_rate(0.1, brief).start_factor, 0.0);
}

TEST(ScaleRate, wrong_arguments_are_named) {
  EXPECT_ERROR(scale_rate(0.1, {.batch = 0, .base_batch = 256}), ArgumentError,
               "scale_rate: batch must be at least 1, got 0.000000");
  EXPECT_THROW(scale_rate(0.1, {.batch = 8}), ArgumentError);
  EXPECT_THROW(scale_rate(-0.1, {.batch = 8, .base_batch = 8}), ArgumentError);
  EXPECT_THROW(scale_rate(0.1, {.batch = 8, .base_batch = 8, .most_factor = 0}), ArgumentError);
}

}  // namespace
}  // namespace samebytes::optim
