#include "samebytes/nn/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/ops/indexing.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class EmbeddingLayerTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(EmbeddingLayerTest);

TEST_P(EmbeddingLayerTest, starts_normal_with_zeros_at_the_padding) {
  nn::Embedding layer({.in = 300, .out = 40, .padding_index = 7});
  const std::vector<nn::NamedArray> state = layer.state();
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].name, "weight");
  EXPECT_EQ(state[0].array.shape(), (Shape{300, 40}));
  EXPECT_EQ(layer.describe(), "Embedding(300, 40, padding_index=7)");
  const auto values = layer.weight().to_vector<double>();
  double mean = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    mean += values[i] / 12000;
    square += values[i] * values[i] / 12000;
    if (i / 40 == 7) {
      EXPECT_EQ(values[i], 0);
    }
  }
  EXPECT_NEAR(mean, 0, 0.04);
  EXPECT_NEAR(square, 1, 0.06);
}

TEST_P(EmbeddingLayerTest, forward_is_the_op_and_the_padding_is_not_trained) {
  nn::Embedding layer({.in = 3, .out = 2, .padding_index = 0});
  const std::vector<std::int32_t> values{0, 2, 2, 0};
  const Array ids = array(std::span<const std::int32_t>(values), {2, 2});
  EXPECT_TRUE(same_bytes(layer(ids), embedding(ids, layer.weight())));
  optim::Sgd sgd(layer.parameters(), {.rate = 1.0f});
  sgd.step(sum(layer(ids)));
  EXPECT_TRUE(all_close(slice(layer.weight(), 0, 0, 1), std::vector<double>{0, 0}, 0));
  EXPECT_THROW(nn::Embedding({.in = 0, .out = 2}), ArgumentError);
  EXPECT_ERROR((nn::Embedding({.in = 3, .out = 2, .padding_index = 3})), ArgumentError,
               "Embedding: padding_index must be in [0, 3), got 3");
}

}  // namespace
}  // namespace samebytes::testing
