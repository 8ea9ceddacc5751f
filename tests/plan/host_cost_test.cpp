// The cost model of co-execution by itself: its choices in made cases, its constants in their store.
#include "plan/host_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "samebytes/io/files.h"
#include "samebytes/samebytes.h"
#include "support/environment.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::detail {
namespace {

using samebytes::testing::TemporaryFolder;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// A launch is 5, a crossing 5, and the host's part one for each step.
constexpr HostCosts kCosts{.launch = 5, .crossing = 5, .step = 1, .value = 1e-6, .product = 1e-6};

// One letter for each launch: '.' the device alone can do it, a digit what the host needs for it, '<' before a launch
// that begins, '>' after one that ends a run.
class Queue {
 public:
  explicit Queue(const std::string& text) {
    forms_.reserve(text.size());
    for (const char c : text) {
      if (c == '<') {
        begins_ = true;
      } else if (c == '>') {
        launches_.back().ends = true;
      } else {
        HostCandidate launch;
        if (c != '.') {
          forms_.push_back({[](void* const*, const double*) {}, {.steps = static_cast<double>(c - '0')}});
          launch.form = &forms_.back();
        }
        launch.begins = begins_;
        begins_ = false;
        launches_.push_back(launch);
      }
    }
  }
  // The same with 'h' for what the host does and 'd' for the rest.
  std::string choose(HostExecution mode = HostExecution::automatic, const HostCosts& costs = kCosts) const {
    std::string text;
    for (const bool on_host : choose_for_host(costs, launches_, mode)) text += on_host ? 'h' : 'd';
    return text;
  }

