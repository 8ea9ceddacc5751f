// A memory snapshot that is written down: its file, its text, its picture and its difference from an earlier one are
// those in tests/profile/golden, to the byte. A change that is meant: SAMEBYTES_WRITE_GOLDEN=1 build/test_profile
// --gtest_filter='MemoryGolden*' writes them anew.
#include <gtest/gtest.h>

#include <cstdlib>

#include "samebytes/memory_diff.h"
#include "support/files.h"
#include "support/places.h"

namespace samebytes::testing {
namespace {

std::string golden(const std::string& name) { return source_folder() + "/tests/profile/golden/" + name; }

void expect_golden(const std::string& name, const std::string& text) {
  if (std::getenv("SAMEBYTES_WRITE_GOLDEN")) put(golden(name), text);
  EXPECT_EQ(text, get(golden(name))) << name;
}

MemoryByCategory bytes_of(std::initializer_list<std::size_t> list) {
  MemoryByCategory bytes;
  std::copy(list.begin(), list.end(), bytes.bytes.begin());
  return bytes;
}

// A step of two layers: forward, loss, backward, update; small and large numbers, a layer of no name, a history.
MemorySnapshot two_layers() {
  constexpr auto kActivations = MemoryCategory::activations, kGradients = MemoryCategory::gradients;
  MemorySnapshot s;
  s.device = "a device";
  s.report.live_bytes = 61'000'000;
  s.report.cached_bytes = 4'000'000;
  s.report.adopted_bytes = 1'000'000'000;
  s.report.library_bytes = 500'000;
  s.report.peak_bytes = 63'500'000;
  s.report.limit_bytes = 4'000'000'000;
  s.report.allocations = 17;
  s.report.peak_cause = "linear";
  s.report.peak_layer = "1 Linear";
  s.report.live_by_category = bytes_of({10'000'000, 0, 20'000'000, 30'000'000, 900'000, 500'000, 100'000});
  s.report.peak_by_category = bytes_of({10'000'000, 0, 20'000'000, 32'000'000, 900'000, 500'000, 100'000});
  s.process_bytes = 180'000'000;
  s.process_peak_bytes = 190'000'000;
  s.step = bytes_of({10'000'000, 8'000'000, 20'000'000, 22'000'000, 900'000, 500'000, 100'000});
  s.layers = {{"1 Linear", 8'000'000, 6'400'000, 16'000'000, 12'000'000},
              {"0 Linear", 2'000'000, 1'600'000, 4'000'000, 8'000'000},
              {"", 0, 0, 0, 2'000'000}};
  s.arrays = {{"arena", "", kActivations, 30'000'000},
              {"AdamW moment1 0", "", MemoryCategory::optimizer, 10'000'000},
              {"AdamW moment2 0", "", MemoryCategory::optimizer, 10'000'000},
              {"1.weight", "1 Linear", MemoryCategory::parameters, 8'000'000},
              {"batch", "", MemoryCategory::inputs, 450'000},
              {"batch", "", MemoryCategory::inputs, 450'000},
              {"cross_entropy", "loss", MemoryCategory::other, 100'000}};
  MemoryPlan plan;
  plan.arena_bytes = 30'000'000;
  plan.last_used = 3;
  plan.launches = {
      {"linear", "0 Linear", false, 8'000'000, 0},          {"linear", "1 Linear", false, 20'000'000, 0},
      {"cross_entropy", "", false, 22'000'000, 0},          {"linear", "1 Linear", true, 22'000'000, 8'000'000},
      {"linear", "0 Linear", true, 12'000'000, 10'000'000}, {"adamw", "", true, 0, 10'000'000}};
  plan.temporaries = {{"linear", "0 Linear", kActivations, 8'000'000, 0, 0, 0, 4},
                      {"linear", "1 Linear", kActivations, 12'000'000, 8'000'000, 0, 1, 3},
                      {"cross_entropy", "", kActivations, 2'000'000, 20'000'000, 0, 2, 3},
                      {"linear", "1 Linear", kGradients, 8'000'000, 22'000'000, 0, 3, 5},
                      {"linear", "1 Linear", kActivations, 4'000'000, 8'000'000, 0, 4, 4},
                      {"linear", "0 Linear", kGradients, 2'000'000, 12'000'000, 0, 4, 5}};
  s.plans = {plan};
  s.events = {{0.25, kActivations, 30'000'000, "arena"},
              {0.5, MemoryCategory::other, 100'000, "cross_entropy"},
              {0.75, MemoryCategory::other, 100'000, "cross_entropy"},
              {1.0, MemoryCategory::other, -100'000, "cross_entropy"}};
  s.events_dropped = 2;
  return s;
}

// The same after more steps: somebody keeps losses, and a larger batch came; a layer lost its moments.
MemorySnapshot later() {
  MemorySnapshot s = two_layers();
  s.report.live_bytes = 71'900'000;
  s.report.cached_bytes = 0;
  s.report.peak_bytes = 73'000'000;
  s.process_bytes = 191'000'000;
  s.report.live_by_category[MemoryCategory::activations] += 12'000'000;
  s.report.live_by_category[MemoryCategory::optimizer] -= 4'000'000;
  s.report.live_by_category[MemoryCategory::other] += 2'900'000;
  s.layers[0].activations += 12'000'000;
  s.layers[1].optimizer = 0;
  s.arrays[0].bytes += 12'000'000;
  s.arrays[2].bytes -= 4'000'000;
  for (int i = 0; i < 29; ++i) s.arrays.push_back(s.arrays.back());
  return s;
}

TEST(MemoryGolden, the_file_is_that_of_every_version_1) {
  const TemporaryFolder folder;
  save_memory_snapshot(folder / "memory.json", two_layers());
  expect_golden("memory.json", get(folder / "memory.json"));
}

TEST(MemoryGolden, text_and_picture_are_as_they_were_drawn) {
  const MemorySnapshot s = load_memory_snapshot(golden("memory.json"));
  expect_golden("memory.txt", memory_text(s, {.columns = 80, .rows = 6, .top = 4}));
  expect_golden("memory.svg", memory_svg(s));
}

TEST(MemoryGolden, the_difference_says_what_grew) {
  const MemorySnapshot before = load_memory_snapshot(golden("memory.json")), after = later();
  const MemoryDifference difference = compare_memory(before, after);
  expect_golden("memory_diff.txt", memory_text(difference));
  ASSERT_EQ(difference.arrays.size(), 3u);
  EXPECT_EQ(difference.arrays[0].name, "arena");
  EXPECT_EQ(difference.arrays[1].name, "cross_entropy");
  EXPECT_EQ(difference.arrays[1].count, 29);
  EXPECT_EQ(difference.arrays[2].bytes, -4'000'000);
  const MemoryDifference back = compare_memory(after, before);
  EXPECT_EQ(back.arrays.front().bytes, 4'000'000);
  EXPECT_EQ(back.arrays.back().bytes, -12'000'000);
  EXPECT_TRUE(compare_memory(after, after).arrays.empty());
  EXPECT_TRUE(compare_memory(after, after).layers.empty());
}

}  // namespace
}  // namespace samebytes::testing
