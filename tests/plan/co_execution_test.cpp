// Small launches on the host over the same bytes: the same results, how many move, and who may ask for it.
// Over 400 lines because each kind of launch is compared with its kernel through the same fixture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "graph/context.h"
#include "runtime/runtime.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::vector<std::byte>>;

std::vector<std::byte> bytes_of_array(const Array& a) {
  const auto copy = [](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  switch (a.dtype()) {
    case Dtype::f64: return copy(a.to_vector<double>());
    case Dtype::f16:
    case Dtype::bf16: return copy(astype(a, f32).to_vector<float>());
    case Dtype::i32: return copy(a.to_vector<std::int32_t>());
    case Dtype::u8:
    case Dtype::bool_: return copy(a.to_vector<std::uint8_t>());
    default: return copy(a.to_vector<float>());
  }
}

Bytes evaluated(const std::vector<Array>& arrays) {
  eval(arrays);
  Bytes bytes;
  for (const Array& a : arrays) bytes.push_back(bytes_of_array(a));
  return bytes;
}

// Whether kernels' bytes are the host's, and the queue runs its functions.
bool runs_on_host(const Engine& engine) { return engine.context()->runtime->device().runs_host_functions(); }

class CoExecutionTest : public OnDevice {
 protected:
  // What `make` makes, on engines with and without the host's part; both begin with the same numbers.
  template <class Make>
  void expect_same_bytes(const Make& make, std::uint64_t least_moved, EngineOptions options = {}) {
    Bytes off, always;
    options.seed = 11;
    {
      options.host_execution = HostExecution::off;
      const auto engine = make_engine(GetParam(), options);
      const EngineScope use(*engine);
      off = evaluated(make());
      EXPECT_EQ(engine->plans().launches_on_host, 0u);
      check_guards(*engine);
    }
    options.host_execution = HostExecution::always;
    const auto engine = make_engine(GetParam(), options);
    const EngineScope use(*engine);
    always = evaluated(make());
    ASSERT_EQ(always.size(), off.size());
    for (std::size_t i = 0; i < off.size(); ++i) EXPECT_EQ(always[i], off[i]) << "result " << i;
    if (runs_on_host(*engine)) {
      EXPECT_GE(engine->plans().launches_on_host, least_moved);
    } else {
      EXPECT_EQ(engine->plans().launches_on_host, 0u);
    }
    check_guards(*engine);
  }
  bool is_cpu() { return engine().device().personality == Personality::cpu; }
};
SAMEBYTES_ON_EVERY_DEVICE(CoExecutionTest);

// Numbers of both signs with zeros of both signs, infinities and very small ones among them.
Array special(const Shape& shape, Dtype dtype, double most = std::numeric_limits<double>::infinity()) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSome[] = {0.0, -0.0, 1.5, -2.25, kInfinity, -kInfinity, 1e-41, -3e-39, 7.0, 1e30};
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        std::clamp(i % 3 == 1 ? kSome[i / 3 % std::size(kSome)] : std::fmod(static_cast<double>(i) * 0.37, 5.0) - 2.5,
                   -most, most);
  if (dtype == f64) return array(values, shape);
  return array(std::vector<float>(values.begin(), values.end()), shape);
}

Array whole(const Shape& shape) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 2654435761u);
  return array(values, shape);
}

TEST_P(CoExecutionTest, adopted_memory_is_read_where_it_lies) {
  const Environment home("XDG_CACHE_HOME", ::testing::TempDir());
  expect_same_bytes(
      [&] {
        const Array x = adopt(std::vector<float>{1, 2, 3, 4}, Shape{4});
        const Array s = sum(x), y = x - s, q = sum(y * y);
        return std::vector<Array>{y / q + s};
      },
      0);
}

