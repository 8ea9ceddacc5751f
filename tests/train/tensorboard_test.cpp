// TensorBoard's event files, read back by what the formats say.
#include "samebytes/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

std::uint32_t slow_masked_crc32c(std::string_view bytes) {  // bit by bit, polynomial of RFC 3720
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

// Fields of a message by number; numbers of every wire type as their bytes.
std::multimap<int, std::string> fields_of(std::string_view message) {
  std::multimap<int, std::string> fields;
  const auto varint = [&message] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(0));
      message.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!message.empty()) {
    const std::uint64_t key = varint();
    std::size_t length = 0;
    switch (key & 7) {
      case 0: fields.emplace(key >> 3, std::to_string(varint())); continue;
      case 1: length = 8; break;
      case 2: length = varint(); break;
      case 5: length = 4; break;
      default: ADD_FAILURE() << "wire type " << (key & 7); return fields;
    }
    fields.emplace(key >> 3, message.substr(0, length));
    message.remove_prefix(length);
  }
  return fields;
}

template <class T>
T number(std::string_view bytes, std::size_t index = 0) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

class TensorBoardTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The events of a file, their checksums checked.
  static std::vector<std::multimap<int, std::string>> events(const std::string& path) {
    const auto bytes = io::read_file(path);
    std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::vector<std::multimap<int, std::string>> list;
    while (!rest.empty()) {
      const auto length = number<std::uint64_t>(rest);
      EXPECT_EQ(number<std::uint32_t>(rest.substr(8)), slow_masked_crc32c(rest.substr(0, 8)));
      const std::string_view event = rest.substr(12, length);
      EXPECT_EQ(number<std::uint32_t>(rest.substr(12 + length)), slow_masked_crc32c(event));
      list.push_back(fields_of(event));
      rest.remove_prefix(16 + length);
    }
    return list;
  }
  static std::multimap<int, std::string> value_of(const std::multimap<int, std::string>& event) {
    return fields_of(fields_of(event.find(5)->second).find(1)->second);
  }

  const std::string folder_ = (std::filesystem::temp_directory_path() / "samebytes_tensorboard_test").string();
};

TEST_F(TensorBoardTest, scalars_text_and_histograms_are_there) {
  SummaryWriter writer(folder_ + "/run");
  writer.scalar("loss/train", 0.25, 300);
  writer.text("notes", "hello", 1);
  const std::vector<float> values{-1, 0, 0, 3, std::nanf(""), std::numeric_limits<float>::infinity()};
  writer.histogram("weights", values, 2, 4);
  writer.flush();
  const auto list = events(writer.path());
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].find(3)->second, "brain.Event:2");
  EXPECT_GT(number<double>(list[0].find(1)->second), 1.7e9);

  EXPECT_EQ(list[1].find(2)->second, "300");
  const auto scalar = value_of(list[1]);
  EXPECT_EQ(scalar.find(1)->second, "loss/train");
  EXPECT_EQ(number<float>(scalar.find(2)->second), 0.25f);

  EXPECT_EQ(fields_of(value_of(list[2]).find(8)->second).find(8)->second, "hello");

  const auto histogram = fields_of(value_of(list[3]).find(5)->second);
  EXPECT_EQ(number<double>(histogram.find(1)->second), -1);
  EXPECT_EQ(number<double>(histogram.find(2)->second), 3);
  EXPECT_EQ(number<double>(histogram.find(3)->second), 4);
  EXPECT_EQ(number<double>(histogram.find(5)->second), 10);
  const std::string& counts = histogram.find(7)->second;
  ASSERT_EQ(counts.size(), 4 * sizeof(double));
  EXPECT_EQ(number<double>(counts, 0), 1);
  EXPECT_EQ(number<double>(counts, 1), 2);
  EXPECT_EQ(number<double>(counts, 3), 1);
  EXPECT_EQ(number<double>(histogram.find(6)->second, 3), 3);
}

TEST_F(TensorBoardTest, runs_of_one_second_have_files_of_their_own_and_bad_places_are_named) {
  const SummaryWriter first(folder_), second(folder_);
  EXPECT_NE(first.path(), second.path());
  EXPECT_THROW(SummaryWriter("/proc/nowhere"), IoError);
  SummaryWriter writer(folder_);
  EXPECT_ERROR(writer.histogram("h", {}, 0, 0), ArgumentError, "histogram: buckets must be 1 or more, got 0");
}

// Whoever knows the host, the process and the second knows the name.
TEST_F(TensorBoardTest, a_planted_link_of_its_name_is_not_followed) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_);
  const std::string name = fs::path(SummaryWriter(folder_ + "/other").path()).filename().string();
  const std::size_t digits = name.find_first_of("0123456789"), rest = name.find('.', digits);
  const std::int64_t now = std::stoll(name.substr(digits, rest - digits));
  constexpr int kSeconds = 30;
  for (int i = 0; i < kSeconds; ++i)
    fs::create_symlink(folder_ + "/precious",
                       folder_ + "/" + name.substr(0, digits) + std::to_string(now + i) + name.substr(rest));
  const SummaryWriter writer(folder_);
  EXPECT_TRUE(writer.path().ends_with(".1")) << writer.path();
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(writer.path())));
  EXPECT_FALSE(fs::exists(folder_ + "/precious"));
}

}  // namespace
}  // namespace samebytes::testing
