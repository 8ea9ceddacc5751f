// The loader: same batches with any number of workers and slots, slots never overwritten while somebody holds them,
// errors of workers in the loop, nothing left behind when a loop stops early.
#include "samebytes/data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "samebytes/data/sets.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::data {
namespace {

using testing::OnDevice;

struct Seen {
  std::vector<std::vector<float>> images;
  std::vector<std::vector<std::int32_t>> labels;
  friend bool operator==(const Seen&, const Seen&) = default;
};

void look(Loader& loader, Seen& seen) {
  for (const auto& [image, label] : loader) {
    seen.images.push_back(image.to_vector<float>());
    seen.labels.push_back(label.to_vector<std::int32_t>());
  }
}

// Sample i: x = {i, i + 0.5}, y = i.
DatasetPtr counting(std::int64_t size) {
  return generate(size, {{"x", Shape{2}}, {"y", Shape{}, i32}}, [](std::int64_t index, std::span<const Field> dst) {
    dst[0].as<float>()[0] = static_cast<float>(index);
    dst[0].as<float>()[1] = static_cast<float>(index) + 0.5f;
    dst[1].as<std::int32_t>()[0] = static_cast<std::int32_t>(index);
  });
}

class LoaderTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LoaderTest);

TEST_P(LoaderTest, batches_are_the_same_with_any_number_of_workers_and_slots) {
  const auto run = [&](int workers, int slots) {
    Loader loader(engine(), digits().train,
                  {.batch = 64,
                   .shuffle = true,
                   .slots = slots,
                   .workers = workers,
                   .seed = 3,
                   .transforms = {shift({.pixels = 1}), with_probability(0.5, horizontal_flip())}});
    Seen seen;
    look(loader, seen);
    look(loader, seen);
    return seen;
  };
  const Seen expected = run(0, 1);
  ASSERT_EQ(expected.images.size(), 46u);
  EXPECT_EQ(expected.labels.back().size(), 1437u % 64);
  EXPECT_NE(expected.images[0], expected.images[23]);  // the second epoch has another order
  for (const auto& [workers, slots] : std::vector<std::pair<int, int>>{{0, 2}, {1, 1}, {1, 2}, {3, 2}, {3, 5}, {8, 3}})
    EXPECT_TRUE(run(workers, slots) == expected) << workers << " workers, " << slots << " slots";
}

TEST_P(LoaderTest, gives_every_sample_once_and_keeps_or_drops_the_tail) {
  for (const bool drop : {false, true}) {
    Loader loader(engine(), counting(103), {.batch = 10, .shuffle = true, .drop_last = drop});
    EXPECT_EQ(loader.size(), drop ? 10 : 11);
    std::vector<int> counts(103);
    std::int64_t steps = 0;
    for (const Batch& batch : loader) {
      EXPECT_EQ(batch.step(), steps++);
      for (const std::int32_t y : batch["y"].to_vector<std::int32_t>()) ++counts[static_cast<std::size_t>(y)];
    }
    EXPECT_EQ(steps, loader.size());
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), drop ? 100 : 103);
    EXPECT_EQ(loader.stats().steps, steps);
    EXPECT_EQ(loader.stats().samples, drop ? 100 : 103);
  }
}

TEST_P(LoaderTest, a_loop_inside_a_loop_over_it_is_an_error) {
  for (const int workers : {0, 2}) {
    Loader loader(engine(), counting(30), {.batch = 10, .workers = workers});
    int outer = 0;
    const auto nested = [&] {
      for (const Batch& a : loader) {
        outer += a.samples() == 10;
        for (const Batch& b : loader) static_cast<void>(b);
      }
    };
    EXPECT_ERROR(
        nested(), ArgumentError,
        "loader: a pass over it is not finished, and it has one at a time; leave that loop first, or make a second "
        "Loader for a loop inside it");
    EXPECT_EQ(outer, 1);
    int steps = 0;
    for (const Batch& a : loader) steps += a.samples() == 10;  // the loops that threw are left
    EXPECT_EQ(steps, 3);
    for (const Batch& a : loader)
      if (a.step() == 1) break;
    auto it = loader.begin();
    while (it != loader.end()) ++it;
    EXPECT_EQ((*loader.begin()).step(), 0);  // an iterator at its end is in nobody's way
  }
}

TEST_P(LoaderTest, a_copy_of_a_batch_does_not_hold_its_slot) {
  Loader loader(engine(), counting(60), {.batch = 10, .slots = 2, .workers = 1});
  std::vector<Array> kept;
  for (const auto& [x, y] : loader) kept.push_back(copy(y).eval());
  ASSERT_EQ(kept.size(), 6u);
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].to_vector<std::int32_t>()[3], static_cast<std::int32_t>(10 * i + 3));
  EXPECT_EQ(loader.stats().extra_slots, 0);
}

