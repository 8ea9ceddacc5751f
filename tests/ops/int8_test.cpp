// Products and convolutions in int8 against exact integers, and against what they stand for in double.
#include "samebytes/ops/int8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

using Floats = std::vector<float>;

// An input as bytes, by the formula of the header, in float as kernels have it.
struct Bytes {
  float s = 1, z = 0;
  std::vector<int> q;
};
Bytes bytes_of(const float* x, std::size_t n, float low, float high) {
  low = std::min(low, 0.0F);
  high = std::max(high, 0.0F);
  Bytes b;
  b.s = (high - low) / 255.0F;
  if (!(b.s > 0)) b.s = 1;
  b.z = std::clamp(std::nearbyint(-low / b.s), 0.0F, 255.0F);
  const float inverse = 1.0F / b.s;
  for (std::size_t i = 0; i < n; ++i)
    b.q.push_back(static_cast<int>(std::nearbyint(std::clamp(x[i] * inverse, -b.z, 255.0F - b.z)) + b.z));
  return b;
}
Bytes own_bytes(const float* x, std::size_t n) {
  return bytes_of(x, n, *std::min_element(x, x + n), *std::max_element(x, x + n));
}

// W and its scale of one channel: value(p) for p < k.
struct Channel {
  float scale = 0;
  std::vector<int> w;
};
template <class Value>
Channel channel_of(std::int64_t k, const Value& value) {
  Channel c;
  for (std::int64_t p = 0; p < k; ++p) c.scale = std::max(c.scale, std::fabs(value(p)) / 127.0F);
  const float inverse = c.scale > 0 ? 1 / c.scale : 0;
  for (std::int64_t p = 0; p < k; ++p)
    c.w.push_back(static_cast<int>(std::clamp(std::nearbyint(value(p) * inverse), -127.0F, 127.0F)));
  return c;
}

class Int8Test : public OnDevice {
 protected:
  static Array values(const Shape& shape, int seed, double low = -1, double high = 1) {
    return uniform(shape, low, high, f32, {.seed = static_cast<std::uint64_t>(seed)}).eval();
  }
};
SAMEBYTES_ON_EVERY_DEVICE(Int8Test);

struct Case {
  std::int64_t m, n, k;
};
constexpr Case kCases[] = {{1, 1, 1},   {1, 10, 64},    {3, 17, 65},     {16, 32, 128},  {17, 33, 63},
                           {33, 70, 7}, {40, 300, 200}, {129, 65, 1030}, {200, 40, 2100}};

TEST_P(Int8Test, a_product_has_the_exact_integers) {
  for (const bool is_fixed : {false, true})
    for (const Case& sizes : kCases) {
      const std::int64_t m = sizes.m, n = sizes.n, k = sizes.k;
      const Array x = values({m, k}, 1, -0.7, 1.3), w = values({n, k}, 2), bias = values({n}, 3);
      const Int8Range range{-0.5F, 1.25F};
      const Array y = int8_linear(x, int8_weight(w), bias, is_fixed ? std::optional(range) : std::nullopt);
      const Floats hx = x.to_vector<float>(), hw = w.to_vector<float>(), hb = bias.to_vector<float>(),
                   hy = y.to_vector<float>();
      for (std::int64_t j = 0; j < n; ++j) {
        const Channel c = channel_of(k, [&](std::int64_t p) { return hw[static_cast<std::size_t>(j * k + p)]; });
        for (std::int64_t i = 0; i < m; ++i) {
          const float* row = hx.data() + i * k;
          const auto count = static_cast<std::size_t>(k);
          const Bytes b = is_fixed ? bytes_of(row, count, range.low, range.high) : own_bytes(row, count);
          std::int64_t sum = 0;
          for (std::size_t p = 0; p < count; ++p) sum += (b.q[p] - static_cast<int>(b.z)) * c.w[p];
          const double want = static_cast<double>(sum) * b.s * c.scale + hb[static_cast<std::size_t>(j)];
          ASSERT_NEAR(hy[static_cast<std::size_t>(i * n + j)], want, 4e-7 * (1 + std::fabs(want)))
              << m << " " << n << " " << k << " fixed " << is_fixed << " at " << i << ", " << j;
        }
      }
    }
}

struct ConvCase {
  std::int64_t images, h, w, c, n, kh, kw;
  Conv2dOptions options;
};
const ConvCase kConvs[] = {
    {2, 5, 6, 3, 8, 3, 3, {.pad_h = 1, .pad_w = 1}},
    {1, 9, 9, 3, 20, 7, 7, {.stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3}},
    {3, 4, 5, 70, 33, 1, 1, {}},
    {2, 7, 7, 16, 40, 1, 1, {.stride_h = 2, .stride_w = 2}},
    {2, 8, 7, 5, 9, 3, 2, {.pad_h = 2, .pad_w = 1, .dilation_h = 2, .dilation_w = 3}},
    {1, 6, 6, 130, 16, 3, 3, {.pad_h = 1, .pad_w = 1}},
    {2, 5, 5, 4, 6, 3, 3, {.pad_h = 0, .pad_w = 0, .pad_end_h = 2, .pad_end_w = 1}},
    {1, 3, 3, 2, 3, 3, 3, {}},
    {2, 1, 40, 6, 12, 1, 9, {.stride_w = 3, .pad_w = 4}},
};

