// Arrays of f16 and bf16 inside the kernels: each op once, on 16-bit values against the same op in f32 on the same
// values, which other tests compare with double, and hardly more launches than in f32.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

using Arrays = std::vector<Array>;

// An op on inputs of which the first `narrow` have a 16-bit dtype and the others f32. more_launches is counted row by
// row, each evaluated alone in 16 bits and in f32: a convolution's gradient of its weight is rounded when it is whole,
// 1 (a bias is f32, and so is its gradient); the losses are f32, so their gradients are rounded, bce_with_logits in 1
// launch and mse_loss in 2; the gradient of gather is summed in f32 and rounded, 1. All others take as many as in f32.
struct Row {
  const char* name;
  std::vector<Shape> shapes;
  std::size_t narrow;
  std::function<Array(const Arrays&)> f;
  std::uint64_t more_launches = 0;  // than in f32, at most
  bool is_wide = false;             // the result is f32
};

Array labels_of(std::int64_t rows, int classes) {
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < rows; ++i) labels.push_back(static_cast<std::int32_t>(i * 7 % classes));
  return array(std::span<const std::int32_t>(labels), {rows});
}

const std::vector<Row>& rows() {
  using A = const Arrays&;
  static const std::vector<Row> all{
      {"softmax", {{5, 37}}, 1, [](A x) { return softmax(x[0]); }},
      {"softmax of short rows", {{9, 10}}, 1, [](A x) { return softmax(x[0]); }},
      {"log_softmax", {{3, 101}}, 1, [](A x) { return log_softmax(x[0]); }},
      {"layer_norm", {{9, 37}, {37}, {37}}, 1, [](A x) { return layer_norm(x[0], x[1], x[2]); }},
      {"rms_norm", {{9, 53}, {53}}, 1, [](A x) { return rms_norm(x[0], x[1], 1e-5f); }},
      {"group_norm", {{2, 5, 12}, {12}, {12}}, 1, [](A x) { return group_norm(x[0], 3, x[1], x[2]); }},
      {"batch_norm",
       {{67, 10}, {10}, {10}},
       1,
       [](A x) {
         const Dtype dtype = x[1].dtype();
         return batch_norm_train(x[0], x[1], x[2], cell(zeros({10}, dtype), "zeros"), cell(ones({10}, dtype), "ones"));
       }},
      {"batch_norm and relu",
       {{19, 33}, {33}, {33}},
       1,
       [](A x) {
         const Dtype dtype = x[1].dtype();
         return relu(
             batch_norm_train(x[0], x[1], x[2], cell(zeros({33}, dtype), "zeros"), cell(ones({33}, dtype), "ones")));
       }},
      {"max_pool2d",
       {{2, 7, 5, 19}},
       1,
       [](A x) { return max_pool2d(x[0], {.kernel_h = 3, .kernel_w = 2, .pad_h = 1}); }},
      {"max_pool1d", {{2, 9, 33}}, 1, [](A x) { return max_pool1d(x[0], {.kernel = 2}); }},
      {"avg_pool2d", {{2, 5, 4, 17}}, 1, [](A x) { return avg_pool2d(x[0], {.kernel_h = 2, .kernel_w = 2}); }},
      {"global_avg_pool2d", {{2, 5, 4, 17}}, 1, [](A x) { return global_avg_pool2d(x[0]); }},
      {"sum over rows", {{7, 131}}, 1, [](A x) { return sum(x[0], {1}); }},
      {"sum over columns", {{131, 7}}, 1, [](A x) { return sum(x[0], {0}); }},
      {"mean in parts", {{40000}}, 1, [](A x) { return mean(x[0]); }},
      {"sum_of_squares in parts", {{40000}}, 1, [](A x) { return sum_of_squares(x[0]); }},
      {"mean of columns in parts", {{20011, 3}}, 1, [](A x) { return mean(x[0], {0}); }},
      {"mean of two blocks",
       {{3, 4, 5}},
       1,
       [](A x) {
         return mean(x[0], {0, 2});
       }},
      {"max", {{5, 37}}, 1, [](A x) { return max(x[0], {1}); }},
      {"min", {{37, 5}}, 1, [](A x) { return min(x[0], {0}); }},
      {"bce_with_logits", {{37}, {37}}, 2, [](A x) { return bce_with_logits(x[0], x[1]); }, 1, true},
      {"mse_loss", {{37}, {37}}, 2, [](A x) { return mse_loss(x[0], x[1]); }, 2, true},
      {"cross_entropy", {{9, 37}}, 1, [](A x) { return cross_entropy(x[0], labels_of(9, 37)); }, 0, true},
      {"cross_entropy of short rows", {{9, 10}}, 1, [](A x) { return cross_entropy(x[0], labels_of(9, 10)); }, 0, true},
      {"cross_entropy with smoothing",
       {{9, 37}},
       1,
       [](A x) { return cross_entropy(x[0], labels_of(9, 37), {.label_smoothing = 0.1f}); },
       0,
       true},
      {"attention",
       {{2, 9, 4, 8}, {2, 9, 2, 8}, {2, 9, 2, 8}},
       3,
       [](A x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}); }},
      {"packed attention", {{1, 67, 6, 24}}, 1, [](A x) { return packed_attention(x[0], 2); }},
      {"rotary", {{2, 3, 2, 34}}, 1, [](A x) { return rotary(x[0]); }},
      {"rotary of interleaved pairs", {{2, 3, 2, 36}}, 1, [](A x) { return rotary(x[0], {.interleaved = true}); }},
      {"embedding", {{5, 37}}, 1, [](A x) { return embedding(labels_of(11, 5), x[0]); }},
      {"gather",
       {{4, 5}},
       1,
       [](A x) {
         return gather(x[0], 1, reshape(labels_of(4, 5), {4, 1}));
       },
       1},
      {"dropout",
       {{131}},
       1,
       [](A x) {
         return dropout(x[0], 0.3, {5, 6});
       }},
      {"reflecting pad",
       {{3, 7, 2}},
       1,
       [](A x) {
         return pad(x[0], {{0, 0}, {2, 3}, {0, 0}}, PadMode::reflect);
       }},
      {"replicating pad",
       {{3, 7, 2}},
       1,
       [](A x) {
         return pad(x[0], {{0, 0}, {2, 3}, {0, 0}}, PadMode::replicate);
       }},
      {"matmul of several blocks", {{50, 600}, {600, 70}}, 2, [](A x) { return matmul(x[0], x[1]); }},
      {"matmul in parts", {{20, 4100}, {4100, 40}}, 2, [](A x) { return matmul(x[0], x[1]); }},
      {"dot products", {{3, 131}, {5, 131}}, 2, [](A x) { return matmul(x[0], transpose(x[1])); }},
      {"batched matmul", {{2, 3, 17, 9}, {2, 3, 9, 21}}, 2, [](A x) { return matmul(x[0], x[1]); }},
      {"linear", {{19, 33}, {45, 33}, {45}}, 2, [](A x) { return linear(x[0], x[1], x[2]); }},
      {"conv1d", {{2, 19, 5}, {3, 5, 7}, {7}}, 2, [](A x) { return conv1d(x[0], x[1], x[2], {.pad = 1}); }, 1},
      {"conv1d in chunks", {{1, 15, 1300}, {1, 1300, 5}}, 2, [](A x) { return conv1d(x[0], x[1]); }, 1},
      {"conv2d",
       {{2, 7, 6, 19}, {3, 3, 19, 35}, {35}},
       2,
       [](A x) { return conv2d(x[0], x[1], x[2], {.pad_h = 1, .pad_w = 1}); },
       1},
      {"conv2d by minimal filtering",
       {{1, 8, 16, 16}, {3, 3, 16, 16}},
       2,
       [](A x) { return conv2d(x[0], x[1], {}, {.pad_h = 1, .pad_w = 1}); },
       1},
      {"conv_transpose1d", {{2, 9, 6}, {3, 5, 6}, {5}}, 2, [](A x) { return conv_transpose1d(x[0], x[1], x[2]); }, 1},
      {"conv2d with strides, columns of two tiles that overlap",
       {{2, 9, 8, 16}, {3, 3, 16, 56}},
       2,
       [](A x) { return conv2d(x[0], x[1], {}, {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}); },
       1},
      {"conv2d of single pixels with strides",
       {{2, 5, 7, 24}, {1, 1, 24, 40}},
       2,
       [](A x) { return conv2d(x[0], x[1], {}, {.stride_h = 2, .stride_w = 2}); },
       1},
      {"conv2d of one channel",
       {{2, 5, 7, 1}, {3, 3, 1, 48}},
       2,
       [](A x) { return conv2d(x[0], x[1], {}, {.pad_h = 1, .pad_w = 1}); },
       1},
      {"conv2d of single pixels", {{2, 5, 5, 24}, {1, 1, 24, 40}}, 2, [](A x) { return conv2d(x[0], x[1]); }, 1},
  };
  return all;
}

