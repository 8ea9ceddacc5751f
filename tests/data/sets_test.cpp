#include "samebytes/data/sets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/files.h"
#include "support/io_errors.h"

namespace samebytes::data {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::TemporaryFolder;
using namespace std::string_literals;

struct Sample {
  std::vector<float> image;
  std::int32_t label = -1;
};

Sample read(const Dataset& set, std::int64_t index) {
  Sample sample;
  sample.image.resize(static_cast<std::size_t>(set.fields()[0].shape.size()));
  const Field dst[] = {{std::as_writable_bytes(std::span(sample.image)), set.fields()[0].shape, f32},
                       {std::as_writable_bytes(std::span(&sample.label, 1)), Shape{}, i32}};
  EXPECT_TRUE(set.read(index, dst));
  return sample;
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// A folder with `count` images of 2 by 2 in both parts; image i has pixels i, i + 1, ...; label i modulo 10.
void put_mnist(const TemporaryFolder& folder, std::uint32_t count) {
  for (const char* part : {"train", "t10k"}) {
    std::string images = "\0\0\x08\x03"s + big_endian(count) + big_endian(2) + big_endian(2);
    std::string labels = "\0\0\x08\x01"s + big_endian(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t p = 0; p < 4; ++p) images += static_cast<char>(i + p);
      labels += static_cast<char>(i % 10);
    }
    put(folder / (part + "-images-idx3-ubyte"s), images);
    put(folder / (part + "-labels-idx1-ubyte"s), labels);
  }
}

TEST(Mnist, decodes_pixels_with_the_training_moments) {
  const TemporaryFolder folder;
  put_mnist(folder, 12);
  const Split set = mnist(folder.string());
  EXPECT_EQ(set.train->size(), 12);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{2, 2, 1}));
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 12; ++i)
    for (const float value : read(*set.train, i).image) {
      sum += value;
      squares += value * value;
    }
  EXPECT_NEAR(sum / 48, 0, 1e-5);
  EXPECT_NEAR(squares / 48, 1, 1e-5);
  EXPECT_EQ(read(*set.test, 11).label, 1);
}

TEST(Mnist, takes_given_moments_and_raw_bytes) {
  const TemporaryFolder folder;
  put_mnist(folder, 3);
  const Split plain = mnist(folder.string(), {.mean = 0.0f, .deviation = 1.0f});
  EXPECT_EQ(read(*plain.train, 2).image, (std::vector<float>{2 / 255.0f, 3 / 255.0f, 4 / 255.0f, 5 / 255.0f}));
  EXPECT_EQ(plain.train->fields()[0].background, 0.0f);
  const Split raw = mnist(folder.string(), {.raw = true});
  EXPECT_EQ(raw.train->fields()[0].dtype, u8);
  EXPECT_EQ(raw.train->fields()[0].shape, (Shape{2, 2, 1}));
}

TEST(Mnist, reports_missing_short_mismatched_and_wrong_files) {
  const TemporaryFolder folder;
  const std::string images = folder / "train-images-idx3-ubyte", labels = folder / "train-labels-idx1-ubyte";
  const auto act = [&] { mnist(folder.string()); };
  expect_io_error([&] { mnist(folder / "absent"); }, folder / "absent/train-images-idx3-ubyte", -1, {"no folder"});
  expect_io_error(act, images, -1, {"train-images-idx3-ubyte", "neither"});
  put_mnist(folder, 12);
  const std::string image_bytes = testing::get(images), label_bytes = testing::get(labels);
  put(images, image_bytes.substr(0, 40));
  expect_io_error(act, images, 40, {"expected 48 bytes", "found 24"});
  put(images, label_bytes);
  expect_io_error(act, images, 0, {"0x00000803"});
  put(images, image_bytes);
  put(labels, image_bytes);
  expect_io_error(act, labels, 0, {"0x00000801"});
  put(labels, "\0\0\x08\x01"s + big_endian(2) + "\1\2");
  expect_io_error(act, labels, 4, {"12 labels", "found 2"});
  std::string wrong = label_bytes;
  wrong[8 + 5] = 10;
  put(labels, wrong);
  expect_io_error(act, labels, 13, {"a label from 0 to 9", "found 10"});
}

