// Samplers with probabilities: weighted, and hard examples, which use losses as weights.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/mutex.h"
#include "data/alias_table.h"
#include "data/epoch_orders.h"
#include "samebytes/data/samplers.h"

namespace samebytes {

namespace detail {

AliasTable::AliasTable(std::span<const double> weights)
    : keep_(weights.begin(), weights.end()), alias_(weights.size()) {
  const double mean = std::accumulate(keep_.begin(), keep_.end(), 0.0) / static_cast<double>(keep_.size());
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < keep_.size(); ++i) {
    keep_[i] /= mean;
    alias_[i] = static_cast<std::int64_t>(i);
    (keep_[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    const std::size_t poor = small.back(), rich = large.back();
    small.pop_back();
    alias_[poor] = static_cast<std::int64_t>(rich);
    keep_[rich] -= 1 - keep_[poor];
    if (keep_[rich] >= 1) continue;
    large.pop_back();
    small.push_back(rich);
  }
  for (const std::size_t i : large) keep_[i] = 1;
  // The rest is due to rounding and gets full cells; a weight of 0 must not become one.
  for (const std::size_t i : small)
    if (weights[i] > 0) keep_[i] = 1;
}

}  // namespace detail

namespace data {
namespace {

constexpr std::uint32_t kDrawLane = 0xfffd;  // the last one belongs to a permutation
constexpr std::size_t kMostSamples = 0xffffffffu;

Random draws(std::uint64_t seed, std::int64_t epoch, std::int64_t position) {
  return Random({.seed = seed, .epoch = epoch, .index = position, .lane = kDrawLane, .domain = RandomDomain::order});
}

// Number of weights above 0.
std::int64_t check_weights(std::span<const double> weights) {
  if (weights.size() > kMostSamples) throw ArgumentError("weighted: fewer than 2^32 weights");
  std::int64_t positive = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      throw ArgumentError("weighted: weights must be finite and 0 or more, got " + std::to_string(weight));
    positive += weight > 0;
  }
  if (positive == 0) throw ArgumentError("weighted: expected a weight above 0, got none");
  return positive;
}

class WithReplacement final : public Sampler {
 public:
  WithReplacement(std::span<const double> weights, const WeightedOptions& options)
      : count_(options.count > 0 ? options.count : static_cast<std::int64_t>(weights.size())),
        seed_(options.seed),
        table_(weights) {}
  std::int64_t size() const override { return count_; }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    return table_.draw(draws(seed_, epoch, position));
  }

 private:
  std::int64_t count_;
  std::uint64_t seed_;
  detail::AliasTable table_;
};

class WithoutReplacement final : public Sampler {
 public:
  WithoutReplacement(std::span<const double> weights, std::int64_t count, std::uint64_t seed)
      : count_(count),
        orders_([weights = std::vector<double>(weights.begin(), weights.end()), count, seed](std::int64_t epoch) {
          std::vector<std::pair<double, std::int64_t>> keys;
          for (std::size_t i = 0; i < weights.size(); ++i) {
            if (weights[i] <= 0) continue;
            Random random = draws(seed, epoch, static_cast<std::int64_t>(i));
            const double uniform = (static_cast<double>(random.bits()) + 0.5) * 0x1p-32;
            keys.emplace_back(-std::log(uniform) / weights[i], static_cast<std::int64_t>(i));
          }
          const auto end = keys.begin() + static_cast<std::ptrdiff_t>(count);
          std::partial_sort(keys.begin(), end, keys.end());
          std::vector<std::int64_t> order;
          for (auto key = keys.begin(); key != end; ++key) order.push_back(key->second);
          return order;
        }) {}
  std::int64_t size() const override { return count_; }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    return (*orders_.at(epoch))[static_cast<std::size_t>(position)];
  }

 private:
  std::int64_t count_;
  detail::EpochLayouts<std::vector<std::int64_t>> orders_;
};

}  // namespace

SamplerPtr weighted(std::span<const double> weights, const WeightedOptions& options) {
  const std::int64_t positive = check_weights(weights);
  if (options.count < 0) throw ArgumentError("weighted: count must be 0 or more, got " + std::to_string(options.count));
  if (options.replacement) return std::make_shared<WithReplacement>(weights, options);
  if (options.count > positive)
    throw ArgumentError("weighted: without replacement, count must be at most the " + std::to_string(positive) +
                        " samples with a weight above 0, got " + std::to_string(options.count));
  return std::make_shared<WithoutReplacement>(weights, options.count > 0 ? options.count : positive, options.seed);
}

struct HardExamples::Impl {
  struct Epoch {
    std::vector<double> weights;
    detail::AliasTable table;
    explicit Epoch(std::vector<double> values) : weights(std::move(values)), table(weights) {}
  };

