#include "cli/parallel.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/interrupt.h"
#include "cli/session.h"
#include "cli/usage_error.h"
#include "samebytes/io/files.h"

namespace samebytes::cli {
namespace {

train::DataParallelOptions parallel_options(const ShareOptions& asked) {
  train::DataParallelOptions options{
      .sync_batch_norm = asked.sync_batch_norm, .shares = asked.shares, .rebalance = asked.rebalance};
  if (asked.timeout) options.least_seconds = *asked.timeout;
  return options;
}

void check_shares(const Options& options, bool has_several, bool is_training) {
  const ShareOptions& asked = options.shares;
  if (!has_several) {
    const auto refuse = [](const char* what) {
      throw UsageError(
          fmt::format("{} is for several devices, and the run has one; name several with --device or cut "
                      "one with --split-device",
                      what));
    };
    if (!asked.shares.empty()) refuse("--shares");
    if (asked.rebalance) refuse("--rebalance");
    if (asked.sync_batch_norm && distributed::launched_processes() < 2) refuse("--sync-batch-norm");
    if (asked.timeout) refuse("--device-timeout");
    return;
  }
  if (asked.rebalance && !asked.shares.empty())
    throw UsageError("--shares fixes what --rebalance changes; use one of the two");
  if (!is_training) return;
  const auto refuse = [](const char* what, const char* why) {
    throw UsageError(fmt::format("{} {}; use one device for it, or leave it out", what, why));
  };
  if (options.adaptive.is_on) refuse("--adaptive-batch", "measures the gradients of one device");
  if (options.release_gradients) refuse("--release-gradients", "updates before the gradients of all shares are there");
}

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

std::unique_ptr<train::DevicesStrategy> make_devices(const Options& options, Engine& engine, nn::Module& net,
                                                     bool is_training) {
  check_shares(options, engine.device_count() > 1, is_training);
  if (engine.device_count() == 1) return nullptr;
  try {
    return std::make_unique<train::DevicesStrategy>(
        engine, net, parallel_options(options.shares),
        train::SharingNames{.shares = "--shares", .sync_batch_norm = "--sync-batch-norm", .rebalance = "--rebalance"});
  } catch (const ArgumentError& error) {
    throw UsageError(std::string("--shares: ") + error.what());
  }
}

std::string to_text(const train::DevicesStrategy& devices) {
  return fmt::format(
      "shares: {}{}", devices.to_text(),
      devices.parallel().options().rebalance ? ", rebalanced as it runs: it will not repeat bit for bit" : "");
}

void add_to(nlohmann::ordered_json& start_line, const train::DevicesStrategy& devices, const Engine& engine) {
  start_line["devices"] = nlohmann::ordered_json::array();
  for (int d = 0; d < engine.device_count(); ++d) start_line["devices"].push_back(device_text(engine.device(d)));
  start_line["shares"] = devices.parallel().shares(devices.batch());
  start_line["sync_batch_norm"] = devices.parallel().options().sync_batch_norm;
  start_line["rebalance"] = devices.parallel().options().rebalance;
  start_line["repeats"] = !devices.parallel().options().rebalance;
}

void fill(const train::DevicesStrategy& devices, const Engine& engine, Summary& summary) {
  const std::vector<std::int64_t> shares = devices.parallel().shares(devices.batch());
  for (int d = 0; d < engine.device_count(); ++d)
    summary.shares.push_back({.device = device_text(engine.device(d)),
                              .share = shares[static_cast<std::size_t>(d)],
                              .samples = devices.parallel().samples()[static_cast<std::size_t>(d)]});
  for (const train::DeviceEvent& event : devices.parallel().events())
    summary.device_events.push_back(fmt::format("step {}: {}", event.step, event.text));
}

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
  distributed::GroupOptions group_options{.is_told_to_end = is_terminated};
  if (options.ranks.timeout) group_options.timeout_seconds = *options.ranks.timeout;
  group_ = std::make_unique<distributed::Group>(group_options);
}

Ranks::~Ranks() {
  std::error_code ignored;
  if (!fetched_.empty()) std::filesystem::remove(fetched_, ignored);
}

Options Ranks::own(Options options) {
  if (!group_) return options;
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
    constexpr std::string_view kEnd = ".safetensors";
    std::string name = (std::filesystem::temp_directory_path() / "samebytes-rank-XXXXXX").string().append(kEnd);
    const int file = ::mkstemps(name.data(), static_cast<int>(kEnd.size()));
    if (file < 0) throw IoError("cannot write " + name + ", where this rank keeps the checkpoint of rank 0", name);
    ::close(file);
    fetched_ = name;
    io::write_file(fetched_, bytes);
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

std::unique_ptr<train::RanksStrategy> Ranks::join(const Options& options, Engine& engine, nn::Module& net,
                                                  optim::Optimizer& optimizer) const {
  if (!group_) return nullptr;
  try {
    return std::make_unique<train::RanksStrategy>(
        *group_, engine, net, optimizer,
        train::DataParallelOptions{.sync_batch_norm = options.shares.sync_batch_norm,
                                   .shard_state = options.ranks.shard_state});
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
}

bool Ranks::agree_to_stop() const {
  if (!group_) return is_interrupted();
  double one = is_interrupted() ? 1 : 0;
  group_->all_reduce({&one, 1}, distributed::Reduction::max);
  return one > 0;
}

void fill(train::RanksStrategy& ranks, const optim::Optimizer& optimizer, Summary& summary) {
  const train::ExchangeStats stats = ranks.parallel().stats();
  std::size_t state_bytes = 0;
  for (const optim::StateArray& entry : optimizer.state())
    state_bytes += static_cast<std::size_t>(entry.array.size()) * bytes_of(entry.array.dtype());
  const double steps = static_cast<double>(std::max<std::int64_t>(1, stats.steps));
  summary.ranks = RanksReport{.size = ranks.size(),
                              .buckets = stats.buckets,
                              .bytes_sent_per_step = static_cast<double>(stats.bytes_sent) / steps,
                              .exchange_ms = stats.exchange_seconds * 1e3 / steps,
                              .wait_ms = stats.wait_seconds * 1e3 / steps,
                              .hidden = stats.hidden(),
                              .spread_ms = stats.spread_seconds * 1e3 / steps,
                              .state_bytes = state_bytes};
}

}  // namespace samebytes::cli
