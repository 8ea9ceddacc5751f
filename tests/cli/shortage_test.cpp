// Too little of what the system gives: address space, open files, disk, and a clock that jumps. A run ends well or with
// a sentence, in time, and loses nothing that was there before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/command.h"
#include "samebytes/device.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::AllOf;
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

TEST_F(ShortageTest, no_linker_is_named_before_the_driver_ends_the_process) {
  const auto run_with = [&](const std::string& environment) {
    return run_program({"/usr/bin/env", "-i", "POCL_CACHE_DIR=" + (folder_ / "kernels"), environment,
                        built_program("samebytes"), "train", "digits", "--steps", "2", "--batch", "16", "--quiet"});
  };
  for (const char* path : {"PATH=/nowhere:/tmp", "HOME=/tmp"}) {
    const Outcome outcome = run_with(path);
    if (outcome.status == 0) GTEST_SKIP() << "this driver links without ld";
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("samebytes: "), HasSubstr("links kernels with ld"),
                                      HasSubstr("set PATH, or install binutils")));
  }
  EXPECT_EQ(run_with("PATH=/usr/bin:/bin").status, 0);
}

TEST_F(ShortageTest, a_home_of_somebody_else_is_named) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  std::filesystem::create_directories(folder_ / "home");
  std::filesystem::permissions(folder_ / "home", std::filesystem::perms::owner_all);
  const Outcome outcome = run_program(
      {"/bin/bash", "-c",
       "cd /; exec setpriv --reuid=65534 --regid=65534 --clear-groups env -u XDG_CACHE_HOME -u POCL_CACHE_DIR HOME=" +
           (folder_ / "home") + " " + built_program("samebytes") + " devices"});
  if (outcome.output.find("samebytes: ") == std::string::npos)
    GTEST_SKIP() << "nobody may not run it: " << outcome.output;
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("cannot be written; set POCL_CACHE_DIR to a folder that can"));
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

// A file system of its own, as root of a user namespace; where that is not allowed, the limit above stands in for it.
class MountTest : public ShortageTest {
 protected:
  void SetUp() override {
    ShortageTest::SetUp();
    if (run_program({"unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"}).status != 0)
      GTEST_SKIP() << "this user may not mount anything";
  }
  static Outcome run_mounted(const std::string& script) {
    return run_program({"unshare", "-rm", "/bin/bash", "-c", script});
  }
};

// A disk with that much room for a run that goes on, and with all of it again for the next one.
TEST_F(MountTest, a_disk_that_becomes_full_costs_neither_network_nor_checkpoints) {
  const std::string disk = folder_ / "disk", command = "timeout -s KILL 60 " + built_program("samebytes");
  std::filesystem::create_directory(disk);
  const auto train = [&](int steps) {
    return command + " train digits --steps " + std::to_string(steps) +
           " --batch 32 --quiet --schedule constant --save net --checkpoint state --checkpoint-every 4 --resume auto"
           " --log log";
  };
  for (const char* room : {"0", "40"}) {
    const Outcome outcome = run_mounted(
        "mount -t tmpfs -o size=2m none " + disk + " && cd " + disk + " && " + train(8) + " >/dev/null && " +
        "cp net before && head -c $(($(df --output=avail -B 1 . | tail -n 1) - " + room + "000)) /dev/zero >fill; " +
        train(16) + " >/dev/null; echo \"status $?\"; cmp net before && echo kept; ls state; rm fill; " + train(16) +
        " >/dev/null && cmp net before; echo \"then $?\"");
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("status 1"), HasSubstr("samebytes: "), HasSubstr("kept"))) << room;
    EXPECT_THAT(outcome.output, HasSubstr("checkpoint-000000008.safetensors")) << room;
    EXPECT_THAT(outcome.output, AllOf(Not(HasSubstr(".tmp")), HasSubstr("then 1"))) << "the network differs now";
  }
}

TEST_F(MountTest, a_kernel_cache_that_cannot_be_written_is_named) {
  const std::string cache = folder_ / "cache";
  std::filesystem::create_directory(cache);
  if (list_devices().front().platform != "Portable Computing Language") GTEST_SKIP() << "its driver keeps no kernels";
  const Outcome outcome =
      run_mounted("mount --bind " + cache + " " + cache + " && mount -o remount,bind,ro " + cache +
                  " && POCL_CACHE_DIR=" + cache + " timeout -s KILL 60 " + built_program("samebytes") + " " + train_);
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("the driver cannot write to its kernel cache " + cache +
                                        " (Read-only file system); set POCL_CACHE_DIR"));
}

// A control group of version 1 or 2 that a process can be put into; nothing where there is none to be made.
std::string make_group(const std::string& name) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool is_second = line.rfind("0::", 0) == 0;
    if (!is_second && line.find(":memory:") == std::string::npos) continue;
    const std::string group =
        (is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + line.substr(line.rfind(':') + 1) + "/" + name;
    std::error_code error;
    std::filesystem::create_directory(group, error);
    if (!error && std::ofstream(group + (is_second ? "/memory.max" : "/memory.limit_in_bytes")) << "1000000000\n" &&
        std::filesystem::exists(group + (is_second ? "/memory.peak" : "/memory.max_usage_in_bytes")))
      return group;
    std::filesystem::remove(group, error);
  }
  return "";
}

// Of the memory that a run takes nine tenths are allowed: it gives up what it can, or ends with a sentence. The system
// would kill it.
TEST_F(ShortageTest, a_group_with_nine_tenths_of_what_a_run_takes_ends_it_with_a_sentence_or_not_at_all) {
  const std::string group = make_group("samebytes-" + std::to_string(getpid()));
  if (group.empty()) GTEST_SKIP() << "this user can make no control group with a limit of memory";
  const bool is_second = std::filesystem::exists(group + "/memory.max");
  const std::string text = folder_ / "text";
  {
    std::ofstream out(text);
    for (int i = 0; i < 300; ++i) out << "line " << i * i << " of a text\n";
  }
  const auto run = [&](long limit) {
    std::ofstream(group + (is_second ? "/memory.max" : "/memory.limit_in_bytes")) << limit << "\n";
    return run_limited("echo $$ >" + group + "/cgroup.procs;",
                       "train gpt --data " + text + " --context 64 --batch 256 --steps 2 --quiet --save " + net_);
  };
  const Outcome whole = run(long{4} << 30);
  ASSERT_EQ(whole.status, 0) << whole.output;
  long peak = 0;
  std::ifstream(group + (is_second ? "/memory.peak" : "/memory.max_usage_in_bytes")) >> peak;
  ASSERT_GT(peak, 100'000'000);
  const Outcome outcome = run(peak / 10 * 9);
  EXPECT_THAT(outcome.status, AnyOf(Eq(0), Eq(1))) << outcome.output;
  if (outcome.status == 1) {
    EXPECT_THAT(outcome.output, HasSubstr("samebytes: "));
  }
  std::error_code ignored;
  std::filesystem::remove(group, ignored);
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

// For debugging; its kernels are the driver's alone.
TEST(Protected, training_goes_on_while_no_view_opens_its_pages) {
  for (const char* how : {"1", "pages"}) {
    const Outcome outcome = run_program({built_program("samebytes"), "train", "digits", "--steps", "2", "--quiet"},
                                        {{"SAMEBYTES_PROTECT", how}});
    EXPECT_EQ(outcome.status, 0) << how << outcome.output;
  }
}

}  // namespace
}  // namespace samebytes::testing
