// Memory snapshots: categories add up, layers have the bytes of their parameters, the peak has an op and a layer, the
// timeline is that of the arena; the file comes back as it was, and a damaged one says where.
#include "samebytes/memory_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "samebytes/memory_diff.h"
#include "samebytes/samebytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kIn = 300, kHidden = 1500, kOut = 10, kBatch = 700;

struct Training {
  Engine engine;
  nn::Sequential net{nn::Linear({.in = kIn, .out = kHidden}), nn::Relu(),
                     nn::Linear({.in = kHidden, .out = kHidden, .bias = false}), nn::Relu(),
                     nn::Linear({.in = kHidden, .out = kOut})};
  optim::AdamW adam;
  explicit Training(const optim::AdamWOptions& options = {}) : adam(net.parameters(), options) {}
  void step() {
    const Array x = normal({kBatch, kIn}), label = full({kBatch}, 1.0, i32);
    adam.step(cross_entropy(net(x), label));
    engine.wait();
  }
};

// One for all tests that only look.
const MemorySnapshot& snapshot() {
  static const MemorySnapshot taken = [] {
    Training training;
    const MemoryHistory history(training.engine);
    training.step();
    training.step();
    return take_memory_snapshot(training.engine);
  }();
  return taken;
}

const MemoryLayer* layer_of(const MemorySnapshot& snapshot, const std::string& name) {
  for (const MemoryLayer& layer : snapshot.layers)
    if (layer.name == name) return &layer;
  return nullptr;
}

TEST(MemorySnapshotTest, categories_sum_to_what_is_live_and_to_the_peak) {
  const MemoryReport& report = snapshot().report;
  EXPECT_EQ(report.live_by_category.total(), report.live_bytes + report.library_bytes);
  EXPECT_EQ(report.peak_by_category.total(), report.peak_bytes);
  EXPECT_EQ(snapshot().step.total(), report.live_bytes + report.library_bytes);
  constexpr std::size_t kParameters = (kIn * kHidden + kHidden + kHidden * kHidden + kHidden * kOut + kOut) * 4;
  const auto near = [](std::size_t bytes, std::size_t want) {
    EXPECT_GE(bytes, want);
    EXPECT_LE(static_cast<double>(bytes), 1.15 * static_cast<double>(want) + 65536);
  };
  near(report.live_by_category[MemoryCategory::parameters], kParameters);
  near(report.live_by_category[MemoryCategory::optimizer], 2 * kParameters);
  EXPECT_GT(snapshot().step[MemoryCategory::gradients], std::size_t{kHidden * kHidden * 4});  // those alive then
  EXPECT_GT(snapshot().step[MemoryCategory::activations], std::size_t{2 * kBatch * kHidden * 4});
}

TEST(MemorySnapshotTest, layers_have_their_parameters_and_what_is_alive_at_the_peak) {
  const MemoryLayer* first = layer_of(snapshot(), "0 Linear");
  const MemoryLayer* second = layer_of(snapshot(), "2 Linear");
  ASSERT_TRUE(first && second) << memory_text(snapshot());
  EXPECT_EQ(first->parameters, std::size_t{(kIn * kHidden + kHidden) * 4});
  EXPECT_EQ(second->parameters, std::size_t{kHidden * kHidden * 4});
  EXPECT_NEAR(static_cast<double>(second->optimizer), 2.0 * static_cast<double>(second->parameters),
              0.25 * static_cast<double>(second->parameters));  // storages are rounded up
  EXPECT_EQ(snapshot().layers.front().name, "2 Linear");
  std::size_t activations = 0;
  for (const MemoryLayer& layer : snapshot().layers) activations += layer.activations;
  const MemoryPlan& plan = snapshot().plans.front();
  EXPECT_EQ(activations, plan.launches[static_cast<std::size_t>(plan.peak_launch())].activations);
  const auto moment = std::find_if(snapshot().arrays.begin(), snapshot().arrays.end(),
                                   [](const MemoryArray& array) { return array.name == "AdamW moment2 0"; });
  ASSERT_NE(moment, snapshot().arrays.end());
  EXPECT_EQ(moment->category, MemoryCategory::optimizer);
}