TEST_P(CoExecutionTest, pointwise_ops_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        const Shape shape{3, 67};
        const Array a = special(shape, f32), b = special(shape, f32) * 0.75 + 0.125;
        const Array c = greater(a, b), i = astype(clip(a, -3.0, 3.0) * 10.0, i32), u = astype(abs(i), u8);
        std::vector<Array> results{a + b,
                                   a - b,
                                   a * b,
                                   a / b,
                                   -a,
                                   2.0 - a,
                                   3.0 / b,
                                   maximum(a, b),
                                   minimum(a, b),
                                   square(a),
                                   abs(a),
                                   sign(a),
                                   sqrt(abs(b)),
                                   rsqrt(abs(b)),
                                   floor(a),
                                   ceil(a),
                                   trunc(a),
                                   round(a),
                                   relu(a),
                                   clip(a, -1.0, 0.5),
                                   where(c, a, b),
                                   masked_fill(a, c, 4.0),
                                   c,
                                   equal(a, b),
                                   not_equal(a, b),
                                   less_equal(a, b),
                                   greater_equal(a, b),
                                   less(a, b),
                                   i,
                                   u,
                                   i + i,
                                   i * i,
                                   -i,
                                   maximum(i, i + i),
                                   astype(u, f32),
                                   astype(a, bool_),
                                   astype(i, f32),
                                   leaky_relu(a, 0.1),
                                   tanh(a),
                                   tanh(b * 0.1),
                                   erf(a),
                                   gelu(b),
                                   gelu(b, GeluForm::tanh),
                                   exp(a),
                                   expm1(a),
                                   expm1(b * 0.01),
                                   log(a),
                                   log(abs(b)),
                                   sigmoid(a),
                                   silu(b),
                                   mish(b),
                                   elu(a),
                                   selu(b),
                                   softplus(a),
                                   log_sigmoid(b),
                                   pow(abs(a), 0.5),
                                   pow(a, -1.5),
                                   pow(abs(b), 3.5),
                                   gradients(sum(gelu(b)), std::vector<Array>{b})[0],
                                   sin(a),
                                   cos(a),
                                   sin(b * 100.0),
                                   cos(b * 3e4),
                                   sin(b * 0.5),
                                   abs(a) - sign(b),
                                   exp2(a),
                                   exp2(b * 30.0),
                                   log2(abs(b)),
                                   log10(a),
                                   sinh(a),
                                   cosh(b * 0.3),
                                   atanh(b * 0.3),
                                   asin(b * 0.4),
                                   acos(a * 0.4),
                                   atan(a),
                                   atan(b * 3.0),
                                   atan2(a, b),
                                   atan2(b, a),
                                   fmod(a, b),
                                   fmod(a * 1e9, b),
                                   remainder(b * 7.0, 0.75),
                                   maximum(a, b),
                                   minimum(b, a),
                                   maximum(a, 0.5),
                                   clip(a, -1.0, 2.0),
                                   clip(b, {.high = 0.5}),
                                   relu6(a * 4.0),
                                   hard_sigmoid(b * 2.0),
                                   hard_swish(a),
                                   sign(a),
                                   stop_gradient(a) * 2.0};
        for (const Dtype dtype : {f16, bf16}) {
          const Array few = astype(special({900}, f32) * 1e-5, dtype), h = astype(b, dtype);  // denormal halves, too
          results.insert(results.end(), {few, astype(few, f32) * 3.0, h, h * h + 0.1, astype(h, i32), astype(a, dtype),
                                         astype(u, dtype), astype(h + 1.0, f32) / 3.0, contiguous(transpose(h))});
        }
        if (has_f64()) {
          const Array d = special({7}, f64), e = special({7}, f64) * 0.75 + 0.125;
          results.insert(results.end(), {d * e - 0.1, d / e, sqrt(abs(e)), floor(d), where(less(d, e), d, e),
                                         astype(clip(d, -9.0, 9.0), i32), astype(d, f32)});
        }
        return results;
      },
      20);
}

TEST_P(CoExecutionTest, views_and_broadcasts_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        const Array a = special({6, 5, 7}, f32), row = special({7}, f32), column = special({5, 1}, f32);
        const Array t = transpose(a, {2, 0, 1}), part = slice(slice(a, 2, 1, 6), 0, 2, 5);
        const auto dense = [](const Array& view) { return contiguous(view); };
        return std::vector<Array>{
            a + row,     a * column,       a + row * column,      t * 2.0,           dense(t), part - 1.0,
            dense(part), flip(a, {1}) + a, row + full({7}, 0.25), full({3, 3}, -7.0)};
      },
      5);
}

TEST_P(CoExecutionTest, running_sums_and_products_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const Dtype dtype : real_dtypes()) {
          const Array a = special({3, 11, 5}, dtype, 1e3), line = special({77}, dtype, 1e3);
          const Array sums = cumsum(a, 1), of_line = cumsum(line, 0);
          results.insert(results.end(), {sums, cumsum(a, 0), cumsum(a, 2), of_line});
          // from the end
          results.push_back(gradients(sum(sums * sums), std::vector<Array>{a})[0]);
          results.push_back(gradients(sum(of_line * of_line), std::vector<Array>{line})[0]);
          results.insert(results.end(), {cumprod(a, 1), cumprod(a, 2), cumprod(line * 0.1, 0)});
        }
        results.push_back(cumsum(whole({6, 40}), 1));
        return results;
      },
      is_cpu() ? 8 : 3);
}

