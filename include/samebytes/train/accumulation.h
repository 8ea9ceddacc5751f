// Accumulation: one update from the gradients of several batches, or of one batch that is evaluated in pieces over the
// same bytes. Each piece, an incomplete last one included, is weighted by its number of samples, so the update equals
// that of a single large batch. With the default options, and one device in one process, it is Precision::step().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "samebytes/train/parallel/strategy.h"
#include "samebytes/train/precision.h"

namespace samebytes::train {

struct AccumulationOptions {
  std::int64_t batches = 1;      // of an update
  std::int64_t micro_batch = 0;  // samples in a piece; 0: the whole batch
  bool rehearses = false;        // in a dry engine: plans equal pieces once
};

class Accumulation {
 public:
  // What an update was made of.
  struct Step {
    Array loss;                       // mean over the samples; empty if `mean` is set
    std::int64_t samples = 0;         // of this process
    std::int64_t all_samples = 0;     // of all ranks
    std::optional<double> mean = {};  // over the samples of all ranks, if there are several
  };

  // All arguments must outlive this object; `shared` may be null: one device of one process trains. Throws
  // ArgumentError for options out of range, and for several pieces with an optimizer that releases gradients.
  Accumulation(const AccumulationOptions& options, Precision& precision, optim::Optimizer& optimizer,
               Strategy* shared = nullptr);

  // Adds a batch; returns nullopt if the update needs more batches.
  std::optional<Step> add(const data::Batch& batch, const LossOf& loss_of);
  // Makes the update from the batches added since the last one; returns nullopt if there are none.
  std::optional<Step> flush();

  // Halves the piece size, starting with the next batch. Returns the new size, or nullopt if a piece is already one
  // sample or the run uses several devices. `batch`: the size of a batch.
  std::optional<std::int64_t> halve(std::int64_t batch);
  bool adds_up() const { return accumulator_.has_value(); }
  bool is_between_updates() const { return pieces_.empty(); }  // no gradients wait for an update

 private:
  struct Piece {
    Array loss;
    std::int64_t samples;  // that count toward the update
  };
  Array make(const Strategy::Share& piece, const LossOf& loss_of, bool is_last);  // returns its loss
  void add_like_the_last(std::int64_t samples);
  Step taken();
  // Over the pieces so far, on this rank.
  std::int64_t samples() const;
  Array loss() const;

  AccumulationOptions options_;
  Precision& precision_;
  optim::Optimizer& optimizer_;
  Strategy* shared_;
  std::optional<optim::Accumulator> accumulator_;  // where nothing is shared out
  std::vector<Piece> pieces_;                      // since the last update
  std::int64_t added_ = 0;                         // batches among them
};

}  // namespace samebytes::train
