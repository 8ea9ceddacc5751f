// Files with random damage: every reader either reads them or throws IoError, whatever the bytes are.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "samebytes/data/csv.h"
#include "samebytes/data/idx.h"
#include "samebytes/data/npy.h"
#include "samebytes/io/files.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/random.h"
#include "support/files.h"

namespace samebytes::io {
namespace {

using testing::get;
using testing::put;
using testing::TemporaryFolder;

// One to four bytes changed, a piece cut out, or the end cut off.
std::string damaged(std::string text, std::int64_t index) {
  Random random({.seed = 20, .index = index});
  const auto place = [&] { return random.below(static_cast<std::uint32_t>(text.size())); };
  switch (random.below(4)) {
    case 0: text.resize(place()); break;
    case 1: text.erase(place(), 1 + random.below(8)); break;
    default:
      for (std::uint32_t i = 0, n = 1 + random.below(4); i < n; ++i) text[place()] = static_cast<char>(random.bits());
  }
  return text;
}

void expect_only_io_errors(const std::string& path, const std::function<void()>& read) {
  const std::string whole = get(path);
  ASSERT_FALSE(whole.empty());
  constexpr std::int64_t kFiles = 500;
  int failed = 0;
  for (std::int64_t i = 0; i < kFiles; ++i) {
    put(path, damaged(whole, i));
    try {
      read();
    } catch (const IoError& error) {
      ++failed;
      EXPECT_EQ(error.path(), path);
    } catch (const std::exception& error) {
      FAIL() << "damage " << i << ": " << error.what();
    }
  }
  EXPECT_GT(failed, kFiles / 4);
}

TEST(Damage, npy_files_are_read_or_refused) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  data::write_npy(path, HostArray(Shape{3, 4}, f32));
  expect_only_io_errors(path, [&] { data::read_npy(path); });
}

TEST(Damage, idx_files_are_read_or_refused) {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  put(path, std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12) + "abcdef");
  expect_only_io_errors(path, [&] { data::read_idx(path); });
}

TEST(Damage, tables_are_read_or_refused) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.csv";
  put(path, "1,2.5,3\n-4,\"5\",6e3\n7,8,9\n1,2,0\n");
  expect_only_io_errors(path, [&] { data::read_csv(path, {.separator = ',', .label = "-1", .classes = 10}); });
}

TEST(Damage, safetensors_are_read_or_refused) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const HostArray a(Shape{3, 4}, f32), b(Shape{5}, u8);
  const TensorView views[] = {{"a", a.dtype, a.shape, a.bytes}, {"b", b.dtype, b.shape, b.bytes}};
  save_tensors(path, views, {{"format", "pt"}});
  expect_only_io_errors(path, [&] {
    const TensorFile file(path);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) file.read(i);
  });
}

TEST(Damage, packed_files_are_read_or_refused) {
  const std::string folder = testing::source_folder() + "/examples/data";
  const TemporaryFolder copy;
  const std::string path = copy / "x.csv.gz";
  put(path, get(folder + "/digits.csv.gz"));
  const std::string whole = get(path);
  for (std::int64_t i = 0; i < 60; ++i) {
    put(path, damaged(whole, i));
    try {
      read_file(path);
    } catch (const IoError& error) {
      EXPECT_EQ(error.path(), path);
    }
  }
}

}  // namespace
}  // namespace samebytes::io