TEST_P(LoaderTest, the_device_reads_what_the_worker_wrote) {
  Loader loader(engine(), counting(1000), {.batch = 50, .workers = 2});
  std::vector<Array> sums;
  for (const auto& [x, y] : loader) sums.push_back(sum(x).eval());
  ASSERT_EQ(sums.size(), 20u);
  for (std::size_t i = 0; i < sums.size(); ++i)  // sum of 2 i + 0.5 over 50 samples from 50 i
    EXPECT_EQ(sums[i].value(), 2 * (50.0 * 50.0 * static_cast<double>(i) + 49.0 * 25.0) + 25.0);
}

// Host and device share the slot's bytes; only copy mode moves them, once for each batch that the device reads.
TEST_P(LoaderTest, moves_no_byte_where_memory_is_shared) {
  Loader loader(engine(), counting(100), {.batch = 10, .workers = 2});
  const std::uint64_t before = engine().transfers().bytes_to_device;
  for (const auto& [x, y] : loader) (x + 1.0).wait();
  const std::uint64_t moved = engine().transfers().bytes_to_device - before;
  EXPECT_EQ(moved, engine().device().memory_mode == MemoryMode::copy ? 100u * 2 * sizeof(float) : 0u);
}

TEST_P(LoaderTest, a_loop_that_keeps_its_batches_gets_more_slots_and_whole_data) {
  Loader loader(engine(), counting(60), {.batch = 10, .slots = 2, .workers = 1});
  std::vector<Array> kept;
  for (const auto& [x, y] : loader) kept.push_back(y);
  ASSERT_EQ(kept.size(), 6u);
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].to_vector<std::int32_t>()[3], static_cast<std::int32_t>(10 * i + 3));
  EXPECT_EQ(loader.stats().extra_slots, 4);
  kept.clear();
  for (const Batch& batch : loader) (void)batch;
  EXPECT_EQ(loader.stats().slots, 2);
  EXPECT_EQ(loader.stats().extra_slots, 4);
}

TEST_P(LoaderTest, a_view_and_a_node_not_yet_run_hold_their_slot) {
  Loader loader(engine(), counting(50), {.batch = 10, .slots = 1, .workers = 1});
  std::vector<Array> waiting;
  std::vector<HostView<const std::int32_t>> views;
  for (const auto& [x, y] : loader) {
    waiting.push_back(x * 2.0);
    views.push_back(y.host<std::int32_t>());
  }
  ASSERT_EQ(views.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(views[i][7], static_cast<std::int32_t>(10 * i + 7));
    EXPECT_EQ(waiting[i].to_vector<float>()[14], 2 * static_cast<float>(10 * i + 7));
  }
}

TEST_P(LoaderTest, arrays_outlive_the_loader) {
  Array kept;
  {
    Loader loader(engine(), counting(20), {.batch = 10});
    for (const auto& [x, y] : loader) kept = y;
  }
  EXPECT_EQ(kept.to_vector<std::int32_t>()[9], 19);
}

TEST_P(LoaderTest, an_error_of_a_worker_comes_out_of_the_loop_at_its_step) {
  for (const int workers : {0, 1, 3}) {
    std::atomic<bool> is_broken{true};
    const DatasetPtr set =
        generate(100, {{"x", Shape{}}, {"y", Shape{}}}, [&](std::int64_t index, std::span<const Field> dst) {
          if (index == 57 && is_broken) throw IoError("sample 57 is damaged", "here", 57);
          dst[0].as<float>()[0] = static_cast<float>(index);
          dst[1].as<float>()[0] = 0;
        });
    Loader loader(engine(), set, {.batch = 10, .slots = 3, .workers = workers});
    int steps = 0;
    try {
      for (const auto& [x, y] : loader) steps += x.size() == 10;
      ADD_FAILURE() << "got no error";
    } catch (const IoError& error) {
      EXPECT_STREQ(error.what(), "sample 57 is damaged");
    }
    EXPECT_EQ(steps, 5);
    is_broken = false;
    steps = 0;
    for (const auto& [x, y] : loader) steps += x.size() == 10;
    EXPECT_EQ(steps, 10);
  }
}

