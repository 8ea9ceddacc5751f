// What minimal filtering promises of values of very different size: an output is as exact as its own window allows,
// and what lies outside of the window, a spike, a NaN or an infinity, does not reach it. Bounds are relative to the
// norms of the window and of the output's weights; docs/decisions/winograd.md derives the factor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/conv.h"
#include "reference/matmul.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using detail::ConvAlgorithm;
using detail::ConvAttributes;
using Values = std::vector<double>;

class WinogradRangeTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(WinogradRangeTest);

// In units of the last place of |w| |x|, the norms of an output's weights and of its window. A tile's sums round by one
// such unit of its whole source at most (0.5 were found), whose norm may be 16 times that of a window; direct sums have
// two.
constexpr double kUnits = 16;
constexpr double kDirectUnits = 2;

// An image [n,h,w,depth], or a line where h is 0, and its taps.
struct Problem {
  std::int64_t n, h, w, depth, columns, taps;
  int pad;

  bool is_line() const { return h == 0; }
  std::int64_t lines() const { return is_line() ? 1 : h; }
  std::int64_t taps_down() const { return is_line() ? 1 : taps; }
  std::int64_t out_h() const { return is_line() ? 1 : h + 2 * pad - taps + 1; }
  std::int64_t out_w() const { return w + 2 * pad - taps + 1; }
  // Shapes as images of any number of channels, for the reference.
  Shape image(std::int64_t channels) const { return {n, lines(), w, channels}; }
  Shape result(std::int64_t channels) const { return {n, out_h(), out_w(), channels}; }
  Shape weights(std::int64_t in, std::int64_t out) const { return {taps_down(), taps, in, out}; }
  Conv2dOptions options() const { return {.pad_h = is_line() ? 0 : pad, .pad_w = pad}; }
  ConvAttributes attributes(ConvAlgorithm algorithm) const {
    return {.axes = is_line() ? 1 : 2, .pad = {0, is_line() ? 0 : pad, pad}, .algorithm = algorithm};
  }
  std::string text() const {
    return "[" + std::to_string(n) + "," + std::to_string(h) + "," + std::to_string(w) + "," + std::to_string(depth) +
           "] to " + std::to_string(columns) + ", " + std::to_string(taps) + " taps";
  }
};

std::vector<Problem> problems() {
  return {{2, 16, 16, 16, 16, 3, 1}, {1, 9, 14, 64, 32, 3, 1}, {1, 7, 11, 32, 16, 3, 0}, {1, 6, 5, 16, 16, 3, 2},
          {1, 8, 9, 24, 40, 3, 1},   {2, 0, 61, 32, 32, 3, 1}, {2, 0, 50, 64, 16, 4, 1}, {2, 0, 43, 16, 32, 5, 2}};
}

Array array(const Values& values, const Problem& p, const Shape& image) {
  const Shape line{image[0] * image[1], image[2], image[3]};
  return real_array(values, p.is_line() ? line : image, f32);
}
Array weight_array(const Values& values, const Problem& p) {
  return real_array(values, p.is_line() ? Shape{p.taps, p.depth, p.columns} : p.weights(p.depth, p.columns), f32);
}

// As f32 holds them, so that the reference and the kernels see the same.
Values narrowed(Values values) {
  for (double& v : values) v = static_cast<float>(v);
  return values;
}

Values squares(Values values) {
  for (double& v : values) v *= v;
  return values;
}

enum class Tail { spike, cauchy, decades };
constexpr Tail kTails[] = {Tail::spike, Tail::cauchy, Tail::decades};

Values heavy_values(std::int64_t n, std::uint64_t seed, Tail tail) {
  Values values = random_values(n, seed), more = random_values(n, seed + 100);
  if (tail == Tail::spike) values[values.size() / 2 + 5] = 1e6;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tail == Tail::cauchy) values[i] = std::tan(1.5707 * values[i]);
    if (tail == Tail::decades) values[i] *= std::pow(10, 6 * more[i]);
  }
  return narrowed(values);
}

// One pass as the kernels make it and in double, and the product of norms of each output.
struct Outcome {
  Values came, direct, want, norms;
};

