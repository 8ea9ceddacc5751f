// Readers of files that strangers may have made: whole files are read, and what is damaged, or once went wrong, is read
// or refused with an Error.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fuzz/target.h"
#include "samebytes/error.h"
#include "samebytes/random.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

namespace fs = std::filesystem;
using testing::get;
using testing::put;
using testing::TemporaryFolder;

class FuzzTest : public ::testing::TestWithParam<const Target*> {
 protected:
  const Target& target() const { return *GetParam(); }

  // What is wrong with how the file is treated; empty: it was read, or refused as it should be.
  std::string fault_of(const std::string& bytes, bool is_whole = false) {
    const std::string path = folder_ / target().file;
    put(path, bytes);
    try {
      target().read(path);
    } catch (const Error& error) {
      if (is_whole) return error.what();
      if (std::string(error.what()).empty()) return "an error without a text";
    } catch (const std::exception& error) {
      return std::string("no samebytes::Error: ") + error.what();
    }
    return "";
  }
  std::vector<std::string> whole_files() const {
    const TemporaryFolder seeds;
    target().make(seeds.string());
    return files_in(seeds.string());
  }
  static std::vector<std::string> files_in(const std::string& folder) {
    std::vector<std::string> paths, files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) files.push_back(get(path));
    return files;
  }

 private:
  TemporaryFolder folder_;
};

TEST_P(FuzzTest, whole_files_are_read) {
  const auto files = whole_files();
  ASSERT_FALSE(files.empty());
  for (std::size_t i = 0; i < files.size(); ++i) EXPECT_EQ(fault_of(files[i], true), "") << "whole file " << i;
}

TEST_P(FuzzTest, files_that_once_went_wrong_are_read_or_refused) {
  for (const std::string& file : files_in(testing::source_folder() + "/tests/fuzz/found/" + target().name))
    EXPECT_EQ(fault_of(file), "") << file.size() << " bytes";
}

TEST_P(FuzzTest, damaged_files_are_read_or_refused) {
  const auto files = whole_files();
  for (std::int64_t i = 0; i < 200; ++i) {
    Random random({.seed = 22, .index = i});
    std::string bytes = files[static_cast<std::size_t>(i) % files.size()];
    const auto place = [&] { return random.below(static_cast<std::uint32_t>(bytes.size())); };
    switch (random.below(5)) {
      case 0: bytes.resize(place()); break;
      case 1: bytes.erase(place(), 1 + random.below(8)); break;
      case 2:
        if (!target().words.empty())
          bytes.insert(place(), target().words[random.below(static_cast<std::uint32_t>(target().words.size()))]);
        break;
      default:
        for (std::uint32_t k = 0, n = 1 + random.below(4); k < n; ++k)
          bytes[place()] = static_cast<char>(random.bits());
    }
    ASSERT_EQ(fault_of(bytes), "") << "damage " << i;
  }
}

std::vector<const Target*> all() {
  std::vector<const Target*> list;
  for (const Target& target : targets()) list.push_back(&target);
  return list;
}

// The list is made when the program has begun, and every target has been added.
INSTANTIATE_TEST_SUITE_P(Readers, FuzzTest, ::testing::ValuesIn(all()),
                         [](const auto& one) { return one.param->name; });

}  // namespace
}  // namespace samebytes::fuzz