 private:
  std::vector<HostForm> forms_;
  std::vector<HostCandidate> launches_;
  bool begins_ = false;
};

TEST(HostCost, the_host_needs_what_its_work_takes) {
  const HostCosts costs{.launch = 1, .crossing = 1, .step = 2, .value = 3, .product = 5};
  EXPECT_DOUBLE_EQ(seconds_on_host(costs, {.steps = 7, .values = 11, .products = 13}), 2 * 7 + 3 * 11 + 5 * 13);
}

TEST(HostCost, a_run_moves_when_it_saves_more_than_the_crossing_and_two_launches) {
  EXPECT_EQ(Queue("").choose(), "");
  EXPECT_EQ(Queue("0").choose(), "d");
  EXPECT_EQ(Queue("000").choose(), "ddd");    // saves 15 for 15
  EXPECT_EQ(Queue("0000").choose(), "hhhh");  // saves 20 for 15
  EXPECT_EQ(Queue("1111").choose(), "hhhh");  // 19
  EXPECT_EQ(Queue("2222").choose(), "dddd");  // 23
  EXPECT_EQ(Queue(".1111.").choose(), "dhhhhd");
}

TEST(HostCost, what_is_long_stays_and_may_keep_its_neighbours) {
  EXPECT_EQ(Queue("11111.11111").choose(), "hhhhhdhhhhh");
  EXPECT_EQ(Queue("11.11.11").choose(), "dddddddd");
  // 9 on the host are more than a launch, but less than another crossing.
  EXPECT_EQ(Queue("1111911111").choose(), "hhhhhhhhhh");
  EXPECT_EQ(Queue("9991111111999").choose(), "dddhhhhhhhddd");
}

TEST(HostCost, runs_end_where_devices_wait_for_each_other) {
  EXPECT_EQ(Queue("11<11").choose(), "dddd");
  EXPECT_EQ(Queue("11>11").choose(), "dddd");
  EXPECT_EQ(Queue("11111<11111").choose(), "hhhhhhhhhh");
  EXPECT_EQ(Queue("11111>1").choose(), "hhhhhd");
}

TEST(HostCost, the_mode_may_leave_no_choice) {
  EXPECT_EQ(Queue("1.9").choose(HostExecution::always), "hdh");
  EXPECT_EQ(Queue("000000").choose(HostExecution::off), "dddddd");
}

TEST(HostCost, the_choice_follows_the_constants) {
  HostCosts cheap = kCosts;
  cheap.launch = 1;
  EXPECT_EQ(Queue("11111111").choose(HostExecution::automatic, cheap), "dddddddd");
  HostCosts dear = kCosts;
  dear.crossing = 100;
  EXPECT_EQ(Queue("11111111").choose(HostExecution::automatic, dear), "dddddddd");
}

// ---- the store

DeviceInfo some_device() {
  DeviceInfo info;
  info.name = "a fast device";
  info.driver = "3.1";
  info.cores = 2;
  return info;
}

TEST(HostCost, constants_are_read_back) {
  const HostCosts costs{.launch = 3e-6, .crossing = 4e-6, .step = 5e-9, .value = 6e-10, .product = 7e-11};
  const auto back = parse_host_costs(host_costs_text(costs, some_device()), "there", some_device());
  ASSERT_TRUE(back);
  EXPECT_EQ(back->launch, costs.launch);
  EXPECT_EQ(back->crossing, costs.crossing);
  EXPECT_EQ(back->step, costs.step);
  EXPECT_EQ(back->value, costs.value);
  EXPECT_EQ(back->product, costs.product);
}

TEST(HostCost, constants_of_another_device_are_left_aside) {
  const std::string text = host_costs_text({}, some_device());
  DeviceInfo other = some_device();
  other.driver = "3.2";
  EXPECT_FALSE(parse_host_costs(text, "there", other));
  other = some_device();
  other.cores = 4;
  EXPECT_FALSE(parse_host_costs(text, "there", other));
}

TEST(HostCost, the_hosts_own_work_is_measured_once) {
  const HostCosts costs = host_work_costs();
  EXPECT_GT(costs.step, 0);
  EXPECT_GT(costs.value, 0);
  EXPECT_GT(costs.product, 0);
  EXPECT_LT(costs.step + costs.value + costs.product, 1e-5);
  EXPECT_EQ(host_work_costs().value, costs.value);
}

TEST(HostCost, a_damaged_store_is_named) {
  const std::string whole = host_costs_text({}, some_device());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const auto parse = [](const std::string& text) { return parse_host_costs(text, "costs.json", some_device()); };
  const std::string end = "; remove the file, and they are measured again";
  EXPECT_ERROR(parse(whole.substr(0, 100)), IoError,
               ("host costs: costs.json: the whole: expected JSON, found damage" + end).c_str());
  EXPECT_ERROR(parse("[]"), IoError, ("host costs: costs.json: the whole: expected an object, found []" + end).c_str());
  EXPECT_ERROR(parse(with("\"format\": 3", "\"format\": 7")), IoError,
               ("host costs: costs.json: format: expected 3, found 7" + end).c_str());
  EXPECT_ERROR(parse(with("\"step\"", "\"stop\"")), IoError,
               ("host costs: costs.json: seconds.step: expected a value, found nothing" + end).c_str());
  EXPECT_ERROR(
      parse(with("2e-06", "-2")), IoError,
      ("host costs: costs.json: seconds.launch: expected a number above 0, at most 1, found -2" + end).c_str());
  EXPECT_ERROR(
      parse(with("2e-06", "\"fast\"")), IoError,
      ("host costs: costs.json: seconds.launch: expected a number above 0, at most 1, found \"fast\"" + end).c_str());
}

// Eight launches that the host can do, in a chain.
PlanReport run_chain(Engine& engine) {
  const EngineScope use(engine);
  Array h = ones({3, 5});
  h.eval();
  const PlanReport before = engine.plans();
  for (int i = 0; i < 4; ++i) h = h / sum(h, {1}, true);
  h.eval();
  PlanReport after = engine.plans();
  after.launches -= before.launches;
  after.launches_on_host -= before.launches_on_host;
  return after;
}

bool can_share(const Engine& engine) {
  const MemoryMode mode = engine.device().memory_mode;
  return (mode == MemoryMode::fine || mode == MemoryMode::system) &&
         engine.device().platform == "Portable Computing Language" && engine.device().personality == Personality::cpu;
}

TEST(HostCost, they_are_measured_once_and_kept) {
  const TemporaryFolder folder;
  const Environment place("SAMEBYTES_TUNING", folder.string());
  std::string path;
  {
    Engine engine;
    if (!can_share(engine)) GTEST_SKIP() << "the device does not run host functions";
    path = host_costs_path(engine.device());
    EXPECT_FALSE(std::filesystem::exists(path));  // nothing is measured before it is needed
    run_chain(engine);
    ASSERT_TRUE(std::filesystem::exists(path));
    EXPECT_THAT(path, EndsWith("-v3.json")) << "another format is another file";
    const auto kept = load_host_costs(engine.device());
    ASSERT_TRUE(kept);
    EXPECT_GT(kept->launch, 1e-8);
    EXPECT_LT(kept->step, kept->launch);
  }
  const auto written = [&](double launch) {
    HostCosts costs;
    costs.launch = launch;
    io::write_file(path, host_costs_text(costs, Engine().device()));
  };
  written(1e-9);  // what is kept decides: no launch is worth a crossing
  {
    Engine engine;
    EXPECT_EQ(run_chain(engine).launches_on_host, 0u);
  }
  written(1e-3);
  {
    Engine engine;
    const PlanReport report = run_chain(engine);
    EXPECT_EQ(report.launches_on_host, 8u);
    EXPECT_EQ(report.launches, 8u);
  }
  io::write_file(path, "{");
  EXPECT_ERROR(
      Engine(), IoError,
      ("host costs: " + path + ": the whole: expected JSON, found damage; remove the file, and they are measured again")
          .c_str());
  EXPECT_NO_THROW(Engine({.host_execution = HostExecution::off}));
}

TEST(HostCost, without_a_store_the_built_in_ones_hold) {
  const Environment place("SAMEBYTES_TUNING", "off");
  Engine engine;
  if (!can_share(engine)) GTEST_SKIP() << "the device does not run host functions";
  EXPECT_EQ(run_chain(engine).launches_on_host, 8u);
  EXPECT_EQ(host_costs_path(engine.device()), "");
}

TEST(HostCost, the_environment_asks_unless_the_option_does) {
  {
    const Environment asked("SAMEBYTES_HOST_EXECUTION", "off");
    EXPECT_EQ(host_execution({}), HostExecution::off);
    EXPECT_EQ(host_execution({.host_execution = HostExecution::always}), HostExecution::always);
  }
  for (const auto& [word, mode] : {std::pair{"always", HostExecution::always},
                                   {"automatic", HostExecution::automatic},
                                   {"", HostExecution::automatic}}) {
    const Environment asked("SAMEBYTES_HOST_EXECUTION", word);
    EXPECT_EQ(host_execution({}), mode);
  }
  const Environment asked("SAMEBYTES_HOST_EXECUTION", "on");
  EXPECT_ERROR(Engine(), ArgumentError,
               "SAMEBYTES_HOST_EXECUTION: expected automatic, queued, off or always, got \"on\"");
}

}  // namespace
}  // namespace samebytes::detail
