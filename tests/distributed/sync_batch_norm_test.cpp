// The ops that synchronised batch norm adds hold their group, so graphs of two groups are two plans.
#include "train/parallel/rank_batch_norm.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "graph/node.h"
#include "graph/op.h"
#include "samebytes/samebytes.h"

namespace samebytes::testing {
namespace {

using distributed::detail::Communicator;

struct Found {
  std::optional<std::uint64_t> forward, backward;
};

void find(const detail::Node& node, Found& found) {
  if (node.op && node.op->name() == "sync_batch_norm") found.forward = node.op->fingerprint();
  if (node.op && node.op->name() == "sync_batch_norm_gradient") found.backward = node.op->fingerprint();
  for (const detail::Edge& edge : node.inputs) find(*edge.node, found);
}

// Nothing is evaluated: a group of one process has nobody to talk to.
Found ops_of(const std::shared_ptr<Communicator>& group, bool counts = true, float momentum = 0.1f) {
  const Array x = ones({4, 2}), scale = ones({2}), shift = zeros({2});
  const Array mean = cell(zeros({2}), "mean"), var = cell(ones({2}), "var");
  const BatchNormOptions options{.momentum = momentum};
  const Array y = train::parallel::rank_batch_norm(group, counts, {x, scale, shift, mean, var, options});
  const std::vector<Array> wrt{x};
  Found found;
  find(*gradients(sum(y * x), wrt)[0].node(), found);
  return found;
}

TEST(SyncBatchNormOps, of_two_groups_are_told_apart) {
  Engine engine;
  const auto first = std::make_shared<Communicator>(distributed::GroupOptions{});
  const auto second = std::make_shared<Communicator>(distributed::GroupOptions{});
  const Found one = ops_of(first), again = ops_of(first), other = ops_of(second);
  ASSERT_TRUE(one.forward && one.backward);
  EXPECT_EQ(one.forward, again.forward);
  EXPECT_EQ(one.backward, again.backward);
  EXPECT_NE(one.forward, other.forward);
  EXPECT_NE(one.backward, other.backward);
}

TEST(SyncBatchNormOps, a_group_at_the_address_of_one_that_is_gone_is_another_one) {
  Engine engine;
  auto group = std::make_shared<Communicator>(distributed::GroupOptions{});
  const Found before = ops_of(group);
  group.reset();
  group = std::make_shared<Communicator>(distributed::GroupOptions{});
  EXPECT_NE(ops_of(group).forward, before.forward);
}

TEST(SyncBatchNormOps, of_another_share_or_momentum_are_told_apart) {
  Engine engine;
  const auto group = std::make_shared<Communicator>(distributed::GroupOptions{});
  EXPECT_NE(ops_of(group).forward, ops_of(group, false).forward);
  EXPECT_NE(ops_of(group).forward, ops_of(group, true, 0.2f).forward);
}

}  // namespace
}  // namespace samebytes::testing
