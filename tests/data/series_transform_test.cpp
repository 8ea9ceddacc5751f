#include "samebytes/data/series_transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/apply_transform.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using Floats = std::vector<float>;

TEST(Jitter, adds_noise_of_the_deviation_asked_for) {
  const Floats noisy = apply<float>(jitter({.deviation = 0.5}), Floats(20000, 3.0f), Shape{10000, 2}, {.seed = 1});
  double sum = 0, squares = 0;
  for (const float value : noisy) {
    const double away = static_cast<double>(value) - 3;
    sum += away;
    squares += away * away;
  }
  EXPECT_NEAR(sum / 20000, 0, 6 * 0.5 / std::sqrt(20000.0));
  EXPECT_NEAR(std::sqrt(squares / 20000), 0.5, 6 * 0.5 / std::sqrt(40000.0));
  EXPECT_THROW(jitter({.deviation = -1}), ArgumentError);
  EXPECT_THROW(apply<float>(jitter(), Floats(131073), Shape{131073}), ArgumentError);
}

TEST(Scaling, has_one_factor_for_each_channel) {
  double squares = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const Floats scaled = apply<float>(scaling({.deviation = 0.2}), ramp(6), Shape{3, 2}, {.index = i});
    EXPECT_NE(scaled[0], scaled[1] / 2);
    EXPECT_NEAR(scaled[2], 3 * scaled[0], 1e-5);
    EXPECT_NEAR(scaled[5], 3 * scaled[1], 1e-5);
    squares += std::pow(static_cast<double>(scaled[0]) - 1, 2);
  }
  EXPECT_NEAR(std::sqrt(squares / kDraws), 0.2, 6 * 0.2 / std::sqrt(2.0 * kDraws));
}

TEST(TimeShift, moves_by_every_distance_equally_often) {
  const Floats series = {1, -1, 2, -2, 3, -3};
  std::map<Floats, int> open = {{{2, -2, 3, -3, 9, 9}, 0}, {series, 0}, {{9, 9, 1, -1, 2, -2}, 0}};
  std::map<Floats, int> circular = {{{2, -2, 3, -3, 1, -1}, 0}, {series, 0}, {{3, -3, 1, -1, 2, -2}, 0}};
  constexpr int kDraws = 3000;
  for (int i = 0; i < kDraws; ++i) {
    ++open[apply<float>(time_shift({.steps = 1}), series, Shape{3, 2}, {.index = i}, 9)];
    ++circular[apply<float>(time_shift({.steps = 1, .circular = true}), series, Shape{3, 2}, {.index = i})];
    const Floats far = apply<float>(time_shift({.steps = 50}), series, Shape{3, 2}, {.index = i}, 9);
    ASSERT_EQ(far.size(), 6u);
    apply<float>(time_shift({.steps = 50, .circular = true}), series, Shape{3, 2}, {.index = i});
  }
  for (const auto& counts : {open, circular}) {
    EXPECT_EQ(counts.size(), 3u);
    for (const auto& [moved, count] : counts) EXPECT_NEAR(count, kDraws / 3, 6 * std::sqrt(kDraws * 2 / 9.0));
  }
  EXPECT_ERROR(apply<float>(time_shift({}), ramp(3), Shape{3}), ArgumentError,
               "time_shift: needs a series [L, C], field 'image' is [3]");
}

TEST(RandomWindow, cuts_a_stretch) {
  std::map<Floats, int> counts;
  for (int i = 0; i < 3000; ++i)
    ++counts[apply<float>(random_window({.length = 2}), ramp(8), Shape{4, 2}, {.index = i})];
  EXPECT_EQ(counts.size(), 3u);
  for (const Floats& window : {Floats{1, 2, 3, 4}, Floats{3, 4, 5, 6}, Floats{5, 6, 7, 8}})
    EXPECT_NEAR(counts[window], 1000, 6 * std::sqrt(3000 * 2 / 9.0));
  EXPECT_ERROR(apply<float>(random_window({.length = 5}), ramp(8), Shape{4, 2}), ArgumentError,
               "random_window: 5 steps of field 'image' [4, 2]");
}

}  // namespace
}  // namespace samebytes::data
