#include "samebytes/io/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>

#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::io {
namespace {

using testing::get;
using testing::put;
using testing::TemporaryFolder;

std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

IoError error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const IoError& error) {
    return error;
  }
  ADD_FAILURE() << "got no IoError";
  return IoError("", "");
}

TEST(ReadFile, returns_plain_and_unpacked_bytes) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i);
  put(folder / "plain", text);
  put(folder / "packed", gzip(text));
  put(folder / "members", gzip("one ") + gzip("two"));
  put(folder / "nothing", "");
  put(folder / "packed_nothing", gzip(""));
  EXPECT_EQ(text_of(read_file(folder / "plain")), text);
  EXPECT_EQ(text_of(read_file(folder / "packed")), text);
  EXPECT_EQ(text_of(read_file(folder / "members")), "one two");
  EXPECT_TRUE(read_file(folder / "nothing").empty());
  EXPECT_TRUE(read_file(folder / "packed_nothing").empty());
}

TEST(ReadFile, names_a_missing_file_and_a_folder) {
  const TemporaryFolder folder;
  const IoError missing = error_of([&] { read_file(folder / "absent"); });
  EXPECT_EQ(missing.path(), folder / "absent");
  EXPECT_NE(std::string(missing.what()).find("No such file"), std::string::npos) << missing.what();
  EXPECT_NE(std::string(error_of([&] { read_file(folder.string()); }).what()).find("folder"), std::string::npos);
}

TEST(ReadFile, reports_the_offset_of_a_cut_or_damaged_gzip_stream) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007);
  const std::string packed = gzip(text);
  put(folder / "cut", packed.substr(0, packed.size() / 2));
  const IoError cut = error_of([&] { read_file(folder / "cut"); });
  EXPECT_EQ(cut.offset(), static_cast<std::int64_t>(packed.size() / 2));
  EXPECT_NE(std::string(cut.what()).find("the rest of the gzip stream"), std::string::npos) << cut.what();
  put(folder / "no_trailer", packed.substr(0, packed.size() - 4));
  EXPECT_EQ(error_of([&] { read_file(folder / "no_trailer"); }).offset(), static_cast<std::int64_t>(packed.size() - 4));

  std::string damaged = packed;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 0x10);  // in the checksum
  put(folder / "damaged", damaged);
  const IoError damage = error_of([&] { read_file(folder / "damaged"); });
  EXPECT_EQ(damage.path(), folder / "damaged");
  EXPECT_GT(damage.offset(), 0);
  EXPECT_NE(std::string(damage.what()).find("damage: incorrect data check"), std::string::npos) << damage.what();
}

TEST(ReadFile, ends_in_a_device_without_end) {
  if (::access("/dev/zero", R_OK) != 0) GTEST_SKIP() << "no /dev/zero";
  const IoError error = error_of([] { read_file("/dev/zero"); });
  EXPECT_NE(std::string(error.what()).find("at most 256 MiB"), std::string::npos) << error.what();
}

TEST(ReadFile, what_unpacks_to_far_more_than_its_size_is_refused) {
  const TemporaryFolder folder;
  put(folder / "bomb.gz", gzip(std::string(70 << 20, '\0')));
  const IoError error = error_of([&] { read_file(folder / "bomb.gz"); });
  const std::string size = std::to_string(std::filesystem::file_size(folder / "bomb.gz"));
  EXPECT_EQ(error.path(), folder / "bomb.gz");
  EXPECT_NE(std::string(error.what()).find("expected at most 67108864 bytes from " + size + ", found more"),
            std::string::npos)
      << error.what();
  put(folder / "dense.gz", gzip(std::string(60 << 20, '\0')));
  EXPECT_EQ(read_file(folder / "dense.gz").size(), std::size_t{60} << 20);
}

// A few blocks on the disk, 8 TB by its size.
TEST(ReadFile, a_file_larger_than_the_memory_is_refused_before_memory_is_taken) {
  constexpr std::uintmax_t kSize = 8'000'000'000'000;
  const TemporaryFolder folder;
  put(folder / "sparse", "begin");
  std::error_code refused;
  std::filesystem::resize_file(folder / "sparse", kSize, refused);
  if (refused) GTEST_SKIP() << "no file of 8 TB here: " << refused.message();
  const IoError error = error_of([&] { read_file(folder / "sparse"); });
  EXPECT_EQ(error.path(), folder / "sparse");
  const std::string text = error.what();
  EXPECT_NE(text.find(": expected at most "), std::string::npos) << text;
  EXPECT_NE(text.find(" bytes, the memory there is, found 8000000000000"), std::string::npos) << text;
}