// Neighbouring rows, which are often of one family, take turns.
Dtype dtype_of(std::size_t row) { return row % 2 == 0 ? f16 : bf16; }

// Inputs, results and gradients of every row.
struct Everything {
  std::vector<Arrays> inputs, gradients;
  Arrays results, all;
};

// `values` are the inputs as they were rounded; the rows are weighted with numbers that every dtype holds.
Everything build(const std::vector<Arrays>& values, bool is_narrow) {
  Everything e;
  Arrays every;
  for (std::size_t r = 0; r < rows().size(); ++r) {
    Arrays inputs;
    for (std::size_t i = 0; i < values[r].size(); ++i)
      inputs.push_back(is_narrow && i < rows()[r].narrow ? astype(values[r][i], dtype_of(r)) : values[r][i]);
    every.insert(every.end(), inputs.begin(), inputs.end());
    e.inputs.push_back(inputs);
  }
  eval(every);
  for (std::size_t r = 0; r < rows().size(); ++r) {
    const Array y = rows()[r].f(e.inputs[r]);
    std::vector<double> weights;
    for (std::int64_t i = 0; i < y.shape().size(); ++i) weights.push_back(static_cast<double>(i % 5 - 2) / 4 + 0.125);
    const Array weighted = astype(y, f32) * real_array(weights, y.shape(), f32);
    e.gradients.push_back(gradients(sum(weighted), e.inputs[r]));
    e.results.push_back(y);
    e.all.push_back(y);
    e.all.insert(e.all.end(), e.gradients.back().begin(), e.gradients.back().end());
  }
  return e;
}

