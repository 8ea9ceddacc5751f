// Cross-validation: folds with equal shares of every class, and subsets of a data set.
//   for (const data::Fold& fold : data::stratified_folds(labels, {.folds = 5, .seed = 1})) {
//     const auto train = data::subset(set, fold.train), test = data::subset(set, fold.test); ...
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebytes/data/dataset.h"

namespace samebytes::data {

struct FoldOptions {
  int folds = 5;
  std::uint64_t seed = 0;  // decides which sample is in which fold
  // Samples with equal numbers stay together in the training or test part of a fold (one star, one speaker). Empty: no
  // groups.
  std::vector<std::int32_t> groups = {};
};

struct Fold {
  std::vector<std::int64_t> train, test;  // ascending; together every sample once
};

// Every sample is in the test part of exactly one fold. Without groups, the folds' sample counts of each class differ
// by at most one, and so do their sizes; with groups, each group, the most uneven first, goes into the fold that keeps
// the shares of the classes most even (scikit-learn's StratifiedGroupKFold). A function of the seed alone. Throws
// ArgumentError for fewer than 2 folds, unequal numbers of groups and labels, fewer groups than folds, and, without
// groups, a class with fewer samples than folds.
std::vector<Fold> stratified_folds(std::span<const std::int32_t> labels, const FoldOptions& options = {});

struct SplitOptions {
  double share = 0.1;      // of each class that is for testing, rounded; one sample at least, and one is left at least
  std::uint64_t seed = 0;  // decides which
};
// One division into training and test. A function of the seed alone. Throws ArgumentError for a share outside 0 to 1
// and a class with fewer than 2 samples.
Fold stratified_split(std::span<const std::int32_t> labels, const SplitOptions& options = {});

// Samples `indices` of another set, in that order; indices may repeat. Throws ArgumentError for an index outside the
// source, and for a sequential source.
DatasetPtr subset(DatasetPtr source, std::vector<std::int64_t> indices);

}  // namespace samebytes::data
