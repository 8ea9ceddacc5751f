// The linear layer and its cross-entropy in one: values, gradients in one pass and in two, and how much is ever there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/losses.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

using Options = LinearCrossEntropyOptions;

std::vector<int> some_labels(std::int64_t rows, std::int64_t classes) {
  std::vector<int> labels;
  for (double u : random_values(rows, 21, 0, 1)) labels.push_back(static_cast<int>(u * static_cast<double>(classes)));
  return labels;
}

Array label_array(const std::vector<int>& labels, const Shape& shape) {
  return array(std::span<const std::int32_t>(labels), shape);
}

struct Head {
  std::int64_t rows, in, classes;
};

class LinearCrossEntropyTest : public OnDevice {
 protected:
  struct Came {
    std::vector<float> loss, dx, dweight, dbias;
    std::uint64_t launches = 0;
    bool operator==(const Came& other) const {
      return loss == other.loss && dx == other.dx && dweight == other.dweight && dbias == other.dbias;
    }
  };
  // Loss and gradients; with `squares` the upstream gradient is made from the loss and so comes too late for one pass.
  Came run(const Head& head, Options options, bool squares) {
    const Array x = real_array(random_values(head.rows * head.in, 1), {head.rows, head.in}, f32);
    const Array weight = real_array(random_values(head.classes * head.in, 2), {head.classes, head.in}, f32);
    const Array bias = real_array(random_values(head.classes, 3), {head.classes}, f32);
    const Array labels = label_array(some_labels(head.rows, head.classes), {head.rows});
    options.bias = bias;
    const auto before = engine().plans().launches;
    Array loss = linear_cross_entropy(x, weight, labels, options);
    if (squares) loss = loss + 0.0 * square(loss);
    const std::vector<Array> slopes = gradients(loss, std::vector<Array>{x, weight, bias});
    eval({loss, slopes[0], slopes[1], slopes[2]});
    return {loss.to_vector<float>(), slopes[0].to_vector<float>(), slopes[1].to_vector<float>(),
            slopes[2].to_vector<float>(), engine().plans().launches - before};
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LinearCrossEntropyTest);

TEST_P(LinearCrossEntropyTest, agrees_with_the_reference_in_every_option) {
  for (const Head& head : {Head{1, 1, 1}, Head{13, 5, 11}, Head{37, 19, 67}, Head{6, 3, 2053}}) {
    const auto x = random_values(head.rows * head.in, 1), weight = random_values(head.classes * head.in, 2);
    const auto bias = random_values(head.classes, 3), scale = random_values(head.classes, 4, 0.5, 2);
    const std::vector<int> labels = some_labels(head.rows, head.classes);
    std::vector<double> logits(static_cast<std::size_t>(head.rows * head.classes));
    for (std::int64_t i = 0; i < head.rows; ++i)
      for (std::int64_t c = 0; c < head.classes; ++c) {
        double sum = bias[static_cast<std::size_t>(c)];
        for (std::int64_t k = 0; k < head.in; ++k)
          sum += x[static_cast<std::size_t>(i * head.in + k)] * weight[static_cast<std::size_t>(c * head.in + k)];
        logits[static_cast<std::size_t>(i * head.classes + c)] = sum;
      }
    for (const Dtype dtype : real_dtypes())
      for (const bool is_weighted : {false, true})
        for (const std::int64_t chunks : {1, 3, 1000}) {
          const std::optional<int> ignored = is_weighted ? std::optional<int>(labels[0]) : std::nullopt;
          Options options{.bias = real_array(bias, {head.classes}, dtype), .chunks = chunks};
          options.label_smoothing = is_weighted ? 0.1f : 0.0f;
          options.ignore_index = ignored;
          if (is_weighted) options.class_weight = real_array(scale, {head.classes}, dtype);
          const auto want =
              reference::cross_entropy(logits, labels, head.classes, is_weighted ? scale : std::vector<double>(),
                                       options.label_smoothing, ignored);
          const double tolerance = 8 * sum_tolerance(dtype, head.rows + head.classes + head.in);
          const Array a = real_array(x, {head.rows, head.in}, dtype);
          const Array w = real_array(weight, {head.classes, head.in}, dtype);
          const Array target = label_array(labels, {head.rows});
          const auto loss = [&](Reduction reduction) {
            options.reduction = reduction;
            return linear_cross_entropy(a, w, target, options);
          };
          EXPECT_TRUE(all_close(loss(Reduction::mean), std::vector<double>{want.mean()}, tolerance))
              << head.classes << " " << is_weighted << " " << chunks;
          EXPECT_TRUE(all_close(loss(Reduction::sum), std::vector<double>{want.sum()}, tolerance));
          EXPECT_TRUE(all_close(loss(Reduction::none), want.losses, tolerance));
        }
  }
}

TEST_P(LinearCrossEntropyTest, gradient_is_the_numerical_one) {
  SAMEBYTES_NEEDS_F64();
  const Array labels = label_array({3, 0, 10, 3, 2, 7, 7}, {7});
  const Array scale = real_array(random_values(11, 9, 0.5, 2), {11}, f64);
  const std::vector<GradientInput> inputs{random_input("x", {7, 5}, 1), random_input("weight", {11, 5}, 2),
                                          random_input("bias", {11}, 3)};
  for (const std::int64_t chunks : {1, 3})
    for (const bool is_late : {false, true}) {
      EXPECT_TRUE(check_gradients(
          [&](auto x) {
            return linear_cross_entropy(x[0], x[1], labels,
                                        {.bias = x[2], .chunks = chunks, .late_weight_gradient = is_late});
          },
          inputs));
      EXPECT_TRUE(check_gradients(
          [&](auto x) {
            return linear_cross_entropy(x[0], x[1], labels,
                                        {.bias = x[2],
                                         .label_smoothing = 0.2f,
                                         .ignore_index = 3,
                                         .class_weight = scale,
                                         .reduction = is_late ? Reduction::sum : Reduction::none,
                                         .chunks = chunks,
                                         .late_weight_gradient = is_late});
          },
          inputs));
    }
}

TEST_P(LinearCrossEntropyTest, one_pass_gives_the_bytes_of_two_and_so_does_a_late_gradient) {
  for (const Head& head : {Head{13, 5, 11}, Head{37, 19, 67}, Head{6, 3, 2053}})
    for (const bool is_weighted : {false, true}) {
      Options options{.label_smoothing = is_weighted ? 0.1f : 0.0f, .chunks = 4};
      if (is_weighted) options.ignore_index = 3;
      const Came together = run(head, options, false), apart = run(head, options, true);
      EXPECT_TRUE(together == apart) << head.classes << " " << is_weighted;
      EXPECT_LT(together.launches, apart.launches);
      options.late_weight_gradient = true;
      EXPECT_TRUE(run(head, options, false) == together) << head.classes << " " << is_weighted;
      EXPECT_TRUE(run(head, options, true) == together) << head.classes << " " << is_weighted;
    }
}

TEST_P(LinearCrossEntropyTest, chunks_give_what_linear_and_cross_entropy_give) {
  const Head head{61, 23, 301};
  const Array x = real_array(random_values(head.rows * head.in, 1), {1, head.rows, head.in}, f32);
  const Array weight = real_array(random_values(head.classes * head.in, 2), {head.classes, head.in}, f32);
  const Array labels = label_array(some_labels(head.rows, head.classes), {1, head.rows});
  const std::vector<Array> by{x, weight};
  const Array whole = cross_entropy(linear(x, weight), labels, {.ignore_index = 5});
  std::vector<Array> want = gradients(whole, by);
  eval({whole, want[0], want[1]});
  const auto doubles = [](const Array& a) {
    const std::vector<float> values = a.to_vector<float>();
    return std::vector<double>(values.begin(), values.end());
  };
  for (const std::int64_t chunks : {0, 1, 2, 7, 61}) {
    const Array loss = linear_cross_entropy(x, weight, labels, {.ignore_index = 5, .chunks = chunks});
    const std::vector<Array> came = gradients(loss, by);
    eval({loss, came[0], came[1]});
    EXPECT_NEAR(loss.value(), whole.value(), 1e-5) << chunks;
    EXPECT_TRUE(all_close(came[0], doubles(want[0]), sum_tolerance(f32, head.classes))) << chunks;
    EXPECT_TRUE(all_close(came[1], doubles(want[1]), sum_tolerance(f32, head.rows))) << chunks;
  }
  // One of the gradients alone.
  const Array loss = linear_cross_entropy(x, weight, labels, {.ignore_index = 5, .chunks = 7});
  EXPECT_TRUE(all_close(gradients(loss, std::vector<Array>{weight})[0], doubles(want[1]), 1e-5));
}

TEST_P(LinearCrossEntropyTest, sixteen_bits_are_those_of_the_two_ops) {
  const Head head{33, 40, 77};
  const Array labels = label_array(some_labels(head.rows, head.classes), {head.rows});
  for (const Dtype dtype : {bf16, f16}) {
    const Array x = astype(real_array(random_values(head.rows * head.in, 1), {head.rows, head.in}, f32), dtype);
    const Array weight =
        astype(real_array(random_values(head.classes * head.in, 2), {head.classes, head.in}, f32), dtype);
    const std::vector<Array> by{x, weight};
    const Array whole = cross_entropy(linear(x, weight), labels);
    const Array loss = linear_cross_entropy(x, weight, labels, {.chunks = 3});
    EXPECT_EQ(loss.dtype(), f32);
    EXPECT_NEAR(loss.value(), whole.value(), 1e-5);
    const std::vector<Array> want = gradients(cross_entropy(linear(x, weight), labels), by);
    const std::vector<Array> came = gradients(linear_cross_entropy(x, weight, labels, {.chunks = 3}), by);
    // A gradient of the weight is rounded once for each chunk; gradients of a mean are at most 1 / rows.
    const double step = (dtype == bf16 ? 0x1p-8 : 0x1p-11) * 3;
    for (std::size_t i = 0; i < by.size(); ++i) {
      EXPECT_EQ(came[i].dtype(), dtype);
      const std::vector<float> a = astype(came[i], f32).to_vector<float>(), b = astype(want[i], f32).to_vector<float>();
      float largest = 0;
      for (const float v : b) largest = std::max(largest, std::abs(v));
      for (std::size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], step * largest) << i << " " << k;
    }
  }
}

TEST_P(LinearCrossEntropyTest, of_no_rows_is_what_cross_entropy_of_none_is) {
  const Array x = zeros({0, 3}), weight = zeros({5, 3}), labels = zeros({0}, i32);
  EXPECT_TRUE(std::isnan(linear_cross_entropy(x, weight, labels).value()));
  EXPECT_EQ(linear_cross_entropy(x, weight, labels, {.reduction = Reduction::sum}).value(), 0.0);
  EXPECT_EQ(linear_cross_entropy(x, weight, labels, {.reduction = Reduction::none}).shape(), Shape{0});
}

TEST_P(LinearCrossEntropyTest, wrong_arguments_say_what_is_wrong) {
  const Array x = zeros({4, 3}), weight = zeros({5, 3}), labels = zeros({4}, i32);
  EXPECT_ERROR(linear_cross_entropy(zeros({4, 2}), weight, labels), ArgumentError,
               "linear_cross_entropy: x must have 3 values in its last axis, x is f32 [4, 2], weight is f32 [5, 3]");
  EXPECT_ERROR(linear_cross_entropy(x, zeros({5}), labels), ArgumentError,
               "linear_cross_entropy: weight must be floating [classes, in], weight is f32 [5]");
  EXPECT_ERROR(linear_cross_entropy(x, weight, zeros({4})), ArgumentError,
               "linear_cross_entropy: needs i32, i64 or u8 labels, labels is f32 [4]");
  EXPECT_ERROR(linear_cross_entropy(x, weight, zeros({3}, i32)), ArgumentError,
               "linear_cross_entropy: labels must be [4], x is f32 [4, 3], labels is i32 [3]");
  EXPECT_ERROR((linear_cross_entropy(x, weight, labels, {.bias = zeros({4})})), ArgumentError,
               "linear_cross_entropy: bias must be floating [classes], bias is f32 [4]");
  EXPECT_ERROR((linear_cross_entropy(x, weight, labels, {.class_weight = zeros({4})})), ArgumentError,
               "linear_cross_entropy: class_weight must be floating [5], class_weight is f32 [4]");
  EXPECT_ERROR((linear_cross_entropy(x, weight, labels, {.label_smoothing = 1.0f})), ArgumentError,
               "linear_cross_entropy: label_smoothing must be in [0, 1), got 1.000000");
  EXPECT_ERROR((linear_cross_entropy(x, weight, labels, {.chunks = -2})), ArgumentError,
               "linear_cross_entropy: chunks must be 0 or more, got -2");
}

// Bytes at the peak of two steps of a head whose weight is also the embedding, as GPT's is, planned and not run.
std::size_t peak_of_head(const DeviceCase& device, const std::optional<Options>& chunked) {
  constexpr std::int64_t kRows = 1024, kIn = 64, kClasses = 50257, kLayers = 24;
  const auto dry = make_engine(device, {.memory_limit = std::size_t{1} << 50, .dry_run = true});
  const EngineScope scope(*dry);
  const Array weight = cell(zeros({kClasses, kIn}), "weight");
  std::vector<Array> cells{weight};
  for (std::int64_t i = 0; i < kLayers; ++i) cells.push_back(cell(zeros({kIn, kIn}), "layer " + std::to_string(i)));
  optim::Sgd sgd(cells, {.rate = 0.1, .release_gradients = true});
  const Array ids = zeros({kRows}, i32);
  eval({ids});
  for (int step = 0; step < 2; ++step) {
    Array x = embedding(ids, weight);
    for (std::int64_t i = 1; i <= kLayers; ++i) x = tanh(matmul(x, cells[static_cast<std::size_t>(i)]));
    sgd.step(chunked ? linear_cross_entropy(x, weight, ids, *chunked) : cross_entropy(linear(x, weight), ids));
  }
  return dry->memory().peak_bytes;
}

