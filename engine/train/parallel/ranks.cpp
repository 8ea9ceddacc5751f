#include "train/parallel/ranks.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/hash.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/memory.h"
#include "samebytes/nn/module.h"
#include "samebytes/ops.h"
#include "train/parallel/rank_batch_norm.h"

namespace samebytes::train::parallel {
namespace {

using samebytes::detail::Borrow;

constexpr double kBucketsAtLeast = 6;         // of all gradients: what comes last cannot be hidden
constexpr double kLeastBucketBytes = 0.25e6;  // a message that is worth the wait for the device's queue
constexpr double kNextToNothing = 1e-30;      // samples: what does not count is nothing beside what does, and left out
                                              // where there is nothing else

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
  const MemoryMode mode = device.memory_mode;
  return mode == MemoryMode::system || mode == MemoryMode::fine || mode == MemoryMode::usm;
}

// Of each parameter: its arena, and where it begins there.
std::vector<std::pair<std::size_t, std::int64_t>> places_in(const optim::Optimizer& optimizer) {
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

}  // namespace

Ranks::Ranks(distributed::Group& group, nn::Module& net, optim::Optimizer& optimizer,
             const DataParallelOptions& options)
    : group_(group),
      optimizer_(optimizer),
      syncs_norms_(options.sync_batch_norm),
      places_(places_in(optimizer)),
      bucket_bytes_(bucket_bytes_of(optimizer, options.bucket_megabytes * 1e6)),
      signature_(signature_of(optimizer, bucket_bytes_, options.shard_state)) {
  const Engine& engine = Engine::current();
  exchange_ = std::make_shared<Exchange>(
      group.communicator(), options.overlap && !engine.options().check_nan && shares_memory(engine.device()));
  constexpr std::uint64_t kExact = (std::uint64_t{1} << 53) - 1;  // that a double holds
  const std::vector<double> signatures = group.all_gather(static_cast<double>(signature_ & kExact));
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
  group.all_reduce(steps, distributed::Reduction::max);
  if (!options.shard_state || steps[0] > 0)
    for (const optim::StateArray& entry : optimizer.state()) group.broadcast(entry.array);
  if (options.shard_state)
    optimizer.shard({.rank = group.rank(),
                     .ranks = group.size(),
                     .spread = [this] { spread(); },
                     .gather = [this](const Array& cell) { return gather(cell); }});
}

Ranks::~Ranks() {
  if (!optimizer_.is_sharded()) return;
  const auto gone = [] {
    throw ArgumentError("DataParallel: this optimizer has a share of its state, and the others' DataParallel is gone");
  };
  optimizer_.set_shard_calls(gone, [gone](const Array&) {
    gone();
    return HostArray();
  });
}

void Ranks::require_same(const optim::Optimizer& optimizer) const {
  if (&optimizer != &optimizer_)
    throw ArgumentError("DataParallel: expected the optimizer that it was made with, got another one");
}

Array Ranks::loss_of(const Work& work) {
  require_same(work.optimizer);
  std::optional<BatchNormScope> norms;
  if (syncs_norms_ && !is_alone())
    norms.emplace([communicator = group_.communicator(), counts = work.share.counts](const BatchNormCall& call) {
      return rank_batch_norm(communicator, counts, call);
    });
  return work.loss_of(0, work.share.samples);
}

std::int64_t Ranks::added() const {
  std::int64_t sum = 0;
  for (const Given& given : given_) sum += given.share.counts ? given.share.samples : 0;
  return sum;
}

void Ranks::tell() {
  last_samples_ = static_cast<double>(added());
  if (given_.size() == 1) {
    watched_ = given_.front().loss;
    return;
  }
  watched_ = {};
  for (const Given& given : given_) {
    const Array part = given.loss * (given.share.weight() / std::max(1.0, last_samples_));
    watched_ = watched_.defined() ? watched_ + part : part;
  }
}

void Ranks::end_update() {
  given_.clear();
  ++steps_;
}

Array Ranks::add(const Work& work) {
  Array loss = loss_of(work);
  if (!sums_) sums_.emplace(optimizer_);
  sums_->add(work.scaled(loss), work.share.counts ? work.share.weight() : kNextToNothing);
  given_.push_back({loss, work.share});
  return loss;
}

Array Ranks::step(const Work& work) {
  return of_all([&] { return taken(work); });
}

Array Ranks::taken(const Work& work) {
  Array loss = loss_of(work);
  const bool is_whole = given_.empty();
  given_.push_back({loss, work.share});
  tell();
  given_.pop_back();
  const optim::Optimizer::GradientSource source = [this](const Array& of, const optim::Optimizer::GradientMap& map) {
    return means_of(of, map);
  };
  if (is_whole) {
    if (work.scaler != nullptr)
      work.scaler->step(optimizer_, loss, source);
    else
      optimizer_.step(loss, source);
  } else {
    const double weight = work.share.counts ? work.share.weight() : kNextToNothing;
    if (work.scaler != nullptr)
      sums_->step(work.scaled(loss), weight, *work.scaler, source);
    else
      sums_->step(loss, weight, source);
  }
  end_update();
  return loss;
}

void Ranks::update(optim::Optimizer& optimizer, optim::GradScaler* scaler) {
  require_same(optimizer);
  if (!given_.empty()) of_all([&] { updated(scaler); });
}

// Without overlap: the means are there already.
void Ranks::updated(optim::GradScaler* scaler) {
  tell();
  if (!is_alone()) {
    exchange_->begin_step({last_samples_, signature_, stops_ ? 1U : 0U});
    exchange_->reduce_now(sums_->means(), std::exchange(watched_, {}).value());
  }
  if (scaler != nullptr) {
    sums_->step(*scaler);
    scaler->update();
  } else {
    sums_->step();
  }
  end_update();
}

std::vector<Array> Ranks::flat_gradients(optim::Optimizer& optimizer, const Array& loss, const Share& share) {
  require_same(optimizer);
  last_samples_ = share.weight();
  watched_ = loss;
  return means_of(loss, {});
}

std::optional<double> Ranks::mean_loss() const {
  if (!is_alone()) return exchange_->watched();
  return watched_.defined() ? std::optional<double>(watched_.value()) : std::nullopt;
}

ExchangeStats Ranks::stats() const {
  ExchangeStats stats = exchange_->stats();
  stats.bytes_sent += bytes_spread_;
  stats.spread_seconds = spread_seconds_;
  return stats;
}

// The flat gradients of the mean over all ranks.
std::vector<Array> Ranks::means_of(const Array& loss, const optim::Optimizer::GradientMap& map) {
  if (is_alone()) return optimizer_.flat_gradients(loss, map);
  const std::vector<Array>& parameters = optimizer_.parameters();
  exchange_->begin_step({last_samples_, signature_, stops_ ? 1U : 0U});
  if (watched_.defined() && watched_.dtype() != f32) watched_ = astype(watched_, f32);
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
    bucket.sort(places_);
    const std::vector<Array> sent = exchange_->sent(bucket.gradients, std::exchange(watched_, {}));
    for (std::size_t i = 0; i < sent.size(); ++i) means[bucket.members[i]] = sent[i];
    bucket = {};
  };
  GradientOptions each = optimizer_.gradient_options();
  each.on_final = [&](std::size_t i, const Array& own) {
    const Array gradient = map ? map(i, own) : own;
    Bucket& bucket = open[{places_[i].first, gradient.dtype()}];
    bucket.members.push_back(i);
    bucket.gradients.push_back(gradient);
    bucket.bytes += static_cast<double>(gradient.size()) * static_cast<double>(bytes_of(gradient.dtype()));
    if (bucket.bytes >= bucket_bytes_) send(bucket);
  };
  static_cast<void>(gradients(loss, parameters, each));
  for (auto& [key, bucket] : open) send(bucket);
  return settled(means);
}