  std::vector<double> weights_now() const SAMEBYTES_REQUIRES(mutex) {
    const auto size = static_cast<double>(losses.size());
    double sum = 0, seen = 0;
    for (const float loss : losses) {
      if (loss < 0) continue;
      sum += static_cast<double>(loss);
      ++seen;
    }
    const double mean = seen > 0 ? sum / seen : 0;
    std::vector<double> weights;
    for (const float loss : losses) {
      const double own = loss < 0 ? mean : static_cast<double>(loss);
      const double share = mean > 0 ? own / (mean * size) : 1 / size;
      weights.push_back(options.floor / size + (1 - options.floor) * share);
    }
    return weights;
  }

  HardExamplesOptions options;
  mutable detail::Mutex mutex;
  std::vector<float> losses SAMEBYTES_GUARDED_BY(mutex);  // -1: not seen
  std::int64_t epoch SAMEBYTES_GUARDED_BY(mutex) = -1;
  std::shared_ptr<const Epoch> now SAMEBYTES_GUARDED_BY(mutex);
};

HardExamples::HardExamples(std::int64_t size, const HardExamplesOptions& options) : impl_(std::make_unique<Impl>()) {
  if (size < 1 || static_cast<std::uint64_t>(size) > kMostSamples)
    throw ArgumentError("hard examples: expected 1 sample or more, got " + std::to_string(size));
  if (!(options.momentum >= 0 && options.momentum < 1))
    throw ArgumentError("hard examples: momentum must be from 0 to below 1, got " + std::to_string(options.momentum));
  if (!(options.floor > 0 && options.floor <= 1))
    throw ArgumentError("hard examples: floor must be above 0 and at most 1, got " + std::to_string(options.floor));
  impl_->options = options;
  const detail::MutexLock lock(impl_->mutex);
  impl_->losses.assign(static_cast<std::size_t>(size), -1.0f);
}

HardExamples::~HardExamples() = default;

std::int64_t HardExamples::size() const {
  const detail::MutexLock lock(impl_->mutex);
  return static_cast<std::int64_t>(impl_->losses.size());
}

std::int64_t HardExamples::at(std::int64_t epoch, std::int64_t position) const {
  std::shared_ptr<const Impl::Epoch> layout;
  {
    const detail::MutexLock lock(impl_->mutex);
    if (impl_->epoch != epoch || !impl_->now) {
      impl_->now = std::make_shared<const Impl::Epoch>(impl_->weights_now());
      impl_->epoch = epoch;
    }
    layout = impl_->now;
  }
  return layout->table.draw(draws(impl_->options.seed, epoch, position));
}

void HardExamples::feed(std::span<const std::int32_t> indices, std::span<const float> losses) {
  if (indices.size() != losses.size())
    throw ArgumentError("hard examples: expected one loss for each index, got " + std::to_string(indices.size()) +
                        " indices and " + std::to_string(losses.size()) + " losses");
  const detail::MutexLock lock(impl_->mutex);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || static_cast<std::size_t>(indices[i]) >= impl_->losses.size())
      throw ArgumentError("hard examples: sample " + std::to_string(indices[i]) + " of " +
                          std::to_string(impl_->losses.size()));
    if (!(losses[i] >= 0) || !std::isfinite(losses[i]))
      throw ArgumentError("hard examples: losses must be finite and 0 or more, got " + std::to_string(losses[i]));
  }
  const auto momentum = static_cast<float>(impl_->options.momentum);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    float& loss = impl_->losses[static_cast<std::size_t>(indices[i])];
    loss = loss < 0 ? losses[i] : momentum * loss + (1 - momentum) * losses[i];
  }
}

HardExamples::State HardExamples::state() const {
  const detail::MutexLock lock(impl_->mutex);
  State state{impl_->losses, impl_->epoch, {}};
  if (impl_->now) state.weights = impl_->now->weights;
  return state;
}

void HardExamples::restore(const State& state) {
  const detail::MutexLock lock(impl_->mutex);
  const bool has_epoch = state.epoch >= 0;
  if (state.losses.size() != impl_->losses.size() || (has_epoch && state.weights.size() != impl_->losses.size()))
    throw ArgumentError("hard examples: the state of " + std::to_string(state.losses.size()) + " samples for " +
                        std::to_string(impl_->losses.size()));
  impl_->losses = state.losses;
  impl_->epoch = state.epoch;
  impl_->now = has_epoch ? std::make_shared<const Impl::Epoch>(state.weights) : nullptr;
}

}  // namespace data
}  // namespace samebytes
