// Fixture for optimizers: small parameters of odd sizes, and a check of each step against a formula in double.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {

using Vector = std::vector<double>;

class FollowsFormula : public OnDevice {
 protected:
  // Parameters of odd sizes, so that the arena has gaps.
  static std::vector<Shape> shapes() { return {{3}, {5, 7}, {1}, {2, 2, 9}}; }

  static std::vector<Array> parameters(Dtype dtype) {
    std::vector<Array> result;
    std::uint64_t seed = 1;
    for (const Shape& shape : shapes()) {
      result.push_back(cell(real_array(random_values(shape.size(), seed), shape, dtype), "p" + std::to_string(seed)));
      ++seed;
    }
    return result;
  }
  static std::vector<Array> gradients_of_step(int step, Dtype dtype) {
    std::vector<Array> result;
    std::uint64_t seed = 100 + static_cast<std::uint64_t>(step) * 10;
    for (const Shape& shape : shapes()) result.push_back(real_array(random_values(shape.size(), seed++), shape, dtype));
    return result;
  }
  static double tolerance(Dtype dtype) { return dtype == f64 ? 1e-13 : 4e-7; }

  // One number followed by its formula: p and g to the new p, with whatever the formula keeps in between.
  using Reference = std::function<double(double p, double g, int step, Vector& state)>;

  using Make = std::function<std::unique_ptr<optim::Optimizer>(std::span<const Array>)>;
  void follows(const Make& make, const Reference& reference) {
    for (const Dtype dtype : real_dtypes()) follows_in(dtype, make, reference);
  }
  // In the widest type only: formulas of pointwise ops are one text for both.
  void follows_in_widest(const Make& make, const Reference& reference) {
    follows_in(real_dtypes().back(), make, reference);
  }

 private:
  void follows_in(Dtype dtype, const Make& make, const Reference& reference) {
    constexpr int kSteps = 5;
    {
      const std::vector<Array> cells = parameters(dtype);
      std::vector<Vector> want;
      std::vector<std::vector<Vector>> states;
      for (const Array& p : cells) {
        want.push_back(p.to_vector<double>());
        states.emplace_back(want.back().size());
      }
      const auto optimizer = make(cells);
      for (int step = 0; step < kSteps; ++step) {
        const std::vector<Array> g = gradients_of_step(step, dtype);
        optimizer->step(g);
        for (std::size_t i = 0; i < cells.size(); ++i) {
          const Vector slope = g[i].to_vector<double>();
          for (std::size_t j = 0; j < slope.size(); ++j)
            want[i][j] = reference(want[i][j], slope[j], step, states[i][j]);
        }
      }
      EXPECT_EQ(optimizer->step_count(), kSteps);
      for (std::size_t i = 0; i < cells.size(); ++i)
        EXPECT_TRUE(all_close(cells[i], want[i], kSteps * tolerance(dtype))) << name_of(dtype) << " parameter " << i;
    }
  }
};

// For suites of pointwise formulas alone, which are one text for both personalities.
#define SAMEBYTES_ON_ONE_DEVICE(Fixture)                                                            \
  INSTANTIATE_TEST_SUITE_P(On, Fixture, ::testing::Values(::samebytes::testing::device_cases()[0]), \
                           [](const auto& instance) { return ::samebytes::testing::name_of_case(instance.param); })

}  // namespace samebytes::testing
