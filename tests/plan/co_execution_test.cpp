// Small launches on the host over the same bytes: the same results, and how many move.
// Over 400 lines because each kind of launch is compared with its kernel through the same fixture.
#include "plan/co_execution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/environment.h"

namespace samebytes::testing {
namespace {

SAMEBYTES_ON_EVERY_DEVICE(CoExecutionTest);

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
                                   logical_and(a, b),
                                   logical_or(a, floor(b)),
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
                                   tan(a),
                                   tan(b * 3e4),
                                   tan(b * 0.5),
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
                                   leaky_relu(a, 0.1),
                                   prelu(a, special({67}, f32)),
                                   mish(b),
                                   remainder(a, b),
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
        std::vector<Array> results;
        for (const Dtype dtype : real_dtypes()) {  // squares of rows and what is left of them, and rows of all lengths
          const Array wide = special({20, 3, 37}, dtype), images = special({2, 5, 7, 19}, dtype);
          for (const Array& view : {transpose(wide, {2, 1, 0}), transpose(wide, {0, 2, 1}), transpose(wide, {1, 2, 0}),
                                    transpose(images, {0, 3, 1, 2}), flip(transpose(wide), {0})})
            results.push_back(dense(view));
          for (const std::int64_t size : {3, 16, 25})
            results.push_back(
                dense(transpose(reshape(special({2, 5, 3 * size}, dtype), {2, 5, 3, size}), {0, 2, 1, 3})));
        }
        const std::vector<Array> others{
            a + row,     a * column,       a + row * column,      t * 2.0,           dense(t), part - 1.0,
            dense(part), flip(a, {1}) + a, row + full({7}, 0.25), full({3, 3}, -7.0)};
        results.insert(results.end(), others.begin(), others.end());
        return results;
      },
      13);
}

// A pass takes several rows where they are short, and what is not dense is gathered; the last pass has fewer.
TEST_P(CoExecutionTest, short_rows_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const std::int64_t n : {1, 3, 32, 255, 256, 257}) {
          const Shape shape{2, 133, n};
          const Array a = special(shape, f32), row = special({n}, f32), column = special({133, 1}, f32);
          const Array i = astype(clip(a, -3.0, 3.0) * 10.0, i32), u = astype(abs(i), u8),
                      h = astype(special(shape, f32, 9.0), f16);
          const Array t = special({2, n, 133}, f32), counts = astype(clip(row, 0.0, 5.0), i32);
          results.insert(results.end(),
                         {a + row, a * column, a * row + column, a + transpose(t), transpose(t) * row - column,
                          i + counts, where(greater(a, column), a, row), masked_fill(a, equal(i, counts), -1.0),
                          astype(u, f32) * column, h + astype(row, f16), astype(h, f32) / column,
                          stop_gradient(flip(a, {1})) + slice(special({1, 1, n + 1}, f32), 2, 1, n + 1)});
          if (has_f64()) {
            const Array d = special(shape, f64), e = special({133, 1}, f64);
            results.insert(results.end(), {d * e, d + special({n}, f64), where(less(d, e), d, e),
                                           astype(clip(d, -9.0, 9.0), i32) + counts});
          }
        }
        return results;
      },
      40);
}

TEST_P(CoExecutionTest, random_numbers_and_dropout_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const std::int64_t n : {1, 63, 64, 65, 1000})
          for (const Dtype dtype : real_dtypes()) {
            const RandomKey key{.seed = 0x123456789abcdefull, .counter = 0xfedcba987654321ull};
            results.push_back(uniform({n}, -2.0, 3.0, dtype, key));
            results.push_back(uniform({n}, 0.0, 1.0, dtype));
            results.push_back(dropout(special({n}, dtype), 0.3));
          }
        results.push_back(multinomial(abs(special({5, 9}, f32, 4.0)) + 0.1, {.samples = 7, .replacement = true}));
        return results;
      },
      15);
}

