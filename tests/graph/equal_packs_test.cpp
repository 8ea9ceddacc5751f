// Two packs of one layout in one run: each has bytes of its own.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class EqualPacks : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(EqualPacks);

Array packed(const Array& a) { return pack(std::vector<Array>{a, a + 1.0}, std::vector<std::int64_t>{0, 4}, 8); }

TEST_P(EqualPacks, do_not_overwrite_each_other_in_one_run) {
  const Array x = array({1, 2, 3, 4});
  Array both;
  {
    const Array first = packed(x * 2.0), second = packed(x * 3.0);
    both = sum(first) + 1000.0 * sum(second);
  }
  EXPECT_EQ(both.value(), 44 + 1000.0 * 64);
}

TEST_P(EqualPacks, of_two_groups_with_equal_shapes_update_each_parameter_with_its_own_gradient) {
  nn::Linear one({.in = 3, .out = 2}), two({.in = 3, .out = 2});
  assign(one.parameters()[0], zeros({2, 3}));
  assign(two.parameters()[0], zeros({2, 3}));
  assign(one.parameters()[1], zeros({2}));
  assign(two.parameters()[1], zeros({2}));
  const std::vector<optim::ParameterGroup> groups{{.parameters = one.parameters()}, {.parameters = two.parameters()}};
  optim::Sgd sgd(groups, {.rate = 1.0});
  const Array x = ones({1, 3});
  sgd.step(sum(one(x)) + 10.0 * sum(two(x)));
  EXPECT_EQ(one.parameters()[0].to_vector<float>(), std::vector<float>(6, -1.0f));
  EXPECT_EQ(two.parameters()[0].to_vector<float>(), std::vector<float>(6, -10.0f));
}

}  // namespace
}  // namespace samebytes::testing