// All of them move bits, so both personalities have every form but take's and gather's.
TEST_P(CoExecutionTest, moves_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        const Array a = special({4, 5, 6}, f32), b = special({4, 3, 6}, f32), line = special({29}, f32);
        const Array places = array(std::vector<std::int32_t>{2, 0, -1, 7, 3, 1}, {6});
        const Array each = astype(floor(uniform({4, 5, 2}) * 7.0), i32);  // up to 6: one too many
        std::vector<Array> results{concat({a, b, a}, 1),
                                   stack({line, line * 2.0}, 1),
                                   concat({line, line}, 0),
                                   take(a, places, 0),
                                   take(a, places, 1),
                                   take(a, places, 2),
                                   take(line, places),
                                   gather(a, 2, each),
                                   gather(a, 1, each),
                                   roll(a, 2, 1),
                                   roll(line, -7, 0),
                                   arange(0.1, 9.0, 0.1),
                                   embedding(places, special({8, 3}, f32)),
                                   arange(-3, 90, 2, i32),
                                   full({31}, 7, u8),
                                   full({5}, -7, i32),
                                   one_hot(places, 9, f32)};
        const Array state = cell(special({4, 9}, f32), "state");
        results.push_back(update_slice(state, special({4, 3}, f32) * 2.0, 1, 5));
        for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular})
          results.insert(results.end(), {pad(a, {{0, 0}, {3, 2}, {0, 0}}, mode), pad(line, {{5, 11}}, mode, 2.5)});
        for (const Dtype dtype : {u8, bool_, i32}) {
          const Array n = astype(greater(a, a * 0.0 + 0.5), dtype);
          results.insert(results.end(), {concat({n, n}, 2), take(n, places, 1), roll(n, 1, 0)});
        }
        if (has_f64()) {
          const Array d = special({3, 9}, f64);
          results.insert(results.end(),
                         {concat({d, d}, 0), take(d, places, 1), roll(d, 4, 1), arange(0, 1, 0.01, f64)});
        }
        return results;
      },
      20);
}

TEST_P(CoExecutionTest, reductions_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const Dtype dtype : real_dtypes())
          for (const Shape& shape : {Shape{3}, Shape{1, 17}, Shape{64, 3}, Shape{5, 300}, Shape{7, 31, 6},
                                     Shape{131, 2}, Shape{4, 5, 3}, Shape{200, 70}}) {
            const Array a = special(shape, dtype), b = special(shape, dtype, 1e3);
            results.insert(results.end(), {sum(b, {}), mean(b, {0}), sum(b, {-1}), max(a, {0}), min(a, {-1}),
                                           max(a, {}), argmax(a, -1), argmax(a, 0), sum_of_squares(b), prod(b, {0}),
                                           prod(b, {-1}), norm(b, 2, {-1})});
            const Array i = whole(shape);
            results.insert(results.end(), {sum(i, {0}), max(i, {-1}), min(i, {}), prod(i, {-1})});
          }
        const Array nan = array(std::vector<float>{1, NAN, 3, NAN}, {2, 2});
        results.insert(results.end(), {argmax(nan, 1), argmax(nan, 0), not_equal(max(nan, {1}), max(nan, {1}))});
        return results;
      },
      is_cpu() ? 50 : 10);
}

// Larger than what the host's own sums take: the text of the kernels.
TEST_P(CoExecutionTest, reductions_of_many_values_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const Shape& shape :
             {Shape{300, 260}, Shape{20000, 5}, Shape{3, 30011}, Shape{9, 70, 130}, Shape{30000, 3}}) {
          const Array a = special(shape, f32, 1e3);
          results.insert(results.end(), {sum(a, {}), mean(a, {0}), sum(a, {-1}), max(a, {0}), min(a, {-1}), max(a, {}),
                                         argmax(a, -1), argmax(a, 0), sum_of_squares(a), all_finite({a}), prod(a, {0}),
                                         prod(a, {-1}), norm(a, 2, {-1})});
          const std::vector<Array> near{a * 1e-5 + 1.0};
          results.push_back(gradients(sum(prod(near[0], {0})) + sum(prod(near[0], {-1})), near)[0]);
        }
        results.push_back(all_finite({special({30, 41}, f32)}));
        return results;
      },
      is_cpu() ? 20 : 0);
}

