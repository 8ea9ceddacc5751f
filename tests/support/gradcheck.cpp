#include "support/gradcheck.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes::testing {
namespace {

std::uint64_t split_mix(std::uint64_t& state) {  // Steele, Lea and Flood 2014
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// "[1, 0, 3]" of the element with this position.
std::string index_text(const Shape& shape, std::int64_t position) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = position % shape[axis];
    position /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

std::vector<double> random_values(std::int64_t n, std::uint64_t seed, double low, double high) {
  std::uint64_t state = seed;
  std::vector<double> values(static_cast<std::size_t>(n));
  for (double& value : values) value = low + (high - low) * (static_cast<double>(split_mix(state) >> 11) * 0x1p-53);
  return values;
}

GradientInput random_input(std::string name, const Shape& shape, std::uint64_t seed, double low, double high) {
  std::uint64_t mixed = seed;
  for (char c : name) mixed = mixed * 131 + static_cast<unsigned char>(c);
  return {std::move(name), shape, random_values(shape.size(), mixed, low, high)};
}

Array real_array(std::span<const double> values, const Shape& shape, Dtype dtype) {
  if (dtype == f64) return array(values, shape);
  const std::vector<float> narrow(values.begin(), values.end());
  return array(std::span<const float>(narrow), shape);
}

::testing::AssertionResult check_gradients(const ArrayFunction& f, const std::vector<GradientInput>& inputs,
                                           const GradientCheckOptions& options) {
  std::vector<Array> leaves;
  for (const GradientInput& input : inputs) leaves.push_back(array(std::span<const double>(input.values), input.shape));

  const Array result = f(leaves);
  const std::vector<double> weights = random_values(result.size(), 77, 0.5, 1.5);
  const std::vector<Array> analytic =
      gradients(sum(result * array(std::span<const double>(weights), result.shape())), leaves, {.allow_unused = true});

  const auto weighted = [&] {
    const std::vector<double> y = f(leaves).to_vector<double>();
    long double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) total += static_cast<long double>(y[i]) * weights[i];
    return total;
  };

  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const GradientInput& input = inputs[k];
    if (analytic[k].shape() != input.shape)
      return ::testing::AssertionFailure()
             << fmt::format("gradient of input {} '{}' has shape {}, the input {}", k, input.name,
                            analytic[k].shape().to_string(), input.shape.to_string());
    const std::vector<double> came = analytic[k].to_vector<double>();
    double largest = 0;
    for (double value : came) largest = std::max(largest, std::abs(value));
    const double tolerance = options.tolerance * (1 + largest);
    for (std::size_t i = 0; i < came.size(); ++i) {
      std::vector<double> moved = input.values;
      moved[i] = input.values[i] + options.step;
      const double up = moved[i];
      leaves[k] = array(std::span<const double>(moved), input.shape);
      const long double above = weighted();
      moved[i] = input.values[i] - options.step;
      leaves[k] = array(std::span<const double>(moved), input.shape);
      const long double below = weighted();
      const double numeric = static_cast<double>((above - below) / static_cast<long double>(up - moved[i]));
      if (!(std::abs(numeric - came[i]) <= tolerance))
        return ::testing::AssertionFailure() << fmt::format(
                   "gradient of input {} '{}' at {}: gradients() says {}, central differences {}, tolerance {}", k,
                   input.name, index_text(input.shape, static_cast<std::int64_t>(i)), came[i], numeric, tolerance);
    }
    leaves[k] = array(std::span<const double>(input.values), input.shape);
  }
  return ::testing::AssertionSuccess();
}

double sum_tolerance(Dtype dtype, std::int64_t n) {
  const double epsilon = dtype == f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return 4 * epsilon * (4 + std::sqrt(static_cast<double>(n)));
}

::testing::AssertionResult all_close(const Array& came, std::span<const double> want, double tolerance) {
  if (came.size() != static_cast<std::int64_t>(want.size()))
    return ::testing::AssertionFailure() << fmt::format("got {} elements, {} wanted", came.size(), want.size());
  const std::vector<double> values = came.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(values[i])) continue;
    if (values[i] == want[i]) continue;  // infinities
    if (!(std::abs(values[i] - want[i]) <= tolerance * (1 + std::abs(want[i]))))
      return ::testing::AssertionFailure() << fmt::format(
                 "got at {} of {} {}, wanted {}, tolerance {}", index_text(came.shape(), static_cast<std::int64_t>(i)),
                 came.shape().to_string(), values[i], want[i], tolerance * (1 + std::abs(want[i])));
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_bytes(const Array& a, const Array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype())
    return ::testing::AssertionFailure() << "shapes or types differ";
  const std::vector<double> x = a.to_vector<double>();
  const std::vector<double> y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::memcmp(&x[i], &y[i], sizeof x[i]) != 0)
      return ::testing::AssertionFailure()
             << fmt::format("at {} {} and {} differ", index_text(a.shape(), static_cast<std::int64_t>(i)), x[i], y[i]);
  return ::testing::AssertionSuccess();
}

}  // namespace samebytes::testing
