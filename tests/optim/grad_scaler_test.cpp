// Loss scaling against PyTorch's rule, skipped steps that change nothing, and f32 masters under 16-bit working copies.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using optim::Adam;
using optim::GradScaler;
using optim::Sgd;
using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class GradScalerTest : public OnDevice {
 protected:
  // A small model of a matrix with a working copy and a bias without one.
  struct Model {
    Array w = cell(real_array(random_values(35, 1), {5, 7}, f32), "w");
    Array b = cell(real_array(random_values(5, 2), {5}, f32), "b");
    std::vector<Array> parameters{w, b};
    explicit Model(std::optional<Dtype> copies) {
      if (copies) keep_working_copies(parameters, *copies);
    }
    // The gradient of w is 2 (or infinite), that of b is 2 (or infinite) times `slope`.
    Array loss(Dtype dtype, const Array& slope) const {
      const Autocast use({.dtype = dtype});
      return sum(linear(full({1, 7}, 2.0), w, b) * slope);
    }
  };
  static Array slope(int step, bool overflows = false) {
    std::vector<double> values = random_values(5, static_cast<std::uint64_t>(10 + step), 0.5, 1.5);
    if (overflows) values[3] = kInfinity;
    return real_array(values, {1, 5}, f32);
  }
  static std::vector<Floats> everything(const Model& model, const optim::Optimizer& optimizer) {
    std::vector<Floats> all;
    for (const Array& p : model.parameters) all.push_back(p.to_vector<float>());
    if (const Array copy = working_copy(model.w); copy.defined()) all.push_back(copy.to_vector<float>());
    for (const auto& entry : optimizer.state()) all.push_back(entry.array.to_vector<float>());
    return all;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(GradScalerTest);

TEST_P(GradScalerTest, the_scale_follows_pytorchs_rule) {
  const Array w = cell(array({1, 2, 3}), "w");
  Sgd sgd(std::span(&w, 1), {.rate = 0.0});
  GradScaler scaler({.init_scale = 8.0, .growth_factor = 4.0, .backoff_factor = 0.25, .growth_interval = 3});
  double scale = 8.0;
  int tracker = 0, skipped = 0;
  const bool overflows[] = {true, false, false, false, false, true, false, false, false, true, true, false};
  for (const bool overflow : overflows) {
    scaler.step(sgd, sum(w * array({1.0f, overflow ? kInfinity : 2.0f, 3.0f})));
    if (overflow) {
      scale *= 0.25;
      tracker = 0;
      ++skipped;
    } else if (++tracker == 3) {
      scale *= 4.0;
      tracker = 0;
    }
    EXPECT_EQ(scaler.scale(), scale);
    EXPECT_EQ(scaler.state().growth_tracker, tracker);
    EXPECT_EQ(sgd.skipped_steps(), skipped);
  }
  EXPECT_EQ(sgd.step_count(), 12);
  EXPECT_EQ(w.to_vector<float>(), (Floats{1, 2, 3}));

  GradScaler high({.init_scale = std::ldexp(1.0, 127), .growth_interval = 1});
  high.step(sgd, sum(w) * 1e-9);
  EXPECT_EQ(high.scale(), std::ldexp(1.0, 127)) << "an infinite scale is never taken";
}

TEST_P(GradScalerTest, an_overflow_skips_one_step_and_changes_nothing) {
  const Model model(f16), twin(f16);
  Adam adam(model.parameters, {.rate = 0.05, .weight_decay = 0.1}),
      other(twin.parameters, {.rate = 0.05, .weight_decay = 0.1});
  GradScaler scaler({.init_scale = 1024.0}), calm({.init_scale = 1024.0});
  ASSERT_EQ(adam.arenas().size(), 2u);
  for (int step = 0; step < 2; ++step) {
    scaler.step(adam, model.loss(f16, slope(step)));
    calm.step(other, twin.loss(f16, slope(step)));
  }
  const auto before = everything(model, adam);
  scaler.step(adam, model.loss(f16, slope(2, true)));
  EXPECT_EQ(everything(model, adam), before);
  EXPECT_EQ(adam.skipped_steps(), 1);
  EXPECT_EQ(scaler.scale(), 512.0);
  for (int step = 3; step < 5; ++step) {
    scaler.step(adam, model.loss(f16, slope(step)));
    calm.step(other, twin.loss(f16, slope(step)));
  }
  EXPECT_NE(everything(model, adam), before);
  EXPECT_EQ(everything(model, adam), everything(twin, other)) << "its bias correction does not count the skipped step";
  EXPECT_TRUE(same_bytes(working_copy(model.w), astype(model.w, f16)));
}

TEST_P(GradScalerTest, without_overflows_a_step_is_the_optimizers_own) {
  const Model scaled({}), plain({});
  Adam adam(scaled.parameters, {.rate = 0.05, .clip_norm = 0.7}),
      other(plain.parameters, {.rate = 0.05, .clip_norm = 0.7});
  GradScaler scaler;
  const auto loss = [](const Model& model, int step) {
    return sum(linear(full({1, 7}, 2.0), model.w, model.b) * slope(step));
  };
  for (int step = 0; step < 4; ++step) {
    scaler.step(adam, loss(scaled, step));
    other.step(loss(plain, step));
  }
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(all_close(scaled.parameters[i], plain.parameters[i].to_vector<double>(), 2e-6));
}

TEST_P(GradScalerTest, masters_keep_what_sixteen_bits_would_lose) {
  // Each step moves the weight by 2^-13, a quarter of the f16 step below 1.
  const Array w = cell(ones({1, 1}), "w");
  const double slope = std::ldexp(1.0, -13);
  keep_working_copies(std::span(&w, 1), f16);
  Sgd sgd(std::span(&w, 1), {.rate = 1.0});
  GradScaler scaler({.init_scale = 16.0});
  for (int step = 1; step <= 8; ++step) {
    const Autocast use({.dtype = f16});
    const Array y = linear(full({1, 1}, slope), w);
    EXPECT_EQ(y.dtype(), f16);
    scaler.step(sgd, sum(y));
    EXPECT_EQ(use.casts(), 2) << "the input, and the product for the sum; the weight is read from its copy";
    EXPECT_EQ(w.value(), 1.0 - step * slope);
    EXPECT_TRUE(same_bytes(working_copy(w), astype(w, f16)));
  }
  EXPECT_EQ(working_copy(w).value(), 1.0 - 8 * slope);
}

TEST_P(GradScalerTest, clipping_comes_after_unscaling) {
  const Model parts(bf16), whole(bf16);
  Sgd sgd(parts.parameters, {.rate = 0.5, .momentum = 0.9}),
      other(whole.parameters, {.rate = 0.5, .momentum = 0.9, .clip_norm = 0.6});
  GradScaler scaler({.init_scale = 256.0, .growth_interval = 2}), all({.init_scale = 256.0, .growth_interval = 2});
  for (int step = 0; step < 3; ++step) {
    const bool overflows = step == 1;
    {
      std::vector<Array> gradients = sgd.flat_gradients(scaler.scale(parts.loss(bf16, slope(step, overflows))));
      gradients = scaler.unscale(sgd, gradients);
      EXPECT_ERROR(scaler.unscale(sgd, gradients), ArgumentError,
                   "GradScaler: unscale was already called for this optimizer since the last update");
      EXPECT_ERROR(scaler.step(sgd, parts.loss(bf16, slope(step))), ArgumentError,
                   "GradScaler: step(optimizer, loss) is a whole step, and update() has not ended the last one");
      gradients = optim::clip_by_global_norm(gradients, 0.6);
      scaler.step_flat(sgd, gradients);
      EXPECT_ERROR(scaler.unscale(sgd, gradients), ArgumentError,
                   "GradScaler: unscale was called after this optimizer's step");
      EXPECT_ERROR(scaler.step_flat(sgd, gradients), ArgumentError,
                   "GradScaler: this optimizer has already stepped since the last update");
    }
    scaler.update();
    EXPECT_ERROR(scaler.update(), ArgumentError, "GradScaler: update needs a step or unscale since the last one");
    all.step(other, whole.loss(bf16, slope(step, overflows)));
    EXPECT_EQ(everything(parts, sgd), everything(whole, other));
    EXPECT_EQ(scaler.scale(), all.scale());
  }
  EXPECT_EQ(sgd.skipped_steps(), 1);
}

TEST_P(GradScalerTest, scaled_micro_batches_add_up) {
  const Model parts(f16), whole(f16);
  Sgd sgd(parts.parameters, {.rate = 0.5}), other(whole.parameters, {.rate = 0.5});
  GradScaler scaler({.init_scale = 256.0}), all({.init_scale = 256.0});
  optim::Accumulator accumulator(sgd);
  for (const bool overflows : {false, true}) {
    accumulator.add(scaler.scale(parts.loss(f16, slope(0))), 3);
    accumulator.add(scaler.scale(parts.loss(f16, slope(0, overflows))), 1);
    accumulator.step(scaler);
    scaler.update();
    all.step(other, whole.loss(f16, slope(0, overflows)));
    EXPECT_EQ(everything(parts, sgd), everything(whole, other));
    EXPECT_EQ(scaler.scale(), overflows ? 128.0 : 256.0);
  }
}

TEST_P(GradScalerTest, a_restored_scaler_goes_on_as_if_never_interrupted) {
  const Array w = cell(array({1, 2, 3}), "w");
  Sgd sgd(std::span(&w, 1), {.rate = 0.0});
  const auto good = [&] { return sum(w); };
  GradScaler first({.init_scale = 8.0, .growth_interval = 3});
  for (int step = 0; step < 2; ++step) first.step(sgd, good());
  const optim::GradScalerState state = first.state();
  EXPECT_EQ(state.scale, 8.0);
  EXPECT_EQ(state.growth_tracker, 2);
  GradScaler second;
  second.load_state(state);
  EXPECT_EQ(second.state().growth_interval, 3);
  second.step(sgd, good());
  EXPECT_EQ(second.scale(), 16.0);
  EXPECT_EQ(second.state().growth_tracker, 0);
  second.set_scale(4.0);
  EXPECT_EQ(second.scale(), 4.0);
  EXPECT_ERROR(second.load_state({.growth_interval = 2, .growth_tracker = 2}), ArgumentError,
               "GradScaler: growth_tracker must be in [0, growth_interval), got 2.000000");
}

TEST_P(GradScalerTest, one_that_is_not_enabled_does_nothing) {
  const Array w = cell(array({1, 2}), "w");
  Sgd sgd(std::span(&w, 1), {.rate = 1.0});
  GradScaler scaler({.enabled = false});
  scaler.step(sgd, sum(w));
  EXPECT_EQ(w.to_vector<float>(), (Floats{0, 1}));
  EXPECT_EQ(scaler.scale(), 1.0);
  EXPECT_NO_THROW(scaler.update());
  EXPECT_ERROR(GradScaler({.init_scale = 0.0}), ArgumentError,
               "GradScaler: init_scale must be above 0 and finite, got 0.000000");
  EXPECT_ERROR(GradScaler({.growth_factor = 1.0}), ArgumentError,
               "GradScaler: growth_factor must be above 1, got 1.000000");
  EXPECT_ERROR(GradScaler({.backoff_factor = 1.0}), ArgumentError,
               "GradScaler: backoff_factor must be between 0 and 1, got 1.000000");
  EXPECT_ERROR(GradScaler({.growth_interval = 0}), ArgumentError,
               "GradScaler: growth_interval must be 1 to 2^24, got 0.000000");
}

TEST_P(GradScalerTest, the_update_is_one_launch_for_each_kind_of_parameter) {
  std::vector<Array> cells;
  for (int i = 0; i < 12; ++i) {
    cells.push_back(cell(zeros({3, 4}), "w" + std::to_string(i)));
    cells.push_back(cell(zeros({4}), "b" + std::to_string(i)));
  }
  keep_working_copies(cells, f16);
  Adam adam(cells);
  ASSERT_EQ(adam.arenas().size(), 2u);
  const std::vector<Array> flat{zeros({adam.arenas()[0].size()}), zeros({adam.arenas()[1].size()}, f16)};
  eval(flat);
  const auto launches_of = [&](const auto& step) {
    step();
    step();
    const std::uint64_t before = engine().plans().launches, plans = engine().plans().plans_made;
    step();
    EXPECT_EQ(engine().plans().plans_made, plans);
    return engine().plans().launches - before;
  };
  EXPECT_EQ(launches_of([&] { adam.step_flat(flat); }), 2u);
  // And: two to look for overflows and one to fold that, both bias corrections, the count of skipped steps; the scale.
  GradScaler scaler;
  EXPECT_LE(launches_of([&] {
              scaler.step_flat(adam, flat);
              scaler.update();
            }),
            2u + 3u + 4u + 1u + 1u);
}

}  // namespace
}  // namespace samebytes::testing
