// A Session's steps and validations in several processes.
#include <algorithm>
#include <memory>

#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/nn/module.h"
#include "samebytes/train/parallel/strategies.h"

namespace samebytes::train {
namespace {

constexpr int kRandomShift = 48;  // bits of an engine's counter that no run counts up to

// Batches of samples in order, those of a rank: every ranks-th one.
class EveryBatch final : public data::Sampler {
 public:
  EveryBatch(std::int64_t samples, std::int64_t batch, int rank, int ranks)
      : samples_(samples), batch_(batch), rank_(rank), ranks_(ranks) {}
  std::int64_t size() const override {
    std::int64_t count = 0;
    for (std::int64_t begin = rank_ * batch_; begin < samples_; begin += ranks_ * batch_)
      count += std::min(batch_, samples_ - begin);
    return count;
  }
  std::int64_t at(std::int64_t, std::int64_t position) const override {
    return (position / batch_ * ranks_ + rank_) * batch_ + position % batch_;
  }

 private:
  std::int64_t samples_, batch_, rank_, ranks_;
};

DataParallel joined(distributed::Group& group, Engine& engine, nn::Module& net, optim::Optimizer& optimizer,
                    const DataParallelOptions& options) {
  const EngineScope scope(engine);
  // The engine's own limit is for the whole machine.
  engine.set_memory_limit(engine.memory().limit_bytes /
                          static_cast<std::size_t>(distributed::launched_local_processes()));
  return DataParallel(group, net, optimizer, options);
}

}  // namespace

RanksStrategy::RanksStrategy(distributed::Group& group, Engine& engine, nn::Module& net, optim::Optimizer& optimizer,
                             const DataParallelOptions& options)
    : group_(group), parallel_(joined(group, engine, net, optimizer, options)) {}

void RanksStrategy::divide(data::LoaderOptions& loading, const data::Dataset& dataset) {
  if (!loading.shuffle) throw ArgumentError("divide: expected a loader that shuffles, got one that does not");
  sharing_ = {.rank = rank(), .ranks = size(), .batch = loading.batch};
  dataset_size_ = dataset.size();
  loading.sampler = data::distributed(data::random(dataset.size(), loading.seed), *sharing_);
  loading.shuffle = false;
  loading.batch = data::distributed_batch(*sharing_);
}

void RanksStrategy::divide_validation(data::LoaderOptions& loading, const data::Dataset& dataset) {
  validation_batches_ = 0;
  if (dataset.is_sequential() || dataset.size() == data::kEndless) return;
  validation_batches_ = (dataset.size() + loading.batch - 1) / loading.batch;
  if (own_validation_batches() == 0) return;
  const auto own = std::make_shared<EveryBatch>(dataset.size(), loading.batch, rank(), size());
  loading.batch = std::min(loading.batch, own->size());  // the last one, which may be incomplete, may be all there is
  loading.sampler = own;
}

void RanksStrategy::begin(Engine& engine) const {
  if (rank() == 0) return;  // rank 0's are those of a checkpoint
  engine.set_random_counter(engine.random_counter() + (static_cast<std::uint64_t>(rank()) << kRandomShift));
}

Strategy::Share RanksStrategy::share_of(const data::Batch& batch) {
  if (!sharing_) return {batch, batch.samples()};
  const std::int64_t samples = data::distributed_samples(dataset_size_, *sharing_, batch.step());
  return {samples > 0 && samples < batch.samples() ? batch.piece(0, samples) : batch, samples};
}

std::int64_t RanksStrategy::own_validation_batches() const {
  return (validation_batches_ - rank() + size() - 1) / size();
}

void RanksStrategy::share_buffers(const nn::Module& net) const {
  for (const nn::NamedArray& entry : net.named_buffers()) group_.broadcast(entry.array);
}

bool RanksStrategy::stops(bool is_asked) {
  if (is_asked) parallel_.ask_to_stop();
  return parallel_.is_asked_to_stop();
}

bool RanksStrategy::agree_to_stop(bool is_asked) const {
  double one = is_asked ? 1 : 0;
  group_.all_reduce({&one, 1}, distributed::Reduction::max);
  return one > 0;
}

}  // namespace samebytes::train