// The sum of each place over its window, exactly, places outside of the image as 0.
TEST_P(Int8Test, a_convolution_has_the_exact_integers) {
  for (const bool is_fixed : {false, true})
    for (const ConvCase& v : kConvs) {
      const Array x = values({v.images, v.h, v.w, v.c}, 1, -0.3, 1), w = values({v.kh, v.kw, v.c, v.n}, 2),
                  bias = values({v.n}, 3);
      const Int8Range range{-0.25F, 0.9F};
      const Array y = int8_conv2d(x, int8_weight(w), bias, v.options, is_fixed ? std::optional(range) : std::nullopt);
      const Shape want_shape = conv2d(x, w, bias, v.options).shape();
      ASSERT_EQ(y.shape(), want_shape);
      const Floats hx = x.to_vector<float>(), hw = w.to_vector<float>(), hb = bias.to_vector<float>(),
                   hy = y.to_vector<float>();
      const std::int64_t each = v.h * v.w * v.c, k = v.kh * v.kw * v.c;
      for (std::int64_t image = 0; image < v.images; ++image) {
        const float* pixels = hx.data() + image * each;
        const auto count = static_cast<std::size_t>(each);
        const Bytes b = is_fixed ? bytes_of(pixels, count, range.low, range.high) : own_bytes(pixels, count);
        for (std::int64_t j = 0; j < v.n; ++j) {
          const Channel c = channel_of(k, [&](std::int64_t p) { return hw[static_cast<std::size_t>(p * v.n + j)]; });
          for (std::int64_t oy = 0; oy < want_shape[1]; ++oy)
            for (std::int64_t ox = 0; ox < want_shape[2]; ++ox) {
              std::int64_t sum = 0;
              for (std::int64_t p = 0; p < k; ++p) {
                const std::int64_t iy = oy * v.options.stride_h - v.options.pad_h +
                                        p / (v.kw * v.c) * v.options.dilation_h,
                                   ix = ox * v.options.stride_w - v.options.pad_w +
                                        p / v.c % v.kw * v.options.dilation_w;
                if (iy < 0 || iy >= v.h || ix < 0 || ix >= v.w) continue;
                sum += (b.q[static_cast<std::size_t>((iy * v.w + ix) * v.c + p % v.c)] - static_cast<int>(b.z)) *
                       c.w[static_cast<std::size_t>(p)];
              }
              const double want = static_cast<double>(sum) * b.s * c.scale + hb[static_cast<std::size_t>(j)];
              const std::int64_t at = ((image * want_shape[1] + oy) * want_shape[2] + ox) * v.n + j;
              ASSERT_NEAR(hy[static_cast<std::size_t>(at)], want, 4e-7 * (1 + std::fabs(want)))
                  << "convolution " << &v - kConvs << " fixed " << is_fixed << " image " << image << " channel " << j
                  << " at " << oy << ", " << ox;
            }
        }
      }
    }
}

TEST_P(Int8Test, sequences_are_images_of_one_line) {
  const Array x = values({2, 19, 5}, 1), w = values({4, 5, 7}, 2), bias = values({7}, 3);
  const Conv1dOptions options{.stride = 2, .pad = 3, .dilation = 2};
  const Int8Weight weight = int8_weight(w);
  const Array y = int8_conv1d(x, weight, bias, options), near = conv1d(x, w, bias, options);
  ASSERT_EQ(y.shape(), near.shape());
  EXPECT_LT(max(abs(y - near)).value(), 0.05);
  EXPECT_LT(max(abs(weight.values() - w)).value(), 0.5 / 127);
}