TEST_P(CoExecutionTest, kernels_of_places_and_axes_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        const Array a = special({6, 37}, f32, 1e3), line = special({2, 5001}, f32, 1e3);
        const Array each = astype(floor(uniform({6, 37}) * 6.0), i32);
        for (const Array& y :
             {scatter(a, 0, each, a * 2.0), scatter_reduce(a, 0, each, a, {.reduce = ScatterReduce::prod}),
              scatter_reduce(a, 0, each, a, {.reduce = ScatterReduce::amax}), cumprod(a, 1), cumsum(line, 1),
              resize(special({2, 5, 7, 3}, f32), {.out_h = 9, .out_w = 4}),
              interpolate(special({2, 5, 7, 3}, f32, 9), {.size = {9, 11}, .mode = InterpolateMode::cubic})})
          results.push_back(y);
        for (const PadMode mode : {PadMode::reflect, PadMode::replicate, PadMode::circular})
          results.push_back(gradients(sum(square(pad(a, {{2, 1}, {3, 0}}, mode))), std::vector<Array>{a})[0]);
        results.push_back(gradients(sum(square(cumprod(a * 0.01, 1))), std::vector<Array>{a})[0]);
        const Array many = clip(special({40, 53}, f32, 9), -9.0, 9.0) * 0.02 + 1.0;  // lines of a vector and a rest
        results.push_back(gradients(sum(square(cumprod(many, 0)) + cumprod(many, 1)), std::vector<Array>{many})[0]);
        const std::vector<Array> image{special({2, 9, 9, 19}, f32, 9)};
        const Array pooled = max_pool2d(image[0], {.stride_h = 1, .stride_w = 1, .dilation_h = 2});
        results.insert(results.end(),
                       {gradients(sum(square(pooled)), image)[0], group_norm(image[0], 1),
                        concat({line, special({2, 20011}, f32, 9)}, 1), contiguous(transpose(image[0], {0, 2, 1, 3}))});
        results.push_back(multinomial(abs(a) + 0.5, {.samples = 5, .replacement = true}));
        results.push_back(max_pool2d_with_indices(special({2, 7, 9, 5}, f32), {.kernel_h = 2, .kernel_w = 3}).indices);
        return results;
      },
      is_cpu() ? 8 : 0);
}

// Kernels whose own text the host runs: rows of less than a vector, of several, and with a rest; one group and several.
TEST_P(CoExecutionTest, rows_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const Shape& shape :
             {Shape{1}, Shape{3, 5}, Shape{40, 10}, Shape{7, 33}, Shape{2, 1300}, Shape{600, 16}}) {
          const Array a = special(shape, f32, 1e3), w = special({shape.back()}, f32, 9), b = special(shape, f32, 7);
          for (const Array& y : {softmax(a), log_softmax(a), layer_norm(a)})
            results.insert(results.end(), {y, gradients(sum(y * b), std::vector<Array>{a})[0]});
          for (const Array& y : {layer_norm(a, w, w), rms_norm(a, w)}) {
            const std::vector<Array> slopes = gradients(sum(y * b), std::vector<Array>{a, w});
            results.insert(results.end(), {y, slopes[0], slopes[1]});
          }
        }
        results.push_back(softmax(special({9, 21}, f32, 1e30)));
        return results;
      },
      is_cpu() ? 40 : 5);
}

TEST_P(CoExecutionTest, channel_norms_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const Shape& shape : {Shape{2, 3, 3, 4}, Shape{3, 5, 6}, Shape{2, 9, 130}}) {
          const Array a = special(shape, f32, 1e3), w = special({shape.back()}, f32, 9), b = special(shape, f32, 7);
          const Array mean = cell(zeros({shape.back()}), "mean"), var = cell(ones({shape.back()}), "var");
          const Array y = batch_norm_train(a, w, w, mean, var), z = relu(batch_norm_train(a, w, w * 0.5, mean, var));
          for (const Array& out :
               {y, z, group_norm(a, 2 - shape.back() % 2, w, w), instance_norm(a, w, w, mean, var)}) {
            results.push_back(out);
            const std::vector<Array> slopes = gradients(sum(out * b), std::vector<Array>{a, w});
            results.insert(results.end(), {slopes[0], slopes[1]});
          }
          results.insert(results.end(), {mean, var});
        }
        return results;
      },
      is_cpu() ? 25 : 10);
}

TEST_P(CoExecutionTest, losses_of_classes_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const std::int64_t classes : {2, 10, 16, 37, 1100}) {
          const std::int64_t rows = classes == 1100 ? 3 : 45;
          const Array x = special({rows, classes}, f32, 30), w = abs(special({classes}, f32, 3)) + 0.1;
          const Array labels = astype(floor(uniform({rows}) * static_cast<double>(classes)), i32);
          const Array p = softmax(special({rows, classes}, f32, 2));
          for (const Array& loss :
               {cross_entropy(x, labels), cross_entropy(x, labels, {.label_smoothing = 0.1f, .class_weight = w}),
                cross_entropy(x, p), cross_entropy(x, labels, {.ignore_index = 1, .reduction = Reduction::sum})}) {
            results.push_back(loss);
            results.push_back(gradients(loss, std::vector<Array>{x})[0]);
            results.push_back(gradients(loss * 3.0, std::vector<Array>{x})[0]);
          }
        }
        return results;
      },
      is_cpu() ? 20 : 5);
}

