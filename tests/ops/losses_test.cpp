#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class Losses : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Losses);

double bce(double x, double t) { return std::max(x, 0.0) - x * t + std::log1p(std::exp(-std::abs(x))); }

TEST_P(Losses, bce_with_logits_agrees_with_its_definition) {
  for (const Shape& shape : {Shape{1}, Shape{7, 13}, Shape{3001}}) {
    const auto x = random_values(shape.size(), 1, -20, 20), t = random_values(shape.size(), 2, 0, 1);
    std::vector<double> want;
    double total = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      want.push_back(bce(x[i], t[i]));
      total += want.back();
    }
    for (Dtype dtype : real_dtypes()) {
      const Array a = real_array(x, shape, dtype), b = real_array(t, shape, dtype);
      const double tolerance = 20 * sum_tolerance(dtype, shape.size());  // |x| <= 20 is rounded
      EXPECT_TRUE(all_close(bce_with_logits(a, b, Reduction::none), want, tolerance));
      EXPECT_TRUE(all_close(bce_with_logits(a, b, Reduction::sum), std::vector<double>{total}, tolerance));
      EXPECT_TRUE(
          all_close(bce_with_logits(a, b), std::vector<double>{total / static_cast<double>(shape.size())}, tolerance));
    }
  }
}

TEST_P(Losses, bce_with_logits_is_stable_and_keeps_small_losses) {
  const Array x = array({1000.0f, -1000.0f, 40.0f, 0.0f}), t = array({1.0f, 1.0f, 1.0f, 0.5f});
  const std::vector<float> y = bce_with_logits(x, t, Reduction::none).to_vector<float>();
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 1000);
  EXPECT_NEAR(y[2], std::exp(-40.0), std::exp(-40.0) * 1e-5);
  EXPECT_NEAR(y[3], std::log(2.0), 1e-6);
}

TEST_P(Losses, gradients_agree_with_differences) {
  SAMEBYTES_NEEDS_F64();
  GradientInput x = random_input("logits", {3, 5}, 1, -3, 3);
  x.values[0] = 0;  // where the stable form has a corner
  for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    EXPECT_TRUE(check_gradients([&](auto a) { return bce_with_logits(a[0], a[1], reduction); },
                                {x, random_input("target", {3, 5}, 2, 0, 1)}));
    EXPECT_TRUE(
        check_gradients([&](auto a) { return mse_loss(a[0], a[1], reduction); }, {x, random_input("b", {3, 5}, 2)}));
  }
}

TEST_P(Losses, mse_loss_is_the_mean_of_squares) {
  const Array a = array({1.0f, 2.0f, 3.0f}), b = array({1.0f, 0.0f, 6.0f});
  EXPECT_NEAR(mse_loss(a, b).value(), 13.0 / 3, 1e-6);
  EXPECT_EQ(mse_loss(a, b, Reduction::sum).value(), 13);
  EXPECT_EQ(mse_loss(a, b, Reduction::none).to_vector<float>(), (std::vector<float>{0, 4, 9}));
  EXPECT_TRUE(std::isnan(mse_loss(empty({0}), empty({0})).value()));
}

TEST_P(Losses, sixteen_bit_inputs_give_an_f32_loss) {
  const Array a = astype(array({1.0f, 2.0f}), f16);
  EXPECT_EQ(mse_loss(a, a).dtype(), f32);
  EXPECT_EQ(bce_with_logits(a, a).dtype(), f32);
}

TEST_P(Losses, wrong_arguments_are_refused) {
  EXPECT_ERROR((mse_loss(ones({2, 3}), ones({3}))), ArgumentError,
               "mse_loss: the shapes differ: a is f32 [2, 3], b is f32 [3]");
  EXPECT_ERROR((bce_with_logits(ones({2}), full({2}, 1, i32))), ArgumentError,
               "bce_with_logits: needs floating arrays, target is i32 [2]");
}

}  // namespace
}  // namespace samebytes::testing
