// Accumulation: --accumulate and --micro-batch. An update from the gradients of several batches, or from those of a
// batch that is evaluated in pieces over the same bytes; each counts by its number of samples, the incomplete last one
// too, so that the update is the one of a single large batch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cli/options.h"
#include "cli/ranks.h"
#include "cli/session.h"
#include "cli/shares.h"
#include "samebytes/data.h"
#include "samebytes/optim.h"

namespace samebytes::cli {

class Accumulation {
 public:
  // The mean over the batch that it is given, of pieces too.
  using LossOf = std::function<Array(const data::Batch&)>;
  // What an update was made of.
  struct Step {
    Array loss;                       // the mean over its samples; empty where `mean` is there
    std::int64_t samples = 0;         // of this process
    std::int64_t all_samples = 0;     // of all ranks
    std::optional<double> mean = {};  // over the samples of all ranks, where there are several
  };

  // Throws UsageError for what needs all gradients at once, beside --release-gradients.
  Accumulation(const Options& options, Precision& precision, optim::Optimizer& optimizer, Ranks* ranks = nullptr);

  // Steps are made over several devices; null: on one.
  void share(SharedSteps* shared);

  // Adds a batch; nothing where the update waits for more of them.
  std::optional<Step> add(const data::Batch& batch, const LossOf& loss_of);
  // The update of what was added since the last one; nothing where nothing was.
  std::optional<Step> flush();

  // From the next batch on, batches of so many samples come in pieces of half the size: which is it, nothing where it
  // is one sample already.
  std::optional<std::int64_t> halve(std::int64_t batch);
  bool adds_up() const { return accumulator_.has_value(); }

 private:
  struct Piece {
    Array loss;
    std::int64_t samples;  // that count
  };
  void add_piece(const data::Batch& piece, std::int64_t samples, const LossOf& loss_of, bool is_last);
  void add_like_the_last(std::int64_t samples);
  void step();  // with what was added
  // What the update that has just been made was made of.
  Step step_of(const Array& loss, std::int64_t samples) const;
  Step taken();
  // Of the pieces so far, of this rank.
  std::int64_t samples() const;
  Array loss() const;
  void tell_ranks();  // before the update

  Precision& precision_;
  SharedSteps* shared_ = nullptr;
  optim::Optimizer& optimizer_;
  Ranks alone_;
  Ranks& ranks_;
  std::int64_t batches_;      // of an update
  std::int64_t micro_batch_;  // samples of a piece; 0: a whole batch
  bool rehearses_;            // nothing is computed, so equal pieces are not repeated
  std::optional<optim::Accumulator> accumulator_;
  std::vector<Piece> pieces_;  // since the last update
  std::int64_t added_ = 0;     // batches among them
};

}  // namespace samebytes::cli