std::vector<Array> Ranks::settled(const std::vector<Array>& means) {
  std::map<const samebytes::detail::Node*, std::size_t> order;
  for (std::size_t i = 0; i < means.size(); ++i) order[optimizer_.parameters()[i].node().get()] = i;
  std::vector<Array> flat = optimizer_.flat_gradients(means);
  for (std::size_t a = 0; a < flat.size(); ++a) {
    const optim::ParameterArena& arena = optimizer_.arenas()[a];
    std::vector<Array> parts;
    for (const Array& parameter : arena.parameters()) parts.push_back(means[order.at(parameter.node().get())]);
    flat[a] = exchange_->settled(flat[a], parts, arena.offsets());
  }
  return flat;
}

std::vector<Piece> Ranks::shares_of(std::size_t arena, std::byte* data) const {
  const std::size_t width = bytes_of(optimizer_.arenas()[arena].dtype());
  std::vector<Piece> pieces;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const auto [begin, end] = optimizer_.share(arena, rank);
    pieces.push_back({data + static_cast<std::size_t>(begin) * width, static_cast<std::size_t>(end - begin) * width});
  }
  return pieces;
}

// Everybody's share of the parameters to everybody, where they lie.
void Ranks::spread() {
  Communicator& communicator = *group_.communicator();
  const auto before = std::chrono::steady_clock::now();
  for (std::size_t arena = 0; arena < optimizer_.arenas().size(); ++arena) {
    const Borrow view(optimizer_.arenas()[arena].values(), true, __FILE__, __LINE__);
    const std::vector<Piece> places = shares_of(arena, static_cast<std::byte*>(view.data()));
    const Piece own = places[static_cast<std::size_t>(group_.rank())];
    communicator.run(std::make_shared<Gather>(communicator, own, places));
    bytes_spread_ += own.bytes * static_cast<std::size_t>(group_.size() - 1);
  }
  spread_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

HostArray Ranks::gather(const Array& cell) const {
  const optim::Optimizer::Cut& cut = optimizer_.cut_of(cell);
  HostArray whole;
  if (group_.rank() == 0) whole = HostArray(Shape{cut.size}, cell.dtype());
  const auto bytes_in = [&](std::size_t rank) {
    return static_cast<std::size_t>(cut.bounds[rank + 1] - cut.bounds[rank]) * bytes_of(cell.dtype());
  };
  std::vector<Piece> places;
  std::byte* place = whole.bytes.data();
  for (std::size_t rank = 0; group_.rank() == 0 && rank + 1 < cut.bounds.size(); ++rank) {
    places.push_back({place, bytes_in(rank)});
    place += bytes_in(rank);
  }
  Piece own;
  std::optional<Borrow> view;
  if (const std::size_t bytes = bytes_in(static_cast<std::size_t>(group_.rank())); bytes > 0) {
    view.emplace(cell, false, __FILE__, __LINE__);
    own = {static_cast<std::byte*>(view->data()), bytes};
  }
  Communicator& communicator = *group_.communicator();
  communicator.run(std::make_shared<distributed::detail::Collect>(communicator, own, std::move(places)));
  return whole;
}

}  // namespace samebytes::train::parallel
