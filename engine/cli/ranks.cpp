#include "cli/ranks.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/usage_error.h"
#include "samebytes/run_state.h"

namespace samebytes::cli {
namespace {

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

constexpr int kRandomShift = 48;  // bits of an engine's counter that no run counts up to

void check_options(const Options& options) {
  const auto refuse = [](const char* what, const char* why) {
    throw UsageError(fmt::format("{} is for one process: {}; start it without mpirun, or leave it out", what, why));
  };
  if (options.adaptive.is_on) refuse("--adaptive-batch", "it measures its own gradients");
  if (options.release_gradients)
    refuse("--release-gradients", "parameters would be updated before the other ranks' gradients have come");
  if (options.limit.automatic_batch || options.limit.memory)
    refuse("--batch auto and --memory-limit", "each rank would choose for itself");
  if (options.limit.pressure) refuse("--pressure-limit", "each rank would choose for itself");
  if (!options.devices.split.empty() || is_list(options.device))
    refuse("more than one device", "give each rank one of its own");
  if (options.shares.sync_batch_norm && options.step.micro_batch)
    throw UsageError(
        "--sync-batch-norm lets the ranks meet in each piece of a batch, and with --micro-batch they may have "
        "different numbers of them; use --accumulate, or one of the two");
  if (options.survive.on_device_error.value_or("stop") != "stop")
    refuse("--on-device-error", "the other ranks cannot go back by themselves");
}

void check_alone(const Options& options) {
  const auto refuse = [](const char* what) {
    throw UsageError(fmt::format(
        "{} is for several processes, and the run has one; start it by mpirun -n N, or leave it out", what));
  };
  if (options.ranks.shard_state) refuse("--shard-state");
  if (options.ranks.timeout) refuse("--rank-timeout");
}

}  // namespace

int threads_of_rank() {
  const int processes = distributed::launched_local_processes();
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (processes < 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  const long machine = sysconf(_SC_NPROCESSORS_CONF);
  const int usable = CPU_COUNT(&allowed);
  return usable < machine ? 0
                          : std::max(1, usable / processes);  // less than the machine: the launcher has dealt it out
}

Ranks::Ranks(const Options& options) {
  if (distributed::launched_processes() < 2) {
    check_alone(options);
    return;
  }
  check_options(options);
  syncs_norms_ = options.shares.sync_batch_norm;
  distributed::GroupOptions group_options{.is_told_to_end = is_terminated};
  if (options.ranks.timeout) group_options.timeout_seconds = *options.ranks.timeout;
  group_ = std::make_unique<distributed::Group>(group_options);
}

Ranks::~Ranks() {
  std::error_code ignored;
  if (!fetched_.empty()) std::filesystem::remove(fetched_, ignored);
}

Options Ranks::own(Options options) {
  if (!are_many()) return options;
  SurviveOptions& survive = options.survive;
  std::string path = survive.resume;
  if (rank() == 0 && path == "auto") {
    path.clear();
    if (!survive.folder.empty())
      if (const auto newest = CheckpointFolder(survive.folder).newest(); newest.checkpoint)
        path = newest.checkpoint->path;
  }
  path = group_->broadcast(path);
  std::string bytes;
  if (rank() == 0 && !path.empty()) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  if (!path.empty()) bytes = group_->broadcast(bytes);
  if (rank() == 0) return options;
  if (!path.empty()) {
    fetched_ =
        (std::filesystem::temp_directory_path() / fmt::format("samebytes-rank-{}-{}.safetensors", rank(), ::getpid()))
            .string();
    std::ofstream file(fetched_, std::ios::binary);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
      throw IoError("cannot write " + fetched_ + ", where this rank keeps the checkpoint of rank 0", fetched_);
  }
  options.ranks.gives_state = options.ranks.shard_state && !survive.folder.empty();
  const std::optional<std::string> every = survive.every;
  survive = {};
  survive.resume = fetched_;
  if (options.ranks.gives_state) survive.every = every;
  options.log.clear();
  options.tensorboard.clear();
  options.save.clear();
  options.memory.snapshot.clear();
  options.quiet = true;
  return options;
}

void Ranks::divide(data::LoaderOptions& loading, const data::Dataset& dataset) {
  if (!are_many()) return;
  sharing_ = {.rank = rank(), .ranks = size(), .batch = loading.batch};
  dataset_size_ = dataset.size();
  loading.sampler = data::distributed(data::random(dataset.size(), loading.seed), sharing_);
  loading.shuffle = false;
  loading.batch = data::distributed_batch(sharing_);
}

void Ranks::divide_test(data::LoaderOptions& testing, const data::Dataset& dataset) {
  test_batches_ = 0;
  if (!are_many() || dataset.is_sequential() || dataset.size() == data::kEndless) return;
  test_batches_ = (dataset.size() + testing.batch - 1) / testing.batch;
  if (own_validation_batches() == 0) return;
  const auto own = std::make_shared<EveryBatch>(dataset.size(), testing.batch, rank(), size());
  testing.batch = std::min(testing.batch, own->size());  // the last one, which may be incomplete, may be all there is
  testing.sampler = own;
}

std::int64_t Ranks::own_validation_batches() const { return (test_batches_ - rank() + size() - 1) / size(); }

void Ranks::share_buffers(const nn::Module& net) const {
  if (!are_many()) return;
  for (const nn::NamedArray& entry : net.named_buffers()) group_->broadcast(entry.array);
}

void Ranks::all_reduce(std::span<double> sums) const {
  if (are_many()) group_->all_reduce(sums);
}

std::shared_ptr<train::DataParallel> Ranks::join(Engine& engine, nn::Module& net, optim::Optimizer& optimizer,
                                                 bool shards_state) {
  if (!are_many()) return nullptr;
  const EngineScope scope(engine);
  // The engine's own limit is for the whole machine.
  engine.set_memory_limit(engine.memory().limit_bytes /
                          static_cast<std::size_t>(distributed::launched_local_processes()));
  const train::DataParallelOptions parallelism{.sync_batch_norm = syncs_norms_, .shard_state = shards_state};
  std::shared_ptr<train::DataParallel> parallel;
  try {
    parallel = std::make_shared<train::DataParallel>(*group_, net, optimizer, parallelism);
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
  parallel_ = parallel;
  return parallel;
}

void Ranks::spread_random_numbers() const {
  if (!are_many() || rank() == 0) return;  // rank 0's are those of a checkpoint
  Engine& engine = Engine::current();
  engine.set_random_counter(engine.random_counter() + (static_cast<std::uint64_t>(rank()) << kRandomShift));
}

Ranks::Share Ranks::share_of(const data::Batch& batch) {
  if (!are_many()) return {batch, batch.samples()};
  const std::int64_t samples = data::distributed_samples(dataset_size_, sharing_, batch.step());
  return {samples > 0 && samples < batch.samples() ? batch.piece(0, samples) : batch, samples};
}

bool Ranks::stops(bool is_asked) {
  const auto parallel = parallel_.lock();
  if (!parallel) return is_asked;
  if (is_asked) parallel->ask_to_stop();
  return parallel->is_asked_to_stop();
}

bool Ranks::agree_to_stop() const { return agree_to_stop(is_interrupted()); }

bool Ranks::agree_to_stop(bool is_asked) const {
  if (!are_many()) return is_asked;
  double one = is_asked ? 1 : 0;
  group_->all_reduce({&one, 1}, distributed::Reduction::max);
  return one > 0;
}

void Ranks::fill(const optim::Optimizer& optimizer, Summary& summary) const {
  const auto parallel = parallel_.lock();
  if (!parallel) return;
  const train::ExchangeStats stats = parallel->stats();
  std::size_t state_bytes = 0;
  for (const optim::StateArray& entry : optimizer.state())
    state_bytes += static_cast<std::size_t>(entry.array.size()) * bytes_of(entry.array.dtype());
  const double steps = static_cast<double>(std::max<std::int64_t>(1, stats.steps));
  summary.ranks = RanksReport{.size = size(),
                              .buckets = stats.buckets,
                              .bytes_sent_per_step = static_cast<double>(stats.bytes_sent) / steps,
                              .exchange_ms = stats.exchange_seconds * 1e3 / steps,
                              .wait_ms = stats.wait_seconds * 1e3 / steps,
                              .hidden = stats.hidden(),
                              .spread_ms = stats.spread_seconds * 1e3 / steps,
                              .state_bytes = state_bytes};
}

}  // namespace samebytes::cli
