// The depth of prefetching follows the share of time in which the loop waits: a source that becomes uneven and even
// again, in time that is computed and not slept; and a loader that does so.
#include "data/prefetch_depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "samebytes/data/loader.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

// A loop that takes `loop` seconds a batch, workers that fill a batch in `source(i)` seconds, and as many slots as the
// depth says: a batch can be filled once the one so many places before it was given back.
struct Pipeline {
  PrefetchDepth depth;
  double loop = 1.0;
  std::vector<double> workers;     // when each is free
  std::vector<double> given_back;  // when the loop was done with batch i
  double now = 0;

  explicit Pipeline(const PrefetchDepthOptions& options, std::size_t worker_count = 1)
      : depth(options), workers(worker_count) {}

  // Share of the time that the loop waited.
  double run(int batches, const std::function<double(int)>& source) {
    const double start = now;
    double waited = 0;
    for (int k = 0; k < batches; ++k) {
      const std::size_t i = given_back.size(), slots = static_cast<std::size_t>(depth.slots());
      double& worker = *std::min_element(workers.begin(), workers.end());
      const double slot = i >= slots ? given_back[i - slots] : 0;
      const double filled = std::max(worker, slot) + source(k);
      const bool slot_was_wanted = slot > worker;
      worker = filled;
      const double wait = std::max(0.0, filled - now);
      waited += wait;
      now += wait + loop;
      given_back.push_back(now);
      depth.observe({wait, wait + loop, slot_was_wanted});
    }
    return waited / (now - start);
  }
};

double even(int) { return 0.2; }
// Two slow batches in each sixteen: less than the loop takes on average, but not at once.
double uneven(int i) { return i % 16 < 2 ? 4.0 : 0.2; }

TEST(PrefetchDepth, steps_up_with_an_uneven_source_and_down_again) {
  Pipeline pipeline({.least = 2, .most = 12});
  EXPECT_LT(pipeline.run(160, even), 0.01);
  EXPECT_EQ(pipeline.depth.slots(), 2);
  const double at_first = pipeline.run(48, uneven);
  EXPECT_GT(at_first, 0.05);
  pipeline.run(160, uneven);
  const int widened = pipeline.depth.slots();
  EXPECT_GE(widened, 6);
  EXPECT_LE(widened, 12);
  EXPECT_LT(pipeline.run(160, uneven), at_first / 4) << "what the slots were taken for";
  EXPECT_GE(pipeline.depth.slots(), 6) << "but for one less now and then, to see whether that is enough";
  pipeline.run(16 * 8 * 12, even);
  EXPECT_EQ(pipeline.depth.slots(), 2);
}

TEST(PrefetchDepth, a_source_that_is_always_slower_gets_no_memory_that_does_not_help) {
  Pipeline pipeline({.least = 2, .most = 64});
  EXPECT_GT(pipeline.run(2000, [](int) { return 1.5; }), 0.3);
  EXPECT_EQ(pipeline.depth.slots(), 2);
}

TEST(PrefetchDepth, workers_with_too_few_slots_between_them_get_one_each) {
  Pipeline pipeline({.least = 2, .most = 64}, 4);
  const auto slow = [](int) { return 3.5; };  // four of them are faster than the loop
  EXPECT_GT(pipeline.run(16, slow), 0.3);
  pipeline.run(200, slow);
  EXPECT_LT(pipeline.run(200, slow), 0.03);
  EXPECT_GE(pipeline.depth.slots(), 4);
  EXPECT_LE(pipeline.depth.slots(), 9);
}

TEST(PrefetchDepth, never_passes_its_limits) {
  PrefetchDepth depth({.least = 3, .most = 5, .window = 1});
  for (int i = 0; i < 10; ++i) {
    depth.observe({1.0, 1.0, true});
    EXPECT_LE(depth.slots(), 5);
  }
  EXPECT_EQ(depth.slots(), 5);
  EXPECT_DOUBLE_EQ(depth.stalled(), 1.0);
  depth.set_most(4);
  EXPECT_EQ(depth.slots(), 4);
  for (int i = 0; i < 100; ++i) depth.observe({0.0, 1.0, true});
  EXPECT_EQ(depth.slots(), 3);
}

class LoaderDepthTest : public testing::OnDevice {
 protected:
  // Sample i is i; decoding it takes `work` rounds of arithmetic.
  struct Work {
    std::atomic<int> rounds{2000};
    std::atomic<std::int64_t> last{-1};  // sample that was decoded
  };
  static DatasetPtr working(std::int64_t size, const std::shared_ptr<Work>& work) {
    return generate(size, {{"x", Shape{4}}}, [work](std::int64_t index, std::span<const Field> dst) {
      volatile double sum = 0;
      for (int i = 0; i < work->rounds; ++i) sum = sum + 1.0 / (i + 1);
      for (float& value : dst[0].as<float>()) value = static_cast<float>(index);
      std::int64_t last = work->last;
      while (last < index && !work->last.compare_exchange_weak(last, index)) {
      }
    });
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LoaderDepthTest);

TEST_P(LoaderDepthTest, slots_come_where_the_loop_waits_and_go_where_nobody_does) {
  const auto work = std::make_shared<Work>();
  constexpr std::int64_t kSamples = 1 << 16;
  Loader loader(engine(), working(kSamples, work), {.batch = 8, .most_slots = 6, .workers = 3});
  EXPECT_EQ(loader.stats().slots, 0);
  std::int64_t next = 0;
  int most = 0;
  for (const Batch& batch : loader) {
    ASSERT_EQ(batch[0].to_vector<float>()[4], static_cast<float>(next + 1));
    next += 8;
    most = std::max(most, loader.stats().slots);
    if (most >= 4) break;
  }
  EXPECT_GE(most, 4) << "three workers want three slots beside the loop's";
  EXPECT_LE(loader.stats().slots, 6);
  EXPECT_GT(loader.stats().widened, 0);
  work->rounds = 0;
  work->last = -1;
  std::int64_t batches = 0;
  for (const Batch& batch : loader) {
    ASSERT_EQ(batch[0].to_vector<float>()[0], static_cast<float>(8 * batches++));
    // Until the next batch is there, and a little longer.
    while (work->last < std::min(kSamples - 8, 8 * batches)) std::this_thread::yield();
    volatile double sum = 0;
    for (int i = 0; i < 20000; ++i) sum = sum + 1.0 / (i + 1);
    if (loader.stats().slots == 2) break;
  }
  EXPECT_EQ(loader.stats().slots, 2);
  EXPECT_GT(loader.stats().narrowed, 0);
}

TEST_P(LoaderDepthTest, room_for_slots_is_bounded) {
  const auto work = std::make_shared<Work>();
  const std::size_t bytes = 8 * 4 * sizeof(float);
  Loader loader(engine(), working(8 * 400, work),
                {.batch = 8, .most_slots = 6, .most_slot_bytes = 3 * bytes, .workers = 3});
  for (const Batch& batch : loader) EXPECT_LE(loader.stats().slots - loader.stats().extra_slots, 3) << batch.step();
  EXPECT_ERROR(Loader(engine(), working(8, work), {.slots = 4, .most_slots = 3}), ArgumentError,
               "loader: most_slots must be at least slots, 4, or 0, got 3");
}

}  // namespace
}  // namespace samebytes::data