TEST(Mnist, reads_the_real_files) {
  const std::string folder = testing::data_folder("mnist");
  SAMEBYTES_NEED_DATA(folder);
  const Split set = mnist(folder);
  EXPECT_EQ(set.train->size(), 60000);
  EXPECT_EQ(set.test->size(), 10000);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{28, 28, 1}));
  EXPECT_EQ(read(*set.train, 0).label, 5);
  EXPECT_EQ(read(*set.test, 0).label, 7);
  EXPECT_NEAR(set.train->fields()[0].background, -0.1307 / 0.3081, 1e-3);  // the moments that everybody uses
}

TEST(Digits, come_with_the_library_in_their_usual_split) {
  const Split set = digits();
  ASSERT_EQ(set.train->size(), 1437);
  ASSERT_EQ(set.test->size(), 360);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{8, 8, 1}));
  const Sample first = read(*set.train, 0);
  EXPECT_EQ(first.label, 0);
  EXPECT_EQ(first.image[2], 5 / 16.0f);
  std::map<std::int32_t, int> counts;
  for (std::int64_t i = 0; i < 1797; ++i)
    ++counts[i < 1437 ? read(*set.train, i).label : read(*set.test, i - 1437).label];
  EXPECT_EQ(counts.size(), 10u);
  EXPECT_EQ(counts[0], 178);
  EXPECT_EQ(counts[3], 183);
}

TEST(Sources, check_their_arguments) {
  EXPECT_THROW(in_memory({}), ArgumentError);
  EXPECT_THROW(in_memory({{"x", HostArray(Shape{3, 2}, f32)}, {"y", HostArray(Shape{4}, i32)}}), ArgumentError);
  EXPECT_THROW(in_memory({{"x", HostArray(Shape{3}, f32)}, {"x", HostArray(Shape{3}, i32)}}), ArgumentError);
  EXPECT_THROW(in_memory({{"x", HostArray(Shape{}, f32)}}), ArgumentError);
  EXPECT_THROW(generate(-2, {{"x", Shape{}}}, [](std::int64_t, std::span<const Field>) {}), ArgumentError);
  EXPECT_THROW(generate(2, {{"x", Shape{}}}, nullptr), ArgumentError);
  const DatasetPtr ten = in_memory({{"x", HostArray(Shape{10}, f32)}});
  EXPECT_THROW(slice(ten, 5, 6), ArgumentError);
  EXPECT_THROW(slice(ten, -1, 2), ArgumentError);
  EXPECT_EQ(slice(ten, 10, 0)->size(), 0);
  EXPECT_THROW(slice(stream({{"x", Shape{}}}, [](std::span<const Field>) { return false; }), 0, 1), ArgumentError);
}

TEST(Sources, slice_counts_from_its_first_sample) {
  const DatasetPtr set = in_memory({{"x", HostArray(Shape{4}, std::vector<float>{1, 2, 3, 4})}});
  float value = 0;
  const Field dst{std::as_writable_bytes(std::span(&value, 1)), Shape{}, f32};
  EXPECT_TRUE(slice(set, 2, 2)->read(1, std::span(&dst, 1)));
  EXPECT_EQ(value, 4);
}

TEST(Sources, a_stream_goes_on_or_restarts_with_each_pass) {
  int next = 0;
  float value = 0;
  const Field dst{std::as_writable_bytes(std::span(&value, 1)), Shape{}, f32};
  const auto count_up = [&](std::span<const Field> to) {
    if (next == 3) return false;
    to[0].as<float>()[0] = static_cast<float>(next++);
    return true;
  };
  const DatasetPtr set = stream({{"x", Shape{}}}, count_up, [&] { next = 0; });
  EXPECT_EQ(set->size(), kEndless);
  for (int pass = 0; pass < 2; ++pass) {
    set->begin_pass(pass);
    int samples = 0;
    while (set->read(samples, std::span(&dst, 1))) ++samples;
    EXPECT_EQ(samples, 3);
  }
}

}  // namespace
}  // namespace samebytes::data