// The forward pass of src, or transposed the input gradient of src as dy.
Outcome run(const Problem& p, const Values& src, const Values& weight, bool transposed) {
  const auto line_or_image = [&](const Shape& s) { return p.is_line() ? Shape{s[0], s[2], s[3]} : s; };
  const auto pass = [&](ConvAlgorithm algorithm) {
    const Array w = weight_array(weight, p);
    const Array x = array(src, p, transposed ? p.result(p.columns) : p.image(p.depth));
    const Shape dst = line_or_image(transposed ? p.image(p.depth) : p.result(p.columns));
    return (transposed ? detail::conv_bwd_input(x, w, {}, dst, p.attributes(algorithm))
                       : detail::conv_forward(x, w, {}, dst, p.attributes(algorithm)))
        .to_vector<double>();
  };
  Outcome o{pass(ConvAlgorithm::winograd), pass(ConvAlgorithm::direct), {}, {}};
  const Shape w = p.weights(p.depth, p.columns);
  const std::int64_t columns = transposed ? p.depth : p.columns;
  Values windows;
  if (transposed) {
    const Values nothing(static_cast<std::size_t>(p.image(p.depth).size())), none(nothing.size() / p.depth);
    const Values ones(static_cast<std::size_t>(p.taps_down() * p.taps * p.columns), 1.0);
    o.want = reference_conv2d(nothing, p.image(p.depth), weight, w, p.options(), src).d_src;
    windows = reference_conv2d(none, p.image(1), ones, p.weights(1, p.columns), p.options(), squares(src)).d_src;
  } else {
    const Values ones(static_cast<std::size_t>(p.taps_down() * p.taps * p.depth), 1.0);
    o.want = reference_conv2d(src, p.image(p.depth), weight, w, p.options()).y;
    windows = reference_conv2d(squares(src), p.image(p.depth), ones, p.weights(p.depth, 1), p.options()).y;
  }
  Values of_column(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < w.size(); ++i)
    of_column[static_cast<std::size_t>(transposed ? i / p.columns % p.depth : i % p.columns)] +=
        weight[static_cast<std::size_t>(i)] * weight[static_cast<std::size_t>(i)];
  for (std::size_t i = 0; i < o.want.size(); ++i)
    o.norms.push_back(std::sqrt(windows[i / of_column.size()] * of_column[i % of_column.size()]));
  return o;
}

// The largest error of the outputs that `counts` names in units of the last place of the norms.
template <class Counts>
double units(const Values& came, const Outcome& o, const Counts& counts) {
  double largest = 0;
  for (std::size_t i = 0; i < came.size(); ++i) {
    if (!counts(i)) continue;
    const double error = std::abs(came[i] - o.want[i]), unit = std::numeric_limits<float>::epsilon() * o.norms[i];
    if (error == 0) continue;
    largest = std::max(largest, std::isfinite(error) && unit > 0 ? error / unit : 1e30);
  }
  return largest;
}

TEST_P(WinogradRangeTest, outputs_are_as_exact_as_their_own_windows_allow) {
  const auto all = [](std::size_t) { return true; };
  for (const Problem& p : problems()) {
    for (const bool transposed : {false, true}) {
      for (const Tail tail : kTails) {
        SCOPED_TRACE(p.text() + (transposed ? ", input gradient" : ", forward") + ", tail " +
                     std::to_string(static_cast<int>(tail)));
        const Values src = heavy_values((transposed ? p.result(p.columns) : p.image(p.depth)).size(), 1, tail);
        const Values weight = narrowed(random_values(p.weights(p.depth, p.columns).size(), 2));
        const Outcome o = run(p, src, weight, transposed);
        EXPECT_LE(units(o.came, o, all), kUnits);
        EXPECT_LE(units(o.direct, o, all), kDirectUnits);
      }
    }
  }
}

// The outputs whose windows hold the value at `place` of src, as the definition spreads it.
std::vector<bool> seen(const Problem& p, std::int64_t size, std::int64_t place, bool transposed) {
  Values src(static_cast<std::size_t>(size));
  src[static_cast<std::size_t>(place)] = 1;
  const Outcome o =
      run(p, src, Values(static_cast<std::size_t>(p.weights(p.depth, p.columns).size()), 1.0), transposed);
  std::vector<bool> result;
  for (const double v : o.want) result.push_back(v != 0);
  return result;
}

TEST_P(WinogradRangeTest, a_value_reaches_no_output_whose_window_does_not_hold_it) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const Problem& p : problems()) {
    for (const bool transposed : {false, true}) {
      const Shape shape = transposed ? p.result(p.columns) : p.image(p.depth);
      const Values calm = narrowed(random_values(shape.size(), 1)),
                   weight = narrowed(random_values(p.weights(p.depth, p.columns).size(), 2));
      const Outcome without = run(p, calm, weight, transposed);
      // A corner, the middle, the last one.
      for (const std::int64_t place : {std::int64_t{3}, shape.size() / 2 + 5, shape.size() - 1}) {
        const std::vector<bool> sees = seen(p, shape.size(), place, transposed);
        for (const double value : {nan, infinity, -infinity, 1e6, 3e38}) {
          SCOPED_TRACE(p.text() + (transposed ? ", input gradient of " : ", forward of ") + std::to_string(value) +
                       " at " + std::to_string(place));
          Values src = calm;
          src[static_cast<std::size_t>(place)] = value;
          const Outcome with = run(p, src, weight, transposed);
          EXPECT_LE(units(with.came, without, [&](std::size_t i) { return !sees[i]; }), kUnits);
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < sees.size(); ++i)
            wrong += sees[i] && !std::isfinite(value) && std::isfinite(with.came[i]);
          EXPECT_EQ(wrong, 0u) << "outputs are finite that hold what is not";
        }
      }
    }
  }
}

