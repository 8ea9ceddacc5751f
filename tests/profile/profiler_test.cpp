// The profiler: every launch is there once, with its layer, its counts and its time; the schedule; what it costs
// results (nothing) and what it refuses.
#include "samebytes/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samebytes/samebytes.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

nn::Sequential small_net() {
  return nn::Sequential(nn::Linear({.in = 12, .out = 8}), nn::Relu(), nn::Linear({.in = 8, .out = 3}));
}

// Three recorded steps of a small network after one of warm-up.
struct Recording {
  Profile profile;
  std::vector<float> losses;
  std::uint64_t launches = 0;
};

Recording run_steps(bool is_profiled) {
  Engine engine({.profile = is_profiled});
  nn::Sequential net = small_net();
  optim::AdamW adam(net.parameters());
  std::optional<Profiler> profiler;
  if (is_profiled) profiler.emplace(engine, ProfilerOptions{.wait = 1, .warmup = 1, .active = 3});
  Recording run;
  for (int step = 0; step < 6; ++step) {
    const std::uint64_t before = engine.plans().launches;
    const Array x = normal({5, 12}), label = full({5}, static_cast<double>(step % 3), i32);
    const Array loss = cross_entropy(net(x), label);
    adam.step(loss);
    run.launches = engine.plans().launches - before;
    if (profiler) profiler->step();
    run.losses.push_back(loss.value());
  }
  if (profiler) run.profile = profiler->stop();
  return run;
}

TEST(ProfilerTest, every_launch_of_the_active_steps_is_there_once) {
  const Recording run = run_steps(true);
  const Profile& profile = run.profile;
  EXPECT_EQ(profile.steps, 3);
  ASSERT_EQ(profile.devices.size(), 1u);
  EXPECT_EQ(profile.launches.size(), 3 * run.launches);
  double products = 0;
  for (const ProfiledLaunch& launch : profile.launches) {
    EXPECT_GE(launch.step, 0);
    EXPECT_LT(launch.step, 3);
    EXPECT_GE(launch.seconds, 0);
    EXPECT_GE(launch.start, -1e-3) << launch.op;
    EXPECT_LE(launch.start + launch.seconds, profile.seconds + 1e-3) << launch.op;
    EXPECT_GT(launch.bytes, 0) << launch.op;
    EXPECT_GT(launch.live_bytes, 0u);
    if (launch.layer == "0 Linear" && !launch.is_gradient && launch.op.find("linear") != std::string::npos)
      products += launch.flops;
  }
  EXPECT_EQ(products, 3 * 2.0 * 5 * 12 * 8);
  EXPECT_LE(profile.busy_seconds(), profile.seconds);
}

TEST(ProfilerTest, launches_belong_to_the_layer_whose_forward_or_gradient_they_are) {
  const Profile profile = run_steps(true).profile;
  std::set<std::pair<std::string, bool>> seen;
  for (const ProfiledLaunch& launch : profile.launches) seen.insert({launch.layer, launch.is_gradient});
  for (const char* layer : {"0 Linear", "2 Linear"}) {
    EXPECT_TRUE(seen.count({layer, false})) << layer;
    EXPECT_TRUE(seen.count({layer, true})) << layer;
  }
  EXPECT_TRUE(seen.count({"optimizer", false}));
}

TEST(ProfilerTest, results_are_the_same_bytes_with_it_and_without) {
  EXPECT_EQ(run_steps(true).losses, run_steps(false).losses);
}

TEST(ProfilerTest, scopes_name_spans_and_nodes) {
  Engine engine({.profile = true});
  Profiler profiler(engine);
  {
    const ProfileScope scope("mine");
    (full({7}, 2.0f) + full({7}, 1.0f)).eval();
  }
  profiler.step();
  const Profile profile = profiler.stop();
  ASSERT_FALSE(profile.launches.empty());
  EXPECT_EQ(profile.launches.back().layer, "mine");
  const auto is_mine = [](const ProfiledSpan& span) { return span.name == "mine" && span.lane == "host"; };
  EXPECT_EQ(std::count_if(profile.spans.begin(), profile.spans.end(), is_mine), 1);
}

