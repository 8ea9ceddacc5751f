// An optimizer and its schedule by name.
#include "samebytes/optim/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "samebytes/samebytes.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::Recipe;
using optim::RecipeOptions;
using ::testing::StartsWith;

TEST(Recipe, each_optimizer_trains_with_each_schedule) {
  const Engine engine;
  for (const std::string& optimizer : optim::optimizer_names())
    for (const std::string& schedule : optim::schedule_names()) {
      if (schedule == "onecycle" && (optimizer == "adagrad" || optimizer == "adafactor")) continue;  // no momentum
      nn::Linear net({.in = 2, .out = 1});
      const Recipe recipe({.optimizer = optimizer, .schedule = schedule, .steps = 20});
      const std::unique_ptr<optim::Optimizer> made = recipe.make_optimizer(net.parameters());
      const float before = net.weight().to_vector<float>()[0];
      for (int i = 0; i < 3; ++i) made->step(sum(net(ones({4, 2}))));
      EXPECT_NE(net.weight().to_vector<float>()[0], before) << optimizer << " " << schedule;
      EXPECT_EQ(recipe.plateau_options().has_value(), schedule == "plateau");
    }
}

TEST(Recipe, what_is_not_given_is_the_tasks_or_the_optimizers_own) {
  const optim::TaskDefaults task{.rate = 0.004, .batch = 32};
  EXPECT_EQ(Recipe({.task = task}).rate(), 0.004);
  EXPECT_EQ(Recipe({.optimizer = "sgd", .task = task}).rate(), optim::SgdOptions{}.rate);
  EXPECT_EQ(Recipe({.task = task, .rate = 0.5}).rate(), 0.5);
  EXPECT_EQ(Recipe({.task = task, .steps = 100}).warmup(), 5);
  EXPECT_EQ(Recipe({.schedule = "constant", .task = task, .steps = 100}).warmup(), 0);
  const Recipe scaled({.task = task, .batch = 128, .steps = 100, .scale_rate = optim::ScaleRule::linear});
  EXPECT_DOUBLE_EQ(scaled.rate(), 0.016);
  EXPECT_EQ(scaled.default_rate(), 0.004);
  EXPECT_EQ(Recipe({.steps = 20, .ema = 0.99}).to_text(),
            "adamw, cosine schedule, rate 0.001, warm-up of 1 step, averaged weights 0.99");
}

std::string refusal_of(const RecipeOptions& options) {
  return message_of<ArgumentError>([&] { Recipe(options).rate_schedule(); });
}

TEST(Recipe, names_the_field_that_does_not_fit) {
  EXPECT_THAT(refusal_of({.optimizer = "adm"}), StartsWith("optimizer: expected one of sgd, adam"));
  EXPECT_THAT(refusal_of({.schedule = "up"}), StartsWith("schedule: expected one of constant, linear"));
  EXPECT_EQ(refusal_of({.optimizer = "adagrad", .momentum = 0.5}), "momentum: adagrad has none");
  EXPECT_THAT(refusal_of({.optimizer = "lion", .release_gradients = true}), StartsWith("release_gradients: lion does"));
  EXPECT_THAT(refusal_of({.optimizer = "lars", .moments = bf16}), StartsWith("moments: lars keeps them in f32"));
  EXPECT_THAT(refusal_of({.optimizer = "lamb", .bf16_weights = true}), StartsWith("weights: lamb keeps them in f32"));
  EXPECT_THAT(refusal_of({.schedule = "onecycle", .warmup = 3}), StartsWith("schedule: onecycle begins with"));
  EXPECT_THAT(refusal_of({.base_batch = 3}), StartsWith("base_batch: it needs a rule"));
  EXPECT_THAT(refusal_of({.schedule = "plateau"}), StartsWith("schedule: plateau is no function"));
}

}  // namespace
}  // namespace samebytes::testing
