#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "samebytes/error.h"
#include "samebytes/optim/schedule.h"

namespace samebytes::optim {
namespace {

TEST(Schedule, warms_up_in_a_straight_line_to_the_full_rate) {
  for (const Decay decay : {Decay::constant, Decay::linear, Decay::cosine}) {
    const Schedule schedule{.decay = decay, .rate = 0.5, .warmup = 4, .steps = 20};
    EXPECT_DOUBLE_EQ(schedule(0), 0.125);
    EXPECT_DOUBLE_EQ(schedule(1), 0.25);
    EXPECT_DOUBLE_EQ(schedule(3), 0.5);
    EXPECT_DOUBLE_EQ(schedule(4), 0.5);
  }
}

TEST(Schedule, constant_stays) {
  const Schedule schedule{.rate = 0.01};
  EXPECT_DOUBLE_EQ(schedule(0), 0.01);
  EXPECT_DOUBLE_EQ(schedule(1'000'000), 0.01);
}

TEST(Schedule, linear_falls_straight_to_its_final_rate_and_stays_there) {
  const Schedule schedule{.decay = Decay::linear, .rate = 1.0, .warmup = 2, .steps = 12, .final_rate = 0.2};
  EXPECT_DOUBLE_EQ(schedule(7), 0.6);
  EXPECT_DOUBLE_EQ(schedule(12), 0.2);
  EXPECT_DOUBLE_EQ(schedule(100), 0.2);
}

TEST(Schedule, cosine_follows_half_a_period) {
  const Schedule schedule{.decay = Decay::cosine, .rate = 1.0, .steps = 10, .final_rate = 0.1};
  EXPECT_DOUBLE_EQ(schedule(0), 1.0);
  EXPECT_NEAR(schedule(5), 0.55, 1e-15);
  EXPECT_NEAR(schedule(2), 0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * 0.2)), 1e-15);
  EXPECT_DOUBLE_EQ(schedule(10), 0.1);
}

TEST(Schedule, refuses_negative_steps_and_decays_without_room) {
  EXPECT_THROW(Schedule{}(-1), ArgumentError);
  EXPECT_THROW((Schedule{.decay = Decay::linear, .warmup = 5, .steps = 5})(0), ArgumentError);
  EXPECT_THROW((Schedule{.decay = Decay::cosine})(0), ArgumentError);
}

}  // namespace
}  // namespace samebytes::optim
