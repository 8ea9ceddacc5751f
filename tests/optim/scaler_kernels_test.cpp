// Optimizers that update in kernels of their own (Lars, Lamb, Adafactor) under a GradScaler: a step that overflowed
// changes nothing and does not count, and without overflow a step is the optimizer's own.
#include <limits>

#include "optim/follows_formula.h"

namespace samebytes::testing {
namespace {

using optim::GradScaler;
using optim::Optimizer;

class ScalerKernelsTest : public FollowsFormula {
 protected:
  using Made = std::unique_ptr<Optimizer>;
  static std::vector<std::pair<const char*, std::function<Made(std::span<const Array>)>>> optimizers() {
    return {{"Lars",
             [](auto p) -> Made {
               return std::make_unique<optim::Lars>(p, optim::LarsOptions{.rate = 0.1, .momentum = 0.9});
             }},
            {"Lamb",
             [](auto p) -> Made {
               return std::make_unique<optim::Lamb>(p, optim::LambOptions{.rate = 0.01, .weight_decay = 0.1});
             }},
            {"Adafactor", [](auto p) -> Made {
               return std::make_unique<optim::Adafactor>(p, optim::AdafactorOptions{.weight_decay = 0.1});
             }}};
  }
  static Array loss_of(std::span<const Array> cells, int step, double factor = 1.0) {
    const std::vector<Array> slopes = gradients_of_step(step, f32);
    Array loss = zeros({});
    for (std::size_t i = 0; i < cells.size(); ++i) loss = loss + sum(cells[i] * slopes[i]) * factor;
    return loss;
  }
  static std::vector<Vector> everything(std::span<const Array> cells, const Optimizer& optimizer) {
    std::vector<Vector> all;
    for (const Array& cell : cells) all.push_back(cell.to_vector<double>());
    for (const auto& entry : optimizer.state()) all.push_back(entry.array.to_vector<double>());
    return all;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(ScalerKernelsTest);

TEST_P(ScalerKernelsTest, an_overflow_changes_nothing_and_does_not_count) {
  for (const auto& [name, make] : optimizers()) {
    const std::vector<Array> cells = parameters(f32), twins = parameters(f32), plain = parameters(f32);
    const auto optimizer = make(cells), twin = make(twins), alone = make(plain);
    GradScaler scaler({.init_scale = 64.0}), calm({.init_scale = 64.0});
    for (int step = 0; step < 4; ++step) {
      if (step == 2) {
        const auto before = everything(cells, *optimizer);
        scaler.step(*optimizer, loss_of(cells, 7, std::numeric_limits<double>::infinity()));
        EXPECT_EQ(everything(cells, *optimizer), before) << name;
        EXPECT_EQ(optimizer->skipped_steps(), 1) << name;
      }
      scaler.step(*optimizer, loss_of(cells, step));
      calm.step(*twin, loss_of(twins, step));
      alone->step(loss_of(plain, step));
    }
    EXPECT_EQ(everything(cells, *optimizer), everything(twins, *twin)) << name;
    for (std::size_t i = 0; i < cells.size(); ++i)
      EXPECT_TRUE(all_close(cells[i], plain[i].to_vector<double>(), 4e-6)) << name << " " << i;
  }
}

}  // namespace
}  // namespace samebytes::testing
