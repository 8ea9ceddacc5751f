// Processes that work together, on one machine or many, through Open MPI, and what they send each other. The terms are
// those of torch.distributed. Training in them is train/parallel/data_parallel.h:
//   distributed::Group group;                                    // mpirun -n 2 ./program
//   Engine engine({.seed = 1});
//   ...net, adam: the same in every process
//   train::DataParallel parallel(group, net, adam);              // all begin with rank 0's parameters
//   auto order = data::distributed(data::random(set->size()), {.rank = group.rank(), .ranks = group.size(), .batch =
//   64}); for (const auto& batch : loader) parallel.step(adam, batch.samples(), loss_of);  // the mean of all ranks
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
  // In place, for leaves and cells of f32, f64, f16, bf16, i32 or i64; the same shapes on every rank. f16 and bf16 are
  // summed in f32 and rounded once; a mean of i32 or i64 is an ArgumentError.
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

}  // namespace distributed
}  // namespace samebytes
