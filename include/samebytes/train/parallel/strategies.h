// How a Session trains on several devices of one engine, or in several processes: pass one of these as
// SessionOptions::shared. data_parallel.h says how an update is shared out.
//   Engine engine({.devices = {"cpu:0", "gpu:0"}});
//   train::DevicesStrategy devices(engine, net);
//   train::Session session(engine, net, task, training, {.shared = &devices});
// or, in each process of `mpirun -n 2 ./program`:
//   distributed::Group group;
//   train::RanksStrategy ranks(group, engine, net, adam);
//   data::LoaderOptions loading{.batch = 64, .shuffle = true};   // a batch of all ranks together
//   ranks.divide(loading, *set);
//   data::Loader training(engine, set, loading);
//   train::Session session(engine, net, task, training, {.optimizer = &adam, .shared = &ranks});
// The arguments must outlive the strategy, and the strategy the Session.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "samebytes/data/loader.h"
#include "samebytes/data/samplers.h"
#include "samebytes/distributed.h"
#include "samebytes/train/parallel/strategy.h"

namespace samebytes::train {

class Precision;
class RunLog;

// How messages name the settings that must agree when a run resumes. A program with options of its own gives their
// names.
struct SharingNames {
  std::string shares = "DataParallelOptions::shares";
  std::string sync_batch_norm = "DataParallelOptions::sync_batch_norm";
  std::string rebalance = "DataParallelOptions::rebalance";
};

class DevicesStrategy final : public Strategy {
 public:
  // Throws ArgumentError as DataParallel does.
  DevicesStrategy(Engine& engine, nn::Module& net, const DataParallelOptions& options = {}, SharingNames names = {});

  // Finds the shares of a batch of so many samples by timing steps without an update, unless the options or a resumed
  // state have them; without it they begin equal. Call it before the first step. The loader is left where it was.
  void measure(optim::Optimizer& optimizer, Precision& precision, data::Loader& loader, std::int64_t batch,
               const LossOf& loss_of);
  // Reports a device that fails or slows down to `say`, if set, and as a line {"event": "device", ...} to the log.
  void report_to(std::function<void(const std::string&)> say, RunLog& log);

  DataParallel& parallel() override { return parallel_; }
  const DataParallel& parallel() const { return parallel_; }
  void add_to(RunState& state) override;  // the shares; resuming needs the same devices and options
  std::int64_t batch() const;             // samples of the largest batch so far, or of measure()
  // "32 + 32 of 64 samples on cpu:0.0, cpu:0.1"
  std::string to_text() const { return parallel_.to_text(batch()); }

 private:
  Engine& engine_;
  SharingNames names_;
  std::int64_t batch_ = 0;
  DataParallel parallel_;
};

// Every rank makes the same calls in the same order. Rank 0 alone should write logs and checkpoints.
class RanksStrategy final : public Strategy {
 public:
  // Overwrites parameters, buffers and optimizer state with rank 0's. Divides the engine's memory limit by the number
  // of processes on this machine. Throws what DataParallel's constructor throws.
  RanksStrategy(distributed::Group& group, Engine& engine, nn::Module& net, optim::Optimizer& optimizer,
                const DataParallelOptions& options = {});

  // Changes the options of the training loader, whose batch is that of all ranks, to this rank's share of each shuffled
  // batch. Throws ArgumentError unless they shuffle.
  void divide(data::LoaderOptions& loading, const data::Dataset& dataset);
  // Changes the options of the validation loader to every size()-th batch. Has no effect for streams and sets of
  // unknown length, which each rank then reads whole.
  void divide_validation(data::LoaderOptions& loading, const data::Dataset& dataset);

  DataParallel& parallel() override { return parallel_; }
  void begin(Engine& engine) const override;  // each rank draws random numbers of its own
  Share share_of(const data::Batch& batch) override;
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::int64_t validation_batches() const override { return validation_batches_; }
  std::int64_t own_validation_batches() const override;
  void share_buffers(const nn::Module& net) const override;
  void all_reduce(std::span<double> sums) const override { group_.all_reduce(sums); }
  bool stops(bool is_asked) override;
  bool agree_to_stop(bool is_asked) const override;

 private:
  distributed::Group& group_;
  DataParallel parallel_;
  std::optional<data::DistributedOptions> sharing_;  // of divide()
  std::int64_t dataset_size_ = 0, validation_batches_ = 0;
};

}  // namespace samebytes::train
