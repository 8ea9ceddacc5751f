// Ranks: train in several processes, as mpirun starts them. --batch is the batch of all of them together, cut evenly,
// so the steps are those of one process. Rank 0 alone writes: the log, checkpoints, the network, what people read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/options.h"
#include "cli/summary.h"
#include "samebytes/data.h"
#include "samebytes/distributed.h"
#include "samebytes/samebytes.h"
#include "samebytes/train/parallel/strategy.h"

namespace samebytes::cli {

// Cores that a process of several on one machine may use, where no option says it; 0: as the library does.
int threads_of_rank();

class Ranks final : public train::Strategy {
 public:
  Ranks() = default;  // alone
  // Joins the others, where there are any. Throws UsageError for options that one process only can follow, and alone
  // for those that need several.
  explicit Ranks(const Options& options);
  ~Ranks() override;

  bool are_many() const { return group_ != nullptr; }
  int rank() const override { return group_ ? group_->rank() : 0; }
  int size() const override { return group_ ? group_->size() : 1; }
  // The options with which this rank trains: rank 0's, and those of the others without what writes. The checkpoint that
  // rank 0 goes on from comes to the others as a file of their own.
  Options own(Options options);

  // This rank's share of each batch. Requires: loading.shuffle.
  void divide(data::LoaderOptions& loading, const data::Dataset& dataset);
  // The batches of a test, whole ones in turn, where it can be shared out; the others stay as they are.
  void divide_test(data::LoaderOptions& testing, const data::Dataset& dataset);
  // Of all of them in a test that is shared out, else 0; and how many of them are this rank's.
  std::int64_t validation_batches() const override { return test_batches_; }
  std::int64_t own_validation_batches() const override;
  // Rank 0's running statistics to all, which is what a test is of.
  void share_buffers(const nn::Module& net) const override;
  void all_reduce(std::span<double> sums) const override;
  // Null alone. As long as what comes back lives, which the optimizer outlives, parallel() is there.
  std::shared_ptr<train::DataParallel> join(Engine& engine, nn::Module& net, optim::Optimizer& optimizer,
                                            bool shards_state);
  // After a state was restored: random numbers of its own for each rank.
  void spread_random_numbers() const;

  // What this rank computes of a batch, and how many of its samples count: none where the batch is too small for all.
  Share share_of(const data::Batch& batch) override;
  train::DataParallel& parallel() override { return *parallel_.lock(); }

  // Whether somebody interrupted one of the ranks, the same on all: between two steps, as they heard in the last one,
  // and where all of them ask at the same place.
  bool stops(bool is_asked) override;
  bool agree_to_stop(bool is_asked) const override;
  bool agree_to_stop() const;  // Ctrl-C

  void fill(const optim::Optimizer& optimizer, Summary& summary) const;

 private:
  std::unique_ptr<distributed::Group> group_;
  std::weak_ptr<train::DataParallel> parallel_;
  data::DistributedOptions sharing_;
  std::int64_t dataset_size_ = 0, test_batches_ = 0;
  bool syncs_norms_ = false;
  std::string fetched_;  // the checkpoint that came from rank 0
};

}  // namespace samebytes::cli