TEST_P(LoaderTest, stopping_early_leaks_nothing_and_the_next_pass_is_whole) {
  const std::size_t before = engine().memory().live_bytes;
  for (const int workers : {0, 1, 3}) {
    Loader loader(engine(), counting(1000), {.batch = 10, .workers = workers});
    for (int stop : {0, 3, 50}) {
      int steps = 0;
      for (const auto& [x, y] : loader) {
        EXPECT_EQ(y.to_vector<std::int32_t>()[0], 10 * steps);
        if (steps++ == stop) break;
      }
    }
    int steps = 0;
    for (const auto& [x, y] : loader) steps += x.size() == 20;
    EXPECT_EQ(steps, 100);
    EXPECT_EQ(loader.stats().slots, 2);
    EXPECT_EQ(loader.stats().extra_slots, 0);
  }
  engine().wait();
  EXPECT_EQ(engine().memory().live_bytes, before);
}

TEST_P(LoaderTest, goes_on_in_the_middle_of_an_epoch) {
  const LoaderOptions options{.batch = 64, .shuffle = true, .seed = 5, .transforms = {shift({})}};
  Loader whole(engine(), digits().train, options), resumed(engine(), digits().train, options);
  Seen first, second, rest;
  look(whole, first);
  look(whole, second);
  resumed.seek(1, 20);
  look(resumed, rest);
  ASSERT_EQ(rest.images.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rest.images[i], second.images[20 + i]);
  EXPECT_EQ(resumed.epoch(), 2);
  EXPECT_THROW(resumed.seek(0, 24), ArgumentError);
}

TEST_P(LoaderTest, takes_streams_in_order_with_any_number_of_workers) {
  for (const int workers : {0, 1, 4}) {
    int next = 0;
    const auto count_up = [&](std::span<const Field> dst) {
      if (next == 47) return false;
      dst[0].as<float>()[0] = static_cast<float>(next++);
      return true;
    };
    const DatasetPtr set = stream({{"x", Shape{}}}, count_up, [&] { next = 0; });
    for (const bool drop : {false, true}) {
      Loader loader(engine(), set, {.batch = 10, .slots = 4, .workers = workers, .drop_last = drop});
      EXPECT_EQ(loader.size(), kEndless);
      next = 0;
      for (int pass = 0; pass < 2; ++pass) {
        std::vector<float> all;
        for (const Batch& batch : loader)
          for (const float x : batch[0].to_vector<float>()) all.push_back(x);
        ASSERT_EQ(all.size(), drop ? 40u : 47u);
        for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<float>(i));
      }
    }
  }
}

TEST_P(LoaderTest, an_endless_source_ends_with_the_loop) {
  Loader loader(engine(), counting(kEndless), {.batch = 10, .workers = 2});
  std::int64_t steps = 0;
  for (const auto& [x, y] : loader) {
    EXPECT_EQ(y.to_vector<std::int32_t>()[9], 10 * steps + 9);
    if (++steps == 100) break;
  }
  EXPECT_EQ(steps, 100);
}

// Pads each batch to its longest sample: what a collate of one's own is for.
class PadToLongest final : public Collate {
 public:
  std::vector<FieldSpec> fields(const Dataset&, std::span<const std::int64_t> indices) const override {
    const std::int64_t longest = *std::max_element(indices.begin(), indices.end()) + 1;
    const auto count = static_cast<std::int64_t>(indices.size());
    return {{"x", Shape{count, longest}}, {"length", Shape{count}, i32}, {"index", Shape{count}, i32}};
  }
  std::int64_t fill(const Dataset&, std::span<const std::int64_t> indices, const ReadSample& read,
                    std::span<Field> batch, const SequenceKey&) const override {
    std::int32_t y = 0;
    float x[2];
    const Field sample[] = {{std::as_writable_bytes(std::span(x)), Shape{2}, f32},
                            {std::as_writable_bytes(std::span(&y, 1)), Shape{}, i32}};
    const auto longest = static_cast<std::size_t>(batch[0].shape[1]);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      read(indices[i], sample);
      for (std::size_t j = 0; j < longest; ++j)
        batch[0].as<float>()[i * longest + j] = static_cast<std::int32_t>(j) <= y ? x[0] : -1.0f;
      batch[1].as<std::int32_t>()[i] = y + 1;
      batch[2].as<std::int32_t>()[i] = static_cast<std::int32_t>(indices[i]);
    }
    return static_cast<std::int64_t>(indices.size());
  }
};

TEST_P(LoaderTest, a_custom_collate_may_change_shapes_from_batch_to_batch) {
  Loader loader(engine(), counting(40),
                {.batch = 4, .shuffle = true, .workers = 2, .collate = std::make_shared<PadToLongest>()});
  for (const Batch& batch : loader) {
    const auto [x, length, index] = batch.as<3>();
    const auto lengths = length.to_vector<std::int32_t>();
    EXPECT_EQ(x.shape(), (Shape{4, *std::max_element(lengths.begin(), lengths.end())}));
    EXPECT_EQ(x.to_vector<float>()[0], static_cast<float>(index.to_vector<std::int32_t>()[0]));
    EXPECT_THROW(batch.get<0>(), ArgumentError);
  }
}