TEST(MemorySnapshotTest, the_timeline_is_that_of_the_arena) {
  ASSERT_FALSE(snapshot().plans.empty());
  const MemoryPlan& plan = snapshot().plans.front();
  const int peak = plan.peak_launch();
  ASSERT_GE(peak, 0);
  const MemoryLaunch& top = plan.launches[static_cast<std::size_t>(peak)];
  EXPECT_LE(top.activations + top.gradients, plan.arena_bytes);
  EXPECT_GT(static_cast<double>(top.activations + top.gradients), 0.8 * static_cast<double>(plan.arena_bytes));
  EXPECT_FALSE(top.op.empty());
  EXPECT_THAT(top.layer, HasSubstr("Linear"));
  // What is alive together does not lie together.
  for (std::size_t i = 0; i < plan.temporaries.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const MemoryTemporary &a = plan.temporaries[i], &b = plan.temporaries[k];
      if (a.segment != b.segment || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << a.op << " and " << b.op;
    }
}

TEST(MemorySnapshotTest, the_arena_asks_in_the_name_of_the_op_and_layer_at_its_peak) {
  Training training;
  training.step();
  const MemoryReport report = training.engine.memory();
  const MemorySnapshot now = take_memory_snapshot(training.engine);
  const MemoryLaunch& top = now.plans.front().launches[static_cast<std::size_t>(now.plans.front().peak_launch())];
  EXPECT_EQ(report.peak_cause, top.op);
  EXPECT_EQ(report.peak_layer, top.layer);
}

TEST(MemorySnapshotTest, a_history_adds_up_to_what_is_live) {
  std::int64_t sum = 0;
  for (const MemoryEvent& event : snapshot().events) sum += event.bytes;
  EXPECT_GT(sum, std::int64_t{2 * kBatch * kHidden * 4});
  EXPECT_LE(sum, static_cast<std::int64_t>(snapshot().report.live_bytes));
  EXPECT_EQ(snapshot().events_dropped, 0u);

  Engine engine;
  EXPECT_TRUE(take_memory_snapshot(engine).events.empty());
  {
    const MemoryHistory history(engine, {.most_events = 3});
    EXPECT_ERROR((MemoryHistory(engine)), ArgumentError, "MemoryHistory: the engine has one already");
    for (int i = 0; i < 4; ++i) full({100 + i}, 1.0).eval();
    const MemorySnapshot taken = take_memory_snapshot(engine);
    EXPECT_EQ(taken.events.size(), 3u);
    EXPECT_EQ(taken.events_dropped, 5u);
  }
  const MemoryHistory again(engine);
}

TEST(MemorySnapshotTest, a_leak_is_named_by_the_op_whose_values_somebody_keeps) {
  Training training;
  std::vector<Array> kept;
  const auto step = [&](bool keeps) {
    const Array x = normal({kBatch, kIn}), label = full({kBatch}, 1.0, i32);
    const Array loss = cross_entropy(training.net(x), label);
    training.adam.step(loss);
    if (keeps) kept.push_back(loss);
    training.engine.wait();
  };
  for (int i = 0; i < 3; ++i) step(false);
  const MemorySnapshot first = take_memory_snapshot(training.engine);
  for (int i = 0; i < 3; ++i) step(false);
  const MemorySnapshot second = take_memory_snapshot(training.engine);
  EXPECT_TRUE(compare_memory(first, second).arrays.empty()) << memory_text(compare_memory(first, second));
  const MemoryHistory history(training.engine);
  for (int i = 0; i < 5; ++i) step(true);
  const MemorySnapshot third = take_memory_snapshot(training.engine);
  const MemoryDifference difference = compare_memory(second, third);
  ASSERT_EQ(difference.arrays.size(), 1u) << memory_text(difference);
  EXPECT_EQ(difference.arrays[0].name, "cross_entropy");
  EXPECT_EQ(difference.arrays[0].category, MemoryCategory::other);
  EXPECT_EQ(difference.arrays[0].count, 5);
  EXPECT_THAT(memory_text(difference), HasSubstr("5 more values are held"));
  EXPECT_THAT(memory_text(third), HasSubstr("taken since it began and not given back"));
  kept.clear();
  EXPECT_TRUE(compare_memory(second, take_memory_snapshot(training.engine)).arrays.empty());
}

TEST(MemorySnapshotTest, a_file_comes_back_as_it_was) {
  const TemporaryFolder folder;
  const std::string path = folder / "memory.json", second = folder / "again.json";
  save_memory_snapshot(path, snapshot());
  const MemorySnapshot back = load_memory_snapshot(path);
  save_memory_snapshot(second, back);
  EXPECT_EQ(get(path), get(second));
  EXPECT_EQ(memory_text(back), memory_text(snapshot()));
  EXPECT_EQ(memory_svg(back), memory_svg(snapshot()));
}

TEST(MemorySnapshotTest, a_damaged_or_foreign_file_says_where) {
  const TemporaryFolder folder;
  const std::string path = folder / "memory.json";
  save_memory_snapshot(path, snapshot());
  const std::string whole = get(path);
  const auto message_of = [&](const std::string& text) -> std::string {
    put(path, text);
    try {
      load_memory_snapshot(path);
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string begin = "memory snapshot: " + path + ": ";
  EXPECT_THAT(message_of(whole.substr(0, whole.size() / 2)), HasSubstr(begin + "at byte "));
  EXPECT_THAT(message_of(""), HasSubstr(begin + "at byte 0: expected JSON"));
  EXPECT_EQ(message_of("[1, 2]"), begin + "the whole: expected an object, found a list of 2");
  EXPECT_EQ(message_of("{\"traceEvents\": []}"),
            begin + "the whole: expected an object with \"format\", found an object");
  EXPECT_EQ(message_of(changed("samebytes-memory", "other")),
            begin + "format: expected \"samebytes-memory\", found \"other\"");
  EXPECT_EQ(message_of(changed("\"version\":1", "\"version\":2")), begin + "version: expected 1, found 2");
  EXPECT_THAT(message_of(changed("\"live_bytes\":", "\"live_bytes\":-")),
              HasSubstr(begin + "live_bytes: expected a number of bytes, found -"));
  EXPECT_THAT(message_of(changed("\"texts\":[", "\"texts\":[],\"more\":[")),
              HasSubstr("arrays[0][1]: expected the number of a text, below 0, found 0"));
  EXPECT_THAT(message_of(changed("\"launches\":[[", "\"launches\":[[7,")),
              HasSubstr("plans[0].launches[0]: expected a list of 5, found a list of 6"));
  EXPECT_EQ(message_of(whole), "no error");
}

TEST(MemorySnapshotTest, text_and_picture_show_the_peak) {
  const std::string text = memory_text(snapshot(), {.columns = 80, .rows = 12, .top = 3});
  const MemoryPlan& plan = snapshot().plans.front();
  const MemoryLaunch& top = plan.launches[static_cast<std::size_t>(plan.peak_launch())];
  EXPECT_THAT(
      text, HasSubstr("> peak: launch " + std::to_string(plan.peak_launch()) + ", " + top.op + " (" + top.layer + ")"));
  EXPECT_THAT(text, HasSubstr("2 Linear"));
  EXPECT_THAT(text, HasSubstr("AdamW moment1 0"));
  int marked = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" MB p") != std::string::npos || line.find(" MB g") != std::string::npos) {
      EXPECT_LE(line.size(), 80u) << line;
      marked += line[0] == '>';
    }
  }
  EXPECT_EQ(marked, 1) << text;
  const std::string svg = memory_svg(snapshot());
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_THAT(svg, HasSubstr("peak "));
  EXPECT_THAT(svg, HasSubstr("places of temporaries in the arena"));
  EXPECT_THAT(memory_text(MemorySnapshot{}), HasSubstr("peak 0.0 kB"));
  EXPECT_THAT(memory_svg(MemorySnapshot{}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace samebytes::testing
