// Averages of weights, and a cycle that an optimizer follows.
#include "samebytes/optim/ema.h"

#include <cmath>

#include "optim/follows_formula.h"
#include "samebytes/optim/schedules.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::Ema;
using optim::EmaScope;
using optim::Sgd;

class EmaTest : public FollowsFormula {
 protected:
  static std::vector<Vector> values_of(const std::vector<Array>& cells) {
    std::vector<Vector> values;
    for (const Array& p : cells) values.push_back(p.to_vector<double>());
    return values;
  }
};
SAMEBYTES_ON_ONE_DEVICE(EmaTest);

TEST_P(EmaTest, averages_the_weights_and_swaps_them_in_and_back) {
  const std::vector<Array> cells = parameters(f32);
  Sgd sgd(cells, {.rate = 0.1});
  Ema ema(sgd, {.decay = 0.75});
  EXPECT_THROW(ema.swap(), ArgumentError);
  std::vector<Vector> want;
  for (int step = 0; step < 4; ++step) {
    sgd.step(gradients_of_step(step, f32));
    ema.update();
    const std::vector<Vector> now = values_of(cells);
    if (step == 0) want = now;  // the first update copies
    for (std::size_t i = 0; i < now.size() && step > 0; ++i)
      for (std::size_t j = 0; j < now[i].size(); ++j) want[i][j] = 0.75 * want[i][j] + 0.25 * now[i][j];
  }
  const std::vector<Vector> weights = values_of(cells);
  {
    const EmaScope averaged(ema);
    EXPECT_TRUE(ema.is_swapped());
    for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_TRUE(all_close(cells[i], want[i], 1e-6)) << i;
    EXPECT_ERROR(ema.update(), ArgumentError, "Ema: update() while the averages are swapped in");
    EXPECT_THROW(EmaScope twice(ema), ArgumentError);
    EXPECT_EQ(ema.state_dict().arrays[0].array.to_vector<double>()[0], cells[0].to_vector<double>()[0]);
  }
  EXPECT_EQ(values_of(cells), weights);
  EXPECT_EQ(ema.update_count(), 4);
}

TEST_P(EmaTest, one_launch_for_each_arena) {
  const std::vector<Array> cells = parameters(f32);
  const Sgd sgd(cells);
  Ema ema(sgd);
  ema.update();
  const std::uint64_t before = engine().plans().launches;
  ema.update();
  EXPECT_EQ(engine().plans().launches - before, 1u);
}

TEST_P(EmaTest, the_decay_may_warm_up) {
  const std::vector<Array> cells = parameters(f32);
  const Sgd sgd(cells);
  const Ema plain(sgd, {.decay = 0.9, .start = 2});
  EXPECT_EQ(plain.decay_of(0), 0.0);
  EXPECT_EQ(plain.decay_of(2), 0.0);
  EXPECT_EQ(plain.decay_of(3), 0.9);
  const Ema warm(sgd, {.decay = 0.9, .warmup = true, .least_decay = 0.4});
  EXPECT_EQ(warm.decay_of(0), 0.0);
  EXPECT_EQ(warm.decay_of(1), 0.4);  // 1 - 2^(-2/3) is 0.37
  EXPECT_DOUBLE_EQ(warm.decay_of(7), 1 - std::pow(8.0, -2.0 / 3.0));
  EXPECT_EQ(warm.decay_of(100), 0.9);
  EXPECT_THROW(Ema(sgd, {.decay = 1.5}), ArgumentError);
  EXPECT_THROW(Ema(sgd, {.gamma = 0.0}), ArgumentError);
  EXPECT_THROW(Ema(sgd, {.decay = 0.5, .least_decay = 0.6}), ArgumentError);
}

TEST_P(EmaTest, goes_on_from_a_saved_state) {
  const std::vector<Array> cells = parameters(f32);
  Sgd sgd(cells, {.rate = 0.1});
  Ema whole(sgd, {.decay = 0.5}), again(sgd, {.decay = 0.5});
  whole.update();
  sgd.step(gradients_of_step(0, f32));
  whole.update();
  again.load_state_dict(whole.state_dict());
  sgd.step(gradients_of_step(1, f32));
  whole.update();
  again.update();
  EXPECT_EQ(again.update_count(), 3);
  EXPECT_EQ(again.state_dict().arrays[0].array.to_vector<float>(),
            whole.state_dict().arrays[0].array.to_vector<float>());
  EXPECT_THROW(again.load_state_dict({}), ArgumentError);
}

TEST_P(EmaTest, a_cycle_moves_rate_and_momentum_of_an_optimizer) {
  const std::vector<Array> cells = parameters(f32);
  const optim::OneCycle cycle{.max_rate = 0.5, .total_steps = 10};
  {
    Sgd sgd(cells, {.momentum = 0.9});
    set_one_cycle(sgd, cycle);
    EXPECT_EQ(sgd.rate(), cycle(0));
    EXPECT_DOUBLE_EQ(*sgd.momentum(), 0.95);
    sgd.step(gradients_of_step(0, f32));
    EXPECT_DOUBLE_EQ(sgd.rate(), cycle(1));
    EXPECT_DOUBLE_EQ(*sgd.momentum(), cycle.momentum(1));
    EXPECT_THROW(set_one_cycle(sgd, {}), ArgumentError);
  }
  Sgd plain(cells);
  set_one_cycle(plain, cycle);  // without momentum: the rate alone
  EXPECT_EQ(plain.rate(), cycle(0));
  EXPECT_EQ(*plain.momentum(), 0.0);
}

}  // namespace
}  // namespace samebytes::testing