TEST_P(Int8Test, is_near_the_product_in_what_surrounds_it) {
  const Array x = values({4, 6, 6, 32}, 1), w = values({3, 3, 32, 24}, 2, -0.1, 0.1), bias = values({24}, 3),
              residual = values({4, 6, 6, 24}, 4);
  const Conv2dOptions same{.pad_h = 1, .pad_w = 1};
  const Int8Weight weight = int8_weight(w);
  const auto near = [](const Array& a, const Array& b) { EXPECT_LT(max(abs(a - b)).value(), 0.02); };
  near(relu(int8_conv2d(x, weight, bias, same) + residual), relu(conv2d(x, w, bias, same) + residual));
  near(hard_swish(int8_conv2d(x, weight, {}, same)), hard_swish(conv2d(x, w, {}, same)));
  near(relu6(int8_conv2d(x, weight, {}, same)), relu6(conv2d(x, w, {}, same)));
  const Array rows = values({24, 40}, 5), m = values({9, 40}, 6, -0.2, 0.2);
  const Int8Weight small = int8_weight(m);
  near(int8_linear(transpose(transpose(rows).eval()), small), linear(rows, m));
  near(int8_linear(reshape(rows, {2, 3, 4, 40}), small), reshape(linear(rows, m), {2, 3, 4, 9}));
  EXPECT_EQ(int8_linear(astype(rows, bf16), small).dtype(), bf16);
  EXPECT_EQ(int8_linear(zeros({0, 40}), small).shape(), (Shape{0, 9}));
  EXPECT_EQ(int8_linear(zeros({2, 4}), int8_weight({}, {}, {0, 4})).shape(), (Shape{2, 0}));
  if (has_f64()) {
    EXPECT_EQ(int8_linear(astype(rows, f64), small).dtype(), f64);
  }
}

TEST_P(Int8Test, batch_norm_goes_into_its_scales) {
  const NoGrad no_grad;
  const Array x = values({2, 6, 6, 8}, 1), w = values({3, 3, 8, 12}, 2), bias = values({12}, 3);
  const Array scale = values({12}, 4, -1, 2), shift = values({12}, 5), mean = values({12}, 6),
              var = values({12}, 7, 0.5, 2);
  const Int8Weight weight = int8_weight(w);
  for (const Array& with : {bias, Array()}) {
    const Array kept = int8_conv2d(x, weight, with);  // its handle is another one, so it stays
    const Array apart = batch_norm_eval(kept, scale, shift, mean, var);
    const Array folded = batch_norm_eval(int8_conv2d(x, weight, with), scale, shift, mean, var);
    EXPECT_LT(max(abs(folded - apart)).value(), 1e-5);
  }
}

TEST_P(Int8Test, a_row_or_image_alone_has_the_bytes_that_it_has_among_others) {
  const Int8Weight linear_weight = int8_weight(values({37, 100}, 2)),
                   conv_weight = int8_weight(values({3, 3, 4, 9}, 3));
  const Array rows = values({40, 100}, 1), images = values({5, 6, 6, 4}, 1);
  const Array y = int8_linear(rows, linear_weight), z = int8_conv2d(images, conv_weight);
  for (const std::int64_t i : {0, 17, 39})
    EXPECT_TRUE(same_bytes(contiguous(slice(y, 0, i, i + 1)),
                           int8_linear(contiguous(slice(rows, 0, i, i + 1)), linear_weight)));
  for (const std::int64_t i : {0, 4})
    EXPECT_TRUE(same_bytes(contiguous(slice(z, 0, i, i + 1)),
                           int8_conv2d(contiguous(slice(images, 0, i, i + 1)), conv_weight)));
}

TEST_P(Int8Test, instructions_and_memory_modes_give_the_same_bytes) {
  const Floats x = values({70, 200}, 1).to_vector<float>(), w = values({50, 200}, 2).to_vector<float>(),
               images = values({2, 9, 9, 16}, 3).to_vector<float>(),
               taps = values({3, 3, 16, 40}, 4).to_vector<float>();
  const auto all = [&] {
    Floats y = int8_linear(array(x, {70, 200}), int8_weight(array(w, {50, 200}))).to_vector<float>();
    const Floats z = int8_conv2d(array(images, {2, 9, 9, 16}), int8_weight(array(taps, {3, 3, 16, 40})), {},
                                 {.pad_h = 1, .pad_w = 1})
                         .to_vector<float>();
    y.insert(y.end(), z.begin(), z.end());
    return y;
  };
  const Floats want = all();
  for (const MemoryMode mode : {MemoryMode::coarse, MemoryMode::copy}) {
    const auto other = make_engine({.personality = GetParam().personality, .memory = mode});
    const EngineScope scope(*other);
    EXPECT_EQ(all(), want);
  }
  for (const char* words : {"0", "amx_int8", "avx512_vnni"}) {
    const Environment some("SAMEBYTES_MATRIX_INSTRUCTIONS", words);
    const auto other = make_engine({.personality = GetParam().personality, .memory = {}});
    const EngineScope scope(*other);
    EXPECT_EQ(all(), want) << words;
  }
}

