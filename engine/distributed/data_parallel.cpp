// Which gradients travel together, and when.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/hash.h"
#include "distributed/exchange.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/nn/module.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::distributed {
namespace {

using detail::Exchange;

std::uint64_t signature_of(const optim::Optimizer& optimizer, double bucket_bytes) {
  samebytes::detail::Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(bucket_bytes));
  for (const Array& parameter : optimizer.parameters()) {
    hasher.add(static_cast<std::uint64_t>(parameter.dtype()));
    for (const std::int64_t size : parameter.shape()) hasher.add(static_cast<std::uint64_t>(size));
  }
  for (const optim::ParameterArena& arena : optimizer.arenas()) hasher.add(static_cast<std::uint64_t>(arena.size()));
  return hasher.key().a;
}

bool shares_memory(const DeviceInfo& device) {
  return device.memory_mode == MemoryMode::system || device.memory_mode == MemoryMode::fine;
}

}  // namespace

struct DataParallel::Impl {
  Impl(Group& g, optim::Optimizer& o, const DataParallelOptions& options) : group(g), optimizer(o) {
    if (!(options.bucket_megabytes > 0))
      throw ArgumentError("DataParallel: bucket_megabytes must be above 0, " +
                          std::to_string(options.bucket_megabytes) + " came");
    if (o.releases_gradients())
      throw ArgumentError(
          "DataParallel: the optimizer has release_gradients, which updates parameters before the other ranks' "
          "gradients have come; use one of the two");
    const Engine& engine = Engine::current();
    bucket_bytes = options.bucket_megabytes * 1e6;
    signature = signature_of(o, bucket_bytes);
    exchange = std::make_shared<Exchange>(
        g.communicator(), options.overlap && !engine.options().check_nan && shares_memory(engine.device()));
  }

  // The flat gradients of the mean over all ranks.
  std::vector<Array> flat_gradients(const Array& loss) {
    const std::vector<Array>& parameters = optimizer.parameters();
    if (!is_synced || group.size() == 1) return optimizer.flat_gradients(gradients(loss, parameters));
    exchange->begin_step({samples, signature, stops ? 1U : 0U});
    std::vector<Array> means(parameters.size());
    // A bucket for each dtype, sent when it is full: the order is that of the backward pass, the same on all ranks.
    struct Bucket {
      std::vector<std::size_t> members;
      std::vector<Array> gradients;
      double bytes = 0;
    };
    std::map<Dtype, Bucket> open;
    const auto send = [&](Bucket& bucket) {
      if (bucket.members.empty()) return;
      const std::vector<Array> sent = exchange->sent(bucket.gradients);
      for (std::size_t i = 0; i < sent.size(); ++i) means[bucket.members[i]] = sent[i];
      bucket = {};
    };
    static_cast<void>(gradients(loss, parameters, [&](std::size_t i, const Array& gradient) {
      Bucket& bucket = open[gradient.dtype()];
      bucket.members.push_back(i);
      bucket.gradients.push_back(gradient);
      bucket.bytes += static_cast<double>(gradient.size()) * static_cast<double>(bytes_of(gradient.dtype()));
      if (bucket.bytes >= bucket_bytes) send(bucket);
    }));
    for (auto& [dtype, bucket] : open) send(bucket);
    return settled(means);
  }

  std::vector<Array> settled(const std::vector<Array>& means) {
    std::map<const samebytes::detail::Node*, std::size_t> places;
    for (std::size_t i = 0; i < means.size(); ++i) places[optimizer.parameters()[i].node().get()] = i;
    std::vector<Array> flat = optimizer.flat_gradients(means);
    for (std::size_t a = 0; a < flat.size(); ++a) {
      const optim::ParameterArena& arena = optimizer.arenas()[a];
      std::vector<Array> parts;
      for (const Array& parameter : arena.parameters()) parts.push_back(means[places.at(parameter.node().get())]);
      flat[a] = exchange->settled(flat[a], parts, arena.offsets());
    }
    return flat;
  }

  Group& group;
  optim::Optimizer& optimizer;
  double bucket_bytes = 0;
  std::uint64_t signature = 0;
  std::shared_ptr<Exchange> exchange;
  double samples = 1;
  bool is_synced = true, stops = false;
};

DataParallel::DataParallel(Group& group, nn::Module& net, optim::Optimizer& optimizer,
                           const DataParallelOptions& options)
    : impl_(std::make_shared<Impl>(group, optimizer, options)) {
  constexpr std::uint64_t kExact = (std::uint64_t{1} << 53) - 1;  // that a double holds
  const std::vector<double> signatures = group.all_gather(static_cast<double>(impl_->signature & kExact));
  for (std::size_t rank = 0; rank < signatures.size(); ++rank)
    if (signatures[rank] != signatures[static_cast<std::size_t>(group.rank())])
      throw DistributedError("DataParallel: rank " + std::to_string(rank) +
                             " has parameters of other shapes, or another optimizer, than rank " +
                             std::to_string(group.rank()));
  std::unordered_set<const void*> seen;  // shared parameters have several names
  for (const nn::NamedArray& entry : net.state())
    if (seen.insert(entry.array.node().get()).second) group.broadcast(entry.array);
  for (const optim::StateArray& entry : optimizer.state()) group.broadcast(entry.array);
  optimizer.set_gradient_source([impl = impl_.get()](const Array& loss) { return impl->flat_gradients(loss); });
}

DataParallel::~DataParallel() { impl_->optimizer.set_gradient_source({}); }

void DataParallel::set_samples(double samples) {
  if (!(samples >= 0))
    throw ArgumentError("DataParallel: samples must be at least 0, " + std::to_string(samples) + " came");
  impl_->samples = samples;
}

double DataParallel::global_samples() const {
  return impl_->group.size() == 1 ? impl_->samples : impl_->exchange->samples();
}

void DataParallel::ask_to_stop() { impl_->stops = true; }
bool DataParallel::is_asked_to_stop() const {
  return impl_->group.size() == 1 ? impl_->stops : impl_->exchange->stops();
}

DataParallel::NoSync::NoSync(DataParallel& parallel) : parallel_(parallel), before_(parallel.impl_->is_synced) {
  parallel_.impl_->is_synced = false;
}
DataParallel::NoSync::~NoSync() { parallel_.impl_->is_synced = before_; }

void DataParallel::all_reduce(optim::Accumulator& accumulator) {
  if (!(accumulator.samples() > 0)) throw ArgumentError("DataParallel: nothing was accumulated that could be reduced");
  if (impl_->group.size() == 1) return;
  impl_->exchange->begin_step({impl_->samples, impl_->signature, impl_->stops ? 1U : 0U});
  impl_->exchange->reduce_now(accumulator.means());
}

DataParallelStats DataParallel::stats() const { return impl_->exchange->stats(); }

}  // namespace samebytes::distributed