// A process that was killed while it wrote: it is gone, and long ago.
TEST(AtomicFile, removes_what_killed_processes_left_of_this_file) {
  const TemporaryFolder folder;
  const std::string path = folder / "net", old = path + ".tmp-4194305-5", young = path + ".tmp-4194305-6";
  const std::string alive = path + ".tmp-" + std::to_string(::getpid()) + "-77", other = folder / "net2.tmp-4194305-5";
  const std::string mine = path + ".tmp-4194305-copy";  // not a name of ours
  for (const std::string& each : {old, young, alive, other, mine}) put(each, "half");
  for (const std::string& each : {old, alive, other, mine})
    std::filesystem::last_write_time(each, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  write_file(path, "whole");
  EXPECT_FALSE(std::filesystem::exists(old));
  for (const std::string& each : {young, alive, other, mine}) EXPECT_TRUE(std::filesystem::exists(each)) << each;
}

TEST(AtomicFile, shows_nothing_before_commit_and_all_after) {
  const TemporaryFolder folder;
  put(folder / "file", "old");
  ::chmod((folder / "file").c_str(), 0640);
  {
    AtomicFile file(folder / "file");
    file.write("new ");
    file.write("bytes");
    EXPECT_EQ(get(folder / "file"), "old");
    file.commit();
  }
  EXPECT_EQ(get(folder / "file"), "new bytes");
  EXPECT_EQ(folder.count(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat((folder / "file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(AtomicFile, leaves_the_old_file_and_no_litter_when_given_up) {
  const TemporaryFolder folder;
  put(folder / "file", "old");
  { AtomicFile(folder / "file").write("half"); }
  EXPECT_EQ(get(folder / "file"), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(AtomicFile, keeps_a_symbolic_link_and_replaces_its_target) {
  const TemporaryFolder folder;
  put(folder / "target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "target"), "new");
}

TEST(AtomicFile, nobody_can_guess_the_name_under_which_it_writes) {
  const TemporaryFolder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    const AtomicFile file(folder / "file");
    for (const auto& entry : std::filesystem::directory_iterator(folder.string()))
      names.push_back(entry.path().filename().string());
  }
  ASSERT_EQ(names.size(), 2u);
  const std::string begin = "file.tmp-" + std::to_string(::getpid()) + "-";
  std::uint64_t numbers[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(names[i].starts_with(begin)) << names[i];
    numbers[i] = std::stoull(names[i].substr(begin.size()));
  }
  EXPECT_GT(numbers[0] > numbers[1] ? numbers[0] - numbers[1] : numbers[1] - numbers[0], 1u << 20) << names[0];
}

TEST(AtomicFile, somebody_elses_link_in_a_folder_of_all_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make links of others";
  const TemporaryFolder folder;
  put(folder / "precious", "old");
  std::filesystem::create_directory(folder / "all");
  ASSERT_EQ(::chmod((folder / "all").c_str(), 01777), 0);
  const std::string link = folder / "all/net";
  std::filesystem::create_symlink("../precious", link);
  write_file(link, "ours");  // one's own link is followed
  EXPECT_EQ(get(folder / "precious"), "ours");
  ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
  const IoError refused = error_of([&] { write_file(link, "bytes"); });
  EXPECT_NE(std::string(refused.what()).find("somebody else's link"), std::string::npos) << refused.what();
  EXPECT_EQ(get(folder / "precious"), "ours");
}

TEST(AtomicFile, names_a_path_that_cannot_be_written) {
  const TemporaryFolder folder;
  const IoError absent = error_of([&] { AtomicFile(folder / "no/such/folder/file"); });
  EXPECT_EQ(absent.path(), folder / "no/such/folder/file");
  EXPECT_NE(std::string(absent.what()).find("No such file"), std::string::npos) << absent.what();
  error_of([&] { AtomicFile("/proc/samebytes"); });  // not even root may
  error_of([&] { AtomicFile(folder.string()); });
}

TEST(AtomicFile, reports_a_full_device_and_does_not_replace_it) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const IoError full = error_of([] { write_file("/dev/full", "bytes"); });
  EXPECT_NE(std::string(full.what()).find("No space left"), std::string::npos) << full.what();
  struct stat info {};
  ASSERT_EQ(::stat("/dev/full", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

// A limit on the size of files stands in for a full disk; it is set in a child process.
TEST(AtomicFile, leaves_the_old_file_whole_when_the_disk_is_full) {
  const TemporaryFolder folder;
  const std::string old(1000, 'o'), path = folder / "file";
  put(path, old);
  constexpr rlim_t kLimit = 64 * 1024;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kLimit, kLimit};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int status = 1;
    try {
      write_file(path, std::string(4 * kLimit, 'n'));
    } catch (const IoError& error) {
      status = error.path() == path && error.offset() == static_cast<std::int64_t>(kLimit) ? 42 : 2;
    }
    ::_exit(status);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(get(path), old);
  EXPECT_EQ(folder.count(), 1u);
}

}  // namespace
}  // namespace samebytes::io