TEST_P(Int8Test, what_is_not_finite_shows) {
  const Int8Weight weight = int8_weight(values({3, 20}, 1));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Floats x(60, 0.5F);
    x[25] = bad;
    const Floats y = int8_linear(array(x, {3, 20}), weight).to_vector<float>();
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(y[i]), i / 3 == 1) << i;
    Floats image(2 * 5 * 5 * 4, 0.25F);
    image[150] = bad;
    const Floats z = int8_conv2d(array(image, {2, 5, 5, 4}), int8_weight(values({1, 1, 4, 2}, 3))).to_vector<float>();
    for (std::size_t i = 0; i < z.size(); ++i) EXPECT_EQ(std::isnan(z[i]), i >= z.size() / 2) << i;
  }
  // Values of 0, and values that are all the same.
  EXPECT_EQ(max(abs(int8_linear(zeros({2, 20}), weight))).value(), 0);
  const Array ones = full({2, 20}, 1.0);
  EXPECT_LT(max(abs(int8_linear(ones, weight) - linear(ones, weight.values()))).value(), 1e-5);
}

TEST_P(Int8Test, refuses_what_does_not_fit) {
  const Int8Weight weight = int8_weight(zeros({4, 32})), taps = int8_weight(zeros({3, 3, 8, 4}));
  EXPECT_ERROR(int8_linear(zeros({2, 31}), weight), ArgumentError,
               "int8_linear: x must have 32 values in its last axis, x is [2, 31]");
  EXPECT_ERROR(int8_linear(zeros({2, 32}, i32), weight), ArgumentError,
               "int8_linear: x must be floating, x is i32 [2, 32]");
  EXPECT_ERROR(int8_linear(zeros({2, 32}), taps), ArgumentError,
               "int8_linear: expected the weight of a product with 2 axes, got [3, 3, 8, 4]");
  EXPECT_ERROR(int8_linear(zeros({2, 32}), weight, zeros({5})), ArgumentError,
               "int8_linear: bias must be floating [N], bias is f32 [5]");
  EXPECT_ERROR(int8_linear(zeros({2, 32}), weight, {}, Int8Range{1, 0}), ArgumentError,
               "int8_linear: the range must be finite and not end before it begins, got 1.000000 to 0.000000");
  EXPECT_ERROR(int8_conv2d(zeros({1, 2, 2, 8}), taps), ArgumentError,
               "int8_conv2d: the kernel must fit into the padded image, x is [1, 2, 2, 8], weight is [3, 3, 8, 4]");
  EXPECT_ERROR(int8_conv2d(zeros({1, 8, 8, 8}), taps, {}, {.groups = 2}), ArgumentError,
               "int8_conv2d: groups must be 1, got 2");
  EXPECT_ERROR(int8_conv2d(zeros({1, 8, 8, 7}), taps), ArgumentError,
               "int8_conv2d: x must be [N, H, W, 8], x is [1, 8, 8, 7]");
  EXPECT_ERROR(int8_weight(zeros({4})), ArgumentError,
               "int8_weight: expected a weight [N, K], [kw, C, N] or [kh, kw, C, N], got [4]");
  EXPECT_ERROR(int8_weight(zeros({1, 65537})), ArgumentError,
               "int8_weight: a sum must have at most 65536 products, [1, 65537] gives 65537");
  EXPECT_ERROR(int8_weight(full({2, 3}, std::numeric_limits<double>::infinity())), ArgumentError,
               "int8_weight: channel 0 of the weight [2, 3] has a value that is not finite");
  const std::vector<std::int8_t> values{1, -128};
  const Floats scale{1};
  EXPECT_ERROR(int8_weight(values, scale, {1, 2}), ArgumentError,
               "int8_weight: values must be at least -127, got -128");
  EXPECT_ERROR(int8_weight(values, scale, {1, 3}), ArgumentError,
               "int8_weight: expected 3 values and 1 scales or one for [1, 3], got 2 and 1");
  const Array x = full({1, 32}, 1.0);
  EXPECT_ERROR(gradients(sum(int8_linear(x, weight)), std::vector<Array>{x}), ArgumentError,
               "int8_product: has no gradient");
}

class SmallShapesInt8Test : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesInt8Test);

TEST_P(SmallShapesInt8Test, products_and_convolutions) {
  const auto some = [](const Shape& shape) { return real_array(random_values(shape.size()), shape, f32); };
  const Int8Weight rows = int8_weight(some({19, 37})), windows = int8_weight(some({3, 2, 5, 18}));
  const Array x = some({7, 37}), images = some({2, 5, 6, 5});
  const Conv2dOptions options{.stride_h = 2, .pad_h = 1, .pad_w = 1, .dilation_w = 2};
  for (const std::optional<Int8Range>& range : {std::optional<Int8Range>(), std::optional(Int8Range{-1, 1})}) {
    EXPECT_EQ(int8_linear(x, rows, some({19}), range).to_vector<float>().size(), 7U * 19);
    EXPECT_EQ(int8_conv2d(images, windows, {}, options, range).to_vector<float>().size() % 18, 0U);
  }
}

}  // namespace
}  // namespace samebytes::testing
