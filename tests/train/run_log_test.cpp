// Where a run's log is written.
#include "samebytes/train/run_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/errors.h"
#include "support/files.h"

namespace samebytes::train {
namespace {

using testing::get;
using testing::put;
using testing::TemporaryFolder;

TEST(RunLog, somebody_elses_link_in_a_folder_of_all_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make links of others";
  const TemporaryFolder folder;
  put(folder / "precious", "old\n");
  std::filesystem::create_directory(folder / "all");
  ASSERT_EQ(::chmod((folder / "all").c_str(), 01777), 0);
  const std::string link = folder / "all/run.jsonl";
  std::filesystem::create_symlink("../precious", link);
  RunLog(link, "", true).write("{}");  // one's own link is followed
  EXPECT_EQ(get(folder / "precious"), "old\n{}\n");
  ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
  for (const bool keeps : {false, true})
    EXPECT_ERROR(
        RunLog(link, "", keeps), IoError,
        ("log: " + link + ": expected a file, found somebody else's link in a folder that is everybody's").c_str());
  EXPECT_EQ(get(folder / "precious"), "old\n{}\n");
}

TEST(RunLog, begins_anew_or_goes_on_and_names_a_place_that_cannot_be_written) {
  const TemporaryFolder folder;
  const std::string path = folder / "run.jsonl";
  RunLog(path).write("{\"a\": 1}");
  RunLog(path, "", true).write("{\"b\": 2}");
  EXPECT_EQ(get(path), "{\"a\": 1}\n{\"b\": 2}\n");
  RunLog(path).write("{\"c\": 3}");
  EXPECT_EQ(get(path), "{\"c\": 3}\n");
  EXPECT_ERROR(RunLog(folder / "no/run.jsonl"), IoError,
               ("log: " + (folder / "no/run.jsonl") + " cannot be written: No such file or directory").c_str());
}

}  // namespace
}  // namespace samebytes::train