TEST_P(WinogradRangeTest, empty_and_tiny_sources_give_what_the_definition_gives) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Shape shape = p.image(p.depth);
    const Values weight = narrowed(random_values(p.weights(p.depth, p.columns).size(), 2));
    // Zeros but for one half, and values whose squares vanish in f32.
    Values half = narrowed(random_values(shape.size(), 1)), tiny = half;
    for (std::size_t i = 0; i < half.size(); ++i) half[i] = i < half.size() / 2 ? 0 : half[i];
    for (double& v : tiny) v = static_cast<float>(v * 1e-25);
    const auto all = [](std::size_t) { return true; };
    for (const Values& src : {half, tiny}) {
      const Outcome o = run(p, src, weight, false);
      EXPECT_LE(units(o.came, o, all), kUnits);
    }
  }
}

TEST_P(WinogradRangeTest, a_line_of_weights_of_any_size_keeps_to_its_column) {
  const Problem p = problems()[0];
  const Values src = narrowed(random_values(p.image(p.depth).size(), 1));
  Values weight = narrowed(random_values(p.weights(p.depth, p.columns).size(), 2));
  for (std::size_t i = 0; i < weight.size(); ++i)
    if (i % 16 == 3) weight[i] *= 1e6;
  const Outcome o = run(p, src, weight, false);
  EXPECT_LE(units(o.came, o, [](std::size_t) { return true; }), kUnits);
}

// A value of x or dy meets all taps of its own channel and no other channel.
TEST_P(WinogradRangeTest, weight_gradients_keep_to_the_channels_of_what_is_large_or_no_number) {
  for (const Problem& p : problems()) {
    SCOPED_TRACE(p.text());
    const Values x = narrowed(random_values(p.image(p.depth).size(), 1)),
                 dy = narrowed(random_values(p.result(p.columns).size(), 2));
    const auto line_or_image = [&](const Shape& s) { return p.is_line() ? Shape{s[0], s[2], s[3]} : s; };
    const auto filter = [&](const Values& src, const Values& other, ConvAlgorithm algorithm) {
      const Shape w = p.is_line() ? Shape{p.taps, p.depth, p.columns} : p.weights(p.depth, p.columns);
      return detail::conv_bwd_filter(real_array(src, line_or_image(p.image(p.depth)), f32),
                                     real_array(other, line_or_image(p.result(p.columns)), f32), w,
                                     p.attributes(algorithm))
          .to_vector<double>();
    };
    const Values calm = filter(x, dy, ConvAlgorithm::direct);
    const double tolerance = sum_tolerance(f32, p.n * p.out_h() * p.out_w());
    for (const double value : {1e6, std::numeric_limits<double>::quiet_NaN()}) {
      Values high_x = x, high_dy = dy;
      high_x[static_cast<std::size_t>(p.depth) * 5 + 3] = value;     // channel 3
      high_dy[static_cast<std::size_t>(p.columns) * 4 + 7] = value;  // channel 7
      const Values by_x = filter(high_x, dy, ConvAlgorithm::winograd),
                   by_dy = filter(x, high_dy, ConvAlgorithm::winograd);
      for (std::size_t i = 0; i < calm.size(); ++i) {
        const auto column = static_cast<std::int64_t>(i) % p.columns,
                   depth = static_cast<std::int64_t>(i) / p.columns % p.depth;
        const double near = 2 * tolerance * (1 + std::abs(calm[i]));
        const bool x_is_calm = depth == 3 || std::abs(by_x[i] - calm[i]) <= near;
        const bool dy_is_calm = column == 7 || std::abs(by_dy[i] - calm[i]) <= near;
        ASSERT_TRUE(x_is_calm && dy_is_calm) << "at " << i;
      }
    }
  }
}

TEST_P(WinogradRangeTest, check_nan_takes_the_direct_kernels) {
  const Problem p = problems()[0];
  const Values x = narrowed(random_values(p.image(p.depth).size(), 1)),
               w = narrowed(random_values(p.weights(p.depth, p.columns).size(), 2));
  const auto three = [&](ConvAlgorithm algorithm) {
    const ConvAttributes a = p.attributes(algorithm);
    const Array src = real_array(x, p.image(p.depth), f32), weight = weight_array(w, p);
    const Array y = detail::conv_forward(src, weight, {}, p.result(p.columns), a);
    Values all = y.to_vector<double>();
    for (const Array& d : {detail::conv_bwd_input(src, weight, {}, src.shape(), a),
                           detail::conv_bwd_filter(src, src, weight.shape(), a)})
      for (const double v : d.to_vector<double>()) all.push_back(v);
    return all;
  };
  const Values direct = three(ConvAlgorithm::direct), winograd = three(ConvAlgorithm::winograd);
  EXPECT_NE(direct, winograd);
  const auto checked = make_engine(GetParam(), {.check_nan = true});
  const EngineScope use(*checked);
  EXPECT_EQ(three(ConvAlgorithm::automatic), direct);
  EXPECT_EQ(three(ConvAlgorithm::winograd), direct);
}

}  // namespace
}  // namespace samebytes::testing
