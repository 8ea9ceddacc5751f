// Checksums beside the driver's kernels, on a folder that looks like PoCL's.
#include "runtime/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "support/files.h"

namespace samebytes::detail {
namespace {

namespace fs = std::filesystem;
using samebytes::testing::get;
using samebytes::testing::put;
using samebytes::testing::TemporaryFolder;

// A shared object as far as its length is looked at.
std::string object(char fill) {
  std::string bytes(200, fill);
  bytes.replace(0, 4,
                "\x7f"
                "ELF");
  for (std::size_t i = 40; i < 48; ++i) bytes[i] = i == 40 ? 100 : 0;  // sections at byte 100, one of 64
  for (std::size_t i = 58; i < 62; ++i) bytes[i] = i == 58 ? 64 : i == 60 ? 1 : 0;
  return bytes;
}

class KernelCacheTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string program_ = folder_ / "AB/CDEF";
  const std::string kernel_ = program_ + "/gemm/1-1-1/gemm.so";
  const Key128 key_ = program_key("text", "options", "device", "driver");

  // What the driver does where its folder has nothing: compiles, renames into place, and touches the folder.
  void build_by_driver(const std::string& bitcode = "bitcode", std::chrono::milliseconds compiling = {}) {
    fs::create_directories(fs::path(kernel_).parent_path());
    if (!fs::exists(program_ + "/program.bc")) {
      std::this_thread::sleep_for(compiling);
      put(program_ + "/" + bitcode, bitcode);
      fs::rename(program_ + "/" + bitcode, program_ + "/program.bc");
    }
    put(program_ + "/last_accessed", "");
  }
  void launch_by_driver() {
    fs::create_directories(fs::path(kernel_).parent_path());
    if (!fs::exists(kernel_)) put(kernel_, object('a'));
  }
  // One engine's life with this program; returns what was found wrong.
  std::string run() {
    KernelCache cache(folder_.string());
    std::string wrong;
    {
      KernelCache::Checked checked = cache.check(key_);
      wrong = checked.wrong;
      build_by_driver();
      cache.note_built(key_);
    }
    cache.note_use(key_, "gemm");
    launch_by_driver();
    return wrong;
  }
  // The same in a process of its own, which remembers nothing; ends by a signal in the launch if `crashes`.
  std::string run_apart(bool crashes = false) {
    const std::string said = folder_ / "said";
    const pid_t child = fork();
    if (child == 0) {
      KernelCache cache(folder_.string());
      const std::string wrong = cache.check(key_).wrong;
      build_by_driver();
      cache.note_built(key_);
      cache.note_use(key_, "gemm");
      launch_by_driver();
      if (crashes) raise(SIGKILL);
      cache.settle();
      put(said, wrong);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WIFSIGNALED(status), crashes);
    return crashes ? "" : get(said);
  }
};

TEST_F(KernelCacheTest, a_file_that_changed_is_named_and_its_program_is_removed) {
  EXPECT_EQ(run_apart(), "");
  EXPECT_EQ(run_apart(), "");
  std::string bytes = get(kernel_);
  bytes[150] ^= 1;
  put(kernel_, bytes);
  EXPECT_EQ(run_apart(), kernel_ + " does not match its checksum");
  EXPECT_EQ(get(kernel_), object('a'));
  put(program_ + "/program.bc", "bitkode");
  EXPECT_EQ(run_apart(), program_ + "/program.bc does not match its checksum");
  EXPECT_EQ(get(program_ + "/program.bc"), "bitcode");
  EXPECT_EQ(run_apart(), "");
}

TEST_F(KernelCacheTest, a_file_that_was_cut_off_before_it_had_a_checksum_is_removed) {
  EXPECT_EQ(run_apart(), "");
  fs::create_directories(program_ + "/other/1-1-1");
  put(program_ + "/other/1-1-1/other.so", object('b').substr(0, 120));
  EXPECT_EQ(run_apart(), program_ + "/other/1-1-1/other.so is cut off");
}

TEST_F(KernelCacheTest, a_kernel_that_ended_its_process_is_not_tried_again) {
  run_apart(true);
  ASSERT_TRUE(fs::exists(kernel_));
  put(kernel_, object('x'));  // what ended it
  EXPECT_EQ(run_apart(), "");
  EXPECT_EQ(get(kernel_), object('a'));
}

TEST_F(KernelCacheTest, a_kernel_with_its_checksum_survives_a_process_that_is_killed) {
  EXPECT_EQ(run_apart(), "");
  const auto written = fs::last_write_time(kernel_);
  run_apart(true);
  EXPECT_EQ(run_apart(), "");
  EXPECT_EQ(fs::last_write_time(kernel_), written);
}

TEST_F(KernelCacheTest, nothing_is_removed_while_another_process_tries_kernels) {
  run_apart(true);
  put(kernel_, object('x'));
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready) + pipe(done), 0);
  const pid_t living = fork();
  if (living == 0) {
    close(ready[0]);
    close(done[1]);
    const std::string marker = folder_ / "samebytes/trying-living";
    // As a process that holds its marker.
    const int file = open(marker.c_str(), O_RDWR | O_CREAT, 0600);
    if (flock(file, LOCK_EX) != 0) _exit(1);
    char byte = 0;
    if (write(ready[1], "r", 1) != 1 || read(done[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  close(ready[1]);
  close(done[0]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  run_apart();
  EXPECT_EQ(get(kernel_), object('x'));
  close(done[1]);
  int status = 0;
  waitpid(living, &status, 0);
  EXPECT_EQ(status, 0);
  close(ready[0]);
}

// The driver's bitcode is another one in each process. One that began to compile before another was done would replace
// what that one has noted, and the next process would remove a program that others use.
TEST_F(KernelCacheTest, processes_that_build_at_once_leave_the_bytes_that_were_noted) {
  const auto build = [&](const std::string& bitcode, int milliseconds, bool is_killed) {
    const pid_t child = fork();
    if (child != 0) return child;
    KernelCache cache(folder_.string());
    {
      const KernelCache::Checked checked = cache.check(key_);
      build_by_driver(bitcode, std::chrono::milliseconds(milliseconds));
      cache.note_built(key_);
    }
    cache.note_use(key_, "gemm");
    launch_by_driver();
    if (is_killed) raise(SIGKILL);
    cache.settle();
    _exit(0);
  };
  const pid_t fast = build("fast", 50, false), slow = build("slow", 250, true);
  int status = 0;
  waitpid(fast, &status, 0);
  EXPECT_EQ(status, 0);
  waitpid(slow, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(run_apart(), "");
}

TEST_F(KernelCacheTest, a_process_that_was_killed_in_its_turn_keeps_nobody_waiting) {
  const pid_t killed = fork();
  if (killed == 0) {
    KernelCache cache(folder_.string());
    const KernelCache::Checked checked = cache.check(key_);
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(killed, &status, 0);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(run_apart(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST_F(KernelCacheTest, what_the_driver_makes_again_is_not_held_against_former_checksums) {
  EXPECT_EQ(run_apart(), "");
  fs::remove_all(program_);
  const pid_t child = fork();
  if (child == 0) {
    KernelCache cache(folder_.string());
    {
      const KernelCache::Checked checked = cache.check(key_);
      build_by_driver("other");
      cache.note_built(key_);
    }
    cache.note_use(key_, "gemm");
    launch_by_driver();
    cache.settle();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(run_apart(), "");
  EXPECT_EQ(get(program_ + "/program.bc"), "other");
}

TEST_F(KernelCacheTest, damaged_checksums_are_made_again_and_damaged_markers_remove_nothing) {
  run_apart();
  for (const auto& entry : fs::directory_iterator(folder_ / "samebytes"))
    if (entry.path().filename() != "lock") put(entry.path(), get(entry.path()).substr(0, 90));
  put(folder_ / "samebytes/trying-x", "key ../../outside\nkey /etc\nnonsense");
  EXPECT_EQ(run_apart(), "");
  EXPECT_TRUE(fs::exists(kernel_));
  std::string bytes = get(kernel_);
  bytes[150] ^= 1;
  put(kernel_, bytes);
  EXPECT_EQ(run_apart(), kernel_ + " does not match its checksum");
}

// As AtomicFile's: another machine may work in the same folder, so what is young stays.
TEST_F(KernelCacheTest, what_killed_processes_were_writing_or_removing_is_gone_after_an_hour) {
  run_apart();
  const std::string own = folder_ / "samebytes/", sums = own + "0123.tmp-", removed = own + "removed.tmp-";
  const std::string dead = "4194305-", alive = std::to_string(::getpid()) + "-";
  for (const char* const number : {"1", "2"}) {
    put(sums + dead + number, "half");
    fs::create_directories(removed + dead + number + "/program");
  }
  put(sums + alive + "1", "half");
  for (const std::string& path : {sums + dead + "1", removed + dead + "1", sums + alive + "1"})
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(run_apart(), "");
  EXPECT_FALSE(fs::exists(sums + dead + "1"));
  EXPECT_FALSE(fs::exists(removed + dead + "1"));
  for (const std::string& path : {sums + dead + "2", removed + dead + "2", sums + alive + "1"})
    EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(KernelCacheTest, checksums_that_lead_out_of_the_cache_remove_nothing_there) {
  run_apart();
  const TemporaryFolder other;
  put(other / "program.bc", "of somebody else");
  for (const std::string& folder : {"../" + fs::path(other.string()).filename().string(), other.string()}) {
    put(folder_ / ("samebytes/" + hex_text(key_)),
        with_checksum("samebytes kernel checksums 1\n" + folder + "\n1 1 1 program.bc\n"));
    EXPECT_EQ(run_apart(), "");
    EXPECT_EQ(get(other / "program.bc"), "of somebody else");
  }
}

TEST_F(KernelCacheTest, a_folder_that_cannot_be_written_is_left_alone) {
  KernelCache missing(folder_ / "missing"), none("");
  for (KernelCache* cache : {&missing, &none}) {
    EXPECT_EQ(cache->check(key_).wrong, "");
    cache->note_built(key_);
    cache->note_use(key_, "gemm");
    EXPECT_FALSE(cache->is_unsettled());
  }
  EXPECT_EQ(folder_.count(), 0u);
}

TEST_F(KernelCacheTest, files_of_checksums_are_for_their_owner_alone) {
  run();
  for (const auto& entry : fs::directory_iterator(folder_ / "samebytes"))
    EXPECT_EQ(fs::status(entry).permissions() & fs::perms(077), fs::perms::none) << entry.path();
  EXPECT_EQ(fs::status(folder_ / "samebytes").permissions() & fs::perms(077), fs::perms::none);
}

}  // namespace
}  // namespace samebytes::detail
