#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "reference/losses.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class CrossEntropy : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(CrossEntropy);

std::vector<int> random_labels(std::int64_t rows, std::int64_t classes) {
  std::vector<int> labels;
  for (double u : random_values(rows, 21, 0, 1)) labels.push_back(static_cast<int>(u * static_cast<double>(classes)));
  return labels;
}

Array label_array(const std::vector<int>& labels, Dtype dtype) {
  const Shape shape{static_cast<std::int64_t>(labels.size())};
  if (dtype == i32) return array(std::span<const std::int32_t>(labels), shape);
  const std::vector<std::uint8_t> bytes(labels.begin(), labels.end());
  return array(std::span<const std::uint8_t>(bytes), shape);
}

// Rows of probabilities.
std::vector<double> random_distribution(std::int64_t rows, std::int64_t classes) {
  return reference::softmax(random_values(rows * classes, 22, -2, 2), rows, classes);
}

TEST_P(CrossEntropy, agrees_with_the_reference_in_every_option) {
  for (const Shape& shape : {Shape{64, 10}, Shape{1, 1}, Shape{7, 17}, Shape{3, 257}, Shape{130, 3}, Shape{2, 50257}}) {
    const std::int64_t rows = shape[0], classes = shape[1];
    const auto logits = random_values(shape.size(), 3, -5, 5), weight = random_values(classes, 4, 0.5, 2);
    const std::vector<int> labels = random_labels(rows, classes);
    for (Dtype dtype : real_dtypes())
      for (bool is_weighted : {false, true})
        for (float smoothing : {0.0f, 0.1f})
          for (std::optional<int> ignored : {std::optional<int>(), std::optional<int>(labels[0])}) {
            CrossEntropyOptions options{.label_smoothing = smoothing, .ignore_index = ignored};
            if (is_weighted) options.class_weight = real_array(weight, {classes}, dtype);
            const auto want = reference::cross_entropy(
                logits, labels, classes, is_weighted ? weight : std::vector<double>(), smoothing, ignored);
            const double tolerance = 8 * sum_tolerance(dtype, rows + classes);
            const Array a = real_array(logits, shape, dtype);
            const Array target = label_array(labels, classes > 256 ? i32 : dtype == f32 ? u8 : i32);
            EXPECT_TRUE(all_close(cross_entropy(a, target, options), std::vector<double>{want.mean()}, tolerance))
                << shape.to_string() << " " << is_weighted << " " << smoothing << " " << ignored.has_value();
            options.reduction = Reduction::sum;
            EXPECT_TRUE(all_close(cross_entropy(a, target, options), std::vector<double>{want.sum()}, tolerance));
            options.reduction = Reduction::none;
            EXPECT_TRUE(all_close(cross_entropy(a, target, options), want.losses, tolerance));
          }
  }
}

TEST_P(CrossEntropy, of_probabilities_agrees_with_the_reference) {
  for (const Shape& shape : {Shape{64, 10}, Shape{5, 37}, Shape{2, 2053}}) {
    const std::int64_t rows = shape[0], classes = shape[1];
    const auto logits = random_values(shape.size(), 3, -5, 5), weight = random_values(classes, 4, 0.5, 2);
    const auto target = random_distribution(rows, classes);
    for (bool is_weighted : {false, true})
      for (float smoothing : {0.0f, 0.2f}) {
        CrossEntropyOptions options{.label_smoothing = smoothing};
        if (is_weighted) options.class_weight = real_array(weight, {classes}, f32);
        const auto want =
            reference::cross_entropy(logits, target, classes, is_weighted ? weight : std::vector<double>(), smoothing);
        const Array a = real_array(logits, shape, f32), t = real_array(target, shape, f32);
        EXPECT_TRUE(all_close(cross_entropy(a, t, options), std::vector<double>{want.mean()},
                              8 * sum_tolerance(f32, rows + classes)));
        options.reduction = Reduction::none;
        EXPECT_TRUE(all_close(cross_entropy(a, t, options), want.losses, 8 * sum_tolerance(f32, classes)));
      }
  }
}

TEST_P(CrossEntropy, equals_a_value_worked_out_by_hand) {
  // log(e^1 + e^2 + e^3) = 3.40760596
  const Array logits = array({1.0f, 2.0f, 3.0f, 3.0f, 2.0f, 1.0f}, {2, 3});
  EXPECT_NEAR(cross_entropy(logits, label_array({2, 2}, i32)).value(), (0.40760596 + 2.40760596) / 2, 1e-6);
}

