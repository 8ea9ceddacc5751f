#include <limits>

#include "reference/pool2d.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class Pool2d : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Pool2d);

struct Case {
  Shape shape;
  Pool2dOptions options;
};

const Case kCases[] = {
    {{2, 4, 4, 16}, {}},
    {{3, 7, 5, 1}, {.kernel_h = 3, .kernel_w = 2}},
    {{2, 9, 11, 3}, {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 1, .pad_h = 1, .pad_w = 1}},
    {{1, 6, 7, 10}, {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .ceil_mode = true}},
    {{2, 5, 5, 17},
     {.kernel_h = 2, .kernel_w = 2, .stride_h = 3, .stride_w = 3, .pad_h = 1, .pad_w = 1, .ceil_mode = true}},
    {{1, 1, 1, 5}, {.kernel_h = 1, .kernel_w = 1}},
    {{1, 3, 4, 33},
     {.kernel_h = 2, .kernel_w = 4, .stride_h = 1, .stride_w = 1, .pad_w = 2, .count_include_pad = false}},
    {{1, 23, 19, 2}, {.kernel_h = 17, .kernel_w = 18, .stride_h = 3, .stride_w = 1, .pad_h = 8, .pad_w = 3}},
    {{2, 13, 13, 4},
     {.kernel_h = 5,
      .kernel_w = 5,
      .stride_h = 2,
      .stride_w = 2,
      .pad_h = 2,
      .pad_w = 2,
      .ceil_mode = true,
      .count_include_pad = false}},
    {{1, 4, 6, 48}, {.kernel_h = 1, .kernel_w = 2, .stride_h = 2, .stride_w = 4}},
};

reference::Pool2d reference_of(const Case& c) {
  const Pool2dOptions& o = c.options;
  return {c.shape[0],
          c.shape[1],
          c.shape[2],
          c.shape[3],
          o.kernel_h,
          o.kernel_w,
          o.stride_h ? o.stride_h : o.kernel_h,
          o.stride_w ? o.stride_w : o.kernel_w,
          o.pad_h,
          o.pad_w,
          o.ceil_mode,
          o.count_include_pad};
}

std::vector<double> rounded(std::vector<double> values, Dtype dtype) {
  if (dtype == f32)
    for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return values;
}

TEST_P(Pool2d, values_and_gradients_are_the_reference) {
  for (Dtype dtype : real_dtypes())
    for (const Case& c : kCases) {
      SCOPED_TRACE(c.shape.to_string());
      const reference::Pool2d pool = reference_of(c);
      const Shape out{pool.n, pool.out_h(), pool.out_w(), pool.c};
      const auto x = rounded(random_values(c.shape.size(), 1), dtype),
                 dy = rounded(random_values(out.size(), 2), dtype);
      const Array src = real_array(x, c.shape, dtype), weights = real_array(dy, out, dtype);
      const Array wrt[] = {src};
      const Array largest = max_pool2d(src, c.options), average = avg_pool2d(src, c.options);
      ASSERT_EQ(largest.shape(), out);
      ASSERT_EQ(average.shape(), out);
      const double tolerance = sum_tolerance(dtype, c.options.kernel_h * c.options.kernel_w);
      const Array dmax = gradients(sum(largest * weights), wrt)[0], davg = gradients(sum(average * weights), wrt)[0];
      EXPECT_TRUE(all_close(largest, reference::max_pool2d(x, pool), 0));
      EXPECT_TRUE(all_close(average, reference::avg_pool2d(x, pool), tolerance));
      EXPECT_TRUE(all_close(dmax, reference::max_pool2d_gradient(x, dy, pool), tolerance));
      EXPECT_TRUE(all_close(davg, reference::avg_pool2d_gradient(dy, pool), tolerance));
    }
}