TEST_P(CoExecutionTest, quantised_values_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        std::vector<Array> results;
        for (const QuantisedType type : {QuantisedType::q8_0, QuantisedType::q4_0, QuantisedType::q4_k,
                                         QuantisedType::q5_k, QuantisedType::q6_k, QuantisedType::nf4}) {
          const std::int64_t rows = 7, bytes = 3 * format_of(type).bytes;
          std::vector<std::uint8_t> blocks(static_cast<std::size_t>(rows * bytes));
          // Any bytes but those whose halves would be no numbers.
          for (std::size_t i = 0; i < blocks.size(); ++i)
            blocks[i] = static_cast<std::uint8_t>(i * 2654435761u >> 13) & 0xbf;
          results.push_back(dequantise(array(blocks, {rows, bytes}), type));
        }
        return results;
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

// Images, lines and volumes; channels of less than a vector, of several, and with a rest; groups, strides, dilations
// and what follows in the same launch. The sums of NaNs have no one bit pattern, so there are none.
TEST_P(CoExecutionTest, convolutions_give_the_same_bytes) {
  const auto convolutions = [] {
    std::vector<Array> results;
    const auto add = [&](const Array& y) {
      const Array more = normal(y.shape());
      results.insert(results.end(), {y, relu(y), relu(y + more), hard_swish(y), relu6(y * 4.0)});
    };
    for (const auto& [in, out] : {std::pair{1, 16}, {3, 5}, {5, 48}, {16, 16}, {19, 33}, {40, 37}, {64, 64}}) {
      const Array image = normal({2, 7, 9, in}), w3 = normal({3, 3, in, out}), w1 = normal({1, 1, in, out}),
                  bias = normal({out}), line = normal({2, 21, in}), volume = normal({1, 4, 5, 6, in});
      add(conv2d(image, w3, bias, {.pad_h = 1, .pad_w = 1}));
      add(conv2d(image, w3, {}, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}));
      add(conv2d(image, w3, bias, {.pad_h = 2, .pad_w = 2, .dilation_h = 2, .dilation_w = 2}));
      add(conv2d(image, w1, bias, {.stride_h = 2, .stride_w = 2}));
      add(conv1d(line, normal({5, in, out}), bias, {.pad = 2}));
      add(conv3d(volume, normal({2, 3, 3, in, out}), bias, {.pad_w = 1}));
      results.push_back(gradients(sum(square(conv2d(image, w3, bias, {.stride_h = 2, .pad_h = 1, .pad_w = 1}))),
                                  std::vector<Array>{image})[0]);
    }
    const Array grouped = normal({2, 7, 9, 24});
    add(conv2d(grouped, normal({3, 3, 8, 36}), {}, {.pad_h = 1, .pad_w = 1, .groups = 3}));
    return results;
  };
  for (const char* algorithm : {"direct", "winograd"}) {
    SCOPED_TRACE(algorithm);
    const Environment algorithms("SAMEBYTES_CONV", algorithm);
    expect_same_bytes(convolutions, is_cpu() ? 50 : 0);
  }
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
                                 {1, 700, 300},
                                 {1, 333, 1001},
                                 {33, 3, 70},
                                 {32, 32, 32},
                                 {3, 50, 19},
                                 {7, 75, 90},
                                 {6, 24, 300}}) {
            const Array a = some({s.m, s.k}), b = some({s.k, s.n}), w = some({s.n, s.k}), bias = some({s.n});
            results.insert(results.end(), {matmul(a, b), linear(a, w), linear(a, w, bias), relu(linear(a, w, bias)),
                                           matmul(transpose(b), transpose(a)), linear(a, w, bias) + matmul(a, b)});
            const auto point = [&] { return conv2d(reshape(a, {s.m, 1, 1, s.k}), reshape(b, {1, 1, s.k, s.n}), bias); };
            results.insert(results.end(),
                           {point(), relu(point()), hard_swish(point() * 4.0), hard_swish(point()), relu6(point())});
          }
          results.push_back(matmul(some({2, 3, 4, 5}), some({3, 5, 6})));
          results.push_back(matmul(some({60, 8, 8}), some({60, 8, 8})));
        }
        return results;
      },
      is_cpu() ? 30 : 0);
}

// What weighs the channels of an image: two convolutions of one pixel, each a product, and a pointwise launch.
TEST_P(CoExecutionTest, convolutions_of_one_pixel_give_the_same_bytes) {
  expect_same_bytes(
      [&] {
        const auto some = [](const Shape& shape) {
          const Array a = uniform(shape) - 0.5;
          a.eval();
          return a;
        };
        const Array x = some({3, 1, 1, 40}), squeeze = some({1, 1, 40, 10}), widen = some({1, 1, 10, 40});
        const Array inside = relu(conv2d(x, squeeze, some({10})));
        return std::vector<Array>{hard_sigmoid(conv2d(inside, widen, some({40})))};
      },
      is_cpu() ? 3 : 0);
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
    const Array image = uniform({1, 14, 14, 32}), filter = uniform({3, 3, 32, 64}), thin = uniform({3, 3, 1, 32});
    const Array grey = uniform({1, 28, 28, 1});
    eval({a, b, c, places, image, filter, thin, grey});
    Bytes bytes;
    for (int i = 0; i < 12; ++i)
      for (const Array& y : {a + b, a * c, exp(a * (1.0 + i)), contiguous(transpose(a)), sin(a) + c, softmax(a),
                             take(a, places, 1), concat({a, a}, 1), sum(a, {1}), max(a, {0}), astype(a, f16),
                             relu(conv2d(image, filter)), conv2d(grey, thin)})
        bytes.push_back(evaluated({y})[0]);
    return bytes;
  };
  const Bytes off = run(HostExecution::off), automatic = run(HostExecution::automatic);
  ASSERT_EQ(automatic.size(), off.size());
  for (std::size_t i = 0; i < off.size(); ++i) EXPECT_EQ(automatic[i], off[i]) << "result " << i;
}

// ---- what moves

}  // namespace
}  // namespace samebytes::testing
