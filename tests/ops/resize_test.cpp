// resize against PyTorch's rule in double, in both personalities: modes, sizes and scales, gradients, wrong arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class ResizeTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ResizeTest);

// The places that place o of an axis looks at, with their weights.
struct Point {
  std::int64_t lo, hi;
  double weight;
};
Point point(std::int64_t o, std::int64_t in, std::int64_t out, double scale, const ResizeOptions& options) {
  const double ratio = scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
  const auto place = static_cast<double>(o);
  if (in == out) return {o, o, 0};
  if (options.mode == ResizeMode::nearest) {
    const auto at = std::min(in - 1, static_cast<std::int64_t>(std::floor(place * ratio)));
    return {at, at, 0};
  }
  double at = std::max(0.0, (place + 0.5) * ratio - 0.5);
  if (options.align_corners) at = out > 1 ? place * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  const auto lo = std::min(in - 1, static_cast<std::int64_t>(std::floor(at)));
  return {lo, std::min(in - 1, lo + 1), at - static_cast<double>(lo)};
}

// Calls f(place in src, place in dst, weight) for all that count.
template <class F>
void for_each_weight(const Shape& s, const Shape& d, const ResizeOptions& options, F f) {
  for (std::int64_t n = 0; n < d[0]; ++n)
    for (std::int64_t y = 0; y < d[1]; ++y)
      for (std::int64_t x = 0; x < d[2]; ++x) {
        const Point a = point(y, s[1], d[1], options.scale_h, options),
                    b = point(x, s[2], d[2], options.scale_w, options);
        const auto add = [&](std::int64_t i, std::int64_t j, double weight) {
          for (std::int64_t c = 0; c < s[3]; ++c)
            f(static_cast<std::size_t>(((n * s[1] + i) * s[2] + j) * s[3] + c),
              static_cast<std::size_t>(((n * d[1] + y) * d[2] + x) * s[3] + c), weight);
        };
        add(a.lo, b.lo, (1 - a.weight) * (1 - b.weight));
        add(a.lo, b.hi, (1 - a.weight) * b.weight);
        add(a.hi, b.lo, a.weight * (1 - b.weight));
        add(a.hi, b.hi, a.weight * b.weight);
      }
}

struct Case {
  const char* what;
  Shape src, dst;
  ResizeOptions options;
};

// Sizes whose nearest coordinates are no near-integers, since those may fall either way in f32.
std::vector<Case> cases() {
  constexpr auto bilinear = ResizeMode::bilinear;
  return {
      {"nearest, twice", {2, 3, 5, 3}, {2, 6, 10, 3}, {.scale_h = 2, .scale_w = 2}},
      {"nearest, to sizes", {1, 7, 5, 17}, {1, 4, 13, 17}, {.out_h = 4, .out_w = 13}},
      {"nearest, by scales that leave a rest", {1, 7, 9, 2}, {1, 18, 3, 2}, {.scale_h = 2.6, .scale_w = 0.4}},
      {"bilinear, twice", {2, 3, 5, 19}, {2, 6, 10, 19}, {.scale_h = 2, .scale_w = 2, .mode = bilinear}},
      {"bilinear, to sizes", {1, 11, 6, 5}, {1, 4, 17, 5}, {.out_h = 4, .out_w = 17, .mode = bilinear}},
      {"bilinear, by scales that leave a rest",
       {1, 5, 9, 3},
       {1, 12, 6, 3},
       {.scale_h = 2.5, .scale_w = 0.7, .mode = bilinear}},
      {"aligned corners",
       {2, 3, 7, 4},
       {2, 8, 4, 4},
       {.out_h = 8, .out_w = 4, .mode = bilinear, .align_corners = true}},
      {"aligned corners of one place",
       {1, 4, 1, 2},
       {1, 1, 5, 2},
       {.out_h = 1, .out_w = 5, .mode = bilinear, .align_corners = true}},
      {"twentyfold", {1, 2, 2, 3}, {1, 3, 40, 3}, {.out_h = 3, .out_w = 40, .mode = bilinear}},
      {"the same size", {1, 3, 4, 3}, {1, 3, 4, 3}, {.out_h = 3, .out_w = 4, .mode = bilinear}},
  };
}

TEST_P(ResizeTest, equals_the_rule_with_its_gradient) {
  for (const Dtype dtype : real_dtypes()) {
    for (const Case& c : cases()) {
      SCOPED_TRACE(c.what);
      const auto x = random_values(c.src.size(), 1), dy = random_values(c.dst.size(), 2);
      std::vector<double> y(dy.size()), dx(x.size());
      for_each_weight(c.src, c.dst, c.options, [&](std::size_t from, std::size_t to, double weight) {
        y[to] += weight * x[from];
        dx[from] += weight * dy[to];
      });
      const Array src = real_array(x, c.src, dtype), came = resize(src, c.options);
      ASSERT_EQ(came.shape(), c.dst);
      const Array wrt[] = {src};
      const Array d = gradients(sum(came * real_array(dy, c.dst, dtype)), wrt)[0];
      // A coordinate of up to 40 is known to 40 roundings.
      const double tolerance = 40 * sum_tolerance(dtype, 4);
      EXPECT_TRUE(all_close(came, y, tolerance));
      EXPECT_TRUE(all_close(d, dx, tolerance));
    }
  }
}

TEST_P(ResizeTest, a_ramp_keeps_the_values_that_pytorch_gives_it) {
  const Array x = array({0, 1, 2, 3}, {1, 1, 4, 1});
  const auto row = [&](ResizeOptions options) {
    options.out_h = 1;
    return resize(x, options).to_vector<double>();
  };
  EXPECT_EQ(row({.out_w = 6}), (std::vector<double>{0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(row({.out_w = 8, .mode = ResizeMode::bilinear}),
            (std::vector<double>{0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3}));
  EXPECT_EQ(row({.out_w = 7, .mode = ResizeMode::bilinear, .align_corners = true}),
            (std::vector<double>{0, .5, 1, 1.5, 2, 2.5, 3}));
}

TEST_P(ResizeTest, gradients_are_the_numerical_ones_to_the_second_order) {
  SAMEBYTES_NEEDS_F64();
  const ResizeOptions options{.scale_h = 1.7, .scale_w = 0.6, .mode = ResizeMode::bilinear};
  EXPECT_TRUE(check_gradients([=](auto x) { return resize(x[0], options); }, {random_input("src", {2, 3, 5, 2})}));
  EXPECT_TRUE(check_gradients([=](auto x) { return sum(square(gradients(sum(exp(resize(x[0], options))), x)[0])); },
                              {random_input("src", {1, 2, 4, 2})}, {.tolerance = 1e-5}));
}

TEST_P(ResizeTest, sixteen_bits_and_empty_batches) {
  EXPECT_EQ(resize(zeros({1, 2, 2, 3}, bf16), {.out_h = 3, .out_w = 3}).dtype(), bf16);
  EXPECT_EQ(resize(zeros({0, 2, 2, 3}), {.scale_h = 2, .scale_w = 1}).wait().shape(), (Shape{0, 4, 2, 3}));
}

TEST_P(ResizeTest, wrong_arguments_are_named) {
  const Array x = zeros({1, 4, 4, 3});
  EXPECT_ERROR((resize(zeros({4, 4, 3}), {.out_h = 2, .out_w = 2})), ArgumentError,
               "resize: src must be floating [N, H, W, C], src is f32 [4, 4, 3]");
  EXPECT_ERROR(resize(x, {}), ArgumentError,
               "resize: expected either two sizes or two scales above 0, got size 0 x 0 and scale 0 x 0");
  EXPECT_ERROR((resize(x, {.out_h = 2, .out_w = 2, .scale_w = 0.5})), ArgumentError,
               "resize: expected either two sizes or two scales above 0, got size 2 x 2 and scale 0 x 0.5");
  EXPECT_ERROR((resize(x, {.scale_h = 0.1, .scale_w = 1})), ArgumentError,
               "resize: scale 0.1 x 1 must leave at least one pixel, src is f32 [1, 4, 4, 3]");
  EXPECT_ERROR((resize(x, {.out_h = 2, .out_w = 2, .align_corners = true})), ArgumentError,
               "resize: align_corners needs mode bilinear, got nearest");
  EXPECT_ERROR((resize(zeros({1, 0, 4, 3}), {.out_h = 2, .out_w = 2})), ArgumentError,
               "resize: src must have at least one pixel, src is f32 [1, 0, 4, 3]");
}

class SmallShapesResizeTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesResizeTest);

TEST_P(SmallShapesResizeTest, runs_forward_and_backward) {
  run([](auto x) { return resize(x[0], {.out_h = 7, .out_w = 3}); }, {{2, 3, 5, 5}});
  run([](auto x) { return resize(x[0], {.scale_h = 2, .scale_w = 0.6, .mode = ResizeMode::bilinear}); },
      {{1, 3, 5, 19}});
}

}  // namespace
}  // namespace samebytes::testing