TEST_P(Pool2d, gradients_agree_with_central_differences) {
  SAMEBYTES_NEEDS_F64();
  for (const Case& c : {kCases[2], kCases[4], kCases[6]}) {
    const GradientInput src = random_input("src", c.shape);
    EXPECT_TRUE(check_gradients([&](auto x) { return max_pool2d(x[0], c.options); }, {src}));
    EXPECT_TRUE(check_gradients([&](auto x) { return avg_pool2d(x[0], c.options); }, {src}));
  }
  EXPECT_TRUE(check_gradients([](auto x) { return global_avg_pool2d(x[0]); }, {random_input("src", {2, 3, 5, 7})}));
}

TEST_P(Pool2d, nan_wins_and_equal_values_go_to_the_first) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Case c{{1, 2, 6, 1}, {}};
  const std::vector<double> x = {1, kNan, 3, 3, -kInf, -kInf, 5, 2, 3, 3, -kInf, -kInf};
  const Array src = real_array(x, c.shape, f32);
  const Array wrt[] = {src};
  const Array y = max_pool2d(src);
  const Array dx = gradients(sum(y * real_array(std::vector<double>{1, 2, 4}, {1, 1, 3, 1}, f32)), wrt)[0];
  EXPECT_TRUE(all_close(y, std::vector<double>{kNan, 3, -kInf}, 0));
  EXPECT_TRUE(all_close(dx, std::vector<double>{0, 1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0}, 0));
}

TEST_P(Pool2d, without_gradients_the_values_are_the_same) {
  const Array src = real_array(random_values(2 * 9 * 9 * 5, 3), {2, 9, 9, 5}, f32);
  const Array with = max_pool2d(src, {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1});
  const NoGrad no_grad;
  EXPECT_TRUE(same_bytes(with, max_pool2d(src, {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1})));
}

TEST_P(Pool2d, the_global_average_is_the_mean_of_each_channel) {
  const Shape shape{3, 7, 5, 19};
  const auto x = rounded(random_values(shape.size(), 1), f32);
  std::vector<double> want(3 * 19);
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t pixel = 0; pixel < 35; ++pixel)
      for (std::size_t c = 0; c < 19; ++c) want[n * 19 + c] += x[(n * 35 + pixel) * 19 + c] / 35;
  const Array y = global_avg_pool2d(real_array(x, shape, f32));
  EXPECT_EQ(y.shape(), Shape({3, 19}));
  EXPECT_TRUE(all_close(y, want, sum_tolerance(f32, 35)));
}

TEST_P(Pool2d, empty_batches_and_half_precision_work) {
  EXPECT_EQ(max_pool2d(zeros({0, 4, 4, 3})).wait().shape(), Shape({0, 2, 2, 3}));
  EXPECT_EQ(global_avg_pool2d(zeros({2, 4, 4, 0})).wait().size(), 0);
  const Array narrow = astype(real_array(random_values(64, 1), {1, 4, 4, 4}, f32), f16);
  EXPECT_EQ(max_pool2d(narrow).dtype(), f16);
  EXPECT_TRUE(all_close(max_pool2d(narrow), max_pool2d(astype(narrow, f32)).to_vector<double>(), 0));
}

TEST_P(Pool2d, wrong_arguments_are_named) {
  const Array x = zeros({1, 4, 4, 3});
  EXPECT_THROW(max_pool2d(zeros({4, 4, 3})), ArgumentError);
  EXPECT_THROW(max_pool2d(zeros({1, 4, 4, 3}, i32)), ArgumentError);
  EXPECT_THROW(max_pool2d(x, {.kernel_h = 0}), ArgumentError);
  EXPECT_THROW(avg_pool2d(x, {.stride_h = -1}), ArgumentError);
  EXPECT_THROW(global_avg_pool2d(zeros({1, 0, 4, 3})), ArgumentError);
  try {
    avg_pool2d(x, {.kernel_h = 5, .kernel_w = 3});
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_STREQ(error.what(),
                 "avg_pool2d: kernel 5 x 3 must fit in the image with pad 0 x 0, src is f32 [1, 4, 4, 3]");
  }
  EXPECT_THROW(max_pool2d(x, {.kernel_h = 2, .kernel_w = 2, .pad_h = 2}), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing
