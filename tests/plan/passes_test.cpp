// The passes of planning one by one: collect, group, place, lower, lay out, bind. Each takes what the ones before it
// made, and what it returns says all that it did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "placement/fallback.h"
#include "plan/bind.h"
#include "plan/collect.h"
#include "plan/group.h"
#include "plan/lay_out.h"
#include "plan/lower.h"
#include "plan/place.h"
#include "plan/planner.h"
#include "samebytes/explain.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

using detail::Grouping;
using detail::PlacedValues;
using detail::PlanArgument;
using detail::PlanBuffer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The state of planning the graph behind `roots`, as far as a test takes it.
class Passes {
 public:
  // `build` makes the array that is asked for; what it only needs on the way has no handle any more when it returns.
  explicit Passes(const std::function<Array()>& build)
      : root_(build()), context_(*root_.node()->context), lock_(context_.mutex), fallbacks_(context_) {
    std::vector<detail::NodePtr> fresh;
    const detail::NodePtr roots[] = {root_.node()};
    list = detail::collect(roots, ++context_.stamp, fresh);
  }
  Grouping group(bool fused = true) { return detail::group_nodes(list, context_.options.recompute, fused); }
  PlacedValues place(const Grouping& grouping) {
    return detail::place_values(list, grouping, context_, persistent_, kernels_);
  }
  detail::Lowered lower(const Grouping& grouping) {
    return detail::lower(list, grouping, place(grouping), context_, kernels_);
  }
  void make_kernels(detail::Lowered& lowered) {
    make_op_kernels(lowered.launches, lowered.op_kernels, *context_.runtime, kernels_);
  }
  detail::Layout lay_out(detail::Lowered& lowered) {
    return detail::lay_out_arena(lowered.placed.buffers, lowered.pairs, lowered.pieces, *context_.runtime);
  }
  std::string op_at(std::size_t place) const {
    const detail::Node& n = *list.nodes[place];
    return n.has_value || !n.op ? "" : std::string(n.op->name());
  }

  detail::GraphList list;

 private:
  Array root_;
  detail::Context& context_;
  std::lock_guard<std::recursive_mutex> lock_;
  detail::Fallbacks fallbacks_;
  detail::KernelMaker kernels_{fallbacks_};
  detail::PersistentStorages persistent_;
};

