// The jobs of a communicator: what ranks send each other for a sum, a broadcast, a gathering.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "distributed/combine.h"
#include "distributed/communicator.h"

namespace samebytes::distributed::detail {

// A few bytes of every rank to every rank; [r] is rank r's, its own too.
class Gather final : public Job {
 public:
  // `received` is size() pieces; the one of this rank is sent, and may be anywhere.
  Gather(Communicator& communicator, Piece own, std::vector<Piece> received);
  Progress advance(Transport& transport) override;

 private:
  const int tag_;
  Piece own_;
  std::vector<Piece> received_;
  bool is_begun_ = false;
  Requests requests_;
};

// The bytes of every rank to rank 0, where `places` are one for each rank; elsewhere there are none.
class Collect final : public Job {
 public:
  Collect(Communicator& communicator, Piece own, std::vector<Piece> places)
      : tag_(communicator.next_tag()), own_(own), places_(std::move(places)) {}
  Progress advance(Transport& transport) override;

 private:
  const int tag_;
  Piece own_;
  std::vector<Piece> places_;
  bool is_begun_ = false;
  Requests requests_;
};

class Broadcast final : public Job {
 public:
  Broadcast(Communicator& communicator, Piece piece, int root)
      : tag_(communicator.next_tag()), piece_(piece), root_(root) {}
  Progress advance(Transport& transport) override;

 private:
  const int tag_;
  Piece piece_;
  int root_;
  bool is_begun_ = false;
  Requests requests_;
};

// Elements of all ranks into one value each, in place, on every rank. Each rank is given a share of the elements, gets
// the others' values of it, combines them in the order of the ranks, and gives the result to the others: every element
// is computed once, so the result is the same on all ranks, and each sends and receives what a ring would. The shares
// are cut by the number of elements and ranks alone.
class AllReduce final : public Job {
 public:
  // Where elements lie; those of all regions are one sequence.
  // `weights` says, once they are known, those of Kind::weighted; until then the sums wait.
  using WeightsOf = std::function<std::span<const double>()>;
  AllReduce(Communicator& communicator, std::vector<Piece> regions, Dtype dtype, Combining::Kind kind,
            WeightsOf weights);
  ~AllReduce() override;
  Progress advance(Transport& transport) override;
  std::uint64_t bytes_sent() const { return bytes_sent_; }  // after it is done

 private:
  enum class Stage : std::uint8_t { begin, collect, combine, spread, done };
  void collect(Transport& transport);
  void combine_share();
  void spread(Transport& transport);
  std::vector<Piece> share_of(int rank) const;

  const int tag_, rank_, size_;
  std::vector<Piece> regions_;
  const Dtype dtype_;
  const Combining::Kind kind_;
  WeightsOf weights_;
  std::size_t elements_ = 0;
  Stage stage_ = Stage::begin;
  std::unique_ptr<class Scratch> others_;  // their values of this rank's share
  Requests requests_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace samebytes::distributed::detail
