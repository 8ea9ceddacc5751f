// Plans: reused by structure, fused, laid out in one arena, on one device or several.
#include <gtest/gtest.h>

#include <cmath>

#include "plan/arena.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

class PlansTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(PlansTest);

TEST_P(PlansTest, the_second_step_plans_builds_and_allocates_nothing) {
  const Array w = cell(uniform({64, 32}), "w");
  const auto step = [&](double rate) {
    const Array x = ones({16, 64});
    const Array loss = mean(square(relu(matmul(x, w) - 0.5)));
    const auto updates = [&] {
      const Array d = gradients(loss, std::vector<Array>{w})[0];
      return std::vector<Array>{update(w, w - d * rate)};
    };
    eval(updates());
    return loss;
  };
  step(0.1).value();
  step(0.2).value();
  const PlanReport before = engine().plans();
  const MemoryReport memory = engine().memory();
  for (int i = 0; i < 5; ++i) step(0.1 * i).value();  // another rate is no other plan
  const PlanReport after = engine().plans();
  EXPECT_EQ(after.plans_made, before.plans_made);
  EXPECT_EQ(after.programs_built, before.programs_built);
  EXPECT_EQ(after.plans_replayed - before.plans_replayed, 5u);
  EXPECT_EQ(engine().memory().allocations, memory.allocations);
}

TEST_P(PlansTest, a_pointwise_chain_with_broadcasts_is_one_launch) {
  const Array x = uniform({37, 19}), row = uniform({19}), column = uniform({37, 1});
  eval({x, row, column});
  const auto before = engine().plans().launches;
  const Array y = tanh((x * row + column) * 0.5) - exp(x) / 3.0;
  y.eval();
  EXPECT_EQ(engine().plans().launches - before, 1u);
  const auto xs = x.to_vector<double>(), rows = row.to_vector<double>(), columns = column.to_vector<double>(),
             ys = y.to_vector<double>();
  for (std::size_t i = 0; i < xs.size(); ++i)
    EXPECT_NEAR(ys[i], std::tanh((xs[i] * rows[i % 19] + columns[i / 19]) * 0.5) - std::exp(xs[i]) / 3.0, 1e-6);
}

TEST_P(PlansTest, a_wanted_value_inside_a_chain_is_written_by_the_same_launch) {
  const Array x = uniform({100});
  x.eval();
  const auto before = engine().plans().launches;
  const Array middle = x * 2.0;
  const Array end = exp(middle) + 1.0;
  end.eval();
  EXPECT_EQ(engine().plans().launches - before, 1u);
  EXPECT_EQ(middle.to_vector<float>()[3], x.to_vector<float>()[3] * 2.0f);
  EXPECT_EQ(engine().plans().launches - before, 1u);
}

TEST_P(PlansTest, other_shapes_dtypes_and_attributes_are_other_plans) {
  const auto made = [&](const Array& a) {
    const auto before = engine().plans().plans_made;
    a.eval();
    return engine().plans().plans_made - before;
  };
  const Array x = array({1, 2, 3, 4}, {2, 2});
  made(sum(x, {0}));
  EXPECT_EQ(made(sum(x, {0})), 0u);
  EXPECT_EQ(made(sum(x, {1})), 1u);
  EXPECT_EQ(made(sum(astype(x, i32), {0})), 1u);
}

TEST_P(PlansTest, relayouts_are_counted_and_not_called_copies) {
  const auto before = engine().transfers();
  softmax(transpose(uniform({33, 17}))).eval();
  const auto after = engine().transfers();
  EXPECT_EQ(after.relayout_bytes - before.relayout_bytes, 33u * 17 * 4);
  EXPECT_EQ(after.bytes_copied, before.bytes_copied);
}

TEST(Arena, buffers_whose_lives_do_not_meet_share_bytes) {
  using detail::lay_out;
  const auto layout = lay_out({{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}}, 1 << 20);
  ASSERT_EQ(layout.segments.size(), 1u);
  EXPECT_EQ(layout.segments[0], 2048u);
  for (const auto& place : layout.places) EXPECT_EQ(place.offset % 128, 0u);
  // Launches of two devices have no order in time.
  const detail::ArenaRequest first{.bytes = 1000, .first = 0, .last = 1, .devices = 1};
  detail::ArenaRequest second{.bytes = 1000, .first = 2, .last = 3, .devices = 1};
  EXPECT_EQ(lay_out({first, second}, 1 << 20).segments[0], 1024u);
  second.devices = 2;
  EXPECT_EQ(lay_out({first, second}, 1 << 20).segments[0], 2048u);
}

TEST(Arena, no_two_living_buffers_overlap_whatever_their_sizes) {
  std::vector<detail::ArenaRequest> requests;
  for (int i = 0; i < 200; ++i)
    requests.push_back({static_cast<std::size_t>(1 + (i * 7919) % 5000), (i * 31) % 97, (i * 31) % 97 + (i * 13) % 11});
  const auto layout = detail::lay_out(requests, 1 << 20);
  for (std::size_t a = 0; a < requests.size(); ++a)
    for (std::size_t b = a + 1; b < requests.size(); ++b) {
      const bool meet = requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
      const auto &p = layout.places[a], &q = layout.places[b];
      if (!meet || p.segment != q.segment) continue;
      EXPECT_TRUE(p.offset + requests[a].bytes <= q.offset || q.offset + requests[b].bytes <= p.offset)
          << a << " and " << b;
    }
}

TEST(Arena, larger_than_the_largest_allocation_is_cut_into_segments) {
  const auto layout = detail::lay_out({{900, 0, 9}, {900, 0, 9}, {100, 0, 9}}, 1024);
  EXPECT_EQ(layout.segments.size(), 3u);
  EXPECT_THROW(detail::lay_out({{5000, 0, 1}}, 1024), OutOfMemory);
}

TEST(SubDevices, each_takes_half_of_a_batch_on_the_same_bytes) {
  SAMEBYTES_NEEDS_PARTS();
  Engine engine({.split = {1, 1}});
  ASSERT_EQ(engine.device_count(), 2);
  const Array x = uniform({64, 40}), w = uniform({40, 24});
  eval({x, w});
  const auto half = [&](int device, std::int64_t start) {
    const DeviceScope on(device);
    return relu(matmul(slice(x, 0, start, start + 32), w) - 10.0);
  };
  const Array both = concat({half(0, 0), half(1, 32)}, 0);
  const std::vector<float> together = both.to_vector<float>();
  EXPECT_EQ(together, relu(matmul(x, w) - 10.0).to_vector<float>());
  EXPECT_EQ(engine.transfers().bytes_copied, 0u);
  // The second run replays; cells updated on one device are seen by the other.
  const Array c = cell(ones({8}), "c");
  for (int i = 0; i < 20; ++i) {
    const auto updates = [&] {
      Array on_second;
      {
        const DeviceScope on(1);
        on_second = c * 2.0;
      }
      return std::vector<Array>{update(c, on_second * 0.5 + 1.0)};
    };
    eval(updates());
  }
  EXPECT_EQ(c.to_vector<float>(), std::vector<float>(8, 21.0f));
}

}  // namespace
}  // namespace samebytes::testing
