// Numerical gradients: what gradients() says against central differences in double, element by element, and comparison
// of arrays with a double-precision reference. The failure names the input, the element's index, both numbers and the
// tolerance.
//
//   EXPECT_TRUE(check_gradients([](auto x) { return layer_norm(x[0], x[1], x[2]); },
//                               {random_input("src", {5, 7}), random_input("scale", {7}), random_input("shift",
//                               {7})}));
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::testing {

// One f64 input of a function whose gradient is checked.
struct GradientInput {
  std::string name;
  Shape shape;
  std::vector<double> values;
};

// Values in [low, high), the same for the same seed everywhere; neighbours differ, so that maxima have no ties.
std::vector<double> random_values(std::int64_t n, std::uint64_t seed = 1, double low = -1.0, double high = 1.0);
GradientInput random_input(std::string name, const Shape& shape, std::uint64_t seed = 1, double low = -1.0,
                           double high = 1.0);

using ArrayFunction = std::function<Array(std::span<const Array>)>;

struct GradientCheckOptions {
  double step = 1e-5;       // of the central difference; its own error is O(step^2)
  double tolerance = 1e-6;  // relative to 1 + the input's largest gradient
};
// Checks the gradient of sum(w * f(inputs)) with fixed random w, for each element of each input. f may give an array of
// any shape and is called many times; inputs should be of a few hundred elements at most. Needs a device with double.
::testing::AssertionResult check_gradients(const ArrayFunction& f, const std::vector<GradientInput>& inputs,
                                           const GradientCheckOptions& options = {});

// An f32 or f64 leaf made from doubles.
Array real_array(std::span<const double> values, const Shape& shape, Dtype dtype);

// The expected relative error of a sum of n terms of this dtype, times a safety factor of four: rounding errors of a
// blocked sum walk at random, so they grow as sqrt(n).
double sum_tolerance(Dtype dtype, std::int64_t n);

// |came - want| <= tolerance * (1 + |want|) for each element, NaN equal to NaN; names the first index that is not.
::testing::AssertionResult all_close(const Array& came, std::span<const double> want, double tolerance);
// The very same bytes.
::testing::AssertionResult same_bytes(const Array& a, const Array& b);

}  // namespace samebytes::testing
