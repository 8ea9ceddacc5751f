#include "samebytes/data/ucr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

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

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Words = std::vector<std::string>;
using Places = std::vector<std::int64_t>;

TEST(Ucr, numbers_classes_by_value_and_cuts_padding) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tsv";
  put(path, "10\t1\t2\tNaN\r\n-1.0000000e+00\t3.5\t-4e1\t+5\n\n2\t6\tNaN\tNaN\n");
  const Series series = read_ucr(path);
  EXPECT_EQ(series.classes, (Words{"-1", "2", "10"}));
  EXPECT_EQ(series.labels, (Ints{2, 0, 1}));
  EXPECT_EQ(series.values, (Floats{1, 2, 3.5f, -40, 5, 6}));
  EXPECT_EQ(series.starts, (Places{0, 2, 5, 6}));
  EXPECT_EQ(series.longest(), 3);
  put(path, "1,0.5,0.25\n");
  EXPECT_EQ(read_ucr(path).values, (Floats{0.5f, 0.25f}));
}

TEST(Ucr, fills_gaps_by_lines_where_asked) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tsv";
  put(path, "1\tNaN\t2\tnan\t?\t8\tNaN\n");
  EXPECT_EQ(read_ucr(path, {.interpolate = true}).values, (Floats{2, 2, 4, 6, 8}));
  expect_io_error([&] { read_ucr(path); }, path, 0, {"without gaps", "line 1", "missing value"});
}

TEST(Ucr, reports_file_line_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.tsv";
  const auto act = [&] { read_ucr(path); };
  expect_io_error(act, path, -1, {"No such file"});
  put(path, "");
  expect_io_error(act, path, 0, {"at least one series"});
  put(path, "1\t2\t3\n1\t2\tx\n");
  expect_io_error(act, path, 10, {"a number in line 2", "'x'"});
  put(path, "1\t2\t3\n1\t2\n");
  expect_io_error(act, path, 6, {"2 values as in the first line in line 2", "found 1"});
  put(path, "1\t2\t3\n1\t\t2\n");
  expect_io_error(act, path, 8, {"a number in line 2", "nothing"});
  put(path, "one\t2\t3\n");
  expect_io_error(act, path, 0, {"a class number in line 1", "'one'"});
  put(path, "\x89PNG and more");
  expect_io_error(act, path, 0, {"a class and values"});
  put(path, "1\tNaN\tNaN\n");
  expect_io_error(act, path, 0, {"one value or more", "missing values only"});
  put(path, "\x1f\x8b\x08");
  expect_io_error(act, path, 3, {"gzip"});
}

const char* const kTs =
    "# about\n@problemName Little\n@timeStamps false\n@missing false\n@univariate false\n@dimensions 2\n"
    "@equalLength false\n@classLabel true b a\n@data\n1,2,3:10,20,30:b\n4:40:a\n";

TEST(Ts, reads_channels_lengths_and_classes) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.ts";
  put(path, kTs);
  const Series series = read_ts(path);
  EXPECT_EQ(series.name, "Little");
  EXPECT_EQ(series.channels, 2);
  EXPECT_EQ(series.values, (Floats{1, 10, 2, 20, 3, 30, 4, 40}));
  EXPECT_EQ(series.starts, (Places{0, 3, 4}));
  EXPECT_EQ(series.classes, (Words{"a", "b"}));
  EXPECT_EQ(series.labels, (Ints{1, 0}));
}

