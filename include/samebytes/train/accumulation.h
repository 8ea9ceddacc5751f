// Accumulation: an update from the gradients of several batches, or from those of a batch that is evaluated in pieces
// over the same bytes. Each counts by its number of samples, the incomplete last one too, so that the update is the one
// of a single large batch. With neither, and one device in one process, it is Precision::step().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "samebytes/train/precision.h"
#include "samebytes/train/strategy.h"

namespace samebytes::train {

struct AccumulationOptions {
  std::int64_t batches = 1;      // of an update
  std::int64_t micro_batch = 0;  // samples of a piece; 0: a whole batch
  bool rehearses = false;        // in a dry engine: equal pieces are planned once
};

class Accumulation {
 public:
  // What an update was made of.
  struct Step {
    Array loss;                       // the mean over its samples; empty where `mean` is there
    std::int64_t samples = 0;         // of this process
    std::int64_t all_samples = 0;     // of all ranks
    std::optional<double> mean = {};  // over the samples of all ranks, where there are several
  };

  // All that it is given must outlive it; devices and ranks may be null. Throws ArgumentError for options out of range,
  // and for several pieces with an optimizer that releases gradients.
  Accumulation(const AccumulationOptions& options, Precision& precision, optim::Optimizer& optimizer,
               DeviceStrategy* devices = nullptr, RankStrategy* ranks = nullptr);

  // Adds a batch; nothing where the update waits for more of them.
  std::optional<Step> add(const data::Batch& batch, const LossOf& loss_of);
  // The update of what was added since the last one; nothing where nothing was.
  std::optional<Step> flush();

  // From the next batch on, batches of so many samples come in pieces of half the size, which is returned; nothing
  // where a piece is one sample already.
  std::optional<std::int64_t> halve(std::int64_t batch);
  bool adds_up() const { return accumulator_.has_value(); }
  bool is_between_updates() const { return pieces_.empty(); }  // nothing waits for an update

 private:
  struct Piece {
    Array loss;
    std::int64_t samples;  // that count
  };
  void add_piece(const data::Batch& piece, std::int64_t samples, const LossOf& loss_of, bool is_last);
  void add_like_the_last(std::int64_t samples);
  void update();  // with what was added
  Step step_of(const Array& loss, std::int64_t samples) const;
  Step taken();
  // Of the pieces so far, of this rank.
  std::int64_t samples() const;
  Array loss() const;
  void tell_ranks();

  AccumulationOptions options_;
  Precision& precision_;
  optim::Optimizer& optimizer_;
  DeviceStrategy* devices_;
  RankStrategy* ranks_;
  std::optional<optim::Accumulator> accumulator_;
  std::vector<Piece> pieces_;  // since the last update
  std::int64_t added_ = 0;     // batches among them
};

}  // namespace samebytes::train