TEST(ProfilerTest, refuses_what_it_cannot_do) {
  {
    Engine engine;
    EXPECT_ERROR(Profiler(engine, {}), ArgumentError,
                 "Profiler: the engine was opened without EngineOptions::profile, its queues note no times");
  }
  Engine engine({.profile = true});
  EXPECT_ERROR((Profiler(engine, {.wait = -1})), ArgumentError,
               "Profiler: wait, warmup and active must be 0 or more, got -1, 0 and 0");
  Profiler profiler(engine);
  EXPECT_ERROR(Profiler(engine, {}), ArgumentError, "Profiler: the engine has one already");
  profiler.stop();
  EXPECT_ERROR(profiler.stop(), ArgumentError, "Profiler: it was stopped before; make another one");
}

// Two kernels on a device of 100 GFLOP/s and 10 GB/s.
Profile made_profile() {
  Profile profile;
  profile.devices = {"a <device>"};
  profile.peak = {.gflops = 100, .gigabytes_per_second = 10};
  profile.steps = 2;
  profile.seconds = 0.01;
  for (int step = 0; step < 2; ++step) {
    const double t = 0.005 * step;
    profile.launches.push_back({.op = "matmul",
                                .kernel = "gemm",
                                .layer = "fc",
                                .shape = "[2, 3]",
                                .step = step,
                                .start = t,
                                .seconds = 0.002,
                                .flops = 1e8,
                                .bytes = 1e6,
                                .live_bytes = 1000});
    profile.launches.push_back({.op = "relu",
                                .kernel = "fused",
                                .layer = "fc",
                                .shape = "[2, 3]",
                                .is_gradient = true,
                                .step = step,
                                .start = t + 0.001,
                                .seconds = 0.002,
                                .flops = 1e3,
                                .bytes = 1e7,
                                .live_bytes = 2000});
  }
  profile.spans.push_back({.lane = "loader 0", .name = "fill batch", .start = 0.001, .seconds = 0.001});
  return profile;
}

TEST(ProfileReportTest, rows_have_shares_and_bounds) {
  const Profile profile = made_profile();
  const std::vector<ProfileRow> rows = profile_rows(profile, ProfileBy::kernel, ProfileSort::flops);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "gemm");
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_DOUBLE_EQ(rows[0].share, 0.5);
  EXPECT_DOUBLE_EQ(rows[0].share_of_bound, 0.5);    // 1e8 at 1e11 a second is 1 ms of 2
  EXPECT_DOUBLE_EQ(rows[1].share_of_bound, 0.5);    // 1e7 at 1e10 a second is 1 ms of 2
  EXPECT_DOUBLE_EQ(profile.busy_seconds(), 0.006);  // overlapping launches count once
  const std::string table = profile_table(profile, {.by = ProfileBy::kernel, .top = 1});
  EXPECT_NE(table.find("(1 more)"), std::string::npos) << table;
  EXPECT_EQ(profile_rows(profile, ProfileBy::layer).size(), 1u);
}

TEST(ProfileReportTest, the_trace_is_json_with_lanes_and_a_memory_counter) {
  const auto trace = nlohmann::json::parse(chrome_trace(made_profile()));
  std::set<std::string> names;
  int complete = 0, counters = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") names.insert(event.at("args").at("name").get<std::string>());
    complete += event.at("ph") == "X";
    counters += event.at("ph") == "C";
  }
  EXPECT_TRUE(names.count("loader 0"));
  EXPECT_TRUE(names.count("a <device>"));
  EXPECT_EQ(complete, 5);
  EXPECT_EQ(counters, 4);
}

TEST(ProfileReportTest, the_page_needs_nothing_else_and_an_empty_profile_has_one) {
  const std::string page = profile_html(made_profile(), "a & b");
  EXPECT_NE(page.find("a &amp; b"), std::string::npos);
  EXPECT_NE(page.find("a &lt;device&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  std::size_t plots = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) ++plots;
  EXPECT_EQ(plots, 3u);
  EXPECT_NE(profile_html(Profile{}, "nothing").find("</html>"), std::string::npos);
  EXPECT_FALSE(profile_table(Profile{}).empty());
}

}  // namespace
}  // namespace samebytes::testing