class PassesTest : public OnDevice {
 protected:
  static Array leaf(const Shape& shape) {
    const Array x = uniform(shape, -1, 1);
    x.eval();
    return x;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(PassesTest);

TEST_P(PassesTest, collect_lists_what_is_asked_for_in_the_order_in_which_it_was_built) {
  const Array x = leaf({3, 5});
  const Array held = softmax(x);
  const Passes passes([&] { return relu(held * 2.0); });
  ASSERT_EQ(passes.list.nodes.size(), 4u);
  EXPECT_TRUE(passes.list.nodes[0]->has_value);
  EXPECT_EQ(passes.op_at(1), "softmax");
  EXPECT_EQ(passes.op_at(3), "relu");
  // Not x, which has its value; the softmax, which has a handle; not what only the relu reads.
  EXPECT_THAT(passes.list.wanted, ElementsAre(0, 1, 0, 1));
}

TEST_P(PassesTest, group_makes_one_launch_of_pointwise_neighbours) {
  const Array x = leaf({3, 5});
  Passes passes([&] { return square(x * 2.0 + 1.0) * softmax(x); });
  const Grouping grouping = passes.group();
  ASSERT_EQ(grouping.fusion.members.size(), 1u);
  EXPECT_EQ(grouping.fusion.members[0].size(), 4u);
  EXPECT_EQ(grouping.fusion.nodes_fused, 3u);
  EXPECT_EQ(passes.group(false).fusion.members.size(), 4u);  // check_nan looks at each
  EXPECT_THAT(describe(grouping), HasSubstr("1 pointwise groups, 3 nodes without a launch"));
}

TEST_P(PassesTest, group_appends_what_follows_a_product_to_its_launch) {
  const Array x = leaf({3, 5}), w = leaf({4, 5});
  Passes passes([&] { return relu(linear(x, w)); });
  const Grouping grouping = passes.group();
  EXPECT_TRUE(grouping.fusion.members.empty());
  EXPECT_EQ(grouping.epilogues.nodes_fused, 1u);
  EXPECT_THAT(describe(grouping), HasSubstr("1 epilogues"));
}

TEST_P(PassesTest, place_gives_temporaries_the_arena_and_what_is_wanted_storage_of_its_own) {
  const Array x = leaf({3, 5});
  Passes passes([&] { return softmax(transpose(softmax(x))); });
  const PlacedValues placed = passes.place(passes.group());
  ASSERT_EQ(placed.buffers.size(), 3u);
  EXPECT_EQ(placed.buffers[0].kind, PlanBuffer::Kind::leaf);
  EXPECT_EQ(placed.buffers[1].kind, PlanBuffer::Kind::arena);
  EXPECT_EQ(placed.buffers[2].kind, PlanBuffer::Kind::own);
  EXPECT_EQ(placed.buffers[1].bytes, 60u);
  EXPECT_THAT(placed.buffer_of, ElementsAre(0, 1, 1, 2));  // a view is where its base is
  EXPECT_THAT(describe(placed), HasSubstr("3 buffers: 1 leaves, 1 wanted, 1 in the arena"));
}

TEST_P(PassesTest, place_gives_a_pack_that_is_asked_for_storage_that_nobody_zeroed) {
  const Array x = leaf({8});
  const std::int64_t offsets[] = {0, 8};
  Passes passes([&] { return pack(std::vector<Array>{cumsum(x, 0), cumsum(x * 2.0, 0)}, offsets, 16); });
  const PlacedValues placed = passes.place(passes.group());
  int parts = 0;
  for (const PlanBuffer& buffer : placed.buffers) parts += buffer.kind == PlanBuffer::Kind::part;
  EXPECT_EQ(parts, 0);
  EXPECT_THAT(describe(placed), HasSubstr("0 kept between runs"));
}

TEST_P(PassesTest, place_lets_producers_write_into_a_pack_that_is_a_temporary) {
  const Array x = leaf({8});
  const std::int64_t offsets[] = {0, 8};
  Passes passes([&] { return square(pack(std::vector<Array>{cumsum(x, 0), cumsum(x * 2.0, 0)}, offsets, 16)); });
  const PlacedValues placed = passes.place(passes.group());
  int parts = 0;
  for (const PlanBuffer& buffer : placed.buffers) parts += buffer.kind == PlanBuffer::Kind::part;
  EXPECT_EQ(parts, 2);
  EXPECT_THAT(describe(placed), HasSubstr("2 parts of flat gradients, 1 kept between runs"));
}

TEST_P(PassesTest, lower_makes_launches_and_copies_a_view_that_an_op_wants_dense) {
  const Array x = leaf({3, 5});
  Passes passes([&] { return softmax(transpose(softmax(x))); });
  const detail::Lowered lowered = passes.lower(passes.group());
  ASSERT_EQ(lowered.launches.size(), 3u);
  EXPECT_EQ(lowered.launches[0].what, "softmax");
  EXPECT_EQ(lowered.launches[1].what, "relayout");
  EXPECT_EQ(lowered.launches[2].what, "softmax");
  EXPECT_EQ(lowered.relayout_bytes, 60u);
  const PlanBuffer& first = lowered.placed.buffers[1];
  EXPECT_EQ(first.first, 0);  // written by the first launch
  EXPECT_EQ(first.last, 1);   // read by the copy
  EXPECT_THAT(describe(lowered), HasSubstr("3 launches: 1 of written kernels"));
}

TEST_P(PassesTest, lay_out_has_temporaries_share_bytes_where_their_lives_do_not_meet) {
  const Array x = leaf({16, 64});
  Passes passes([&] { return softmax(softmax(softmax(softmax(x)))); });
  detail::Lowered lowered = passes.lower(passes.group());
  const detail::Layout layout = passes.lay_out(lowered);
  ASSERT_EQ(layout.temporaries.size(), 3u);
  ASSERT_EQ(layout.segments.size(), 1u);
  EXPECT_EQ(layout.temporaries[0].place.offset, layout.temporaries[2].place.offset);
  EXPECT_NE(layout.temporaries[0].place.offset, layout.temporaries[1].place.offset);
  EXPECT_LT(layout.segments[0].bytes, 3 * layout.temporaries[0].request.bytes);
  EXPECT_THAT(describe(layout), HasSubstr("3 temporaries of 12288 bytes in 1 arenas"));
}

TEST_P(PassesTest, make_op_kernels_gives_launches_of_ops_what_lower_asked_for) {
  const Array x = leaf({3, 5});
  Passes passes([&] { return exp(softmax(x)); });
  detail::Lowered lowered = passes.lower(passes.group());
  ASSERT_EQ(lowered.op_kernels.size(), 1u);  // the fused one is build_generated()'s
  EXPECT_EQ(lowered.op_kernels[0].entry, "softmax_fwd");
  const detail::PlanKernel& work = *lowered.launches[lowered.op_kernels[0].launch].kernel();
  EXPECT_EQ(work.kernel, nullptr);
  passes.make_kernels(lowered);
  ASSERT_NE(work.kernel, nullptr);
  EXPECT_EQ(work.kernel->entry(), "softmax_fwd");
}

TEST_P(PassesTest, bind_sets_what_never_changes_and_leaves_arrays_and_scalars) {
  const Array x = leaf({3, 5});
  Passes passes([&] { return softmax(x); });
  detail::Lowered lowered = passes.lower(passes.group());
  passes.make_kernels(lowered);
  ASSERT_FALSE(lowered.constants.empty());
  const detail::BoundConstants bound = bind_constants(lowered.launches, lowered.constants);
  EXPECT_EQ(bound.constants, lowered.constants.size());
  for (const PlanArgument& argument : lowered.launches[0].kernel()->arguments)
    EXPECT_EQ(argument.kind, PlanArgument::Kind::array);
}

TEST_P(PassesTest, explain_prints_what_each_pass_did) {
  softmax(leaf({3, 5})).eval();
  const std::string text = explain(engine());
  std::size_t at = text.find("passes:\n");
  for (const char* pass : {"collect ", "group ", "place ", "lower ", "lay out ", "bind "}) {
    at = text.find(pass, at);
    ASSERT_NE(at, std::string::npos) << pass << " in:\n" << text;
  }
}

TEST_P(PassesTest, explain_prints_the_part_that_is_asked_for) {
  const auto own = make_engine(GetParam());
  const EngineScope scope(*own);
  softmax(leaf({3, 5})).eval();
  const std::string plan = explain(*own, {.part = ExplainPart::plan});
  const std::string passes = explain(*own, {.part = ExplainPart::passes});
  EXPECT_THAT(plan, StartsWith("plan of 1 launch;"));
  EXPECT_THAT(plan, Not(HasSubstr("passes:")));
  EXPECT_THAT(passes, StartsWith("passes:\n"));
  const std::string all = explain(*own);
  EXPECT_THAT(all, StartsWith(plan + passes + "why:\n"));
}

}  // namespace
}  // namespace samebytes::testing
