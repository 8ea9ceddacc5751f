// Which gradients travel together, and when.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/hash.h"
#include "distributed/exchange.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/memory.h"
#include "samebytes/nn/module.h"
#include "samebytes/ops.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::distributed {
namespace {

using detail::Exchange;
using samebytes::detail::Borrow;

constexpr double kBucketsAtLeast = 6;         // of all gradients: what comes last cannot be hidden
constexpr double kLeastBucketBytes = 0.25e6;  // a message that is worth the wait for the device's queue

double bucket_bytes_of(const optim::Optimizer& optimizer, double most) {
  double all = 0;
  for (const Array& parameter : optimizer.parameters())
    all += static_cast<double>(parameter.size()) * static_cast<double>(bytes_of(parameter.dtype()));
  return std::min(most, std::max(kLeastBucketBytes, all / kBucketsAtLeast));
}

std::uint64_t signature_of(const optim::Optimizer& optimizer, double bucket_bytes, bool shards) {
  samebytes::detail::Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(bucket_bytes));
  hasher.add(static_cast<std::uint64_t>(shards));
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
      throw ArgumentError("DataParallel: bucket_megabytes must be above 0, got " +
                          std::to_string(options.bucket_megabytes));
    if (o.releases_gradients())
      throw ArgumentError(
          "DataParallel: the optimizer has release_gradients, which updates parameters before the other ranks' "
          "gradients have come; use one of the two");
    const Engine& engine = Engine::current();
    parameter_places = places_in(o);
    bucket_bytes = bucket_bytes_of(o, options.bucket_megabytes * 1e6);
    signature = signature_of(o, bucket_bytes, options.shard_state);
    exchange = std::make_shared<Exchange>(
        g.communicator(), options.overlap && !engine.options().check_nan && shares_memory(engine.device()));
  }

  // The flat gradients of the mean over all ranks.
  std::vector<Array> flat_gradients(const Array& loss, const optim::Optimizer::GradientMap& map) {
    const std::vector<Array>& parameters = optimizer.parameters();
    if (!is_synced || group.size() == 1) {
      std::vector<Array> all = gradients(loss, parameters, optimizer.gradient_options());
      for (std::size_t i = 0; map && i < all.size(); ++i) all[i] = map(i, all[i]);
      return optimizer.flat_gradients(all);
    }
    exchange->begin_step({samples, signature, stops ? 1U : 0U});
    if (watched.defined() && watched.dtype() != f32) watched = astype(watched, f32);
    std::vector<Array> means(parameters.size());
    // A bucket for each arena, sent when it is full: the order is that of the backward pass, the same on all ranks.
    struct Bucket {
      std::vector<std::size_t> members;
      std::vector<Array> gradients;
      double bytes = 0;
      // As they lie, so that neighbours are one piece of a message.
      void sort(const std::vector<std::pair<std::size_t, std::int64_t>>& places) {
        std::vector<std::pair<std::size_t, Array>> all;
        for (std::size_t k = 0; k < members.size(); ++k) all.emplace_back(members[k], gradients[k]);
        std::sort(all.begin(), all.end(),
                  [&](const auto& a, const auto& b) { return places[a.first] < places[b.first]; });
        for (std::size_t k = 0; k < members.size(); ++k) {
          members[k] = all[k].first;
          gradients[k] = all[k].second;
        }
      }
    };
    std::map<std::pair<std::size_t, Dtype>, Bucket> open;
    const auto send = [&](Bucket& bucket) {
      if (bucket.members.empty()) return;
      bucket.sort(parameter_places);
      const std::vector<Array> sent = exchange->sent(bucket.gradients, std::exchange(watched, {}));
      for (std::size_t i = 0; i < sent.size(); ++i) means[bucket.members[i]] = sent[i];
      bucket = {};
    };
    GradientOptions each = optimizer.gradient_options();
    each.on_final = [&](std::size_t i, const Array& own) {
      const Array gradient = map ? map(i, own) : own;
      Bucket& bucket = open[{parameter_places[i].first, gradient.dtype()}];
      bucket.members.push_back(i);
      bucket.gradients.push_back(gradient);
      bucket.bytes += static_cast<double>(gradient.size()) * static_cast<double>(bytes_of(gradient.dtype()));
      if (bucket.bytes >= bucket_bytes) send(bucket);
    };
    static_cast<void>(gradients(loss, parameters, each));
    for (auto& [key, bucket] : open) send(bucket);
    return settled(means);
  }

  // Of each parameter: its arena, and where it begins there.
  static std::vector<std::pair<std::size_t, std::int64_t>> places_in(const optim::Optimizer& optimizer) {
    std::map<const samebytes::detail::Node*, std::pair<std::size_t, std::int64_t>> found;
    for (std::size_t a = 0; a < optimizer.arenas().size(); ++a) {
      const optim::ParameterArena& arena = optimizer.arenas()[a];
      for (std::size_t k = 0; k < arena.parameters().size(); ++k)
        found[arena.parameters()[k].node().get()] = {a, arena.offsets()[k]};
    }
    std::vector<std::pair<std::size_t, std::int64_t>> places;
    for (const Array& parameter : optimizer.parameters()) places.push_back(found.at(parameter.node().get()));
    return places;
  }

  std::vector<Array> settled(const std::vector<Array>& means) {
    std::map<const samebytes::detail::Node*, std::size_t> order;
    for (std::size_t i = 0; i < means.size(); ++i) order[optimizer.parameters()[i].node().get()] = i;
    std::vector<Array> flat = optimizer.flat_gradients(means);
    for (std::size_t a = 0; a < flat.size(); ++a) {
      const optim::ParameterArena& arena = optimizer.arenas()[a];
      std::vector<Array> parts;
      for (const Array& parameter : arena.parameters()) parts.push_back(means[order.at(parameter.node().get())]);
      flat[a] = exchange->settled(flat[a], parts, arena.offsets());
    }
    return flat;
  }

  std::vector<detail::Piece> shares_of(std::size_t arena, std::byte* data) const {
    const std::size_t width = bytes_of(optimizer.arenas()[arena].dtype());
    std::vector<detail::Piece> pieces;
    for (int rank = 0; rank < group.size(); ++rank) {
      const auto [begin, end] = optimizer.share(arena, rank);
      pieces.push_back({data + static_cast<std::size_t>(begin) * width, static_cast<std::size_t>(end - begin) * width});
    }
    return pieces;
  }

  // Everybody's share of the parameters to everybody, where they lie.
  void spread() {
    detail::Communicator& communicator = *group.communicator();
    const auto before = std::chrono::steady_clock::now();
    for (std::size_t arena = 0; arena < optimizer.arenas().size(); ++arena) {
      const Borrow view(optimizer.arenas()[arena].values(), true, __FILE__, __LINE__);
      const std::vector<detail::Piece> places = shares_of(arena, static_cast<std::byte*>(view.data()));
      const detail::Piece own = places[static_cast<std::size_t>(group.rank())];
      communicator.run(std::make_shared<detail::Gather>(communicator, own, places));
      bytes_spread += own.bytes * static_cast<std::size_t>(group.size() - 1);
    }
    spread_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }

  HostArray gather(const Array& cell) const {
    const optim::Optimizer::Cut& cut = optimizer.cut_of(cell);
    HostArray whole;
    if (group.rank() == 0) whole = HostArray(Shape{cut.size}, cell.dtype());
    const auto bytes_in = [&](std::size_t rank) {
      return static_cast<std::size_t>(cut.bounds[rank + 1] - cut.bounds[rank]) * bytes_of(cell.dtype());
    };
    std::vector<detail::Piece> places;
    std::byte* place = whole.bytes.data();
    for (std::size_t rank = 0; group.rank() == 0 && rank + 1 < cut.bounds.size(); ++rank) {
      places.push_back({place, bytes_in(rank)});
      place += bytes_in(rank);
    }
    detail::Piece own;
    std::optional<Borrow> view;
    if (const std::size_t bytes = bytes_in(static_cast<std::size_t>(group.rank())); bytes > 0) {
      view.emplace(cell, false, __FILE__, __LINE__);
      own = {static_cast<std::byte*>(view->data()), bytes};
    }
    detail::Communicator& communicator = *group.communicator();
    communicator.run(std::make_shared<detail::Collect>(communicator, own, std::move(places)));
    return whole;
  }

  Group& group;
  optim::Optimizer& optimizer;
  std::vector<std::pair<std::size_t, std::int64_t>> parameter_places;
  Array watched;  // of the next step; with one rank, of the last one
  std::uint64_t bytes_spread = 0;
  double spread_seconds = 0;
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
  // Before the first step a state is zeros; it is not made whole in order to be shared out.
  double steps[] = {static_cast<double>(optimizer.step_count())};
  group.all_reduce(steps, Reduction::max);
  if (!options.shard_state || steps[0] > 0)
    for (const optim::StateArray& entry : optimizer.state()) group.broadcast(entry.array);
  if (options.shard_state)
    optimizer.shard({.rank = group.rank(),
                     .ranks = group.size(),
                     .spread = [impl = impl_.get()] { impl->spread(); },
                     .gather = [impl = impl_.get()](const Array& cell) { return impl->gather(cell); }});
  optimizer.set_gradient_source([impl = impl_.get()](const Array& loss, const optim::Optimizer::GradientMap& map) {
    return impl->flat_gradients(loss, map);
  });
}

DataParallel::~DataParallel() {
  impl_->optimizer.set_gradient_source({});
  if (!impl_->optimizer.is_sharded()) return;
  const auto gone = [] {
    throw ArgumentError("DataParallel: this optimizer has a share of its state, and the others' DataParallel is gone");
  };
  impl_->optimizer.set_shard_calls(gone, [gone](const Array&) {
    gone();
    return HostArray();
  });
}

void DataParallel::set_samples(double samples) {
  if (!(samples >= 0)) throw ArgumentError("DataParallel: samples must be at least 0, got " + std::to_string(samples));
  impl_->samples = samples;
}

double DataParallel::global_samples() const {
  return impl_->group.size() == 1 ? impl_->samples : impl_->exchange->samples();
}

void DataParallel::watch(const Array& value) {
  if (!value.defined() || value.size() != 1 || !is_floating(value.dtype()))
    throw ArgumentError("DataParallel: watch needs one element of a floating dtype");
  impl_->watched = value;
}

double DataParallel::watched() const {
  if (impl_->group.size() > 1) return impl_->exchange->watched();
  return impl_->watched.defined() ? impl_->watched.value() : 0;
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
  std::optional<double> watched;
  if (impl_->watched.defined()) watched = std::exchange(impl_->watched, {}).value();
  impl_->exchange->reduce_now(accumulator.means(), watched);
}

DataParallelStats DataParallel::stats() const {
  DataParallelStats stats = impl_->exchange->stats();
  stats.bytes_sent += impl_->bytes_spread;
  stats.spread_seconds = impl_->spread_seconds;
  return stats;
}

}  // namespace samebytes::distributed
