// The norm of a step's gradient: the right number, for nothing where clipping computes it, and without a trace in what
// the step writes.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class GradientNormTest : public OnDevice {
 protected:
  // loss = w . a + v . b, so the gradient is (a, b) / f32 throughout.
  struct Model {
    Array w = cell(full({5}, 1.0), "w"), v = cell(full({3}, 2.0), "v");
    Array a = array({3, 0, -4, 12, 0}), b = array({1, 2, 2});
    std::vector<optim::ParameterGroup> groups() const { return {{.parameters = {w}}, {.parameters = {v}}}; }
    Array loss() const { return sum(w * a) + sum(v * b); }
  };
  static constexpr double kNorm = 13.341664064126334;  // sqrt(9 + 16 + 144 + 1 + 4 + 4)
};
SAMEBYTES_ON_EVERY_DEVICE(GradientNormTest);

TEST_P(GradientNormTest, is_that_of_all_gradients_before_clipping_and_costs_no_launch_beside_it) {
  const auto train = [&](double clip, bool is_watched, std::uint64_t& launches) {
    Model model;
    optim::Sgd sgd(model.groups(), {.rate = 0.1, .clip_norm = clip});
    sgd.watch_gradient_norm(is_watched);
    for (int step = 0; step < 3; ++step) {
      const std::uint64_t before = engine().plans().launches;
      sgd.step(model.loss());
      launches = engine().plans().launches - before;
      EXPECT_EQ(static_cast<bool>(sgd.gradient_norm()), is_watched);
      if (is_watched) {
        EXPECT_NEAR(sgd.gradient_norm().value(), kNorm, 1e-5);
      }
    }
    std::vector<float> values = model.w.to_vector<float>();
    for (const float value : model.v.to_vector<float>()) values.push_back(value);
    return values;
  };
  std::uint64_t watched = 0, plain = 0;
  EXPECT_EQ(train(2.0, true, watched), train(2.0, false, plain));
  EXPECT_EQ(watched, plain);
  EXPECT_EQ(train(0.0, true, watched), train(0.0, false, plain));
  EXPECT_LE(watched, plain + 2) << "one for each arena";
}

TEST_P(GradientNormTest, is_of_the_unscaled_gradients_and_not_finite_where_they_are_not) {
  Model model;
  optim::Sgd sgd(model.groups(), {.rate = 0.1});
  optim::GradScaler scaler({.init_scale = 1024});
  sgd.watch_gradient_norm(true);
  scaler.step(sgd, model.loss());
  const optim::GradientNorm first = sgd.gradient_norm();
  scaler.step(sgd, model.loss() * 1e38);
  EXPECT_NEAR(first.value(), kNorm, 1e-5) << "read a step later";
  EXPECT_FALSE(std::isfinite(sgd.gradient_norm().value()));
  EXPECT_EQ(sgd.skipped_steps(), 1);
  sgd.watch_gradient_norm(false);
  scaler.step(sgd, model.loss());
  EXPECT_FALSE(sgd.gradient_norm());
}

TEST_P(GradientNormTest, released_gradients_have_none) {
  const Model model;
  optim::Sgd sgd(model.groups(), {.rate = 0.1, .release_gradients = true});
  EXPECT_ERROR((sgd.watch_gradient_norm(true), 0), ArgumentError,
               "Sgd: release_gradients never has all gradients at once, so their norm is not there");
  EXPECT_ERROR(optim::GradientNorm().value(), ArgumentError, "GradientNorm: there is none");
}

}  // namespace
}  // namespace samebytes::testing