TEST_P(CrossEntropy, gradients_agree_with_differences_in_every_option) {
  SAMEBYTES_NEEDS_F64();
  const Shape shape{5, 7};
  const std::vector<int> labels = random_labels(5, 7);
  const Array target = label_array(labels, i32);
  const Array weight = real_array(random_values(7, 4, 0.5, 2), {7}, f64);
  const GradientInput src = random_input("logits", shape, 1, -2, 2);
  for (bool is_weighted : {false, true})
    for (float smoothing : {0.0f, 0.1f})
      for (std::optional<int> ignored : {std::optional<int>(), std::optional<int>(labels[0])})
        for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
          CrossEntropyOptions options{.label_smoothing = smoothing, .ignore_index = ignored, .reduction = reduction};
          if (is_weighted) options.class_weight = weight;
          EXPECT_TRUE(check_gradients([&](auto x) { return cross_entropy(x[0], target, options); }, {src}))
              << is_weighted << " " << smoothing << " " << ignored.has_value();
          if (ignored) continue;
          const GradientInput p{"target", shape, random_distribution(5, 7)};
          EXPECT_TRUE(check_gradients([&](auto x) { return cross_entropy(x[0], x[1], options); }, {src, p}))
              << is_weighted << " " << smoothing << " of probabilities";
        }
}

TEST_P(CrossEntropy, gradient_is_softmax_minus_target_on_long_rows) {
  const Shape shape{3, 2053};
  const auto logits = random_values(shape.size(), 3, -5, 5);
  std::vector<double> want = reference::softmax(logits, 3, 2053);
  const std::vector<int> labels = random_labels(3, 2053);
  for (std::size_t r = 0; r < 3; ++r) want[r * 2053 + static_cast<std::size_t>(labels[r])] -= 1;
  for (double& value : want) value /= 3;
  const std::vector<Array> wrt{real_array(logits, shape, f32)};
  EXPECT_TRUE(all_close(gradients(cross_entropy(wrt[0], label_array(labels, i32)), wrt)[0], want,
                        8 * sum_tolerance(f32, 2053)));
}

TEST_P(CrossEntropy, a_label_outside_the_classes_gives_nan) {
  const std::vector<Array> wrt{real_array(random_values(12), {4, 3}, f32)};
  const Array target = label_array({0, 3, -1, 2}, i32);
  const Array losses = cross_entropy(wrt[0], target, {.reduction = Reduction::none});
  const std::vector<Array> dlogits = gradients(sum(losses), wrt);
  const std::vector<double> y = losses.to_vector<double>(), g = dlogits[0].to_vector<double>();
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(std::isnan(y[r]), r == 1 || r == 2) << r;
    EXPECT_EQ(std::isnan(g[3 * r]), r == 1 || r == 2) << r;
  }
  EXPECT_TRUE(std::isnan(cross_entropy(wrt[0], target).value()));
  EXPECT_TRUE(std::isnan(cross_entropy(wrt[0], label_array({0, 255, 1, 2}, u8), {.label_smoothing = 0.1f}).value()));
}

TEST_P(CrossEntropy, gradients_of_many_short_rows_are_those_of_each) {
  const Shape shape{37, 10};
  const auto logits = random_values(shape.size(), 3, -5, 5), weight = random_values(10, 4, 0.5, 2);
  std::vector<int> labels = random_labels(37, 10);
  labels[5] = -100;  // ignored
  labels[20] = 10;   // outside
  std::vector<double> want = reference::softmax(logits, 37, 10);
  for (std::size_t r = 0; r < 37; ++r) {
    const bool inside = labels[r] >= 0 && labels[r] < 10;
    if (inside) want[r * 10 + static_cast<std::size_t>(labels[r])] -= 1;
    for (std::size_t c = 0; c < 10; ++c)
      want[r * 10 + c] *= r == 5 ? 0 : inside ? weight[static_cast<std::size_t>(labels[r])] : NAN;
  }
  const std::vector<Array> wrt{real_array(logits, shape, f32)};
  const Array losses = cross_entropy(
      wrt[0], label_array(labels, i32),
      {.ignore_index = -100, .class_weight = real_array(weight, {10}, f32), .reduction = Reduction::none});
  const std::vector<double> g = gradients(sum(losses), wrt)[0].to_vector<double>(), y = losses.to_vector<double>();
  EXPECT_EQ(y[5], 0);
  EXPECT_TRUE(std::isnan(y[20]));
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(g[i])) << i;
    else
      EXPECT_NEAR(g[i], want[i], 8 * sum_tolerance(f32, 10)) << i;
  }
}

