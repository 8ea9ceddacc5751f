// Kernels that are compiled in processes of their own: the same files, the same numbers, and nothing lost where such a
// process fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "cli/command.h"
#include "samebytes/device.h"
#include "support/files.h"
#include "support/process.h"

namespace samebytes {
namespace {

using namespace samebytes::testing;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class CompilersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (list_devices().front().platform != "Portable Computing Language") GTEST_SKIP() << "of PoCL alone";
  }

  struct Run {
    CommandResult result;
    std::string net;                // the bytes of the trained network
    std::set<std::string> objects;  // PROGRAM/KERNEL/GROUP/KERNEL.so
    std::size_t sums = 0;           // programs with checksums
  };

  // Trains with an empty kernel cache.
  static Run train(const std::string& compiler, const TemporaryFolder& cache) {
    const TemporaryFolder folder;
    Run run;
    const std::string net = folder / "net.safetensors";
    run.result = run_command(
        {"train", "digits", "--steps", "3", "--batch", "16", "--quiet", "--host-execution", "off", "--save", net},
        {{"POCL_CACHE_DIR", cache.string()}, {"SAMEBYTES_COMPILER", compiler}});
    if (fs::exists(net)) run.net = get(net);
    for (const auto& entry : fs::recursive_directory_iterator(cache.string()))
      if (entry.path().extension() == ".so")
        run.objects.insert(entry.path().lexically_relative(cache.string()).string());
    for (const auto& entry : fs::directory_iterator(cache / "samebytes"))
      run.sums += entry.path().filename().string().size() == 32 ? 1 : 0;
    return run;
  }

  // A program that notes its start and then is what `line` says.
  static std::string script(const TemporaryFolder& folder, const std::string& line) {
    const std::string path = folder / "compiler.sh";
    put(path, "#!/bin/sh\necho started >>" + (folder / "starts") + "\n" + line + "\n");
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
};

// One test, because each empty cache costs seconds.
TEST_F(CompilersTest, other_processes_make_the_kernels_that_this_one_would_and_where_they_fail_this_one_does) {
  const TemporaryFolder here_cache, there_cache, poor_cache, folder, poor_folder;
  const Run here = train("off", here_cache);
  ASSERT_EQ(here.result.status, 0) << here.result.err;

  const std::string works = script(folder, "exec " + built_program("samebytes") + " \"$@\"");
  const Run there = train(works, there_cache);
  ASSERT_EQ(there.result.status, 0) << there.result.err;
  EXPECT_THAT(get(folder / "starts"), HasSubstr("started"));
  EXPECT_TRUE(here.net == there.net);
  EXPECT_EQ(here.objects, there.objects);
  EXPECT_EQ(here.sums, there.sums);

  fs::remove(folder / "starts");
  const Run again = train(works, there_cache);
  EXPECT_FALSE(fs::exists(folder / "starts")) << "all kernels were there";
  EXPECT_THAT(again.result.err, Not(HasSubstr("recovered")));
  EXPECT_TRUE(here.net == again.net);
  EXPECT_EQ(here.objects, again.objects);

  const CommandResult warm = run_command({"warm", "digits", "--mode", "train", "--batch", "16"},
                                         {{"POCL_CACHE_DIR", there_cache.string()}, {"SAMEBYTES_COMPILER", "off"}});
  EXPECT_EQ(warm.status, 0) << warm.err;
  EXPECT_THAT(warm.out, HasSubstr("digits train: ready after"));

  // The first process is killed, the second one leaves in the middle of what it is told.
  const std::string starts = poor_folder / "starts";
  const Run poor = train(
      script(poor_folder, "[ $(wc -l <" + starts + ") -eq 1 ] && kill -9 $$\nhead -c 300 >/dev/null"), poor_cache);
  EXPECT_EQ(poor.result.status, 0) << poor.result.err;
  EXPECT_THAT(get(starts), HasSubstr("started\nstarted"));
  EXPECT_TRUE(here.net == poor.net);
  EXPECT_EQ(here.objects, poor.objects);
}

}  // namespace
}  // namespace samebytes
