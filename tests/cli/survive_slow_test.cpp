// Many kills at drawn moments, of runs with everything that has a state.
#include <csignal>

#include "cli/killed_run.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

struct Case {
  const char* name;
  Words options;
};

class SurviveSlow : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Of, SurviveSlow,
    ::testing::Values(
        Case{"plain", {}}, Case{"scaler_and_averages", {"--precision", "f16", "--ema", "0.95"}},
        Case{"plateau_and_clipping",
             {"--schedule", "plateau", "--every", "1", "--optimizer", "sgd", "--momentum", "0.9", "--clip-norm", "1"}},
        Case{"bf16_one_cycle", {"--precision", "bf16", "--schedule", "onecycle", "--workers", "0"}},
        Case{"adaptive_f16", {"--adaptive-batch", "--batch", "16", "--precision", "f16", "--steps", "200"}},
        Case{"adafactor", {"--optimizer", "adafactor", "--batch", "100"}}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(SurviveSlow, many_kills_change_nothing) {
  const Files plain, killed;
  const Words run = joined({"train", "digits", "--epochs", "4", "--quiet"}, GetParam().options);
  const CommandResult whole = run_command(joined(run, plain.words()));
  ASSERT_EQ(whole.status, 0) << whole.err;
  kill_until_done(joined(run, killed.keeping("1")), killed, 7, 12);
  expect_same_run(plain, killed);
}

TEST(SurviveSlowSets, a_residual_network_with_augmentation_goes_on) {
  const std::string folder = data_folder("cifar10_small");
  SAMEBYTES_NEED_DATA(folder);
  const Files plain, killed;
  const Words run = {"train", "resnet20", "--data", folder, "--steps", "12", "--batch", "16", "--quiet"};
  const CommandResult whole = run_command(joined(run, plain.words()));
  ASSERT_EQ(whole.status, 0) << whole.err;
  kill_until_done(joined(run, killed.keeping("2")), killed, 3, 3);
  expect_same_run(plain, killed);
}

// Half a minute of waiting, and no work: the driver loses the 300th launch, and the signal comes when the run waits for
// it.
TEST(SurviveSlowSignals, one_sigterm_ends_a_run_that_hangs_in_its_driver) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  const TemporaryFolder folder;
  const Outcome outcome = run_program(
      {"/bin/bash", "-c",
       "LD_PRELOAD=$PRELOAD \"$COMMAND\" train digits --epochs 1000 --stall-seconds 0 --host-execution off & "
       "for i in $(seq 600); do [ -s \"$SAMEBYTES_FAULTS_SEEN\" ] && break; sleep 0.1; done; sleep 1; "
       "kill -TERM $!; wait $!"},
      {{"PRELOAD", built_program("libfaults_preload.so")},
       {"COMMAND", built_program("samebytes")},
       {"SAMEBYTES_FAULTS", "silent clEnqueueNDRangeKernel 300"},
       {"SAMEBYTES_FAULTS_SEEN", folder / "seen"}});
  EXPECT_EQ(outcome.status, 128 + SIGALRM) << outcome.output;
}

}  // namespace
}  // namespace samebytes::testing