double rounding(Dtype dtype) { return dtype == f16 ? 0x1p-11 : 0x1p-8; }

class SixteenBitTest : public OnDevice {
 protected:
  static std::vector<Arrays> inputs_of_rows() {
    std::vector<Arrays> all;
    Arrays every;
    for (std::size_t r = 0; r < rows().size(); ++r) {
      const Row& row = rows()[r];
      Arrays inputs;
      for (std::size_t i = 0; i < row.shapes.size(); ++i) {
        const Array a = real_array(random_values(row.shapes[i].size(), i + 3, -2, 2), row.shapes[i], f32);
        inputs.push_back(i < row.narrow ? astype(astype(a, dtype_of(r)), f32) : a);
      }
      every.insert(every.end(), inputs.begin(), inputs.end());
      all.push_back(inputs);
    }
    eval(every);
    return all;
  }
  std::uint64_t launches_of(const Arrays& arrays) {
    const std::uint64_t before = engine().plans().launches;
    eval(arrays);
    return engine().plans().launches - before;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(SixteenBitTest);

TEST_P(SixteenBitTest, results_and_gradients_are_those_of_f32_rounded_with_hardly_more_launches) {
  const std::vector<Arrays> values = inputs_of_rows();
  const Everything came = build(values, true), want = build(values, false);
  std::uint64_t more_launches = 0;
  for (const Row& row : rows()) more_launches += row.more_launches;
  const std::uint64_t narrow = launches_of(came.all);
  EXPECT_LE(narrow, launches_of(want.all) + more_launches);
  for (std::size_t r = 0; r < rows().size(); ++r) {
    const Row& row = rows()[r];
    const Dtype dtype = dtype_of(r);
    const double tolerance = 1.01 * rounding(dtype) + sum_tolerance(f32, 40000);
    EXPECT_EQ(came.results[r].dtype(), row.is_wide ? f32 : dtype) << row.name;
    EXPECT_TRUE(all_close(came.results[r], want.results[r].to_vector<double>(), tolerance)) << row.name;
    for (std::size_t i = 0; i < row.shapes.size(); ++i) {
      EXPECT_EQ(came.gradients[r][i].dtype(), i < row.narrow ? dtype : f32) << row.name;
      // A gradient may read the rounded result.
      EXPECT_TRUE(all_close(came.gradients[r][i], want.gradients[r][i].to_vector<double>(), 8 * tolerance))
          << "gradient " << i << " of " << row.name;
    }
  }
}

TEST_P(SixteenBitTest, overflow_is_infinite_and_nan_stays) {
  const float inf = std::numeric_limits<float>::infinity();
  const Array large = astype(array({60000.0f, 60000.0f, -60000.0f, -60000.0f}, {2, 2}), f16);
  EXPECT_EQ(sum(large, {1}).to_vector<float>(), (std::vector<float>{inf, -inf}));
  EXPECT_EQ(mean(large, {1}).to_vector<float>(), (std::vector<float>{60000, -60000}));  // the sum itself is f32
  for (const Dtype dtype : {f16, bf16}) {
    const Array a = astype(array({1.0f, NAN, 3.0f, -inf, 5.0f, inf}, {3, 2}), dtype);
    const std::vector<float> largest = max(a, {1}).to_vector<float>(), y = softmax(a).to_vector<float>();
    EXPECT_TRUE(std::isnan(largest[0]));
    EXPECT_EQ(largest[1], 3);
    EXPECT_EQ(largest[2], inf);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
    EXPECT_EQ(y[2], 1);
    EXPECT_EQ(y[3], 0);
    for (const float v : layer_norm(a).to_vector<float>()) EXPECT_TRUE(std::isnan(v));
  }
}

TEST_P(SixteenBitTest, an_op_is_one_launch) {
  for (const Dtype dtype : {f16, bf16}) {
    const Array x = astype(real_array(random_values(37 * 5), {5, 37}, f32), dtype);
    const Array image = astype(real_array(random_values(50), {1, 5, 5, 2}, f32), dtype);
    const Array weight = astype(real_array(random_values(54), {3, 3, 2, 3}, f32), dtype);
    eval(Arrays{x, image, weight});
    for (const auto& f : std::vector<std::function<Array(const Array&)>>{
             [](const Array& a) { return layer_norm(a); }, [](const Array& a) { return rms_norm(a); },
             [](const Array& a) { return softmax(a); }, [](const Array& a) { return sum(a, {1}); },
             [](const Array& a) { return matmul(transpose(a), a); },
             [&](const Array&) { return conv2d(image, weight, {}, {.pad_h = 1}); }}) {
      const Array y = f(x);
      const std::uint64_t before = engine().plans().launches;
      eval(Arrays{y});
      EXPECT_EQ(engine().plans().launches - before, 1u);
    }
  }
}

TEST_P(SixteenBitTest, what_a_product_appends_is_rounded_as_if_it_ran_alone) {
  for (const Dtype dtype : {f16, bf16}) {
    const auto input = [&](const Shape& shape, std::uint64_t seed) {
      const Array a = astype(real_array(random_values(shape.size(), seed, -2, 2), shape, f32), dtype);
      eval(Arrays{a});
      return a;
    };
    const Array x = input({19, 300}, 1), w = input({45, 300}, 2), b = input({45}, 3), more = input({19, 45}, 4);
    const Array image = input({2, 7, 6, 19}, 5), taps = input({3, 3, 19, 35}, 6), added = input({2, 7, 6, 35}, 7);
    const auto product = [&] { return linear(x, w, b); };
    const auto convolved = [&] { return conv2d(image, taps, {}, {.pad_h = 1, .pad_w = 1}); };
    const Array fused = relu(product() + more), fused_image = relu(convolved() + added);
    eval(Arrays{fused, fused_image});
    const Array y = product(), z = convolved();
    eval(Arrays{y, z});
    const Array sum_y = y + more, sum_z = z + added;
    eval(Arrays{sum_y, sum_z});
    EXPECT_TRUE(same_bytes(fused, relu(sum_y)));
    EXPECT_TRUE(same_bytes(fused_image, relu(sum_z)));
  }
}

class SmallShapesSixteenBitTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesSixteenBitTest);

TEST_P(SmallShapesSixteenBitTest, every_family_of_kernels) {
  using In = std::span<const Array>;
  for (const Dtype dtype : {f16, bf16}) {
    const auto narrow = [dtype](const Array& a) { return astype(a, dtype); };
    const auto total = [](const Array& a) { return sum(astype(a, f32)); };
    const Array labels = array(std::vector<std::int32_t>{0, 3, 10, 2, 2}, {5});
    const Array running_mean = cell(zeros({7}), "mean"), running_var = cell(ones({7}), "var");
    run(
        [&](In x) {
          return total(matmul(narrow(x[0]), narrow(x[1]))) +
                 total(conv2d(narrow(x[2]), narrow(x[3]), {}, {.pad_h = 1})) + total(max_pool2d(narrow(x[2]))) +
                 total(avg_pool2d(narrow(x[2])));
        },
        {{5, 19}, {19, 35}, {1, 4, 6, 3}, {3, 3, 3, 5}});
    run(
        [&](In x) {
          const Array rows = narrow(x[0]);
          return total(softmax(rows)) + total(layer_norm(rows)) + total(rms_norm(rows, {}, 1e-5f)) +
                 total(group_norm(narrow(x[1]), 1)) + cross_entropy(rows, labels) + total(sum(rows, {0})) +
                 total(dropout(rows, 0.5, {1, 2})) + total(embedding(labels, narrow(x[2]))) +
                 total(batch_norm_train(narrow(x[1]), x[3], x[3], running_mean, running_var)) +
                 total(packed_attention(narrow(x[4]), 1)) + total(rotary(narrow(x[4])));
        },
        {{5, 19}, {3, 5, 7}, {11, 5}, {7}, {1, 5, 3, 6}});
  }
}

}  // namespace
}  // namespace samebytes::testing
