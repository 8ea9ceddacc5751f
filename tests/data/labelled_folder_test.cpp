// Folders of labelled samples of every kind are recognised and divided; well-known sets are copied and checked.
#include "samebytes/data/labelled_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "samebytes/data/fetch.h"
#include "samebytes/data/folds.h"
#include "samebytes/data/sound_folder.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"

namespace samebytes::data {
namespace {

using ::testing::ElementsAre;
using testing::get;
using ::testing::HasSubstr;
using testing::put;
using testing::TemporaryFolder;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string wav(const std::vector<std::int16_t>& samples, std::uint32_t rate = 8000) {
  const auto size = static_cast<std::uint32_t>(2 * samples.size());
  return "RIFF" + bytes_of<std::uint32_t>({36 + size}) + "WAVEfmt " + bytes_of<std::uint32_t>({16}) +
         bytes_of<std::uint16_t>({1, 1}) + bytes_of<std::uint32_t>({rate, 2 * rate}) +
         bytes_of<std::uint16_t>({2, 16}) + "data" + bytes_of<std::uint32_t>({size}) + bytes_of(samples);
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

void put_mnist(const std::string& folder, std::uint32_t train, std::uint32_t test) {
  std::filesystem::create_directories(folder);
  for (const auto& [part, count] : {std::pair{"train", train}, {"t10k", test}}) {
    put(folder + "/" + part + "-images-idx3-ubyte",
        big_endian(2051) + big_endian(count) + big_endian(4) + big_endian(4) + std::string(16 * count, '\x80'));
    put(folder + "/" + part + "-labels-idx1-ubyte", big_endian(2049) + big_endian(count) + std::string(count, '\3'));
  }
}

std::vector<float> first_field(const Dataset& set, std::int64_t index, std::int32_t* label = nullptr) {
  std::vector<float> values(static_cast<std::size_t>(set.fields()[0].shape.size()));
  std::int32_t own = 0;
  const Field fields[] = {{std::as_writable_bytes(std::span(values)), set.fields()[0].shape},
                          {std::as_writable_bytes(std::span(&own, 1)), Shape{}, i32}};
  set.read(index, fields);
  if (label != nullptr) *label = own;
  return values;
}

TEST(LabelledFolder, sounds_are_padded_and_a_share_of_each_class_is_for_testing) {
  const TemporaryFolder folder;
  for (const char* name : {"cat", "dog"}) {
    std::filesystem::create_directories(folder / name);
    for (int i = 0; i < 10; ++i)
      put((folder / name) + "/" + std::to_string(i) + ".wav", wav(std::vector<std::int16_t>(i == 0 ? 6 : 3, 16384)));
  }
  const LabelledFolder all = labelled_folder(folder.string(), {.validation = 0.2});
  EXPECT_EQ(all.kind, "sound");
  EXPECT_EQ(all.classes, 2);
  EXPECT_THAT(all.split.classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(all.split.train->size(), 16);
  EXPECT_EQ(all.split.test->size(), 4);
  EXPECT_EQ(all.split.train->fields()[0].shape, (Shape{6, 1})) << "the longest";
  int dogs = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    std::int32_t label = 0;
    first_field(*all.split.test, i, &label);
    dogs += label;
  }
  EXPECT_EQ(dogs, 2) << "two of each class";
  const SoundFolder sounds = sound_folder(folder.string(), {.samples = 4});
  EXPECT_EQ(sounds.rate, 8000);
  EXPECT_THAT(first_field(*sounds.set, 1), ElementsAre(0.5f, 0.5f, 0.5f, 0.0f));
  put((folder / "dog") + "/9.wav", wav({1, 2}, 16000));
  EXPECT_THAT(message_of<IoError>([&] { sound_folder(folder.string()); }),
              HasSubstr("9.wav: expected 8000 samples a second in 1 channel, as the first file has, found 16000"));
}

TEST(LabelledFolder, two_folders_must_have_the_same_classes) {
  const TemporaryFolder folder;
  for (const char* name : {"train/a", "train/b", "val/a", "val/b"}) {
    std::filesystem::create_directories(folder / name);
    put((folder / name) + "/one.wav", wav({1, 2, 3}));
  }
  const LabelledFolder both = labelled_folder(folder.string());
  EXPECT_EQ(both.split.train->size(), 2);
  EXPECT_EQ(both.split.test->size(), 2);
  std::filesystem::rename(folder / "val/b", folder / "val/c");
  EXPECT_THAT(message_of<IoError>([&] { labelled_folder(folder.string()); }), HasSubstr("expected the 2 classes of"));
}

TEST(LabelledFolder, pixels_are_from_0_to_1_with_the_size_and_the_channels_that_are_asked_for) {
  const TemporaryFolder folder;
  put_mnist(folder / "mnist", 3, 2);
  const LabelledFolder set = labelled_folder(folder / "mnist", {.height = 8, .width = 8, .channels = 3});
  EXPECT_EQ(set.kind, "image");
  EXPECT_EQ(set.classes, 10);
  EXPECT_EQ(set.split.train->fields()[0].shape, (Shape{8, 8, 3}));
  for (const float value : first_field(*set.split.train, 0)) EXPECT_NEAR(value, 128.0 / 255, 1e-3);
}

TEST(LabelledFolder, series_of_the_archive_and_what_is_nothing) {
  const TemporaryFolder folder;
  put(folder / "Toy_TRAIN.tsv", "1\t1\t2\t3\n2\t3\t2\t1\n");
  put(folder / "Toy_TEST.tsv", "1\t1\t2\t4\n");
  const LabelledFolder set = labelled_folder(folder.string());
  EXPECT_EQ(set.kind, "series");
  EXPECT_EQ(set.classes, 2);
  put(folder / "Other_TRAIN.tsv", "1\t1\n");
  EXPECT_THAT(message_of<ArgumentError>([&] { labelled_folder(folder.string()); }), HasSubstr("2 sets of series"));
  const TemporaryFolder empty;
  EXPECT_THAT(message_of<IoError>([&] { labelled_folder(empty.string()); }),
              HasSubstr("expected a subfolder for each class"));
  EXPECT_THROW(labelled_folder(empty.string(), {.validation = 1.5}), ArgumentError);
}

TEST(StratifiedSplit, takes_the_share_of_each_class_and_leaves_one) {
  std::vector<std::int32_t> labels(30, 0);
  for (int i = 0; i < 3; ++i) labels[static_cast<std::size_t>(10 * i)] = 1;
  const Fold fold = stratified_split(labels, {.share = 0.2, .seed = 3});
  EXPECT_EQ(fold.test.size(), 6u);  // round(5.4) and round(0.6)
  EXPECT_EQ(fold.train.size(), 24u);
  std::set<std::int64_t> all(fold.test.begin(), fold.test.end());
  all.insert(fold.train.begin(), fold.train.end());
  EXPECT_EQ(all.size(), 30u);
  EXPECT_NE(stratified_split(labels, {.share = 0.2, .seed = 4}).test, fold.test);
  EXPECT_EQ(stratified_split(labels, {.share = 0.2, .seed = 3}).test, fold.test);
  EXPECT_THROW(stratified_split(std::vector<std::int32_t>{0, 0, 1}), ArgumentError);
  EXPECT_THROW(stratified_split(labels, {.share = 0}), ArgumentError);
}

TEST(Fetch, copies_a_folder_and_a_file_address_and_checks_what_came) {
  const TemporaryFolder folder;
  put_mnist(folder / "downloads/deep", 3, 2);
  const FetchedSet copied = fetch("mnist", folder / "downloads", folder / "mnist");
  EXPECT_EQ(copied.path, folder / "mnist");
  EXPECT_EQ(copied.training_samples, 3);
  EXPECT_EQ(copied.test_samples, 2);
  EXPECT_EQ(get(folder / "mnist/train-labels-idx1-ubyte"), get(folder / "downloads/deep/train-labels-idx1-ubyte"));
  EXPECT_EQ(fetch("mnist", "file://" + (folder / "downloads"), folder / "again").training_samples, 3);
  EXPECT_THAT(message_of<ArgumentError>([&] { fetch("mnist", folder / "downloads", folder / "mnist"); }),
              HasSubstr("exists and is not empty"));
  EXPECT_THAT(message_of<ArgumentError>([&] { fetch("minst", "x", folder / "x"); }),
              HasSubstr("there is no data set minst; there are mnist, "));
}

TEST(Fetch, what_is_missing_or_damaged_leaves_nothing) {
  const TemporaryFolder folder;
  put_mnist(folder / "part", 3, 2);
  std::filesystem::remove(folder / "part/t10k-labels-idx1-ubyte");
  EXPECT_THAT(message_of<IoError>([&] { fetch("mnist", folder / "part", folder / "mnist"); }),
              HasSubstr("expected the file t10k-labels-idx1-ubyte of mnist"));
  put_mnist(folder / "part", 3, 2);
  put(folder / "part/t10k-labels-idx1-ubyte", "short");
  EXPECT_THROW(fetch("mnist", folder / "part", folder / "mnist"), IoError);
  EXPECT_THROW(fetch("mnist", folder / "nowhere", folder / "mnist"), IoError);
  EXPECT_FALSE(std::filesystem::exists(folder / "mnist"));
  EXPECT_EQ(folder.count(), 1u) << "no partial folder stays";
}

TEST(Fetch, names_in_archives_lead_to_no_place_outside_its_folder) {
  const TemporaryFolder folder;
  const std::string set = folder / "set", archive = folder / "hostile.tar";
  put_mnist(set, 3, 2);
  std::filesystem::create_directory(folder / "begin");
  ASSERT_EQ(testing::run_program({"tar", "-P", "-C", folder / "begin", "-cf", archive, "../set/train-images-idx3-ubyte",
                                  "../begin/../set/train-labels-idx1-ubyte", set + "/t10k-images-idx3-ubyte",
                                  set + "/t10k-labels-idx1-ubyte"})
                .status,
            0);
  for (const auto& entry : std::filesystem::directory_iterator(set)) std::filesystem::remove(entry);
  const FetchedSet fetched = fetch("mnist", archive, folder / "mnist");
  EXPECT_EQ(fetched.training_samples, 3);
  EXPECT_EQ(fetched.test_samples, 2);
  EXPECT_TRUE(std::filesystem::is_empty(set));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "begin"));
  EXPECT_EQ(folder.count(), 4u);
}

TEST(Fetch, links_in_archives_are_not_followed) {
  const TemporaryFolder folder;
  put_mnist(folder / "secret", 3, 2);
  std::filesystem::create_directory(folder / "set");
  for (const auto& entry : std::filesystem::directory_iterator(folder / "secret"))
    std::filesystem::create_symlink(entry.path(), std::filesystem::path(folder / "set") / entry.path().filename());
  ASSERT_EQ(testing::run_program({"tar", "-C", folder.string(), "-cf", folder / "links.tar", "set"}).status, 0);
  EXPECT_THROW(fetch("mnist", folder / "links.tar", folder / "mnist"), IoError);
  EXPECT_FALSE(std::filesystem::exists(folder / "mnist"));
}

// The name it once wrote under. Whoever knows the process could make it first.
TEST(Fetch, a_planted_link_leads_it_to_no_other_folder) {
  const TemporaryFolder folder, elsewhere;
  put_mnist(folder / "downloads", 3, 2);
  const std::string planted = folder / ("mnist.partial-" + std::to_string(::getpid()));
  std::filesystem::create_directory_symlink(elsewhere.string(), planted);
  fetch("mnist", folder / "downloads", folder / "mnist");
  EXPECT_EQ(elsewhere.count(), 0u);
  EXPECT_TRUE(std::filesystem::is_directory(std::filesystem::symlink_status(folder / "mnist")));
  EXPECT_TRUE(std::filesystem::is_symlink(planted));
}

}  // namespace
}  // namespace samebytes::data