TEST_P(CrossEntropy, ignored_rows_take_no_gradient_even_when_all_are_ignored) {
  const std::vector<Array> wrt{real_array(random_values(6), {2, 3}, f32)};
  const Array loss = cross_entropy(wrt[0], label_array({-100, -100}, i32), {.ignore_index = -100});
  EXPECT_TRUE(all_close(gradients(loss, wrt)[0], std::vector<double>(6, 0.0), 0));
  EXPECT_TRUE(std::isnan(loss.value()));
}

TEST_P(CrossEntropy, large_logits_keep_their_digits) {
  const Array logits = array({1000.0f, 998.0f, -1e30f}, {1, 3});
  EXPECT_NEAR(cross_entropy(logits, label_array({1}, u8)).value(), 2.126928, 1e-5);
  EXPECT_NEAR(cross_entropy(logits, label_array({0}, u8)).value(), 0.126928, 1e-6);
}

TEST_P(CrossEntropy, sequences_of_rows_and_sixteen_bit_logits_are_taken) {
  const auto values = random_values(24);
  const Array target = reshape(label_array({0, 1, 2, 3, 0, 1}, i32), {2, 3});
  const Array logits = real_array(values, {2, 3, 4}, f32);
  EXPECT_EQ(cross_entropy(logits, target, {.reduction = Reduction::none}).shape(), (Shape{2, 3}));
  const Array loss = cross_entropy(astype(logits, bf16), target);
  EXPECT_EQ(loss.dtype(), f32);
  EXPECT_NEAR(loss.value(), cross_entropy(logits, target).value(), 0x1p-7);
  const std::vector<Array> wrt{astype(logits, bf16)};
  EXPECT_EQ(gradients(cross_entropy(wrt[0], target), wrt)[0].dtype(), bf16);
}

TEST_P(CrossEntropy, of_no_rows_is_as_in_pytorch) {
  const Array logits = empty({0, 3}), target = empty({0}, i32);
  EXPECT_TRUE(std::isnan(cross_entropy(logits, target).value()));
  EXPECT_EQ(cross_entropy(logits, target, {.reduction = Reduction::sum}).value(), 0);
  EXPECT_EQ(cross_entropy(logits, target, {.reduction = Reduction::none}).shape(), (Shape{0}));
}

TEST_P(CrossEntropy, wrong_arguments_are_refused) {
  const Array logits = ones({4, 3}), target = full({4}, 0, i32);
  EXPECT_ERROR((cross_entropy(astype(logits, i32), target)), ArgumentError,
               "cross_entropy: needs floating logits of at least one class, logits is i32 [4, 3]");
  EXPECT_ERROR((cross_entropy(logits, full({5}, 0, i32))), ArgumentError,
               "cross_entropy: target must be [4] for labels, logits is f32 [4, 3], target is i32 [5]");
  EXPECT_ERROR((cross_entropy(logits, ones({4}))), ArgumentError,
               "cross_entropy: target must be [4, 3] for probabilities, logits is f32 [4, 3], target is f32 [4]");
  EXPECT_ERROR((cross_entropy(logits, full({4}, 0, bool_))), ArgumentError,
               "cross_entropy: target must be i32, i64 or u8 labels or floating probabilities, target is bool [4]");
  EXPECT_ERROR(((cross_entropy(logits, target, {.label_smoothing = 1.0f}))), ArgumentError,
               "cross_entropy: label_smoothing must be in [0, 1), got 1.000000");
  EXPECT_ERROR(((cross_entropy(logits, logits, {.ignore_index = 1}))), ArgumentError,
               "cross_entropy: ignore_index needs labels, target is f32 [4, 3]");
  EXPECT_ERROR(((cross_entropy(logits, target, {.class_weight = ones({4})}))), ArgumentError,
               "cross_entropy: class_weight must be floating [3], class_weight is f32 [4]");
}

}  // namespace
}  // namespace samebytes::testing
