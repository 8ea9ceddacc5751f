// The advisor's rules: each says its figure, and the recommendation is the batch that the rules and measurements leave.
#include "samebytes/optim/batch_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/errors.h"

namespace samebytes::optim {
namespace {

using ::testing::HasSubstr;

const std::vector<MeasuredBatch> kMeasured = {
    {.batch = 1, .samples_per_second = 100, .peak_bytes = 10, .steps_to_target = 900, .seconds_to_target = 9.0},
    {.batch = 8, .samples_per_second = 700, .peak_bytes = 20, .steps_to_target = 150, .seconds_to_target = 1.7},
    {.batch = 32, .samples_per_second = 1900, .peak_bytes = 60, .steps_to_target = 60, .seconds_to_target = 1.0},
    {.batch = 128, .samples_per_second = 2000, .peak_bytes = 200, .steps_to_target = 15, .seconds_to_target = 0.96}};

BatchAdvice rule(const BatchRecommendation& result, const std::string& name) {
  for (const BatchAdvice& advice : result.advice)
    if (advice.rule == name) return advice;
  ADD_FAILURE() << "no rule " << name;
  return {};
}

TEST(BatchAdvice, classes_have_their_names) {
  EXPECT_STREQ(name_of(class_of_batch(1, 1000)), "single");
  EXPECT_STREQ(name_of(class_of_batch(2, 1000)), "mini");
  EXPECT_STREQ(name_of(class_of_batch(512, 1000)), "mini");
  EXPECT_STREQ(name_of(class_of_batch(513, 1000)), "large");
  EXPECT_STREQ(name_of(class_of_batch(1000, 1000)), "full");
}

TEST(BatchAdvice, the_least_time_to_the_target_wins_and_memory_decides_between_equals) {
  const BatchRecommendation result = recommend_batch(kMeasured, {.training_samples = 10000, .noise_scale = 100});
  EXPECT_EQ(result.batch, 32);
  EXPECT_THAT(result.reason, HasSubstr("reached the target in 1.00 s"));
  EXPECT_THAT(result.reason, HasSubstr("least memory"));
}

TEST(BatchAdvice, batch_norm_and_memory_rule_sizes_out) {
  std::vector<MeasuredBatch> measured = kMeasured;
  measured[1].seconds_to_target = 0.1;
  EXPECT_EQ(recommend_batch(measured, {}).batch, 8);
  EXPECT_EQ(recommend_batch(measured, {.has_batch_norm = true}).batch, 32);
  EXPECT_EQ(recommend_batch(measured, {.memory_limit = 20}).batch, 1) << "a step leaves some of the memory free";
  const std::vector<MeasuredBatch> one = {measured[1]};
  const BatchRecommendation result = recommend_batch(one, {.has_batch_norm = true});
  EXPECT_EQ(result.batch, 8) << "nothing else is left";
  EXPECT_FALSE(rule(result, "batch norm").holds);
  EXPECT_THAT(rule(result, "batch norm").text, HasSubstr("8 are too few"));
}

TEST(BatchAdvice, without_a_target_the_fastest_up_to_the_noise_scale) {
  std::vector<MeasuredBatch> measured = kMeasured;
  for (MeasuredBatch& one : measured) one.seconds_to_target.reset();
  EXPECT_EQ(recommend_batch(measured, {.noise_scale = 20}).batch, 8);
  EXPECT_EQ(recommend_batch(measured, {.noise_scale = 0.5}).batch, 1);
  EXPECT_EQ(recommend_batch(measured, {.task = BatchTask::language}).batch, 32);
  EXPECT_EQ(recommend_batch(measured, {.noise_scale = std::numeric_limits<double>::infinity()}).batch, 128);
}

TEST(BatchAdvice, each_rule_says_the_figure_it_is_applied_to) {
  const BatchRecommendation result = recommend_batch(kMeasured, {.has_batch_norm = true,
                                                                 .training_samples = 250,
                                                                 .base_batch = 8,
                                                                 .base_rate = 1e-3,
                                                                 .rule = ScaleRule::linear,
                                                                 .noise_scale = 12,
                                                                 .memory_limit = 1000});
  EXPECT_EQ(result.batch, 32);
  EXPECT_THAT(rule(result, "batch norm").text, HasSubstr("16 samples or more"));
  EXPECT_THAT(rule(result, "usual sizes").text, HasSubstr("classification usually takes 32 to 256"));
  EXPECT_THAT(rule(result, "grow from small").text, HasSubstr("rise up to 32 (1 900"));
  EXPECT_THAT(rule(result, "learning rate").text, HasSubstr("0.004 for 32 samples, from 0.001 for 8"));
  EXPECT_THAT(rule(result, "learning rate").text, HasSubstr("warm-up"));
  EXPECT_FALSE(rule(result, "critical batch").holds);
  EXPECT_THAT(rule(result, "critical batch").text, HasSubstr("about 12 samples"));
  EXPECT_FALSE(rule(result, "size of the set").holds);
  EXPECT_THAT(rule(result, "size of the set").text, HasSubstr("8 steps a pass"));
  EXPECT_TRUE(rule(result, "memory").holds);
  const std::vector<MeasuredBatch> large = {{.batch = 1024, .samples_per_second = 1, .seconds_to_target = 1.0}};
  const BatchRecommendation clamped =
      recommend_batch(large, {.base_batch = 8, .base_rate = 1e-3, .rule = ScaleRule::linear});
  EXPECT_FALSE(rule(clamped, "learning rate").holds);
  EXPECT_THAT(rule(clamped, "learning rate").text, HasSubstr("ceiling"));
}

TEST(BatchAdvice, wrong_arguments_are_named) {
  EXPECT_ERROR(recommend_batch({}, {}), ArgumentError, "recommend_batch: needs at least one measured batch");
  const std::vector<MeasuredBatch> none(1);
  EXPECT_ERROR(recommend_batch(none, {}), ArgumentError, "recommend_batch: a batch has at least 1 sample, got 0");
}

}  // namespace
}  // namespace samebytes::optim
