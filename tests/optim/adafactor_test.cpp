// Adafactor against PyTorch's formula in double and against PyTorch 2.15's own numbers.
#include "samebytes/optim/adafactor.h"

#include <cmath>

#include "optim/follows_formula.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using optim::Adafactor;

double rms(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum / static_cast<double>(v.size()));
}

// torch.optim.Adafactor, one parameter.
struct OneParameter {
  std::size_t matrices = 1, rows = 1, width = 1;
  bool is_vector = true;
  Vector row, column;  // of a vector: row is the whole second moment

  explicit OneParameter(const Shape& shape) {
    const int rank = shape.rank();
    is_vector = rank < 2;
    rows = static_cast<std::size_t>(is_vector ? shape.size() : shape[rank - 2]);
    width = is_vector ? 1 : static_cast<std::size_t>(shape[rank - 1]);
    matrices = static_cast<std::size_t>(shape.size()) / (rows * width);
    row.resize(matrices * rows);
    column.resize(matrices * width);
  }

  void step(Vector& p, const Vector& g, int step, double rate, double decay, double eps1) {
    const double t = step + 1, rest = std::pow(t, -0.8), rho = std::min(rate, 1 / std::sqrt(t));
    const double alpha = std::max(1e-3, rms(p)) * rho;
    Vector u(p.size());
    for (std::size_t m = 0; m < matrices; ++m) {
      Vector by_row(rows), by_column(width);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < width; ++c) {
          const double slope = g[(m * rows + r) * width + c];
          by_row[r] += slope * slope / static_cast<double>(width);
          by_column[c] += slope * slope / static_cast<double>(rows);
        }
      double mean = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        double& kept = row[m * rows + r];
        kept += rest * (by_row[r] - kept);
        mean += kept / static_cast<double>(rows);
      }
      for (std::size_t c = 0; c < width; ++c) column[m * width + c] += rest * (by_column[c] - column[m * width + c]);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < width; ++c) {
          const std::size_t e = (m * rows + r) * width + c;
          const double v = is_vector ? row[e] : row[m * rows + r] * column[m * width + c] / std::max(mean, eps1);
          u[e] = g[e] / std::sqrt(std::max(v, eps1 * eps1));
        }
    }
    const double shrink = std::max(1.0, rms(u));
    for (std::size_t e = 0; e < p.size(); ++e) p[e] = p[e] * (1 - rate * decay) - alpha / shrink * u[e];
  }
};

class AdafactorTest : public FollowsFormula {};
SAMEBYTES_ON_EVERY_DEVICE(AdafactorTest);

TEST_P(AdafactorTest, follows_pytorchs_formula) {
  // Several tiles, several matrices, vectors, a scalar, and zeros, in an order that leaves gaps.
  const std::vector<Shape> shapes{{3}, {131, 127}, {2, 3, 5, 7}, {33}, {}, {4, 300}};
  for (const Dtype dtype : real_dtypes()) {
    std::vector<Array> cells;
    std::vector<OneParameter> references;
    std::vector<Vector> want;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = "p" + std::to_string(i);
      cells.push_back(
          cell(i == 3 ? zeros(shapes[i], dtype) : real_array(random_values(shapes[i].size(), i + 1), shapes[i], dtype),
               name));
      references.emplace_back(shapes[i]);
      want.push_back(cells.back().to_vector<double>());
    }
    Adafactor optimizer(cells, {.rate = 0.05, .weight_decay = 0.1});
    for (int step = 0; step < 3; ++step) {
      std::vector<Array> g;
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto values = random_values(shapes[i].size(), 50 + 10 * static_cast<std::uint64_t>(step) + i);
        g.push_back(real_array(values, shapes[i], dtype));
      }
      optimizer.step(g);
      for (std::size_t i = 0; i < shapes.size(); ++i)
        references[i].step(want[i], g[i].to_vector<double>(), step, 0.05, 0.1, dtype == f64 ? 0x1p-52 : 0x1p-23);
    }
    for (std::size_t i = 0; i < shapes.size(); ++i)
      EXPECT_TRUE(all_close(cells[i], want[i], dtype == f64 ? 1e-12 : 4e-6)) << name_of(dtype) << " parameter " << i;
  }
}

