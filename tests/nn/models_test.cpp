// The built networks: their numbers of parameters, names and output shapes.
#include <gtest/gtest.h>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class ModelsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ModelsTest);

TEST_P(ModelsTest, residual_networks_have_the_published_numbers_of_parameters) {
  // He et al. 2015, table 6, give 0.27, 0.46, 0.66, 0.85 million; with projections where the size changes:
  EXPECT_EQ(models::resnet(20).parameter_count(), 272474);
  EXPECT_EQ(models::resnet(32).parameter_count(), 466906);
  EXPECT_EQ(models::resnet(44).parameter_count(), 661338);
  EXPECT_EQ(models::resnet(56).parameter_count(), 855770);
  EXPECT_ERROR(models::resnet(21), ArgumentError, "resnet: depth must be 6 n + 2, such as 20, 32, 44 or 56, it is 21");
}

TEST_P(ModelsTest, a_residual_network_gives_logits_and_gradients_for_every_parameter) {
  auto net = models::resnet(8, {.in = 2, .classes = 5, .width = 4});
  const Array y = net(uniform({3, 9, 8, 2}));
  EXPECT_EQ(y.shape(), (Shape{3, 5}));
  const auto parameters = net.parameters();
  for (const Array& g : gradients(sum(y * y), parameters)) EXPECT_GT(max(abs(g)).value(), 0);
  EXPECT_EQ(net.named_parameters().front().name, "conv1.weight");
  EXPECT_EQ(net.named_parameters().back().name, "fc.bias");
}

}  // namespace
}  // namespace samebytes::testing