TEST(Ts, reads_targets_and_missing_values) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.ts";
  put(path, "@univariate true\n@equalLength true\n@seriesLength 3\n@targetLabel true\n@data\n1,?,3:0.5\n4,5,6:-2\n");
  const Series series = read_ts(path, {.interpolate = true});
  EXPECT_EQ(series.values, (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(series.targets, (Floats{0.5f, -2}));
  EXPECT_TRUE(series.labels.empty());
  const DatasetPtr set = from_series(series);
  ASSERT_EQ(set->fields().size(), 2u);
  EXPECT_EQ(set->fields()[1].name, "target");
  EXPECT_EQ(Sample(*set, 1).value<float>(1), -2);
}

TEST(Ts, reports_file_line_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.ts";
  const auto with = [&](const std::string& text, std::int64_t offset, std::initializer_list<const char*> parts) {
    put(path, text);
    expect_io_error([&] { read_ts(path); }, path, offset, parts);
  };
  expect_io_error([&] { read_ts(path); }, path, -1, {"No such file"});
  with("", 0, {"a line @data", "end of the file"});
  with("1,2,3:a\n", 0, {"begins with @ or # in line 1"});
  with("@univariate maybe\n", 12, {"true or false in line 1", "'maybe'"});
  with("@timeStamps true\n", 12, {"time stamps are not read"});
  with("@colour red\n", 0, {"a tag", "'@colour'"});
  with("@dimensions -1\n", 12, {"a number from 1"});
  with("@dimensions 2\n@data\n", 20, {"at least one case"});
  with("@dimensions 2\n@data\n1,2\n", 20, {"2 channels in line 3", "found 1"});
  with("@data\n1,2:3\n", 10, {"2 values as in the first channel in line 2", "found 1"});
  with("@equalLength true\n@seriesLength 3\n@data\n1,2\n", 40, {"3 values a channel in line 4", "found 2"});
  with("@equalLength true\n@data\n1,2\n1,2,3\n", 28, {"2 values a channel in line 4", "found 3"});
  with("@classLabel true a b\n@data\n1,2:c\n", 31, {"a class that @classLabel lists in line 3", "'c'"});
  with("@classLabel true a b\n@data\n1,2\n", 27, {"channels and a label"});
  with("@targetLabel true\n@data\n1,2:x\n", 28, {"a number as target"});
  with("@data\n1,2z\n", 8, {"a number in line 2", "'2z'"});
}

TEST(Series, become_rows_with_zeros_behind_them) {
  const TemporaryFolder folder;
  put(folder / "x.ts", kTs);
  const DatasetPtr set = from_series(read_ts(folder / "x.ts"));
  ASSERT_EQ(set->fields().size(), 3u);
  EXPECT_EQ(set->fields()[0].shape, (Shape{3, 2}));
  EXPECT_EQ(set->fields()[2].name, "length");
  const Sample second(*set, 1);
  EXPECT_EQ(second.values<float>(0), (Floats{4, 40, 0, 0, 0, 0}));
  EXPECT_EQ(second.value<std::int32_t>(1), 0);
  EXPECT_EQ(second.value<std::int32_t>(2), 1);
  const DatasetPtr shorter = from_series(read_ts(folder / "x.ts"), {.length = 2});
  EXPECT_EQ(Sample(*shorter, 0).values<float>(0), (Floats{1, 10, 2, 20}));
  EXPECT_EQ(Sample(*shorter, 0).value<std::int32_t>(2), 2);
  EXPECT_EQ(from_series(read_ts(folder / "x.ts"), {.length = 1})->fields().size(), 2u);
  EXPECT_EQ(from_series(read_ts(folder / "x.ts"), {.length = 1, .lengths = true})->fields().size(), 3u);
}

TEST(Series, are_normalised_each_channel_by_itself) {
  Series series;
  series.channels = 2;
  series.values = {1, 7, 3, 7, 5, 7, 0.1f, 0, 0.1f, 4};
  series.starts = {0, 3, 5};
  const DatasetPtr set = from_series(series, {.normalise = true});
  const float outer = std::sqrt(1.5f);
  const Floats first = Sample(*set, 0).values<float>(0), second = Sample(*set, 1).values<float>(0);
  const Floats wanted_first{-outer, 0, 0, 0, outer, 0}, wanted_second{0, -1, 0, 1, 0, 0};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(first[i], wanted_first[i]);
    EXPECT_FLOAT_EQ(second[i], wanted_second[i]);
  }
}

TEST(Series, check_that_their_parts_go_together) {
  Series series;
  series.values = {1, 2};
  series.starts = {0, 1};
  EXPECT_ERROR(from_series(series), ArgumentError, "from_series: starts and channels want 1 values, got 2");
  series.starts = {0, 3, 2};
  EXPECT_ERROR(from_series(series), ArgumentError, "from_series: starts begin with 0 and do not fall");
  series.starts = {0, 2};
  series.labels = {0, 1};
  EXPECT_ERROR(from_series(series), ArgumentError, "from_series: 1 series want as many labels or targets, got 2");
  series.labels = {};
  EXPECT_ERROR(from_series(series, {.length = -1}), ArgumentError, "from_series: length must be 0 or more, got -1");
}

TEST(Ucr, gives_both_parts_the_same_classes_and_length) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "Two");
  put(folder / "Two/Two_TRAIN.tsv", "3\t1\t2\n1\t3\t4\n");
  put(folder / "Two/Two_TEST.tsv", "2\t5\t6\t7\n");
  const Split set = ucr(folder.string(), "Two");
  EXPECT_EQ(set.classes, (Words{"1", "2", "3"}));
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{3, 1}));
  ASSERT_EQ(set.test->fields().size(), 3u);
  EXPECT_EQ(Sample(*set.train, 0).value<std::int32_t>(1), 2);
  EXPECT_EQ(Sample(*set.test, 0).value<std::int32_t>(1), 1);
  EXPECT_EQ(Sample(*set.train, 1).value<std::int32_t>(2), 2);
  expect_io_error([&] { ucr(folder.string(), "Three"); }, folder / "Three_TRAIN.tsv", -1, {"neither"});
  std::filesystem::remove(folder / "Two/Two_TEST.tsv");
  expect_io_error([&] { ucr(folder.string(), "Two"); }, folder / "Two/Two_TEST.tsv", -1, {"neither"});
  put(folder / "Two/Two_TEST.ts", "@classLabel true 1 2\n@data\n1,2:3,4:1\n");
  expect_io_error([&] { ucr(folder.string(), "Two"); }, folder / "Two/Two_TEST.ts", -1, {"1 channels", "found 2"});
  put(folder / "Two/Two_TEST.ts", "@data\n1,2\n");
  expect_io_error([&] { ucr(folder.string(), "Two"); }, folder / "Two/Two_TEST.ts", -1, {"labels of the same kind"});
}

// Share of the test part whose nearest training series (Euclidean) has another label.
double nearest_neighbour_error(const Split& set) {
  std::vector<Floats> rows;
  Ints labels;
  for (std::int64_t i = 0; i < set.train->size(); ++i) {
    const Sample sample(*set.train, i);
    rows.push_back(sample.values<float>(0));
    labels.push_back(sample.value<std::int32_t>(1));
  }
  int wrong = 0;
  for (std::int64_t i = 0; i < set.test->size(); ++i) {
    const Sample sample(*set.test, i);
    const Floats row = sample.values<float>(0);
    double least = std::numeric_limits<double>::infinity();
    std::int32_t label = -1;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      double distance = 0;
      for (std::size_t t = 0; t < row.size() && distance < least; ++t) {
        const double difference = static_cast<double>(row[t]) - static_cast<double>(rows[j][t]);
        distance += difference * difference;
      }
      if (distance < least) least = distance, label = labels[j];
    }
    wrong += label != sample.value<std::int32_t>(1);
  }
  return static_cast<double>(wrong) / static_cast<double>(set.test->size());
}

TEST(Ucr, reads_the_real_sets_whose_nearest_neighbours_are_known) {
  const std::string folder = testing::data_folder("ucr");
  SAMEBYTES_NEED_DATA(folder);
  struct Known {
    const char* name;
    std::int64_t train, test, length;
    std::size_t classes;
    double error;
  };
  for (const Known& known :
       {Known{"ECG200", 100, 100, 96, 2, 0.12}, Known{"ECGFiveDays", 23, 861, 136, 2, 0.2033},
        Known{"GunPoint", 50, 150, 150, 2, 0.0867}, Known{"ItalyPowerDemand", 67, 1029, 24, 2, 0.0447},
        Known{"SwedishLeaf", 500, 625, 128, 15, 0.2112}}) {
    const Split set = ucr(folder, known.name);
    EXPECT_EQ(set.train->size(), known.train) << known.name;
    EXPECT_EQ(set.test->size(), known.test) << known.name;
    EXPECT_EQ(set.train->fields()[0].shape, (Shape{known.length, 1})) << known.name;
    EXPECT_EQ(set.train->fields().size(), 2u) << known.name;
    EXPECT_EQ(set.classes.size(), known.classes) << known.name;
    EXPECT_NEAR(nearest_neighbour_error(set), known.error, 5e-5) << known.name;
  }
  EXPECT_EQ(ucr(folder, "PhalangesOutlinesCorrect").train->size(), 1800);
  EXPECT_EQ(ucr(folder, "MelbournePedestrian", {.normalise = true}).classes.size(), 10u);
}

TEST(Ucr, reads_the_real_japanese_vowels) {
  const std::string folder = testing::data_folder("ucr");
  SAMEBYTES_NEED_DATA(folder);
  const Split set = ucr(folder, "JapaneseVowels");
  EXPECT_EQ(set.train->size(), 270);
  EXPECT_EQ(set.test->size(), 370);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{29, 12}));
  EXPECT_EQ(set.classes, (Words{"1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  const Sample first(*set.train, 0);
  EXPECT_EQ(first.values<float>(0)[0], 1.860936f);
  EXPECT_EQ(first.values<float>(0)[1], -0.207383f);
  EXPECT_EQ(first.value<std::int32_t>(1), 0);
  EXPECT_EQ(first.value<std::int32_t>(2), 20);
  std::set<std::int32_t> lengths;
  for (std::int64_t i = 0; i < 270; ++i) lengths.insert(Sample(*set.train, i).value<std::int32_t>(2));
  EXPECT_EQ(*lengths.begin(), 7);
  EXPECT_EQ(*lengths.rbegin(), 26);
}

}  // namespace
}  // namespace samebytes::data
