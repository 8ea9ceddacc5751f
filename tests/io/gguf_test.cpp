// Headers of GGUF files: what is there is read, and no damaged one is believed.
#include "samebytes/io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "samebytes/error.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::put;
using testing::TemporaryFolder;

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(const std::string& value) { return raw<std::uint64_t>(value.size()) + value; }

constexpr std::uint32_t kU32 = 4, kF32 = 6, kText = 8, kArray = 9;

std::string small_file() {
  std::string file = "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(2) + raw<std::uint64_t>(5);
  file += text("general.name") + raw(kText) + text("tiny");
  file += text("general.alignment") + raw(kU32) + raw<std::uint32_t>(64);
  file += text("rate") + raw(kF32) + raw(0.5f);
  file += text("words") + raw(kArray) + raw(kText) + raw<std::uint64_t>(4);
  for (const char* word : {"a", "bc", "d", "e"}) file += text(word);
  file += text("numbers") + raw(kArray) + raw(kU32) + raw<std::uint64_t>(5);
  for (std::uint32_t i = 0; i < 5; ++i) file += raw(i);
  file += text("norm") + raw<std::uint32_t>(1) + raw<std::uint64_t>(4) + raw<std::uint32_t>(0) + raw<std::uint64_t>(0);
  file += text("weight") + raw<std::uint32_t>(2) + raw<std::uint64_t>(64) + raw<std::uint64_t>(3) +
          raw<std::uint32_t>(8) + raw<std::uint64_t>(64);
  file.resize((file.size() + 63) / 64 * 64);
  return file + std::string(64 + 3 * 2 * 34, '\0');  // four floats padded, 3 rows of two blocks of Q8_0
}

TEST(Gguf, metadata_and_tensors_are_read) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gguf", file = small_file();
  put(path, file);
  const GgufHeader header = read_gguf_header(path);
  EXPECT_EQ(header.version, 3u);
  using Pair = std::pair<std::string, std::string>;
  EXPECT_THAT(header.metadata,
              ElementsAre(Pair("general.name", "tiny"), Pair("general.alignment", "64"), Pair("rate", "0.5"),
                          Pair("words", "[a, bc, d, ...] of 4"), Pair("numbers", "[0, 1, 2, ...] of 5")));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].type, "F32");
  EXPECT_EQ(header.tensors[0].bytes, 16u);
  EXPECT_EQ(header.tensors[1].type, "Q8_0");
  EXPECT_THAT(header.tensors[1].sizes, ElementsAre(3, 64));
  EXPECT_EQ(header.tensors[1].bytes, 3u * 2 * 34);
  EXPECT_EQ(header.tensors[1].offset + header.tensors[1].bytes, file.size());
}

TEST(Gguf, every_truncation_is_an_error_at_a_byte_of_the_file) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gguf", file = small_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    put(path, file.substr(0, size));
    try {
      read_gguf_header(path);
      ADD_FAILURE() << "read " << size << " of " << file.size() << " bytes";
    } catch (const IoError& error) {
      EXPECT_LE(error.offset(), static_cast<std::int64_t>(size));
    }
  }
}

TEST(Gguf, counts_and_lengths_that_no_file_has_are_refused_before_memory_is_taken) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.gguf", file = small_file();
  const auto refused = [&](const std::string& bytes) {
    put(path, bytes);
    return message_of<IoError>([&] { read_gguf_header(path); });
  };
  const std::string huge = raw(~std::uint64_t{0});
  EXPECT_THAT(refused(std::string(file).replace(8, 8, huge)), HasSubstr("tensors, which fit into the file"));
  EXPECT_THAT(refused(std::string(file).replace(16, 8, huge)), HasSubstr("key-value pairs, which fit"));
  EXPECT_THAT(refused(std::string(file).replace(24, 8, huge)), HasSubstr("the end of the file after"));
  EXPECT_THAT(refused(std::string(file).replace(4, 4, raw<std::uint32_t>(1))), HasSubstr("version 2 or 3, found 1"));
  EXPECT_THAT(refused("GIF8" + file.substr(4)), HasSubstr("the word GGUF"));
  const std::size_t sizes = file.find("weight") + 6 + 4;
  EXPECT_THAT(refused(std::string(file).replace(sizes, 8, raw<std::uint64_t>(65))), HasSubstr("whole blocks of 32"));
  EXPECT_THAT(refused(std::string(file).replace(sizes + 8, 8, raw<std::uint64_t>(std::uint64_t{1} << 55))),
              HasSubstr("inside the file"));
  EXPECT_THAT(refused(std::string(file).replace(sizes + 20, 8, huge)), HasSubstr("inside the file"));
}

}  // namespace
}  // namespace samebytes::io
