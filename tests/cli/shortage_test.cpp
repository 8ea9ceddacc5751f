// Too little of what the system gives: address space, open files, disk, and a clock that jumps. A run ends well or with
// a sentence, in time, and loses nothing that was there before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/command.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

// The command under limits of the shell; killed after a minute, which is status 137.
Outcome run_limited(const std::string& limits, const std::string& words) {
  return run_program({"/bin/bash", "-c", limits + " timeout -s KILL 60 " + built_program("samebytes") + " " + words});
}

class ShortageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "sanitizers reserve more than these limits leave";
  }
  const TemporaryFolder folder_;
  const std::string net_ = folder_ / "net.safetensors";
  const std::string train_ = "train digits --steps 8 --batch 32 --quiet --save " + net_;
};

TEST_F(ShortageTest, little_address_space_ends_a_run_with_a_sentence_and_does_not_hang) {
  for (const char* kib : {"350000", "700000", "1500000"}) {
    const Outcome outcome = run_limited(std::string("ulimit -v ") + kib + ";", train_);
    ASSERT_NE(outcome.status, 137) << kib << " KiB: it hung\n" << outcome.output;
    // PoCL itself ends a process in which it can start no thread, with a line of its own.
    if (outcome.output.find("PTHREAD ERROR") != std::string::npos) continue;
    EXPECT_THAT(outcome.status, AnyOf(Eq(0), Eq(1))) << kib << " KiB\n" << outcome.output;
    if (outcome.status == 1) {
      EXPECT_THAT(outcome.output, HasSubstr("samebytes: ")) << kib;
    }
  }
}

TEST_F(ShortageTest, few_open_files_end_a_run_with_a_sentence) {
  for (const char* files : {"3", "5", "8", "12", "16", "24"}) {
    std::filesystem::remove_all(folder_ / "state");
    const Outcome outcome =
        run_limited(std::string("ulimit -n ") + files + ";",
                    train_ + " --checkpoint " + (folder_ / "state") + " --log " + (folder_ / "log.jsonl"));
    if (outcome.status == 128 + SIGABRT) {  // PoCL ends the process where it cannot open a kernel, and says so
      EXPECT_THAT(outcome.output, HasSubstr("Too many open files")) << files;
      continue;
    }
    ASSERT_THAT(outcome.status, AnyOf(Eq(0), Eq(1), Eq(127))) << files << " files\n" << outcome.output;
    if (outcome.status == 1) {
      EXPECT_THAT(outcome.output, HasSubstr("samebytes: ")) << files;
    }
  }
}

// A limit on the size of files stands in for a full disk; each size ends another write.
TEST_F(ShortageTest, a_full_disk_keeps_the_old_network_and_the_old_checkpoints) {
  const std::string state = folder_ / "state", words = train_ + " --checkpoint " + state + " --checkpoint-every 4";
  ASSERT_EQ(run_limited("", words).status, 0);
  const std::string before = get(net_);
  const auto count = [&] { return std::distance(std::filesystem::directory_iterator(state), {}); };
  const auto kept = count();
  for (const char* kib : {"0", "1", "8", "32", "128"}) {
    const Outcome outcome = run_limited(std::string("trap '' XFSZ; ulimit -f ") + kib + ";",
                                        words + " --seed 7 --resume auto --log " + (folder_ / "log.jsonl"));
    EXPECT_THAT(outcome.status, AnyOf(Eq(0), Eq(1))) << kib << " KiB\n" << outcome.output;
    EXPECT_THAT(outcome.output, AnyOf(Eq(""), HasSubstr("samebytes"))) << kib;
    if (outcome.status == 1) {
      EXPECT_TRUE(get(net_) == before) << kib;
    }
    EXPECT_GE(count(), kept) << kib;
  }
}

TEST_F(ShortageTest, a_clock_that_jumps_changes_nothing) {
  const TemporaryFolder curves;
  const std::string words =
      train_ + " --checkpoint " + (folder_ / "state") + " --checkpoint-every 4 --tensorboard " + curves.string();
  ASSERT_EQ(run_limited("", words).status, 0);
  const std::string before = get(net_);
  std::filesystem::remove_all(folder_ / "state");
  const Outcome outcome = run_limited(
      "LD_PRELOAD=" + built_program("libfaults_preload.so") + " SAMEBYTES_FAULTS='jump clock_gettime 1'", words);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(get(net_) == before);
}

TEST_F(ShortageTest, ctrl_c_before_the_first_step_gives_130) {
  CommandRun run;
  run.arguments = {"train", "digits", "--epochs", "100000", "--explain"};
  run.signal_after = "\n";
  const CommandResult result = run_command(run);
  EXPECT_EQ(result.status, 130) << result.out.substr(0, 300) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("nan")));
}

TEST_F(ShortageTest, states_of_runs_are_for_their_owner_alone) {
  const std::string state = folder_ / "state";
  ASSERT_EQ(run_limited("umask 022;", train_ + " --checkpoint " + state).status, 0);
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(state)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++seen;
    EXPECT_EQ(entry.status().permissions() & std::filesystem::perms(0077), std::filesystem::perms::none)
        << entry.path();
  }
  EXPECT_GT(seen, 0);
  EXPECT_EQ(std::filesystem::status(net_).permissions(), std::filesystem::perms(0644));
}

}  // namespace
}  // namespace samebytes::testing