TEST_P(AdafactorTest, numbers_are_pytorchs) {
  SAMEBYTES_NEEDS_F64();
  const auto make = [](const Vector& values, const Shape& shape) {
    return array(std::span<const double>(values), shape);
  };
  const std::vector<Array> cells{cell(make({1, -2, 3, 0.5, 0.25, -1}, {2, 3}), "w"), cell(make({1, -2, 3}, {3}), "b")};
  Adafactor optimizer(cells, {.rate = 0.1, .weight_decay = 0.1});
  for (int s = 1; s <= 3; ++s) {
    const std::vector<Array> g{make({0.1 * s, -0.2, 0.3 * s, -0.1, 0.4 * s, 0.2}, {2, 3}),
                               make({0.1 * s, -0.2 * s, 0.3 * s}, {3})};
    optimizer.step(g);
  }
  EXPECT_TRUE(all_close(cells[0],
                        Vector{0.3984768203223861, -1.7400969976906235, 2.282379470567156, 0.7591908251293303,
                               -0.28420635260765403, -1.1757578948935794},
                        1e-13));
  EXPECT_TRUE(all_close(cells[1], Vector{0.3918338967772308, -1.3621328967772308, 2.3324318967772304}, 1e-13));
}

TEST_P(AdafactorTest, a_step_is_four_launches_whatever_the_number_of_layers) {
  const std::vector<Array> cells = parameters(f32);
  Adafactor optimizer(cells);
  const Array flat = zeros({optimizer.arenas()[0].size()});
  flat.wait();
  const std::span<const Array> gradient(&flat, 1);
  optimizer.step_flat(gradient);
  const std::uint64_t before = engine().plans().launches, plans = engine().plans().plans_made;
  optimizer.step_flat(gradient);
  EXPECT_EQ(engine().plans().launches - before, 4u);
  EXPECT_EQ(engine().plans().plans_made, plans);
}

TEST_P(AdafactorTest, keeps_one_number_for_each_row_and_column) {
  const std::vector<Array> cells{cell(ones({300, 200}), "p"), cell(ones({7}), "q")};
  const Adafactor optimizer(cells);
  const auto state = optimizer.state();
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[0].array.size(), 307);
  EXPECT_EQ(state[1].array.size(), 200);
}

TEST_P(AdafactorTest, a_restored_state_goes_on_as_if_never_interrupted) {
  const auto run = [&](bool interrupted) {
    const std::vector<Array> cells = parameters(f32);
    auto optimizer = std::make_unique<Adafactor>(cells);
    for (int step = 0; step < 2; ++step) optimizer->step(gradients_of_step(step, f32));
    if (interrupted) {
      optim::StateDict saved = optimizer->state_dict();
      for (auto& entry : saved.arrays) entry.array = array(entry.array.to_vector<float>(), entry.array.shape());
      optimizer.reset();
      optimizer = std::make_unique<Adafactor>(cells);
      optimizer->load_state_dict(saved);
    }
    for (int step = 2; step < 4; ++step) optimizer->step(gradients_of_step(step, f32));
    return cells[1].to_vector<float>();
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(AdafactorTest, defaults_are_pytorchs_and_wrong_arguments_are_named) {
  const optim::AdafactorOptions defaults;
  EXPECT_EQ(defaults.rate, 1e-2);
  EXPECT_EQ(defaults.beta2_decay, -0.8);
  EXPECT_EQ(defaults.eps2, 1e-3);
  EXPECT_EQ(defaults.d, 1.0);
  EXPECT_EQ(defaults.weight_decay, 0.0);
  const std::vector<Array> cells = parameters(f32);
  EXPECT_THROW(Adafactor(cells, {.beta2_decay = 0.5}), ArgumentError);
  EXPECT_THROW(Adafactor(cells, {.eps1 = -1.0}), ArgumentError);
  EXPECT_THROW(Adafactor(cells, {.d = 0.5}), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing
