// Every kernel family once forward and once backward on odd shapes of at most 10^5 flop a launch: what a simulator of
// devices can check for overruns, races and unset values in minutes. Values are tested by each op's own file.
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/samebytes.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class SmallShapesTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesTest);

using In = std::span<const Array>;

TEST_P(SmallShapesTest, pointwise_chains_and_views) {
  run([](In x) { return tanh(x[0] * x[1] + x[2]) - transpose(reshape(x[0], {13, 7})) * 0.5; }, {{7, 13}, {13}, {7, 1}});
  run([](In x) { return astype(astype(x[0], f16) * 2.0, f32) + astype(astype(x[0], bf16), f32); }, {{37}});
  run([](In x) { return concat({slice(x[0], 1, 1, 9, 3), exp(x[1])}, 1); }, {{3, 10}, {3, 5}});
}

TEST_P(SmallShapesTest, reductions) {
  run([](In x) { return sum(x[0], {0}) + mean(x[0], {0}); }, {{19, 5}});
  run([](In x) { return max(x[0], {1}) + min(x[0], {1}); }, {{5, 19}});
  run([](In x) { return sum(x[0], {0, 2}); }, {{3, 4, 5}});
  run([](In x) { return sum_of_squares(x[0]); }, {{7, 53}});
  EXPECT_GE(argmax(real_array(random_values(21), {3, 7}, f32)).to_vector<std::int32_t>()[0], 0);
}

TEST_P(SmallShapesTest, products_of_every_orientation) {
  run([](In x) { return matmul(x[0], x[1]); }, {{17, 19}, {19, 35}});
  run([](In x) { return matmul(transpose(x[0]), transpose(x[1])); }, {{19, 5}, {3, 19}});
  run([](In x) { return matmul(x[0], x[1]); }, {{2, 3, 7}, {2, 7, 5}});
  run([](In x) { return linear(x[0], x[1], x[2]); }, {{4, 11}, {13, 11}, {13}});
}

TEST_P(SmallShapesTest, convolutions) {
  run([](In x) { return conv2d(x[0], x[1], x[2], {.pad_h = 1, .pad_w = 1}); }, {{2, 5, 6, 3}, {3, 3, 3, 17}, {17}});
  run([](In x) { return conv2d(x[0], x[1], {}, {.stride_h = 2, .stride_w = 2, .dilation_h = 2, .groups = 2}); },
      {{1, 7, 7, 4}, {3, 2, 2, 6}});
}

TEST_P(SmallShapesTest, pooling) {
  run([](In x) { return max_pool2d(x[0], {.kernel_h = 3, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_h = 1}); },
      {{2, 7, 6, 5}});
  run([](In x) { return avg_pool2d(x[0]); }, {{2, 6, 6, 19}});
  run([](In x) { return global_avg_pool2d(x[0]); }, {{2, 3, 5, 7}});
}

TEST_P(SmallShapesTest, normalisation) {
  const Array mean = cell(zeros({7}), "mean"), variance = cell(ones({7}), "variance");
  run([&](In x) { return batch_norm_train(x[0], x[1], x[2], mean, variance); }, {{3, 5, 7}, {7}, {7}});
  run([&](In x) { return batch_norm_eval(x[0], x[1], x[2], mean, variance); }, {{5, 7}, {7}, {7}});
  run([](In x) { return layer_norm(x[0], x[1], x[2]); }, {{5, 21}, {21}, {21}});
}

TEST_P(SmallShapesTest, soft_max_and_losses) {
  run([](In x) { return softmax(x[0]) + log_softmax(x[0]); }, {{5, 19}});
  const Array labels = array(std::vector<std::int32_t>{0, 3, 10, 2, 2}, {5});
  run([&](In x) { return cross_entropy(x[0], labels, {.label_smoothing = 0.1f, .ignore_index = 3}); }, {{5, 11}});
  for (const std::int64_t classes : {11, 37}) {  // loss and gradient in one launch, over the logits
    const Array weight = full({classes}, 0.5), x = full({5, classes}, 0.25);
    for (const CrossEntropyOptions& options :
         {CrossEntropyOptions{}, CrossEntropyOptions{.ignore_index = 3, .class_weight = weight}}) {
      const auto sum_of_gradient = [&] {
        const Array logits = cumsum(x, 1);
        return sum(gradients(cross_entropy(logits, labels, options), std::vector<Array>{logits})[0]);
      };
      ASSERT_NEAR(sum_of_gradient().value(), 0, 1e-5);
    }
  }
  run([](In x) { return bce_with_logits(x[0], astype(greater(x[0], x[0] * 0.5), f32)) + mse_loss(x[0], x[0] * 2.0); },
      {{3, 7}});
}

TEST_P(SmallShapesTest, random_numbers_and_dropout) {
  run([](In x) { return dropout(x[0], 0.3, {7, 3}); }, {{5, 13}});
  EXPECT_LT(uniform({37}).to_vector<float>()[36], 1.0f);
  EXPECT_TRUE(std::isfinite(normal({37}).to_vector<float>()[36]));
  EXPECT_EQ(arange(0, 5).to_vector<float>()[4], 4.0f);
}

}  // namespace
}  // namespace samebytes::testing