TEST_P(CoExecutionTest, sums_at_indices_and_sorted_rows_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        const Array a = special({6, 37}, f32), b = special({6, 37}, f32, 1e3);
        const Array places = array(std::vector<std::int32_t>{2, 0, 1, 5, 3, 2}, {6});
        const Array each = astype(floor(uniform({6, 37}) * 6.0), i32);
        for (const Array& y : {take(b, places, 0), take(b, places, 1), gather(b, 0, each), scatter_add(b, 0, each, b)})
          results.insert(results.end(), {y, gradients(sum(y * y), std::vector<Array>{b})[0]});
        for (const Array& x : {a, whole({5, 70}), array(std::vector<float>{1, NAN, -0.0f, 0.0f, NAN, -3}, {2, 3})}) {
          const SortResult in_order = sort(x), first = top_k(x, 2), down = sort(x, 0, true),
                           last = top_k(x, 2, 0, false);
          results.insert(results.end(), {in_order.indices, first.indices, down.indices, last.indices, argsort(x, 0)});
        }
        results.push_back(gradients(sum(square(top_k(b, 3).values)), std::vector<Array>{b})[0]);
        const Array put = scatter(b, 1, each - 6, b * 2.0);  // counted from the end
        results.insert(results.end(), {put, gradients(sum(put * put), std::vector<Array>{b})[0], bincount(each, 5),
                                       bincount(astype(abs(b), u8), 3000)});
        const std::vector<Array> sampled{uniform({2, 5, 6, 37}, -1, 1), uniform({2, 3, 7, 2}, -1.5, 1.5)};
        for (const GridSampleMode mode : {GridSampleMode::bilinear, GridSampleMode::nearest, GridSampleMode::bicubic})
          for (const GridSamplePadding padding :
               {GridSamplePadding::zeros, GridSamplePadding::border, GridSamplePadding::reflection}) {
            const Array y = grid_sample(sampled[0], sampled[1], {mode, padding, padding == GridSamplePadding::border});
            const bool is_flat = mode == GridSampleMode::nearest;
            results.push_back(y);
            for (const Array& d : gradients(sum(y * y), std::span(sampled).first(is_flat ? 1 : 2)))
              results.push_back(d);
          }
        for (const Array& x : {a, whole({3, 5, 21}), astype(b, f16), astype(greater(a, b), u8)})
          results.insert(results.end(), {tril(x, 2), triu(x, -1)});
        return results;
      },
      is_cpu() ? 50 : 5);
}

TEST_P(CoExecutionTest, windows_and_sizes_of_images_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const std::int64_t channels : {1, 6, 16, 37}) {
          const Array a = special({2, 7, 9, channels}, f32), line = special({3, 11, channels}, f32, 1e3);
          std::vector<Array> made{
              max_pool2d(a),
              max_pool2d(a, {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .pad_h = 1, .pad_w = 1}),
              avg_pool2d(a),
              avg_pool2d(a, {.kernel_h = 2, .kernel_w = 3, .stride_h = 1, .stride_w = 2, .pad_h = 1, .pad_w = 1}),
              adaptive_max_pool2d(a, 3, 4),
              adaptive_avg_pool2d(a, 4, 2)};
          for (const ResizeMode mode : {ResizeMode::nearest, ResizeMode::bilinear}) {
            made.push_back(resize(a, {.out_h = 10, .out_w = 5, .mode = mode}));
            made.push_back(resize(a, {.out_h = 3, .out_w = 18, .mode = mode}));
          }
          for (const Array& y : made) {
            results.push_back(y);
            const Array b = special(y.shape(), f32, 7);
            results.push_back(gradients(sum(y * b), std::vector<Array>{a})[0]);
          }
          for (const Array& y : {max_pool1d(line), avg_pool1d(line), adaptive_max_pool1d(line, 4)})
            results.insert(results.end(), {y, gradients(sum(y * y), std::vector<Array>{line})[0]});
        }
        return results;
      },
      is_cpu() ? 40 : 10);
}

TEST_P(CoExecutionTest, products_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const Dtype dtype : real_dtypes()) {
          const auto some = [&](const Shape& shape) {
            const Array a = astype(uniform(shape) - 0.5, dtype);
            a.eval();
            return a;
          };
          struct Sizes {
            std::int64_t m, n, k;
          };
          for (const Sizes& s : {Sizes{1, 1, 1},
                                 {3, 5, 2},
                                 {16, 16, 16},
                                 {15, 33, 7},
                                 {1, 100, 64},
                                 {33, 3, 70},
                                 {32, 32, 32},
                                 {3, 50, 19},
                                 {7, 75, 90},
                                 {6, 24, 300}}) {
            const Array a = some({s.m, s.k}), b = some({s.k, s.n}), w = some({s.n, s.k}), bias = some({s.n});
            results.insert(results.end(), {matmul(a, b), linear(a, w), linear(a, w, bias), relu(linear(a, w, bias)),
                                           matmul(transpose(b), transpose(a)), linear(a, w, bias) + matmul(a, b)});
          }
          results.push_back(matmul(some({2, 3, 4, 5}), some({3, 5, 6})));
        }
        return results;
      },
      is_cpu() ? 30 : 0);
}

