// Training by several processes, on one machine or many, through Open MPI: each trains on its share of every batch, and
// their gradients are summed where they lie. The terms are those of torch.distributed.
//   distributed::Group group;                                    // mpirun -n 2 ./program
//   Engine engine({.seed = 1});
//   ...net, adam: the same in every process
//   distributed::DataParallel parallel(group, net, adam);        // all begin with rank 0's parameters
//   auto order = data::distributed(data::random(set->size()), {.rank = group.rank(), .ranks = group.size(), .batch =
//   64}); for (const auto& batch : loader) adam.step(loss_of(batch));  // the mean gradient of all ranks
// Messages are sent and received by one thread of the group's own, from and into the arrays' own bytes. Sums are made
// in the order of the ranks, so a run of a given number of ranks repeats bit for bit. docs/distributed.md has the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/error.h"

namespace samebytes {

namespace nn {
class Module;
}
namespace optim {
class Accumulator;
class Optimizer;
}  // namespace optim

namespace distributed {

namespace detail {
class Communicator;
}

// Another rank has ended, cannot be reached or runs something else. The group is of no use from then on: every later
// call throws the same.
class DistributedError : public Error {
 public:
  using Error::Error;
};

// Whether this library was built with MPI. Without, a Group of one process is all there is.
bool is_available();
// How many processes the launcher of this one started, as its environment says; 1 where there was none. Starts nothing.
int launched_processes();
int launched_local_processes();  // ... on this machine

enum class Reduction : std::uint8_t { sum, mean, max, min };

struct GroupOptions {
  // A rank that was silent for so long has ended or cannot be reached. Ranks tell each other once a second that they
  // live, whatever else they do; a slow one is waited for.
  double timeout_seconds = 10;
  // Asked by the group's own thread while this rank waits for others; where it says true, the wait ends with a
  // DistributedError. For SIGTERM, with which a launcher ends the ranks that one has left behind.
  std::function<bool()> is_told_to_end = {};
};

// All processes that the launcher started. One at a time, and once in a process: MPI cannot be started again. Its
// functions are collective: every rank calls the same ones in the same order, from one thread at a time. They wait, and
// throw DistributedError where a rank is gone.
class Group {
 public:
  // Starts MPI. Throws DistributedError where there is no MPI in this build but the launcher started several processes,
  // ArgumentError for a second group.
  explicit Group(const GroupOptions& options = {});
  // Waits until all ranks have come here, and ends MPI. Where a rank is gone, or an exception is under way, it tells
  // the others and waits for nobody; the launcher then ends them.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;  // of this process, from 0
  int size() const;
  int local_rank() const;  // among the processes of this machine

  void barrier();
  // In place, for leaves and cells of f32, f64, f16, bf16 or i32; the same shapes on every rank. f16 and bf16 are
  // summed in f32 and rounded once; a mean of i32 is an ArgumentError.
  void all_reduce(const Array& array, Reduction reduction = Reduction::sum);
  void all_reduce(std::span<double> values, Reduction reduction = Reduction::sum);
  // The bytes of `root`'s array, or its text, on every rank. Throws ArgumentError for a root that there is not.
  void broadcast(const Array& array, int root = 0);
  std::string broadcast(const std::string& text, int root = 0);
  // [size() * n, ...] from every rank's [n, ...], in the order of the ranks.
  Array all_gather(const Array& array);
  std::vector<double> all_gather(double value);

  const std::shared_ptr<detail::Communicator>& communicator() const { return communicator_; }  // for this room