TEST_P(LinearCrossEntropyTest, all_logits_are_never_there) {
  const char* allocator = std::getenv("SAMEBYTES_ALLOCATOR");
  if (allocator && std::string_view(allocator) == "exact") return;  // nothing shares bytes
  constexpr std::size_t kLogits = std::size_t{1024} * 50257 * 4, kWeight = std::size_t{50257} * 64 * 4;
  constexpr std::size_t kLayers = std::size_t{24} * 1024 * 64 * 4;  // values of the layers
  const std::size_t whole = peak_of_head(GetParam(), {}), chunked = peak_of_head(GetParam(), Options{.chunks = 64});
  EXPECT_GT(whole, kLogits + kWeight + kLayers);
  EXPECT_LT(chunked, kLogits / 4);
  EXPECT_GT(chunked, 2 * kWeight + kLayers);
  // The gradient of the weight and the values of the layers are not there together.
  const std::size_t late = peak_of_head(GetParam(), Options{.chunks = 64, .late_weight_gradient = true});
  EXPECT_LT(late, chunked - kLayers + (std::size_t{2} << 20));
  // Without a number: chunks of 32 MiB.
  EXPECT_LT(peak_of_head(GetParam(), Options{}), chunked + (std::size_t{32} << 20));
}

class SmallShapesLinearCrossEntropyTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesLinearCrossEntropyTest);

TEST_P(SmallShapesLinearCrossEntropyTest, chunks_in_one_pass_and_in_two) {
  const Array labels = array(std::vector<std::int32_t>{0, 3, 10, 2, 2}, {5});
  for (const bool is_late : {false, true}) {
    const Options options{.ignore_index = 3, .chunks = 2, .late_weight_gradient = is_late};
    const auto with = [&](const Array& bias) {
      Options all = options;
      all.bias = bias;
      return all;
    };
    run([&](auto x) { return linear_cross_entropy(x[0], x[1], labels, with(x[2])); }, {{5, 7}, {37, 7}, {37}});
    const Array x = full({5, 7}, 0.25), weight = full({37, 7}, 0.5);
    const Array loss = linear_cross_entropy(x, weight, labels, options);
    ASSERT_NEAR(sum(gradients(loss, std::vector<Array>{weight})[0]).value(), 0, 1e-5);
  }
  const Array x = astype(full({5, 7}, 0.25), bf16), weight = astype(full({37, 7}, 0.5), bf16);
  const Array loss = linear_cross_entropy(x, weight, labels, {.chunks = 2});
  ASSERT_NEAR(sum(astype(gradients(loss, std::vector<Array>{weight})[0], f32)).value(), 0, 1e-2);
}

}  // namespace
}  // namespace samebytes::testing