// Steps of a small network, whose launches are small: forward, backward, metrics and update.
TEST_P(CoExecutionTest, training_gives_the_same_bytes) {
  expect_same_bytes(
      [] {
        nn::Sequential net(nn::Linear({.in = 6, .out = 9}), nn::Relu(), nn::Linear({.in = 9, .out = 4}));
        optim::AdamW adam(net.parameters(), {.rate = 0.01});
        std::vector<Array> results;
        for (int step = 0; step < 6; ++step) {
          const Array x = uniform({10, 6}), y = uniform({10, 4});
          const Array out = net(x), loss = mse_loss(out, y);
          adam.step(loss);
          results.push_back(mean(astype(equal(argmax(out, 1), argmax(y, 1)), f32), {}));
          results.push_back(loss);
        }
        for (const Array& w : net.parameters()) results.push_back(w);
        return results;
      },
      6);
}

// Evaluations that the crew of the evaluating thread shares, one after the other, so that its helpers are awake.
TEST_P(CoExecutionTest, medium_evaluations_in_a_loop_give_the_same_bytes) {
  const auto run = [&](HostExecution mode) {
    const auto own = make_engine(GetParam(), {.seed = 5, .host_execution = mode});
    const EngineScope use(*own);
    const Array a = uniform({250, 400}), b = uniform({400}, 1, 2), c = uniform({250, 1}, 1, 2);
    const Array places = astype(floor(uniform({300}) * 400.0), i32);
    eval({a, b, c, places});
    Bytes bytes;
    for (int i = 0; i < 12; ++i)
      for (const Array& y : {a + b, a * c, exp(a * (1.0 + i)), contiguous(transpose(a)), sin(a) + c, softmax(a),
                             take(a, places, 1), concat({a, a}, 1), sum(a, {1}), max(a, {0}), astype(a, f16)})
        bytes.push_back(evaluated({y})[0]);
    return bytes;
  };
  const Bytes off = run(HostExecution::off), automatic = run(HostExecution::automatic);
  ASSERT_EQ(automatic.size(), off.size());
  for (std::size_t i = 0; i < off.size(); ++i) EXPECT_EQ(automatic[i], off[i]) << "result " << i;
}

// ---- what moves

// `rounds` of five launches that depend on each other: a small product, a sum, scalars, a maximum, scalars.
Array small_chain(Array h, const Array& w, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    h = matmul(h, w);
    h = h * 0.25 + sum(h, {1}, true) * 0.125;
    h = h / (max(h, {}) + 1.0);
  }
  return h;
}

TEST_P(CoExecutionTest, launches_between_products_are_one_run) {
  const auto run = [&](HostExecution mode) {
    const auto own = make_engine(GetParam(), {.seed = 4, .host_execution = mode});
    const EngineScope use(*own);
    const Array a = uniform({320, 320}), w = uniform({8, 8});
    eval({a, w});
    PlanReport before = own->plans();
    const Array first = matmul(a, a);
    const Array h = small_chain(slice(slice(first, 0, 0, 8), 1, 0, 8), w, 20);
    const Array last = linear(first, a, reshape(matmul(reshape(h, {1, 64}), slice(a, 0, 0, 64)), {320}));
    const std::vector<float> values = last.to_vector<float>();
    PlanReport report = own->plans();
    report.launches -= before.launches;
    report.launches_on_host -= before.launches_on_host;
    report.host_runs -= before.host_runs;
    return std::pair{report, values};
  };
  const auto [off, expected] = run(HostExecution::off);
  const auto [automatic, values] = run(HostExecution::automatic);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(off.host_runs, 0u);
  EXPECT_EQ(off.launches_on_host, 0u);
  EXPECT_EQ(automatic.launches, off.launches);
  if (!runs_on_host(engine())) {
    EXPECT_EQ(automatic.launches_on_host, 0u);
  } else if (is_cpu()) {
    EXPECT_EQ(automatic.host_runs, 1u);
    EXPECT_GE(automatic.launches_on_host, off.launches - 3);  // the last small product may be worth its launch
    EXPECT_GE(automatic.launches_on_host, 100u);
  }
}