 private:
  std::shared_ptr<detail::Communicator> communicator_;
  int exceptions_ = 0;  // under way when it was made
};

struct DataParallelOptions {
  // Gradients are sent in buckets, each as soon as its last one is there, while the backward pass goes on; the last
  // bucket is what is left. A bucket is about a sixth of all gradients, so that most of them travel behind the backward
  // pass of the others, but no less than 0.25 MB and no more than this.
  double bucket_megabytes = 25;
  // false: each bucket is waited for before the backward pass goes on, as it also is with EngineOptions::check_nan and
  // where host and device do not share memory all the time. The bytes are the same.
  bool overlap = true;
  // Each rank keeps and updates what the optimizer remembers of its share of the parameters alone (ZeRO, stage 1), then
  // gives the new values of its share to the others: as many bytes again as half an exchange of gradients. Shares are
  // equal, or whole parameters with Lars, Lamb and Adafactor.
  bool shard_state = false;
};

// Of the steps so far, on this rank.
struct DataParallelStats {
  std::int64_t steps = 0;          // in which gradients were exchanged
  std::int64_t buckets = 0;        // of the last of them
  std::uint64_t bytes_sent = 0;    // to other ranks
  std::uint64_t bytes_copied = 0;  // by us, where a gradient did not lie in the arena
  double exchange_seconds = 0;     // from the first bucket of each step to its last one
  double wait_seconds = 0;         // of that, when nothing else was done
  double spread_seconds = 0;       // with shard_state: of parameters to everybody, after the steps
  // Share of the exchange that was hidden behind the backward pass.
  double hidden() const { return exchange_seconds > 0 ? 1 - wait_seconds / exchange_seconds : 0; }
};

// While it lives, each gradient that `optimizer` takes of a loss is the mean over all ranks, each weighted by its
// number of samples: what one process has of all samples together, up to rounding. All ranks build the same graph;
// their batches may differ in size. Batch norms see their own rank's samples and keep rank 0's statistics at the start
// only.
class DataParallel {
 public:
  // Overwrites parameters, buffers and the optimizer's state with rank 0's. Group, net and optimizer must outlive it.
  // Throws ArgumentError for an optimizer with release_gradients, and as Optimizer::shard() does; DistributedError
  // where the ranks' models differ.
  DataParallel(Group& group, nn::Module& net, optim::Optimizer& optimizer, const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // This rank's weight in the steps from now on: the number of samples that its loss is the mean of. 0: what this rank
  // computes is left out. Throws ArgumentError below 0. The first value is 1.
  void set_samples(double samples);
  // The number of samples of all ranks in the last step.
  double global_samples() const;

  // A number of the next step, such as its loss (one element of a floating dtype), whose mean over all ranks comes with
  // the gradients, weighted as they are; watched() is that mean after the step, 0 before the first one.
  void watch(const Array& value);
  double watched() const;

  // A word that all ranks hear of in the same step, the next one in which gradients are exchanged: somebody wants the
  // training to end. Whether one of them had said so by the last step.
  void ask_to_stop();
  bool is_asked_to_stop() const;

  // In this block gradients stay this rank's own.
  class NoSync {
   public:
    explicit NoSync(DataParallel& parallel);
    ~NoSync();
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DataParallel& parallel_;
    bool before_;
  };
  NoSync no_sync() { return NoSync(*this); }

  // What was added to an accumulator is sent by its step(loss, samples), behind the backward pass of the last
  // micro-batch; set_samples() is then the number of all that was added. Or here, without overlap: it becomes the mean
  // over all ranks, by set_samples(), then accumulator.step(). Throws ArgumentError where nothing was added on this
  // rank.
  void all_reduce(optim::Accumulator& accumulator);

  DataParallelStats stats() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// In its block, which is opened for each loss that is built, batch norms in training take their statistics of the
// samples of all ranks, as PyTorch's SyncBatchNorm does: those of one process with all of them, up to rounding, in
// gradient and running statistics too. One message of two numbers a channel for each layer forward, and one backward;
// the ranks wait for each other there, so all build the same graph and evaluate it the same number of times. It is for
// the thread that builds the loss. Gradients are those that DataParallel makes the mean of, weighted by samples.
class SyncBatchNorm {
 public:
  // `counts` false: what this rank computes is left out, as set_samples(0) does with its gradient. The group must
  // outlive the graph.
  explicit SyncBatchNorm(Group& group, bool counts = true);
  ~SyncBatchNorm();
  SyncBatchNorm(const SyncBatchNorm&) = delete;
  SyncBatchNorm& operator=(const SyncBatchNorm&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace distributed
}  // namespace samebytes
