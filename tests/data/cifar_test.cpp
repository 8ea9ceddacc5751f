#include "samebytes/data/cifar.h"

#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/data/moments.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/io_errors.h"
#include "support/samples.h"

namespace samebytes::data {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::Sample;
using testing::TemporaryFolder;
using namespace std::string_literals;

// A record whose red plane counts 0 .. 255 four times, with green `green` and blue `blue` everywhere.
std::string record(const std::string& labels, char green, char blue) {
  std::string text = labels;
  for (int i = 0; i < 1024; ++i) text += static_cast<char>(i);
  return text + std::string(1024, green) + std::string(1024, blue);
}

void put_batches(const TemporaryFolder& folder) {
  for (int i = 1; i <= 5; ++i)
    put(folder / ("data_batch_" + std::to_string(i) + ".bin"),
        record(std::string(1, static_cast<char>(i)), 51, static_cast<char>(255)) + record("\0"s, 0, 0));
  put(folder / "test_batch.bin", record("\x09", 1, 2));
}

TEST(Cifar, puts_the_planes_of_all_batches_side_by_side) {
  const TemporaryFolder folder;
  put_batches(folder);
  const Split set = cifar10(folder.string());
  EXPECT_EQ(set.train->size(), 10);
  EXPECT_EQ(set.test->size(), 1);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{32, 32, 3}));
  ASSERT_EQ(set.classes.size(), 10u);
  EXPECT_EQ(set.classes[3], "cat");
  const Sample fifth(*set.train, 8);
  EXPECT_EQ(fifth.value<std::int32_t>(1), 5);
  const std::vector<float> image = fifth.values<float>(0);
  for (std::size_t i = 0; i < 1024; ++i) {
    ASSERT_EQ(image[3 * i], static_cast<float>(i % 256) / 255.0f);
    ASSERT_EQ(image[3 * i + 1], 0.2f);
    ASSERT_EQ(image[3 * i + 2], 1.0f);
  }
  const Split raw = cifar10(folder.string(), {.raw = true});
  EXPECT_EQ(raw.train->fields()[0].dtype, u8);
  const std::vector<std::uint8_t> bytes = Sample(*raw.test, 0).values<std::uint8_t>(0);
  EXPECT_EQ((std::vector<std::uint8_t>(bytes.begin() + 3 * 200, bytes.begin() + 3 * 200 + 4)),
            (std::vector<std::uint8_t>{200, 1, 2, 201}));
}

TEST(Cifar, reads_two_files_and_the_folder_of_the_archive) {
  const TemporaryFolder folder;
  put(folder / "train.bin", record("\3", 0, 0));
  put(folder / "test.bin", record("\4", 0, 0) + record("\5", 0, 0));
  const Split two = cifar10(folder.string());
  EXPECT_EQ(two.train->size(), 1);
  EXPECT_EQ(Sample(*two.test, 1).value<std::int32_t>(1), 5);
  const TemporaryFolder outer;
  std::filesystem::create_directory(outer / "cifar-10-batches-bin");
  std::filesystem::copy(folder.string(), outer / "cifar-10-batches-bin");
  EXPECT_EQ(cifar10(outer.string()).test->size(), 2);
}

TEST(Cifar, hundred_classes_have_two_labels) {
  const TemporaryFolder folder;
  put(folder / "train.bin", record("\x13\x63", 0, 0));
  put(folder / "test.bin", record("\0\1"s, 0, 0));
  EXPECT_EQ(Sample(*cifar100(folder.string()).train, 0).value<std::int32_t>(1), 99);
  EXPECT_EQ(Sample(*cifar100(folder.string(), {.coarse = true}).train, 0).value<std::int32_t>(1), 19);
  std::string names;
  for (int i = 0; i < 20; ++i) names += "group " + std::to_string(i) + "\n";
  put(folder / "coarse_label_names.txt", names);
  EXPECT_EQ(cifar100(folder.string(), {.coarse = true}).classes[19], "group 19");
  put(folder / "coarse_label_names.txt", "one\ntwo");
  expect_io_error([&] { cifar100(folder.string(), {.coarse = true}); }, folder / "coarse_label_names.txt", -1,
                  {"20 names", "found 2"});
  put(folder / "train.bin", record("\x13\x64", 0, 0));
  expect_io_error([&] { cifar100(folder.string()); }, folder / "train.bin", 1, {"0 to 99", "found 100"});
}

