#include "samebytes/data/folds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "samebytes/data/sampler.h"

namespace samebytes::data {
namespace {

using Members = std::vector<std::int64_t>;

// Shuffles in an order that is a function of seed and stream.
Members shuffled(const Members& members, std::uint64_t seed, std::int64_t stream) {
  const Permutation order(static_cast<std::int64_t>(members.size()), seed, 0, stream, RandomDomain::split);
  Members result;
  for (std::int64_t i = 0; i < order.size(); ++i) result.push_back(members[static_cast<std::size_t>(order.at(i))]);
  return result;
}

// Deals the samples of each class to the folds in turn; each class begins at the fold where the previous one ended.
std::vector<int> deal(const std::map<std::int32_t, Members>& classes, const FoldOptions& options, std::size_t samples) {
  std::vector<int> fold_of(samples);
  int fold = 0;
  std::int64_t stream = 0;
  for (const auto& [label, members] : classes) {
    if (members.size() < static_cast<std::size_t>(options.folds))
      throw ArgumentError("stratified_folds: " + std::to_string(options.folds) +
                          " folds want as many samples of each class, class " + std::to_string(label) + " has " +
                          std::to_string(members.size()));
    for (const std::int64_t member : shuffled(members, options.seed, stream)) {
      fold_of[static_cast<std::size_t>(member)] = fold;
      fold = (fold + 1) % options.folds;
    }
    ++stream;
  }
  return fold_of;
}

double variance(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  const auto n = static_cast<double>(values.size());
  return squares / n - (sum / n) * (sum / n);
}

std::vector<int> place_groups(std::span<const std::int32_t> labels, const std::map<std::int32_t, Members>& classes,
                              const FoldOptions& options) {
  std::map<std::int32_t, Members> members;
  for (std::size_t i = 0; i < labels.size(); ++i) members[options.groups[i]].push_back(static_cast<std::int64_t>(i));
  if (members.size() < static_cast<std::size_t>(options.folds))
    throw ArgumentError("stratified_folds: " + std::to_string(options.folds) + " folds want as many groups, got " +
                        std::to_string(members.size()));
  std::map<std::int32_t, std::size_t> class_places;
  for (const auto& [label, all] : classes) class_places.emplace(label, class_places.size());

  struct Group {
    const Members* members;
    std::vector<double> counts;  // of each class
    double unevenness;
  };
  std::vector<Group> groups;
  Members order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::vector<const Members*> all;
  all.reserve(members.size());
  for (const auto& [group, list] : members) all.push_back(&list);
  for (const std::int64_t place : shuffled(order, options.seed, 0)) {
    Group group{all[static_cast<std::size_t>(place)], std::vector<double>(classes.size()), 0};
    for (const std::int64_t member : *group.members)
      ++group.counts[class_places.at(labels[static_cast<std::size_t>(member)])];
    group.unevenness = variance(group.counts);
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.unevenness > b.unevenness; });

  const auto folds = static_cast<std::size_t>(options.folds);
  std::vector<std::vector<double>> counts(folds, std::vector<double>(classes.size()));
  std::vector<double> sizes(folds), totals, shares(folds);
  for (const auto& [label, list] : classes) totals.push_back(static_cast<double>(list.size()));
  std::vector<int> fold_of(labels.size());
  for (const Group& group : groups) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t fold = 0; fold < folds; ++fold) {
      double unevenness = 0;
      for (std::size_t c = 0; c < totals.size(); ++c) {
        for (std::size_t i = 0; i < folds; ++i)
          shares[i] = (counts[i][c] + (i == fold ? group.counts[c] : 0)) / totals[c];
        unevenness += variance(shares);
      }
      // Among equal folds, the one with the fewest samples.
      const bool is_tie = unevenness == least;
      if (unevenness < least || (is_tie && sizes[fold] < sizes[best])) best = fold, least = unevenness;
    }
    for (std::size_t c = 0; c < totals.size(); ++c) counts[best][c] += group.counts[c];
    sizes[best] += static_cast<double>(group.members->size());
    for (const std::int64_t member : *group.members) fold_of[static_cast<std::size_t>(member)] = static_cast<int>(best);
  }
  return fold_of;
}

class Subset final : public Dataset {
 public:
  Subset(DatasetPtr source, std::vector<std::int64_t> indices)
      : source_(std::move(source)), indices_(std::move(indices)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  const std::vector<FieldSpec>& fields() const override { return source_->fields(); }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    return source_->read(indices_[static_cast<std::size_t>(index)], dst);
  }
  void begin_pass(std::int64_t epoch) const override { source_->begin_pass(epoch); }

 private:
  DatasetPtr source_;
  std::vector<std::int64_t> indices_;
};

}  // namespace

std::vector<Fold> stratified_folds(std::span<const std::int32_t> labels, const FoldOptions& options) {
  if (options.folds < 2)
    throw ArgumentError("stratified_folds: folds must be 2 or more, got " + std::to_string(options.folds));
  if (!options.groups.empty() && options.groups.size() != labels.size())
    throw ArgumentError("stratified_folds: " + std::to_string(labels.size()) + " labels want as many groups, got " +
                        std::to_string(options.groups.size()));
  std::map<std::int32_t, Members> classes;
  for (std::size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<std::int64_t>(i));
  if (classes.empty()) throw ArgumentError("stratified_folds: expected samples, got none");
  const std::vector<int> fold_of =
      options.groups.empty() ? deal(classes, options, labels.size()) : place_groups(labels, classes, options);
  std::vector<Fold> folds(static_cast<std::size_t>(options.folds));
  for (std::size_t i = 0; i < fold_of.size(); ++i)
    for (std::size_t fold = 0; fold < folds.size(); ++fold)
      (static_cast<int>(fold) == fold_of[i] ? folds[fold].test : folds[fold].train)
          .push_back(static_cast<std::int64_t>(i));
  return folds;
}

Fold stratified_split(std::span<const std::int32_t> labels, const SplitOptions& options) {
  if (!(options.share > 0 && options.share < 1))
    throw ArgumentError("stratified_split: the share lies between 0 and 1, got " + std::to_string(options.share));
  std::map<std::int32_t, Members> classes;
  for (std::size_t i = 0; i < labels.size(); ++i) classes[labels[i]].push_back(static_cast<std::int64_t>(i));
  Fold fold;
  std::int64_t stream = 0;
  for (const auto& [label, members] : classes) {
    const std::int64_t count = std::ssize(members);
    if (count < 2)
      throw ArgumentError("stratified_split: class " + std::to_string(label) +
                          " has 1 sample, expected 2 at least: one to train with, one for testing");
    const std::int64_t tests =
        std::clamp<std::int64_t>(std::llround(options.share * static_cast<double>(count)), 1, count - 1);
    const Members order = shuffled(members, options.seed, stream++);
    fold.test.insert(fold.test.end(), order.begin(), order.begin() + tests);
    fold.train.insert(fold.train.end(), order.begin() + tests, order.end());
  }
  std::sort(fold.train.begin(), fold.train.end());
  std::sort(fold.test.begin(), fold.test.end());
  return fold;
}

DatasetPtr subset(DatasetPtr source, std::vector<std::int64_t> indices) {
  if (!source) throw ArgumentError("subset: expected a data set, got none");
  if (source->is_sequential()) throw ArgumentError("subset: a stream has no places, got a sequential source");
  for (const std::int64_t index : indices)
    if (index < 0 || (source->size() != kEndless && index >= source->size()))
      throw ArgumentError("subset: an index must be from 0 to " + std::to_string(source->size() - 1) + ", got " +
                          std::to_string(index));
  return std::make_shared<Subset>(std::move(source), std::move(indices));
}

}  // namespace samebytes::data
