// Archives from strangers hold no more than the reader is told to take.
#include "data/archive.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/files.h"
#include "support/io_errors.h"
#include "support/process.h"

namespace samebytes::detail {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::TemporaryFolder;

TEST(Archive, more_entries_than_the_limit_are_refused) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "set");
  for (const char* const name : {"set/a", "set/b", "set/c"}) put(folder / name, name);
  std::filesystem::create_symlink("a", folder / "set/link");
  for (const char* const end : {"tar", "tar.gz"}) {
    const std::string path = folder / ("five." + std::string(end));
    ASSERT_EQ(testing::run_program({"tar", "-C", folder.string(), "-caf", path, "set"}).status, 0);
    EXPECT_EQ(read_archive("test", path, 5).size(), 3u) << end;
    expect_io_error([&] { read_archive("test", path, 4); }, path, -1,
                    {"expected at most 4 files, folders and links in an archive, found more"});
  }
}

}  // namespace
}  // namespace samebytes::detail
