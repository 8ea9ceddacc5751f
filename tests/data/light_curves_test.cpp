#include "samebytes/data/light_curves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "samebytes/data/csv.h"
#include "samebytes/data/folds.h"
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
using Places = std::vector<std::int64_t>;

TEST(LightCurves, leaves_out_duplicates_and_clips) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.csv";
  put(path,
      "label,star_id,mission,f0,f1\nplanet,TIC 7,TESS,1,2\nnone,KIC 3,K2,3,90\nplanet,TIC 7,TESS,1,2\n"
      "none,TIC 7,TESS,4,5\nnone,TIC 7,TESS,1,2\n");
  const LightCurves stars = light_curves(path, {.highest = 5});
  EXPECT_EQ(stars.duplicates, 2);
  EXPECT_EQ(stars.contradictions, 1);
  EXPECT_EQ(stars.curves.classes, (std::vector<std::string>{"none", "planet"}));
  EXPECT_EQ(stars.curves.labels, (Ints{1, 0, 0}));
  EXPECT_EQ(stars.curves.values, (Floats{1, 2, 3, 5, 4, 5}));
  EXPECT_EQ(stars.groups[0], stars.groups[2]);
  EXPECT_NE(stars.groups[0], stars.groups[1]);
  EXPECT_EQ(light_curves(path, {.duplicates = true}).curves.size(), 5);
  const DatasetPtr set = from_series(stars.curves);
  EXPECT_EQ(set->fields()[0].shape, (Shape{2, 1}));
  EXPECT_EQ(Sample(*set, 1).values<float>(0), (Floats{3, 5}));
}

TEST(LightCurves, report_file_line_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.csv";
  const auto with = [&](const std::string& text, std::int64_t offset, std::initializer_list<const char*> parts) {
    put(path, text);
    expect_io_error([&] { light_curves(path); }, path, offset, parts);
  };
  expect_io_error([&] { light_curves(path); }, path, -1, {"No such file"});
  with("", 0, {"a header with the column label"});
  with("f0,f1\n1,2\n", 0, {"label and f0", "no label"});
  with("label,star_id\n1,2\n", 0, {"label and f0", "no f0"});
  with("label,f0,f2\n1,2,3\n", 9, {"a column f1 in line 1", "'f2'"});
  with("label,f0,f1\n1,2\n", 12, {"3 cells", "line 2"});
  with("label,f0,f1\n1,2,x\n", 16, {"a number in line 2", "'x'"});
  with("label,f0,f1\n", 12, {"at least one row"});
  EXPECT_ERROR(light_curves(path, {.lowest = 2, .highest = 1}), ArgumentError,
               "light_curves: lowest must be at most highest, got 2.000000 and 1.000000");
}

TEST(LightCurves, read_the_real_tables) {
  const std::string folder = testing::data_folder("light_curves");
  SAMEBYTES_NEED_DATA(folder);
  const LightCurves kepler = light_curves(folder + "/kepler_local_view.csv.gz", {.lowest = -5, .highest = 5});
  EXPECT_EQ(kepler.duplicates, 13);
  EXPECT_EQ(kepler.contradictions, 1);
  EXPECT_EQ(kepler.curves.size(), 500);
  EXPECT_EQ(kepler.curves.longest(), 201);
  EXPECT_TRUE(kepler.groups.empty());
  EXPECT_EQ(*std::max_element(kepler.curves.values.begin(), kepler.curves.values.end()), 5);
  for (const Fold& fold : stratified_folds(kepler.curves.labels, {.seed = 1})) EXPECT_EQ(fold.test.size(), 100u);

  const LightCurves telescope = light_curves(folder + "/space_telescope_221.csv.gz");
  EXPECT_EQ(telescope.curves.size() + telescope.duplicates, 221);
  EXPECT_EQ(telescope.curves.longest(), 384);
  EXPECT_EQ(telescope.curves.classes, (std::vector<std::string>{"false_positive", "non_planet", "planet"}));
  EXPECT_EQ(telescope.groups.size(), telescope.curves.labels.size());

  // The table of candidates needs no reader of its own: words and answers are dropped, gaps become a number.
  const Table koi =
      read_csv(folder + "/koi_cumulative.csv.gz",
               {.header = true,
                .label = "koi_disposition",
                .drop = {"loc_rowid", "kepid", "kepoi_name", "kepler_name", "koi_pdisposition", "koi_score",
                         "koi_fpflag_nt", "koi_fpflag_ss", "koi_fpflag_co", "koi_fpflag_ec", "koi_tce_delivname"},
                .empty_value = std::nanf("")});
  EXPECT_EQ(koi.values.shape, (Shape{9564, 38}));
  EXPECT_EQ(koi.classes, (std::vector<std::string>{"CANDIDATE", "CONFIRMED", "FALSE POSITIVE"}));
}

// Every sample is tested once and is never trained on in the same fold.
void expect_partition(const std::vector<Fold>& folds, std::int64_t samples) {
  std::multiset<std::int64_t> tested;
  for (const Fold& fold : folds) {
    tested.insert(fold.test.begin(), fold.test.end());
    std::set<std::int64_t> all(fold.train.begin(), fold.train.end());
    all.insert(fold.test.begin(), fold.test.end());
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), samples);
    EXPECT_EQ(static_cast<std::int64_t>(fold.train.size() + fold.test.size()), samples);
    EXPECT_TRUE(std::is_sorted(fold.train.begin(), fold.train.end()));
  }
  EXPECT_EQ(static_cast<std::int64_t>(tested.size()), samples);
  EXPECT_EQ(std::set<std::int64_t>(tested.begin(), tested.end()).size(), tested.size());
}

TEST(Folds, have_equal_shares_of_every_class) {
  Ints labels;
  for (int i = 0; i < 103; ++i) labels.push_back(i % 10 == 0 ? 7 : i % 3 == 0 ? 2 : 0);
  const std::vector<Fold> folds = stratified_folds(labels, {.folds = 4, .seed = 3});
  ASSERT_EQ(folds.size(), 4u);
  expect_partition(folds, 103);
  for (const std::int32_t label : {0, 2, 7}) {
    std::set<std::int64_t> counts;
    for (const Fold& fold : folds)
      counts.insert(std::count_if(fold.test.begin(), fold.test.end(),
                                  [&](std::int64_t i) { return labels[static_cast<std::size_t>(i)] == label; }));
    EXPECT_LE(*counts.rbegin() - *counts.begin(), 1) << label;
  }
  for (const Fold& fold : folds) EXPECT_TRUE(fold.test.size() == 25 || fold.test.size() == 26);
  EXPECT_EQ(stratified_folds(labels, {.folds = 4, .seed = 3})[1].test, folds[1].test);
  EXPECT_NE(stratified_folds(labels, {.folds = 4, .seed = 4})[1].test, folds[1].test);
}

TEST(Folds, keep_groups_together_and_classes_even) {
  Ints labels, groups;
  for (int group = 0; group < 60; ++group)
    for (int i = 0; i < 1 + group % 4; ++i) {
      labels.push_back(group % 3 == 0 ? 1 : 0);
      groups.push_back(1000 - group);
    }
  const auto samples = static_cast<std::int64_t>(labels.size());
  const std::vector<Fold> folds = stratified_folds(labels, {.folds = 5, .seed = 9, .groups = groups});
  expect_partition(folds, samples);
  const double share = static_cast<double>(std::count(labels.begin(), labels.end(), 1)) / static_cast<double>(samples);
  for (const Fold& fold : folds) {
    std::set<std::int32_t> trained;
    for (const std::int64_t i : fold.train) trained.insert(groups[static_cast<std::size_t>(i)]);
    int ones = 0;
    for (const std::int64_t i : fold.test) {
      EXPECT_EQ(trained.count(groups[static_cast<std::size_t>(i)]), 0u);
      ones += labels[static_cast<std::size_t>(i)];
    }
    EXPECT_NEAR(static_cast<double>(ones) / static_cast<double>(fold.test.size()), share, 0.05);
    EXPECT_NEAR(static_cast<double>(fold.test.size()), static_cast<double>(samples) / 5, 3);
  }
}

TEST(Folds, check_their_arguments) {
  const Ints labels{0, 0, 1, 1, 1};
  EXPECT_ERROR(stratified_folds(labels, {.folds = 1}), ArgumentError,
               "stratified_folds: folds must be 2 or more, got 1");
  EXPECT_ERROR(stratified_folds(labels, {.folds = 3}), ArgumentError,
               "stratified_folds: 3 folds want as many samples of each class, class 0 has 2");
  EXPECT_ERROR((stratified_folds(labels, {.folds = 2, .groups = {1, 2}})), ArgumentError,
               "stratified_folds: 5 labels want as many groups, got 2");
  EXPECT_ERROR((stratified_folds(labels, {.folds = 3, .groups = {1, 1, 2, 2, 2}})), ArgumentError,
               "stratified_folds: 3 folds want as many groups, got 2");
  EXPECT_ERROR(stratified_folds(Ints{}), ArgumentError, "stratified_folds: expected samples, got none");
}

TEST(Folds, a_subset_is_the_samples_it_names) {
  const DatasetPtr set = in_memory({{"x", HostArray(Shape{4}, Floats{1, 2, 3, 4})}});
  const DatasetPtr part = subset(set, {3, 0, 3});
  EXPECT_EQ(part->size(), 3);
  EXPECT_EQ(Sample(*part, 0).value<float>(0), 4);
  EXPECT_EQ(Sample(*part, 1).value<float>(0), 1);
  EXPECT_ERROR(subset(set, {4}), ArgumentError, "subset: an index must be from 0 to 3, got 4");
  EXPECT_ERROR(subset(stream({{"x", Shape{}}}, [](std::span<const Field>) { return false; }), {}), ArgumentError,
               "subset: a stream has no places, got a sequential source");
}

}  // namespace
}  // namespace samebytes::data
