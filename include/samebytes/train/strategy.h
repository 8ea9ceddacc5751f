// Strategies: where a Session's steps and validations are computed when that is not one device in one process. A
// DeviceStrategy cuts a batch over the devices of an engine and makes the step itself; a RankStrategy meets the other
// processes around steps that are made here. The command's two are engine/cli/shares.h and engine/cli/ranks.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data/loader.h"
#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes {
class RunState;
namespace nn {
class Module;
}
}  // namespace samebytes

namespace samebytes::train {

using LossOf = std::function<Array(const data::Batch&)>;  // builds the mean over the samples that it is given
using ResultsOf = std::function<std::vector<Array>(const data::Batch&)>;

// Null scalers: there is none.
class DeviceStrategy {
 public:
  struct Results {
    std::vector<Array> arrays;
    std::int64_t samples;
  };
  virtual ~DeviceStrategy() = default;
  // A whole step; returns the mean loss of the batch.
  virtual Array step(optim::Optimizer& optimizer, optim::GradScaler* scaler, const data::Batch& batch,
                     const LossOf& loss_of) = 0;
  // The same in parts: the gradient of a piece, which is added up, and the update of all of them.
  virtual Array add(optim::Optimizer& optimizer, optim::GradScaler* scaler, const data::Batch& piece,
                    const LossOf& loss_of) = 0;
  virtual void update(optim::Optimizer& optimizer, optim::GradScaler* scaler) = 0;
  // Results of each share of a batch, for a validation.
  virtual std::vector<Results> map(const data::Batch& batch, const ResultsOf& results_of) = 0;
  virtual void add_to(RunState& state) = 0;  // what the next steps depend on
};

// Every rank calls everything, in the same order.
class RankStrategy {
 public:
  virtual ~RankStrategy() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // What this rank computes of a batch, and how many of its samples count.
  struct Share {
    data::Batch batch;
    std::int64_t samples;
  };
  virtual Share share_of(const data::Batch& batch) = 0;
  virtual std::shared_ptr<void> loss_scope() const = 0;            // lives while a loss is built
  virtual void tell(std::int64_t samples, const Array& loss) = 0;  // of the next update; before it
  virtual void all_reduce(optim::Accumulator& accumulator) = 0;    // before its step
  // Of the last update, over all ranks.
  virtual std::optional<double> mean_loss() const = 0;
  virtual std::int64_t global_samples(std::int64_t own) const = 0;

  // A validation that is shared out: the number of all batches (0: it is not) and of this rank's.
  virtual std::int64_t validation_batches() const = 0;
  virtual std::int64_t own_validation_batches() const = 0;
  virtual void share_buffers(const nn::Module& net) const = 0;  // rank 0's running statistics to all
  virtual void all_reduce(std::span<double> sums) const = 0;

  // Whether one of the ranks was asked to stop: between two steps, and where all of them ask at the same place.
  virtual bool stops(bool is_asked) const = 0;
  virtual bool agree_to_stop(bool is_asked) const = 0;
};

}  // namespace samebytes::train
