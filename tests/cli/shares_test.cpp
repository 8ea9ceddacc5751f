// train and bench over the parts of a device: what the start line, the log and the summary say, repetition,
// checkpoints, devices that fail, and wrong options.
#include <gmock/gmock.h>

#include "cli/killed_run.h"
#include "samebytes/device.h"
#include "support/process.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

const Words kRun = {"train", "digits", "--steps", "30", "--quiet", "--split-device", "1,1"};

class SharesTest : public ::testing::Test {
 protected:
  void SetUp() override { SAMEBYTES_NEEDS_PARTS(); }
};

nlohmann::json event_in(const std::string& log, const std::string& event) {
  for (const nlohmann::json& line : lines_of(log))
    if (line["event"] == event) return line;
  return {};
}

// Of the launches on the second device.
std::map<std::string, std::string> trouble(const std::string& kind) {
  return {{"LD_PRELOAD", built_program("libfaults_preload.so")},
          {"SAMEBYTES_FAULTS", kind + " clEnqueueNDRangeKernel 401 queue=1"}};
}

TEST_F(SharesTest, says_shares_and_samples_and_repeats) {
  const Files first, second;
  const CommandResult run = run_command(joined(kRun, joined(first.words(), {"--json"})));
  ASSERT_EQ(run.status, 0) << run.err;
  const auto summary = run.json();
  EXPECT_EQ(summary["bytes_copied_per_step"], 0);
  ASSERT_EQ(summary["shares"].size(), 2u);
  EXPECT_EQ(summary["shares"][0]["share"], 32);
  EXPECT_EQ(summary["shares"][0]["samples"].get<int>() + summary["shares"][1]["samples"].get<int>(),
            summary["samples"].get<int>());
  EXPECT_TRUE(summary["device_events"].empty());
  const nlohmann::json start = event_in(first.log, "start");
  EXPECT_EQ(start["shares"], nlohmann::json({32, 32}));
  EXPECT_EQ(start["devices"].size(), 2u);
  EXPECT_EQ(start["repeats"], true);
  ASSERT_EQ(run_command(joined(kRun, second.words())).status, 0);
  expect_same_run(first, second);
}

TEST_F(SharesTest, a_killed_run_goes_on_with_its_shares) {
  const Words run = joined(kRun, {"--shares", "3,1"});
  const Files plain, killed;
  ASSERT_EQ(run_command(joined(run, plain.words())).status, 0);
  kill_until_done(joined(run, killed.keeping("2")), killed, 1, 2);
  expect_same_run(plain, killed);
  // The same shares, but from the checkpoint, would be another option; another set of devices is refused.
  const Words rest = joined(killed.keeping("2"), {"--resume", "auto"});
  const CommandResult alone = run_command(joined({"train", "digits", "--steps", "30", "--quiet"}, rest));
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("the devices is cpu:0.0"));
}

TEST_F(SharesTest, a_device_that_fails_or_is_silent_is_given_up) {
  const Files plain;
  const CommandResult whole = run_command(joined(kRun, joined(plain.words(), {"--json"})));
  ASSERT_EQ(whole.status, 0) << whole.err;
  for (const char* what : {"error", "silent"}) {
    const Files files;
    CommandRun run;
    run.arguments = joined(kRun, joined(files.words(), {"--json", "--device-timeout", "0.5"}));
    run.environment = trouble(what);
    const CommandResult result = run_command(run);
    ASSERT_EQ(result.status, 0) << what << result.err;
    const auto summary = result.json();
    ASSERT_EQ(summary["device_events"].size(), 1u) << what;
    EXPECT_EQ(summary["shares"][1]["share"], 0);
    EXPECT_GT(summary["shares"][1]["samples"], 0);
    EXPECT_NEAR(summary["train_loss"].get<double>(), whole.json()["train_loss"].get<double>(), 0.1);
    const nlohmann::json event = event_in(files.log, "device");
    EXPECT_EQ(event["what"], std::string(what) == "error" ? "failed" : "silent");
    EXPECT_THAT(event["text"].get<std::string>(), HasSubstr("cpu:0.1"));
  }
}

TEST_F(SharesTest, bench_runs_in_shares) {
  const CommandResult result = run_command(
      {"bench", "digits", "--steps", "3", "--json", "--quiet", "--split-device", "1,1", "--sync-batch-norm"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto& row : result.json()) {
    EXPECT_EQ(row["shares"].size(), 2u) << row["mode"];
    EXPECT_EQ(row["bytes_copied_per_step"], 0);
  }
}

TEST_F(SharesTest, wrong_options_say_what_is_needed) {
  const auto error = [](const Words& words) {
    const CommandResult result = run_command(joined({"train", "digits", "--steps", "2", "--quiet"}, words));
    EXPECT_EQ(result.status, 2);
    return result.err;
  };
  EXPECT_THAT(error({"--rebalance"}), HasSubstr("--rebalance is for several devices, and the run has one"));
  EXPECT_THAT(error({"--shares", "1,1"}), HasSubstr("--shares is for several devices"));
  const Words split = {"--split-device", "1,1"};
  EXPECT_THAT(error(joined(split, {"--shares", "1,1,1"})), HasSubstr("expected a share of each device"));
  EXPECT_THAT(error(joined(split, {"--shares", "1,1", "--rebalance"})), HasSubstr("use one of the two"));
  EXPECT_THAT(error(joined(split, {"--release-gradients"})), HasSubstr("--release-gradients updates before"));
}

}  // namespace
}  // namespace samebytes::testing
