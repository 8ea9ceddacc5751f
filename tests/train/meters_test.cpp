#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class MetersTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(MetersTest);

TEST_P(MetersTest, a_mean_weighs_what_it_is_given) {
  Mean mean;
  EXPECT_TRUE(std::isnan(mean.value()));
  mean.add(array({2.0f}), 3);
  mean.add(array({6.0f}), 1);
  EXPECT_DOUBLE_EQ(mean.value(), 3.0);
  mean.add(array({1.0f, 2.0f, 3.0f, 6.0f}));
  EXPECT_DOUBLE_EQ(mean.value(), 3.0);
  EXPECT_DOUBLE_EQ(mean.weight(), 8.0);
  mean.reset();
  EXPECT_TRUE(std::isnan(mean.value()));
  mean.add(array({0.0f}), 0.0);
  EXPECT_TRUE(std::isnan(mean.value()));
}

TEST_P(MetersTest, a_long_sum_loses_nothing) {
  // 0.1f added 20 000 times without compensation is off by more than 1e-5 of itself.
  Mean mean;
  const Array x = array({0.1f});
  for (int i = 0; i < 20'000; ++i) mean.add(x);
  EXPECT_NEAR(mean.value(), static_cast<double>(0.1f), 1e-8);
}

TEST_P(MetersTest, a_number_of_the_host_counts_as_an_array_of_it) {
  Mean of_arrays, of_numbers;
  for (const float value : {2.3f, -0.7f, 1e-6f, 1e6f}) {
    of_arrays.add(array({value}), 7);
    of_numbers.add_value(value, 7);
  }
  EXPECT_EQ(of_numbers.value(), of_arrays.value());
  EXPECT_EQ(of_numbers.state().lost, of_arrays.state().lost);
  EXPECT_EQ(of_numbers.weight(), 28.0);
  of_numbers.add_value(NAN, 1);
  EXPECT_TRUE(std::isnan(of_numbers.value()));
  EXPECT_ERROR((of_numbers.add_value(1, -1)), ArgumentError, "Mean: a weight must be at least 0, got -1.000000");
}

TEST_P(MetersTest, folding_a_value_in_is_one_launch_and_one_plan) {
  Mean mean;
  const Array x = array({0.5f});
  for (int i = 0; i < 3; ++i) mean.add(x);
  const PlanReport before = engine().plans();
  for (int i = 0; i < 5; ++i) mean.add(x, i + 2.0);
  mean.add(x);
  const PlanReport after = engine().plans();
  EXPECT_EQ(after.launches - before.launches, 6u);
  EXPECT_EQ(after.plans_made, before.plans_made);
}

TEST_P(MetersTest, a_mean_holds_nothing_that_was_added) {
  Mean mean;
  std::weak_ptr<detail::Node> node;
  {
    const Array x = array({1.0f}) + 1.0;
    node = x.node();
    mean.add(x);
  }
  EXPECT_TRUE(node.expired());
  EXPECT_DOUBLE_EQ(mean.value(), 2.0);
}

TEST_P(MetersTest, a_mean_of_a_loss_already_used_for_a_step_is_its_value) {
  const Array p = cell(array({3.0f}), "p");
  const std::vector<Array> parameters{p};
  optim::Sgd sgd(parameters, {.rate = 0.5});
  Mean mean;
  for (int step = 0; step < 2; ++step) {
    const Array loss = sum(square(p));
    sgd.step(loss);
    mean.add(loss);
  }
  EXPECT_DOUBLE_EQ(mean.value(), 4.5);  // 9, then 0
}

TEST_P(MetersTest, accuracy_counts_rows_whose_largest_logit_is_at_the_label) {
  Accuracy accuracy;
  EXPECT_TRUE(std::isnan(accuracy.value()));
  const Array logits = array({1, 2, 3, 9, 1, 1, 0, 5, 1, 2, 2, 2}, {4, 3});
  const std::vector<std::int32_t> labels{2, 0, 0, 0};
  accuracy.add(logits, array(std::span<const std::int32_t>(labels), {4}));
  EXPECT_DOUBLE_EQ(accuracy.value(), 0.75);
  const std::vector<std::uint8_t> bytes{2, 1, 1, 1};
  accuracy.add(logits, array(std::span<const std::uint8_t>(bytes), {4}));
  EXPECT_DOUBLE_EQ(accuracy.value(), 5.0 / 8.0);
  EXPECT_DOUBLE_EQ(accuracy.count(), 8.0);
}

TEST_P(MetersTest, wrong_arguments_are_named) {
  Mean mean;
  EXPECT_THROW(mean.add(Array()), ArgumentError);
  EXPECT_THROW(mean.add(zeros({0})), ArgumentError);
  EXPECT_THROW(mean.add(zeros({1}, i32)), ArgumentError);
  EXPECT_THROW(mean.add(zeros({1}), -1.0), ArgumentError);
  EXPECT_THROW(mean.add_sum(zeros({2}), 2.0), ArgumentError);
  Accuracy accuracy;
  EXPECT_THROW(accuracy.add(zeros({4}), zeros({4}, i32)), ArgumentError);
  EXPECT_THROW(accuracy.add(zeros({4, 3}), zeros({3}, i32)), ArgumentError);
  EXPECT_THROW(accuracy.add(zeros({4, 3}), zeros({4}, f32)), ArgumentError);
}

TEST(BinaryMeasures, balanced_accuracy_weighs_both_classes_alike) {
  // Three of four negatives and one of two positives are right.
  const std::vector<float> scores{-1, -2, 3, -0.5f, 2, -1}, truth{0, 0, 0, 0, 1, 1};
  EXPECT_DOUBLE_EQ(balanced_accuracy(scores, truth), (0.75 + 0.5) / 2);
  EXPECT_TRUE(std::isnan(balanced_accuracy(std::vector<float>{1}, std::vector<float>{1})));
}

TEST(BinaryMeasures, the_area_under_the_curve_counts_pairs_in_order_and_ties_by_half) {
  const std::vector<float> scores{0.1f, 0.4f, 0.35f, 0.8f}, truth{0, 0, 1, 1};
  EXPECT_DOUBLE_EQ(area_under_curve(scores, truth), 0.75);  // three of four pairs
  EXPECT_DOUBLE_EQ(area_under_curve(std::vector<float>{1, 1, 1}, std::vector<float>{0, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(area_under_curve(std::vector<float>{2, 1}, std::vector<float>{0, 1}), 0);
  EXPECT_TRUE(std::isnan(area_under_curve(std::vector<float>{2, 1}, std::vector<float>{0, 0})));
}

TEST(BinaryMeasures, name_what_does_not_fit) {
  EXPECT_ERROR((area_under_curve(std::vector<float>{1}, std::vector<float>{})), ArgumentError,
               "area_under_curve: scores and truth differ in length: 1, 0");
  EXPECT_ERROR((balanced_accuracy(std::vector<float>{1}, std::vector<float>{2})), ArgumentError,
               "balanced_accuracy: truth holds 0 and 1, got 2.000000");
}

}  // namespace
}  // namespace samebytes::testing
