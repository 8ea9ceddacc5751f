// Strategy: how a Session's steps and validations are shared out (data_parallel.h) when they are not those of one
// device in one process. What it does not say is as with one process. strategies.h has one for the devices of an engine
// and one for processes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data/loader.h"
#include "samebytes/train/parallel/data_parallel.h"

namespace samebytes {
class RunState;
}

namespace samebytes::train {

using LossOf = std::function<Array(const data::Batch&)>;  // builds the mean over the samples that it is given
using ResultsOf = std::function<std::vector<Array>(const data::Batch&)>;

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual DataParallel& parallel() = 0;

  // What this process computes of a batch, and how many of its samples count: 0, or all of `batch`.
  struct Share {
    data::Batch batch;
    std::int64_t samples;
    DataParallel::Share share() const { return {batch.samples(), samples > 0}; }
  };
  virtual Share share_of(const data::Batch& batch) { return {batch, batch.samples()}; }
  virtual void add_to(RunState& /*state*/) {}      // what the next steps depend on
  virtual void begin(Engine& /*engine*/) const {}  // before the first step, once a state was restored

  // Processes. Every one calls everything, in the same order.
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  // A validation that is shared out: the number of all batches (0: it is not) and of this rank's.
  virtual std::int64_t validation_batches() const { return 0; }
  virtual std::int64_t own_validation_batches() const { return 0; }
  virtual void share_buffers(const nn::Module& /*net*/) const {}  // rank 0's running statistics to all
  virtual void all_reduce(std::span<double> /*sums*/) const {}
  // Whether one of the ranks was asked to stop: between two steps, and where all of them ask at the same place.
  virtual bool stops(bool is_asked) { return is_asked; }
  virtual bool agree_to_stop(bool is_asked) const { return is_asked; }
};

}  // namespace samebytes::train