TEST_P(CoExecutionTest, a_second_step_moves_the_same_launches_with_its_own_scalars) {
  const auto own = make_engine(GetParam(), {.host_execution = HostExecution::always});
  const EngineScope use(*own);
  for (const double scale : {2.0, 3.0, 5.0}) {
    const Array h = ones({3, 3});
    EXPECT_EQ((sum(h * scale, {}) * scale).value(), 9 * scale * scale);
  }
  EXPECT_EQ(own->plans().plans_made, 1u);
}

TEST_P(CoExecutionTest, functions_of_the_driver_and_16_bit_kernels_stay_on_the_device) {
  const auto own = make_engine(GetParam(), {.host_execution = HostExecution::always});
  const EngineScope use(*own);
  const Array x = uniform({4, 4}), h = astype(x, f16);
  eval({x, h});
  const std::uint64_t before = own->plans().launches_on_host;
  eval({pow(x, 2.7), softmax(h), layer_norm(h)});
  if (!is_cpu()) eval({exp(x), log(x), expm1(x), sigmoid(x), tanh(x), sin(x), softmax(x)});  // the driver's functions
  EXPECT_EQ(own->plans().launches_on_host, before);
}

// ---- at once, on the thread that evaluates

TEST_P(CoExecutionTest, a_small_evaluation_that_waits_for_nothing_is_done_by_its_thread) {
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic");
  const auto own = make_engine(GetParam());
  const EngineScope use(*own);
  const Array x = array({1.0f, -2.0f, 3.0f, 0.5f}, {2, 2});
  for (int i = 0; i < 3; ++i) {
    const PlanReport before = own->plans();
    const Array y = x * (2.0 + i) + x;
    y.eval();
    const PlanReport after = own->plans();
    EXPECT_EQ(after.launches - before.launches, 1u);
    EXPECT_EQ(after.launches_on_host - before.launches_on_host, runs_on_host(*own) ? 1u : 0u);
    const auto scale = static_cast<float>(3 + i);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{scale, -2 * scale, 3 * scale, 0.5f * scale}));
  }
  if (!runs_on_host(*own)) return;
  const std::uint64_t before = own->plans().launches_on_host;
  eval({pow(x, 2.7)});       // which the host cannot do
  eval({ones({900, 900})});  // too much
  EXPECT_EQ(own->plans().launches_on_host, before);
}

TEST_P(CoExecutionTest, a_small_evaluation_comes_after_the_launches_that_it_waits_for) {
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic");
  const auto own = make_engine(GetParam(), {.seed = 3});
  const EngineScope use(*own);
  const Array a = uniform({384, 384});
  a.eval();
  for (int i = 0; i < 5; ++i) {
    const Array product = matmul(a, a + static_cast<double>(i));  // takes a while
    product.eval();
    const Array corner = slice(slice(product, 0, 382, 384), 1, 382, 384) * 2.0;
    corner.eval();
    const std::vector<float> all = product.to_vector<float>(), some = corner.to_vector<float>();
    EXPECT_EQ(some[3], 2 * all.back());
    EXPECT_EQ(some[0], 2 * all[382 * 384 + 382]);
  }
}

// What a queued launch still reads is not free because a small evaluation that reads it, too, is done.
TEST_P(CoExecutionTest, what_a_launch_reads_is_not_written_behind_a_small_evaluation) {
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "automatic");
  const auto own = make_engine(GetParam(), {.seed = 3});
  const EngineScope use(*own);
  const Array a = full({384, 384}, 2.0), state = cell(full({2, 2}, 2.0), "state");
  eval({a, state});
  for (int i = 0; i < 5; ++i) {
    const Array reader = matmul(matmul(a, a), a) + sum(state, {});  // in the queue for a while
    const float expected = 384.f * 384.f * 8.f + 4 * (2.f + static_cast<float>(i));
    reader.eval();
    eval({state * 3.0});
    assign(state, state + 1.0);
    EXPECT_EQ(reader.to_vector<float>().back(), expected);
  }
}

TEST_P(CoExecutionTest, the_profile_shows_what_the_host_did) {
  const auto own = make_engine(GetParam(), {.host_execution = HostExecution::always, .profile = true});
  if (!runs_on_host(*own)) GTEST_SKIP() << "the device does not run host functions";
  const EngineScope use(*own);
  const Array h = uniform({5, 5});
  h.eval();
  Profiler profiler(*own);
  const Array y = max(h * 2.0, {}) + 1.0;
  y.eval();
  const Profile profile = profiler.stop();
  int on_host = 0;
  for (const ProfiledLaunch& launch : profile.launches) {
    on_host += launch.kernel == "host";
    EXPECT_GE(launch.seconds, 0);
    EXPECT_GE(launch.start, 0);
    EXPECT_EQ(launch.device, 0);
  }
  EXPECT_EQ(on_host, static_cast<int>(is_cpu() ? 3 : 2));
}

