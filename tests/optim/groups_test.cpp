// Parameter groups: what a group has of its own, what it leaves to the optimizer, and how rates and states follow.
#include "samebytes/optim/group.h"

#include <cmath>

#include "optim/follows_formula.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::AdamW;
using optim::ParameterGroup;
using optim::Sgd;

class GroupsTest : public FollowsFormula {
 protected:
  Dtype dtype() const { return real_dtypes().back(); }
  // The first parameter, the two others, and the last one.
  static std::vector<ParameterGroup> groups(const std::vector<Array>& cells) {
    return {{.parameters = {cells[0]}},
            {.parameters = {cells[2], cells[1]}, .options = {.rate = 0.02, .weight_decay = 0.0}},
            {.parameters = {cells[3]}, .options = {.beta1 = 0.5}}};
  }
};
SAMEBYTES_ON_ONE_DEVICE(GroupsTest);

TEST_P(GroupsTest, options_of_a_group_override_the_optimizers) {
  const std::vector<Array> cells = parameters(dtype());
  AdamW adam(groups(cells), {.rate = 0.01, .weight_decay = 0.1});
  struct Own {
    double rate, beta1, decay;
  };
  const Own own[] = {{0.01, 0.9, 0.1}, {0.02, 0.9, 0.0}, {0.02, 0.9, 0.0}, {0.01, 0.5, 0.1}};
  std::vector<Vector> want, m(4), v(4);
  for (const Array& p : cells) want.push_back(p.to_vector<double>());
  for (int step = 0; step < 3; ++step) {
    const std::vector<Array> g = gradients_of_step(step, dtype());
    const std::vector<Array> by_group{g[0], g[2], g[1], g[3]};
    adam.step(by_group);
    for (std::size_t i = 0; i < 4; ++i) {
      const Vector slope = g[i].to_vector<double>();
      m[i].resize(slope.size());
      v[i].resize(slope.size());
      for (std::size_t j = 0; j < slope.size(); ++j) {
        m[i][j] = own[i].beta1 * m[i][j] + (1 - own[i].beta1) * slope[j];
        v[i][j] = 0.999 * v[i][j] + 0.001 * slope[j] * slope[j];
        const double t = step + 1, first = m[i][j] / (1 - std::pow(own[i].beta1, t)),
                     second = v[i][j] / (1 - std::pow(0.999, t));
        want[i][j] *= 1 - own[i].rate * own[i].decay;
        want[i][j] -= own[i].rate * first / (std::sqrt(second) + 1e-8);
      }
    }
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(all_close(cells[i], want[i], 5 * tolerance(dtype()))) << i;
}

TEST_P(GroupsTest, arenas_go_by_group_then_order) {
  const std::vector<Array> cells = parameters(f32);
  const AdamW adam(groups(cells));
  ASSERT_EQ(adam.group_count(), 3u);
  ASSERT_EQ(adam.arenas().size(), 3u);
  EXPECT_EQ(adam.group_of_arena(1), 1u);
  ASSERT_EQ(adam.parameters().size(), 4u);
  EXPECT_EQ(cell_name(adam.parameters()[1]), cell_name(cells[2]));
  EXPECT_EQ(cell_name(adam.arenas()[1].parameters()[1]), cell_name(cells[1]));
  EXPECT_EQ(*adam.group(1).weight_decay, 0.0);
  EXPECT_EQ(*adam.group(2).weight_decay, 0.01);
  EXPECT_FALSE(adam.group(0).momentum.has_value());
}

TEST_P(GroupsTest, a_rate_of_its_own_keeps_its_proportion) {
  const std::vector<Array> cells = parameters(f32);
  AdamW adam(groups(cells), {.rate = 0.01});
  EXPECT_EQ(adam.rate(0), 0.01);
  EXPECT_EQ(adam.rate(1), 0.02);
  adam.set_rate(0.5);
  EXPECT_EQ(adam.rate(0), 0.5);
  EXPECT_DOUBLE_EQ(adam.rate(1), 1.0);
  adam.set_schedule([](std::int64_t step) { return 1.0 / static_cast<double>(step + 1); });
  EXPECT_DOUBLE_EQ(adam.rate(1), 2.0);
  adam.set_step_count(3);
  EXPECT_DOUBLE_EQ(adam.rate(1), 0.5);
  EXPECT_DOUBLE_EQ(adam.rate(2), 0.25);
}

TEST_P(GroupsTest, vectors_are_split_from_matrices) {
  const std::vector<Array> cells = parameters(f32);
  const auto split = optim::split_vectors(cells, {.weight_decay = 0.0});
  ASSERT_EQ(split.size(), 2u);
  ASSERT_EQ(split[0].parameters.size(), 2u);
  EXPECT_EQ(cell_name(split[0].parameters[0]), cell_name(cells[1]));
  EXPECT_FALSE(split[0].options.weight_decay.has_value());
  EXPECT_EQ(*split[1].options.weight_decay, 0.0);
  EXPECT_EQ(optim::split_vectors(std::span<const Array>(cells).first(1), {}).size(), 1u);
}

TEST_P(GroupsTest, momentum_follows_a_schedule_where_there_is_one) {
  const std::vector<Array> cells = parameters(f32);
  {
    AdamW adam(groups(cells));
    EXPECT_EQ(*adam.momentum(), 0.9);
    adam.set_momentum_schedule([](std::int64_t step) { return step == 0 ? 0.8 : 0.7; });
    EXPECT_EQ(*adam.group(2).beta1, 0.8);
    adam.set_step_count(1);
    EXPECT_EQ(*adam.momentum(), 0.7);
    EXPECT_THROW(adam.set_momentum(1.0), ArgumentError);
  }
  Sgd sgd(cells);
  EXPECT_ERROR(sgd.set_momentum(0.5), ArgumentError,
               "Sgd: was made with momentum 0, which keeps no buffers and cannot change then");
}

TEST_P(GroupsTest, a_state_dict_holds_all_that_the_next_steps_need) {
  const auto run = [&](bool interrupted) {
    const std::vector<Array> cells = parameters(f32);
    const auto make = [&] {
      return std::make_unique<Sgd>(
          std::vector<ParameterGroup>{{.parameters = {cells[0], cells[1]}},
                                      {.parameters = {cells[2], cells[3]}, .options = {.momentum = 0.0}}},
          optim::SgdOptions{.rate = 0.1, .momentum = 0.9});
    };
    auto sgd = make();
    for (int step = 0; step < 2; ++step) sgd->step(gradients_of_step(step, f32));
    sgd->set_rate(0.05);
    if (interrupted) {
      optim::StateDict saved = sgd->state_dict();
      EXPECT_EQ(saved.arrays.size(), 1u);
      for (auto& entry : saved.arrays) entry.array = array(entry.array.to_vector<float>(), entry.array.shape());
      sgd.reset();
      sgd = make();
      sgd->load_state_dict(saved);
      EXPECT_EQ(sgd->step_count(), 2);
      EXPECT_EQ(sgd->rate(), 0.05);
    }
    for (int step = 2; step < 4; ++step) sgd->step(gradients_of_step(step, f32));
    return cells[1].to_vector<float>();
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(GroupsTest, a_state_of_something_else_is_refused_whole) {
  const std::vector<Array> cells = parameters(f32);
  AdamW adam(cells);
  optim::StateDict state = adam.state_dict();
  ASSERT_EQ(state.arrays.size(), 2u);
  state.numbers.front().value = 7;
  state.arrays[1].array = zeros({3});
  EXPECT_THROW(adam.load_state_dict(state), ArgumentError);
  state.arrays.pop_back();
  EXPECT_ERROR(adam.load_state_dict(state), ArgumentError, "AdamW: the state has no array 0.moment2");
  state = adam.state_dict();
  state.arrays.push_back({"0.more", zeros({3})});
  EXPECT_ERROR(adam.load_state_dict(state), ArgumentError,
               "AdamW: the state has an array 0.more that there is no place for");
  state = adam.state_dict();
  state.numbers.erase(state.numbers.begin());
  EXPECT_ERROR(adam.load_state_dict(state), ArgumentError, "AdamW: the state has no number step_count");
  EXPECT_EQ(adam.step_count(), 0);
}

TEST_P(GroupsTest, wrong_groups_are_named) {
  const std::vector<Array> cells = parameters(f32);
  using Groups = std::vector<ParameterGroup>;
  EXPECT_ERROR((Sgd(Groups{{.parameters = cells, .options = {.beta1 = 0.9}}})), ArgumentError,
               "Sgd: it has no option beta1, got a group with one");
  EXPECT_ERROR((Sgd(Groups{{.parameters = {cells[0]}}, {.parameters = {cells[1], cells[0]}}})), ArgumentError,
               "Sgd: p1 is in two groups");
  EXPECT_THROW((AdamW(Groups{{.parameters = cells, .options = {.beta2 = 1.5}}})), ArgumentError);
  EXPECT_THROW((AdamW(Groups{{.parameters = cells, .options = {.rate = -1.0}}})), ArgumentError);
  EXPECT_THROW((AdamW(Groups{{.parameters = cells, .options = {.rate = 1.0}}}, {.rate = 0.0})), ArgumentError);
  EXPECT_THROW((AdamW(Groups{})), ArgumentError);
  EXPECT_THROW((Sgd(Groups{{.parameters = cells, .options = {.momentum = 0.0}}}, {.momentum = 0.9, .nesterov = true})),
               ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing
