// Samplers that use classes: stratified and balanced.
#include <algorithm>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "samebytes/data/samplers.h"

namespace samebytes::data {
namespace {

// The samples of each nonempty class.
std::vector<std::vector<std::int64_t>> members_of(const char* what, std::span<const std::int32_t> labels) {
  std::map<std::int32_t, std::vector<std::int64_t>> members;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0)
      throw ArgumentError(std::string(what) + ": labels must be 0 or more, got " + std::to_string(labels[i]));
    members[labels[i]].push_back(static_cast<std::int64_t>(i));
  }
  std::vector<std::vector<std::int64_t>> classes;
  classes.reserve(members.size());
  for (auto& [label, indices] : members) classes.push_back(std::move(indices));
  return classes;
}

// A separate stream for each class; stream 0 is the order of the classes.
std::int64_t stream_of(std::size_t which) { return static_cast<std::int64_t>(which) + 1; }

class Stratified final : public Sampler {
 public:
  Stratified(std::span<const std::int32_t> labels, std::uint64_t seed)
      : classes_(members_of("stratified", labels)), seed_(seed) {
    const auto size = static_cast<std::int64_t>(labels.size());
    // Sample j of a class of n may have a position from floor(j size / n) on and must be before ceil((j + 1) size / n);
    // earliest due date first satisfies both.
    std::vector<std::int64_t> next(classes_.size());
    using Due = std::tuple<std::int64_t, std::size_t>;  // a position and a class
    std::priority_queue<Due, std::vector<Due>, std::greater<>> coming, ready;
    const auto count = [&](std::size_t c) { return static_cast<std::int64_t>(classes_[c].size()); };
    for (std::size_t c = 0; c < classes_.size(); ++c) coming.emplace(0, c);
    for (std::int64_t place = 0; place < size; ++place) {
      while (!coming.empty() && std::get<0>(coming.top()) <= place) {
        const std::size_t c = std::get<1>(coming.top());
        coming.pop();
        ready.emplace(((next[c] + 1) * size + count(c) - 1) / count(c), c);
      }
      const std::size_t c = std::get<1>(ready.top());
      ready.pop();
      places_.emplace_back(static_cast<std::uint32_t>(c), next[c]++);
      if (next[c] < count(c)) coming.emplace(next[c] * size / count(c), c);
    }
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(places_.size()); }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    const auto [c, j] = places_[static_cast<std::size_t>(position)];
    const std::vector<std::int64_t>& members = classes_[c];
    const Permutation order(static_cast<std::int64_t>(members.size()), seed_, epoch, stream_of(c));
    return members[static_cast<std::size_t>(order.at(j))];
  }

 private:
  std::vector<std::vector<std::int64_t>> classes_;
  std::uint64_t seed_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> places_;  // class, and index among its samples
};

class Balanced final : public Sampler {
 public:
  Balanced(std::span<const std::int32_t> labels, const BalancedOptions& options)
      : classes_(members_of("balanced", labels)),
        count_(options.count > 0 ? options.count : static_cast<std::int64_t>(labels.size())),
        seed_(options.seed) {
    if (options.count < 0)
      throw ArgumentError("balanced: count must be 0 or more, got " + std::to_string(options.count));
    if (classes_.empty()) throw ArgumentError("balanced: expected one label or more, got none");
  }
  std::int64_t size() const override { return count_; }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    const auto classes = static_cast<std::int64_t>(classes_.size());
    const std::int64_t turns = (count_ + classes - 1) / classes;  // of an epoch
    const std::int64_t turn = epoch * turns + position / classes;
    const auto c = static_cast<std::size_t>(Permutation(classes, seed_, turn).at(position % classes));
    const std::vector<std::int64_t>& members = classes_[c];
    const auto size = static_cast<std::int64_t>(members.size());
    return members[static_cast<std::size_t>(Permutation(size, seed_, turn / size, stream_of(c)).at(turn % size))];
  }

 private:
  std::vector<std::vector<std::int64_t>> classes_;
  std::int64_t count_;
  std::uint64_t seed_;
};

}  // namespace

SamplerPtr stratified(std::span<const std::int32_t> labels, std::uint64_t seed) {
  return std::make_shared<Stratified>(labels, seed);
}
SamplerPtr balanced(std::span<const std::int32_t> labels, const BalancedOptions& options) {
  return std::make_shared<Balanced>(labels, options);
}

}  // namespace samebytes::data