TEST(Cifar, reports_missing_short_and_wrong_files) {
  const TemporaryFolder folder;
  const auto act = [&] { cifar10(folder.string()); };
  expect_io_error([&] { cifar10(folder / "absent"); }, folder / "absent/data_batch_1.bin", -1, {"no folder"});
  expect_io_error(act, folder / "data_batch_1.bin", -1, {"neither"});
  put_batches(folder);
  std::filesystem::remove(folder / "data_batch_4.bin");
  expect_io_error(act, folder / "data_batch_4.bin", -1, {"neither"});
  put(folder / "data_batch_4.bin", record("\1", 0, 0) + std::string(100, 'x'));
  expect_io_error(act, folder / "data_batch_4.bin", 3073, {"an image of 3073 bytes", "found 100 bytes"});
  put(folder / "data_batch_4.bin", "");
  expect_io_error(act, folder / "data_batch_4.bin", 0, {"an empty file"});
  put(folder / "data_batch_4.bin", record("\1", 0, 0) + record("\x0a", 0, 0));
  expect_io_error(act, folder / "data_batch_4.bin", 3073, {"a label from 0 to 9", "found 10"});
}

TEST(Cifar, reads_the_real_small_set) {
  const std::string folder = testing::data_folder("cifar10_small");
  SAMEBYTES_NEED_DATA(folder);
  const Split set = cifar10(folder);
  ASSERT_EQ(set.train->size(), 15000);
  ASSERT_EQ(set.test->size(), 3000);
  const Sample first(*set.train, 0);
  const std::vector<float> image = first.values<float>(0);
  EXPECT_EQ((std::vector<float>(image.begin(), image.begin() + 6)),
            (std::vector<float>{200 / 255.0f, 202 / 255.0f, 197 / 255.0f, 202 / 255.0f, 204 / 255.0f, 199 / 255.0f}));
  EXPECT_EQ(Sample(*set.test, 2997).value<std::int32_t>(1), 7);
  // Of the pixels that the set's own unpack.py makes, exactly.
  const NormaliseOptions moments = channel_moments(*set.train);
  const double mean[] = {0.4930974165, 0.4831024992, 0.4472071712},
               deviation[] = {0.2456049780, 0.2434797505, 0.2610768051};
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(static_cast<double>(moments.mean[c]), mean[c], 1e-7);
    EXPECT_NEAR(static_cast<double>(moments.deviation[c]), deviation[c], 1e-7);
  }
}

TEST(Cifar, reports_damaged_packs) {
  const TemporaryFolder folder;
  const std::string path = folder / "train.jpegs";
  const auto with = [&](const std::string& text, std::int64_t offset, std::initializer_list<const char*> parts) {
    put(path, text);
    expect_io_error([&] { cifar10(folder.string()); }, path, offset, parts);
  };
  with("JPEG and more", 0, {"the letters C10J"});
  with("C10J\1", 5, {"the number of images", "end of the file"});
  with("C10J\1\0\0\0"s, 8, {"image 0 with its label"});
  with("C10J\1\0\0\0\x0b"s, 8, {"a label from 0 to 9", "found 11"});
  with("C10J\1\0\0\0\3\5\0abc"s, 14, {"5 bytes of image 0", "found 3"});
  with("C10J\0\0\0\0more"s, 8, {"the end of the file", "4 bytes more"});
  put(path, "C10J\1\0\0\0\3\3\0abc"s);
  expect_io_error([&] { cifar10(folder.string()); }, path, 11, {"in the JPEG at byte 11", "image 0", "PNG or JPEG"});
}

TEST(Moments, are_those_of_each_channel) {
  const DatasetPtr set =
      in_memory({{"x", HostArray(Shape{2, 2, 3}, std::vector<float>{1, 1000001, 5, 3, 1000003, 5,  //
                                                                    5, 1000005, 5, 7, 1000007, 5})}});
  const NormaliseOptions moments = channel_moments(*set);
  EXPECT_EQ(moments.mean, (std::vector<float>{4, 1000004, 5}));
  EXPECT_FLOAT_EQ(moments.deviation[0], std::sqrt(5.0f));
  EXPECT_FLOAT_EQ(moments.deviation[1], std::sqrt(5.0f));
  EXPECT_EQ(moments.deviation[2], 1.0f);
  EXPECT_ERROR(channel_moments(*set, 1), ArgumentError, "channel_moments: field 1 of a sample with 1 fields");
  const DatasetPtr labels = in_memory({{"label", HostArray(Shape{2}, i32)}});
  EXPECT_ERROR(channel_moments(*labels), ArgumentError,
               "channel_moments: needs f32 with a last axis of channels, field 'label' is i32 []");
  EXPECT_ERROR(channel_moments(*slice(set, 0, 0)), ArgumentError,
               "channel_moments: needs values and an end, field 'x' has no values");
}

}  // namespace
}  // namespace samebytes::data