TEST_P(LoaderTest, counts_where_time_goes_on_both_sides) {
  using namespace std::chrono_literals;
  const DatasetPtr slow = generate(8, {{"x", Shape{}}, {"y", Shape{}}}, [](std::int64_t, std::span<const Field> dst) {
    std::this_thread::sleep_for(5ms);
    dst[0].as<float>()[0] = dst[1].as<float>()[0] = 0;
  });
  Loader waits(engine(), slow, {.batch = 1, .workers = 1});
  for (const Batch& batch : waits) (void)batch;
  EXPECT_GT(waits.stats().loop_wait_seconds, 0.035);
  EXPECT_GT(waits.stats().fill_seconds, 0.035);
  EXPECT_GT(waits.stats().stall_fraction(), 0.5);

  Loader idles(engine(), counting(8), {.batch = 1, .workers = 1});
  for (const Batch& batch : idles) std::this_thread::sleep_for(batch.samples() * 20ms);  // more than a thread's start
  EXPECT_GT(idles.stats().worker_wait_seconds, 0.08);
  EXPECT_GT(idles.stats().seconds, 0.14);
  EXPECT_LT(idles.stats().stall_fraction(), 0.5);
}

TEST_P(LoaderTest, checks_its_arguments) {
  const auto message = [&](const DatasetPtr& set, const LoaderOptions& options) -> std::string {
    try {
      Loader loader(engine(), set, options);
    } catch (const ArgumentError& error) {
      return error.what();
    }
    return "no error";
  };
  const DatasetPtr set = counting(360);
  EXPECT_EQ(message(set, {.batch = 4096}), "batch: expected at most the 360 samples of the set, got 4096");
  EXPECT_EQ(message(set, {.batch = 4096, .drop_last = true}),
            "batch: expected at most the 360 samples of the set, got 4096");
  EXPECT_EQ(message(set, {.batch = 0}), "batch: expected 1 or more samples, got 0");
  EXPECT_EQ(message(set, {.slots = 0}), "loader: slots must be 1 or more, got 0");
  EXPECT_EQ(message(set, {.workers = -2}), "loader: workers must be 0 or more, or -1, got -2");
  EXPECT_EQ(message(set, {.shuffle = true, .sampler = sequential(360)}),
            "loader: expected shuffle or a sampler, got both");
  EXPECT_EQ(message(nullptr, {}), "loader: expected a data set, got none");
  EXPECT_EQ(message(set, {.transforms = {shift({})}}), "shift: needs an image [H, W, C], field 'x' is [2]");
  EXPECT_EQ(message(counting(kEndless), {.shuffle = true}),
            "random: expected a known number of samples, got a source without end");
  EXPECT_NE(message(stream({{"x", Shape{}}}, [](std::span<const Field>) { return false; }), {.shuffle = true}),
            "no error");
}

TEST_P(LoaderTest, a_batch_says_what_fields_it_has) {
  Loader loader(engine(), counting(4), {.batch = 4});
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.field_count(), 2u);
    EXPECT_EQ(batch["x"].shape(), (Shape{4, 2}));
    EXPECT_EQ(batch[1].dtype(), i32);
    EXPECT_THROW(batch[2], ArgumentError);
    try {
      batch["image"];
      ADD_FAILURE();
    } catch (const ArgumentError& error) {
      EXPECT_STREQ(error.what(), "batch: no field 'image'; there are: x, y");
    }
  }
}

TEST_P(LoaderTest, says_which_batch_is_held_when_memory_ends) {
  const DatasetPtr set =
      generate(100, {{"x", Shape{1 << 18}}, {"y", Shape{}}}, [](std::int64_t, std::span<const Field>) {});
  const std::unique_ptr<Engine> small = testing::make_engine(GetParam(), {.memory_limit = 24 << 20});
  Loader loader(*small, set, {.batch = 4, .slots = 2, .workers = 1});  // 4 MiB a batch
  std::vector<Array> kept;
  try {
    for (const auto& [x, y] : loader) kept.push_back(x);
    ADD_FAILURE() << "got no error";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("batch of step 0 is still held; copy what you keep"), std::string::npos)
        << error.what();
    EXPECT_GE(kept.size(), 3u);
  }
  kept.clear();
  int steps = 0;
  for (const Batch& batch : loader) steps += batch.samples() == 4;
  EXPECT_EQ(steps, 25);
}

}  // namespace
}  // namespace samebytes::data
