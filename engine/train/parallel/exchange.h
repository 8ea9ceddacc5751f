// Exchange: the gradients of one rank become the mean over all of them, while the backward pass goes on. What the graph
// sees are two ops of host functions: one gives a bucket of gradients, in their places in the flat gradient, to the
// communicator; the other, behind the last of them, waits. Between the two the planner keeps those bytes, because they
// belong to values that are there and read later.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "distributed/jobs.h"
#include "samebytes/array.h"
#include "samebytes/distributed.h"
#include "samebytes/train/parallel/data_parallel.h"

namespace samebytes::train::parallel {

using distributed::DistributedError;
using distributed::detail::AllReduce;
using distributed::detail::Combining;
using distributed::detail::Communicator;
using distributed::detail::Gather;
using distributed::detail::Job;
using distributed::detail::Piece;

// What every rank says of its step before anything is summed.
struct StepWord {
  double samples = 1;
  std::uint64_t signature = 0;  // of the parameters
  std::uint64_t stops = 0;      // 1: wants the training to end
};

// The words of all ranks, and the weights that follow. Throws DistributedError where the signatures differ.
class StepWords final : public Job {
 public:
  StepWords(Communicator& communicator, const StepWord& own);
  Progress advance(distributed::detail::Transport& transport) override;
  // Empty until they are known; for the communicator's thread, and for who waited for a job that used them.
  std::span<const double> weights() const { return weights_; }
  double samples() const { return samples_; }
  bool stops() const { return stops_; }

 private:
  StepWord own_;
  std::vector<StepWord> words_;
  Gather gather_;
  std::vector<double> weights_;
  double samples_ = 0;
  bool stops_ = false;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<Communicator> communicator, bool overlaps);
  ~Exchange() { drain(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Of the step that is being built.
  void begin_step(const StepWord& word);
  // The gradients of one bucket, all of one dtype, as they will be: ready to be packed, and to be read behind
  // settled(). What is watched, one element of f32 where there is any, is read when the bucket is sent.
  std::vector<Array> sent(std::span<const Array> gradients, const Array& watched = {});
  // The flat gradient after everything that was sent has come back. `parts` of it came from sent(), at these offsets.
  Array settled(const Array& flat, std::span<const Array> parts, std::span<const std::int64_t> offsets);

  // What the ops' host functions do.
  void send_bucket(std::size_t bucket, std::vector<Piece> regions, Dtype dtype, std::optional<double> watched);
  void wait_for_all();
  // Where the step fails: waits until nothing that was sent is under way, since its bytes are about to be used for
  // something else. The other ranks, which know nothing of it, send theirs; and where they cannot, the group ends. It
  // ends then in any case: what this rank would send next is not what the others wait for.
  void give_up() noexcept;
  void count_copied(std::size_t bytes) { stats_.bytes_copied += bytes; }

  // Arrays of this rank that are there, one after the other; waits.
  void reduce_now(std::span<const Array> arrays, std::optional<double> watched);

  bool overlaps() const { return overlaps_; }
  double samples() const { return words_ ? words_->samples() : 0; }  // after the step
  bool stops() const { return words_ && words_->stops(); }
  double watched() const { return watched_; }  // the mean over all ranks
  const ExchangeStats& stats() const { return stats_; }
  std::int64_t begun() const { return begun_steps_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::shared_ptr<AllReduce> start(std::vector<Piece> regions, Dtype dtype);
  void start_watched(double value);
  void drain() noexcept;

  std::shared_ptr<Communicator> communicator_;
  const bool overlaps_;
  const std::uint64_t id_;   // tells the plans of several exchanges apart
  std::size_t buckets_ = 0;  // of the step that is being built
  std::shared_ptr<StepWords> words_;
  std::vector<std::shared_ptr<AllReduce>> under_way_;
  Clock::time_point begun_{};
  double watched_ = 0;
  std::int64_t begun_steps_ = 0;
  ExchangeStats stats_;
};

}  // namespace samebytes::train::parallel