TEST_P(CoExecutionTest, only_modes_that_share_bytes_have_it) {
  for (const MemoryMode mode : {MemoryMode::fine, MemoryMode::coarse, MemoryMode::hostptr, MemoryMode::copy}) {
    std::unique_ptr<Engine> own;
    try {
      own = make_engine(GetParam(), {.memory = mode, .host_execution = HostExecution::always});
    } catch (const ArgumentError&) {
      continue;  // the device has no such mode
    }
    const EngineScope use(*own);
    const Array y = sum(ones({3, 4}) * 2.0, {});
    EXPECT_EQ(y.value(), 24.0);
    const bool shares = own->device().memory_mode == MemoryMode::fine && runs_on_host(engine());
    EXPECT_EQ(own->plans().launches_on_host > 0, shares) << name_of(mode);
    EXPECT_EQ(own->transfers().bytes_copied > 0, own->device().memory_mode == MemoryMode::copy);
  }
}

// ---- threads, devices, failures

TEST_P(CoExecutionTest, engines_and_threads_do_not_disturb_each_other) {
  constexpr int kThreads = 3, kRepeats = 20;
  const auto chain = [](Engine& own) {
    const EngineScope use(own);
    return small_chain(ones({8, 8}), full({8, 8}, 0.1), 4).to_vector<float>();
  };
  const auto shared = make_engine(GetParam(), {.host_execution = HostExecution::always});
  const std::vector<float> expected = chain(*shared);
  int wrong[kThreads] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto own = t == 0 ? nullptr : make_engine(GetParam(), {.host_execution = HostExecution::always});
      for (int i = 0; i < kRepeats; ++i) wrong[t] += chain(own ? *own : *shared) != expected;
    });
  for (int i = 0; i < kRepeats; ++i) EXPECT_EQ(chain(*shared), expected);
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
}

// Chains on two parts of a device that read from each other: a run that begins too early, or ends too late, gives other
// numbers or waits for ever.
TEST_P(CoExecutionTest, runs_keep_the_order_between_devices) {
  SAMEBYTES_NEEDS_PARTS();
  const auto run = [&](HostExecution mode, int devices) {
    const auto own = make_engine(GetParam(), {.split = {1, 1}, .seed = 3, .host_execution = mode});
    const EngineScope use(*own);
    std::vector<std::vector<float>> results;
    const Array w = uniform({12, 12});
    w.eval();
    for (int round = 0; round < 6; ++round) {
      std::vector<Array> values;
      for (int i = 0; i < 4; ++i) values.push_back(uniform({12, 12}));
      for (int i = 0; i < 40; ++i) {
        const DeviceScope on((i / 3 + i % 7 / 6) % devices);
        const Array &a = values[static_cast<std::size_t>(i)], &b = values[static_cast<std::size_t>(i / 2 + 3)];
        values.push_back(i % 4 == 1   ? matmul(a, w) * 0.1 + b
                         : i % 4 == 2 ? a - mean(b, {1}, true)
                         : i % 4 == 3 ? softmax(a + b)
                                      : maximum(a, b) * 0.5);
      }
      results.push_back(values.back().to_vector<float>());
    }
    return results;
  };
  const auto expected = run(HostExecution::off, 1);
  EXPECT_EQ(run(HostExecution::always, 1), expected);
  EXPECT_EQ(run(HostExecution::off, 2), expected);
  EXPECT_EQ(run(HostExecution::always, 2), expected);
  EXPECT_EQ(run(HostExecution::automatic, 2), expected);
}

TEST_P(CoExecutionTest, what_a_host_function_throws_is_thrown_at_the_next_wait) {
  using detail::HostTask;
  using detail::Runtime;
  class Failing final : public HostTask {
    void run() override { throw std::runtime_error("no more room"); }
  };
  const auto own = make_engine(GetParam());
  if (!runs_on_host(*own)) GTEST_SKIP() << "the device does not run host functions";
  Runtime& runtime = *own->context()->runtime;
  detail::TicketPtr ticket;
  {
    detail::Submission submission(runtime);
    submission.enqueue_host(runtime.device(), "small", std::make_shared<Failing>());
    ticket = submission.finish();
  }
  EXPECT_ERROR(ticket->wait(), DeviceError, "small: the host's part failed: no more room");
  try {
    ticket->wait();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.status(), "");  // no OpenCL call failed
    EXPECT_EQ(error.call(), "");
  }
  EXPECT_THROW(own->wait(), DeviceError);
  EXPECT_NO_THROW(own->wait());
}

}  // namespace
}  // namespace samebytes::testing
