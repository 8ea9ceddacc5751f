// gradients() with on_final: told of each gradient once, when it is whole, in the order of the backward pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class FinalGradientTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(FinalGradientTest);

TEST_P(FinalGradientTest, each_comes_once_and_whole_in_the_order_of_the_backward_pass) {
  const Array x = uniform({5, 4}, -1, 1, f32, {1, 0});
  const Array first = cell(uniform({4, 4}, -1, 1, f32, {2, 0}), "first"),
              tied = cell(uniform({4, 4}, -1, 1, f32, {3, 0}), "tied"),
              last = cell(uniform({4, 4}, -1, 1, f32, {4, 0}), "last"), unused = cell(ones({3}), "unused");
  const std::vector<Array> wrt{first, tied, last, unused, last};  // one of them twice
  const auto loss = [&] {
    const Array a = tanh(matmul(matmul(x, tied), first));
    return mean(matmul(tanh(matmul(a, tied)), last));
  };
  std::vector<std::vector<float>> expected;
  for (const Array& gradient : gradients(loss(), wrt, {.allow_unused = true}))
    expected.push_back(gradient.to_vector<float>());

  std::vector<std::size_t> order;
  std::vector<Array> doubled(wrt.size());
  const auto on_final = [&](std::size_t i, const Array& gradient) {
    order.push_back(i);
    doubled[i] = gradient * 2.0;
  };
  const std::vector<Array> result = gradients(loss(), wrt, {.allow_unused = true, .on_final = on_final});
  ASSERT_EQ(order.size(), wrt.size());
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 4, 0, 1, 3}));
  eval(doubled);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    EXPECT_EQ(result[i].to_vector<float>(), expected[i]);
    std::vector<float> twice = expected[i];
    for (float& value : twice) value *= 2;
    EXPECT_EQ(doubled[i].to_vector<float>(), twice) << i;
  }
}

}  // namespace
}  // namespace samebytes::testing
