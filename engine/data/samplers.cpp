// Samplers that need no layout of an epoch: subset, curriculum, distributed; and the field with the sample's index.
#include "samebytes/data/samplers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace samebytes::data {
namespace {

class SubsetSampler final : public Sampler {
 public:
  SubsetSampler(std::vector<std::int64_t> indices, const SubsetOptions& options)
      : indices_(std::move(indices)), options_(options) {
    for (const std::int64_t index : indices_)
      if (index < 0) throw ArgumentError("subset: indices must be 0 or more, got " + std::to_string(index));
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    if (options_.shuffle) position = Permutation(size(), options_.seed, epoch).at(position);
    return indices_[static_cast<std::size_t>(position)];
  }

 private:
  std::vector<std::int64_t> indices_;
  SubsetOptions options_;
};

class Curriculum final : public Sampler {
 public:
  Curriculum(std::span<const float> difficulty, const CurriculumOptions& options)
      : options_(options), order_(difficulty.size()) {
    if (options.epochs < 0)
      throw ArgumentError("curriculum: epochs must be 0 or more, got " + std::to_string(options.epochs));
    if (!(options.floor > 0 && options.floor <= 1))
      throw ArgumentError("curriculum: floor must be above 0 and at most 1, got " + std::to_string(options.floor));
    if (!(options.power > 0))
      throw ArgumentError("curriculum: power must be above 0, got " + std::to_string(options.power));
    for (const float value : difficulty)
      if (std::isnan(value)) throw ArgumentError("curriculum: difficulties must be numbers, got NaN");
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, [&](std::int64_t a, std::int64_t b) {
      return difficulty[static_cast<std::size_t>(a)] < difficulty[static_cast<std::size_t>(b)];
    });
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(order_.size()); }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    const std::int64_t count = curriculum_count(size(), epoch, options_);
    const std::int64_t round = position / count;
    const Permutation permutation(count, options_.seed, epoch, round);
    return order_[static_cast<std::size_t>(permutation.at(position % count))];
  }

 private:
  CurriculumOptions options_;
  std::vector<std::int64_t> order_;  // easiest first
};

class Distributed final : public Sampler {
 public:
  Distributed(SamplerPtr inner, const DistributedOptions& options) : inner_(std::move(inner)), options_(options) {
    if (!inner_) throw ArgumentError("distributed: expected a sampler, got none");
    if (inner_->size() == kEndless && options.batch == 0)
      throw ArgumentError("distributed: needs a known number of samples");
    if (options.batch < 0 || (options.batch > 0 && options.drop))
      throw ArgumentError(options.drop ? "distributed: batch and drop do not go together"
                                       : "distributed: batch must be 0 or more, got " + std::to_string(options.batch));
    if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
      throw ArgumentError("distributed: rank must be from 0 to ranks - 1, got rank " + std::to_string(options.rank) +
                          " of " + std::to_string(options.ranks));
  }
  std::int64_t size() const override {
    const std::int64_t whole = inner_->size();
    if (options_.batch > 0) {
      if (whole == kEndless) return kEndless;
      const std::int64_t rest = whole % options_.batch;
      return whole / options_.batch * distributed_batch(options_) + (rest + options_.ranks - 1) / options_.ranks;
    }
    return options_.drop ? whole / options_.ranks : (whole + options_.ranks - 1) / options_.ranks;
  }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    if (options_.batch == 0) return inner_->at(epoch, (position * options_.ranks + options_.rank) % inner_->size());
    const std::int64_t share = distributed_batch(options_), first = position / share * options_.batch;
    const std::int64_t whole = inner_->size();
    const std::int64_t count = whole == kEndless ? options_.batch : std::min(options_.batch, whole - first);
    return inner_->at(epoch, first + (position % share * options_.ranks + options_.rank) % count);
  }

 private:
  SamplerPtr inner_;
  DistributedOptions options_;
};

class WithIndex final : public Dataset {
 public:
  explicit WithIndex(DatasetPtr source) : source_(std::move(source)) {
    if (!source_) throw ArgumentError("with_index: expected a data set, got none");
    fields_ = source_->fields();
    for (const FieldSpec& field : fields_)
      if (field.name == "index") throw ArgumentError("with_index: the samples have a field 'index' already");
    fields_.push_back({"index", Shape{}, i32});
  }
  std::int64_t size() const override { return source_->size(); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    if (index > std::numeric_limits<std::int32_t>::max())
      throw ArgumentError("with_index: the field must be i32, got sample " + std::to_string(index));
    dst.back().as<std::int32_t>()[0] = static_cast<std::int32_t>(index);
    return source_->read(index, dst.first(dst.size() - 1));
  }
  bool is_sequential() const override { return source_->is_sequential(); }
  void begin_pass(std::int64_t epoch) const override { source_->begin_pass(epoch); }

 private:
  DatasetPtr source_;
  std::vector<FieldSpec> fields_;
};

}  // namespace

std::int64_t distributed_batch(const DistributedOptions& options) {
  return (options.batch + options.ranks - 1) / options.ranks;
}

std::int64_t distributed_samples(std::int64_t size, const DistributedOptions& options, std::int64_t step) {
  const std::int64_t count = size == kEndless ? options.batch : std::min(options.batch, size - step * options.batch);
  return std::max<std::int64_t>(0, (count - options.rank + options.ranks - 1) / options.ranks);
}

std::int64_t curriculum_count(std::int64_t n, std::int64_t epoch, const CurriculumOptions& options) {
  if (n == 0 || epoch >= options.epochs) return n;
  const double passed = static_cast<double>(std::max<std::int64_t>(0, epoch)) / static_cast<double>(options.epochs);
  const double share = options.floor + (1 - options.floor) * std::pow(passed, options.power);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(share * static_cast<double>(n))), 1, n);
}

SamplerPtr subset(std::vector<std::int64_t> indices, const SubsetOptions& options) {
  return std::make_shared<SubsetSampler>(std::move(indices), options);
}
SamplerPtr curriculum(std::span<const float> difficulty, const CurriculumOptions& options) {
  return std::make_shared<Curriculum>(difficulty, options);
}
SamplerPtr distributed(SamplerPtr inner, const DistributedOptions& options) {
  return std::make_shared<Distributed>(std::move(inner), options);
}
DatasetPtr with_index(DatasetPtr source) { return std::make_shared<WithIndex>(std::move(source)); }

}  // namespace samebytes::data
