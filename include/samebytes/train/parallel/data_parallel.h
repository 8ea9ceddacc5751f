// DataParallel: one update from a batch that is shared out. Over the devices of an engine, as PyTorch's
// nn.DataParallel: the batch is cut into shares, whole samples, by what each device was measured to do beside the
// others; loss and gradients of a share run on its device, over the same bytes of batch and parameters, and nothing is
// copied where memory is shared. Or over the processes of a group, as DistributedDataParallel: each calls the same with
// its own samples, and gradients are summed where they lie, behind the backward pass.
//   sb::Engine engine({.split = {1, 1}});
//   sb::train::DataParallel parallel(engine, net);             // or (group, net, adam): all begin with rank 0's
//   for (const data::Batch& batch : batches)
//     loss.add(parallel.step(adam, batch.samples(), [&](std::int64_t begin, std::int64_t end) {
//       const data::Batch piece = batch.piece(begin, end);
//       return cross_entropy(net(piece[0]), piece[1]);
//     }));
// Gradients are weighted by samples and added in the order of devices or ranks, so the update is the one of a single
// device with all of them, up to rounding, and a run repeats bit for bit where the shares are the same. The optimizer
// is told nothing: who calls its own step() takes a step of this process alone.
//
// Devices: an update is made when all gradients are there. A device that a launch fails on, or that does not answer
// within a time limit, is given up (device_watch.h): the step is made again from the state before it, and its share
// goes to the others from then on. One that becomes much slower gets a smaller share. events() says what happened. What
// fails on the last device is thrown. Batch norm takes its statistics of each share, and running statistics are those
// of the largest one, unless sync_batch_norm is on.
// Processes: all build the same graph, their batches may differ in size, and they call the same functions in the same
// order. Batch norms see their own rank's samples, unless sync_batch_norm is on. docs/distributed.md has the rest.
// One thread at a time; what the constructor is given, and the optimizers, must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/nn/module.h"
#include "samebytes/optim/grad_scaler.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes {

class Engine;
namespace distributed {
class Group;
}

namespace train {

namespace parallel {
class Transport;
}

struct DataParallelOptions {
  // Statistics of all shares together, as PyTorch's SyncBatchNorm has them: the same as of the whole batch, at two
  // meetings of devices or ranks for each layer. On several devices the function that builds the loss is then called in
  // a thread for each share, one at a time, and opens its own scopes (Autocast).
  bool sync_batch_norm = false;

  // Devices.
  // Of each device of the engine, in any unit: {3, 1}. A device with 0 is left out. Empty: found before the first step.
  std::vector<double> shares = {};
  std::int64_t least = 2;  // samples; a device that would get fewer of a batch gets none. Batch norm needs two
  // Shares follow the times of the last steps. What a run computes then depends on them and does not repeat.
  bool rebalance = false;
  // A device that has not answered after so many times the median step, and least_seconds, is given up.
  double time_limit = 20;
  double least_seconds = 10;
  // One whose samples take so many times what they took for a quarter of a second, while those of others do not, gets a
  // smaller share. 0: never.
  double slow_factor = 3;

  // Processes.
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

// What happened to a device, in the step that was then made (from 1; 0: before the first).
struct DeviceEvent {
  enum class Kind : std::uint8_t { failed, silent, slow, rebalanced };
  Kind kind = Kind::failed;
  std::int64_t step = 0;
  int device = -1;
  std::string text;  // a sentence: which device, what, the shares from now on
};
const char* name_of(DeviceEvent::Kind kind);  // "failed"

// Of the updates so far, on this rank.
struct ExchangeStats {
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

// How many of `samples` each device gets: in proportion to `parts`, the rest by the largest remainders; fewer than
// `least` of a device go to the one with the largest part. Throws ArgumentError unless parts are finite, none negative,
// and one is above 0.
std::vector<std::int64_t> cut_by_shares(std::int64_t samples, const std::vector<double>& parts, std::int64_t least = 1);

class DataParallel {
 public:
  // What this process gives to an update.
  struct Share {
    Share(std::int64_t number, bool is_counted = true) : samples(number), counts(is_counted) {}
    std::int64_t samples;
    // false: its gradient is left out, as of a rank whose samples others have; the loss is built and run all the same.
    bool counts;
    double weight() const { return counts ? static_cast<double>(samples) : 0; }
  };
  // Builds the mean loss of this process's samples [begin, end); one call with all of them where no device shares them.
  using LossOf = std::function<Array(std::int64_t begin, std::int64_t end)>;
  // Builds something else of them.
  using ResultsOf = std::function<std::vector<Array>(std::int64_t begin, std::int64_t end)>;

  // Over the devices of an engine. Throws ArgumentError for options out of range or of processes, and another number of
  // shares than the engine has devices.
  DataParallel(Engine& engine, nn::Module& net, const DataParallelOptions& options = {});
  // Over the ranks of a group. Overwrites parameters, buffers and the optimizer's state with rank 0's. Throws
  // ArgumentError for options out of range or of devices, for an optimizer with release_gradients, and as
  // Optimizer::shard() does; DistributedError where the ranks' models differ.
  DataParallel(distributed::Group& group, nn::Module& net, optim::Optimizer& optimizer,
               const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // One update with the mean gradient of these samples and those that were added since the last one. Returns the mean
  // loss of this process's. With a scaler the loss is scaled, and the step ends in scaler->update(). Throws
  // ArgumentError for an optimizer with release_gradients, which updates before all gradients are there, and what
  // loss_of, devices and ranks throw. Where one device has the whole batch, for good, this is Optimizer::step(): what
  // fails on it is thrown, later if need be.
  Array step(optim::Optimizer& optimizer, const Share& share, const LossOf& loss_of,
             optim::GradScaler* scaler = nullptr);
  // Several batches, or pieces of one, before an update: adds the gradient of their mean loss, weighted by samples, and
  // returns the loss. Nothing is sent to other ranks.
  Array add(optim::Optimizer& optimizer, const Share& share, const LossOf& loss_of,
            optim::GradScaler* scaler = nullptr);
  // The update of what was added; does nothing where nothing was. step() with the last piece is faster.
  void update(optim::Optimizer& optimizer, optim::GradScaler* scaler = nullptr);
  std::int64_t added() const;  // samples of this process since the last update
  std::int64_t steps() const;  // updates

  // What `results_of` builds of each device's share, in the order of the samples, made side by side; for evaluation.
  struct ShareResults {
    std::int64_t begin, end;
    std::vector<Array> results;
  };
  std::vector<ShareResults> map(std::int64_t samples, const ResultsOf& results_of);

  // The flat gradients of a loss over all ranks, for a step by hand (Optimizer::step_flat); every rank calls it. Of the
  // devices of an engine: those of this loss.
  std::vector<Array> flat_gradients(optim::Optimizer& optimizer, const Array& loss, const Share& share);
  double global_samples() const;            // of all ranks in the last update
  std::optional<double> mean_loss() const;  // over them; nothing on the devices of an engine, whose step() returns it

  // Finds the shares, where they are not known yet, by steps without an update on a batch of so many samples; all
  // devices work side by side, because they may share cores and memory. Up to four rounds, each with the shares of the
  // one before. A device alone is tried, too, unless all are parts of one, and keeps the whole batch where that is not
  // slower. Of CPU devices with more cores together than the host has, only the one that is fastest alone takes part.
  void measure_shares(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of);
  bool has_shares() const;
  // Of a batch of so many samples, for each device. Equal ones where none were found yet.
  std::vector<std::int64_t> shares(std::int64_t samples) const;
  std::string to_text(std::int64_t samples) const;   // "39 + 25 of 64 samples on cpu:0.0, cpu:0.1"
  std::int64_t largest_batch() const;                // that was cut
  const std::vector<std::int64_t>& samples() const;  // that each device has trained on
  const std::vector<DeviceEvent>& events() const;
  void set_listener(const std::function<void(const DeviceEvent&)>& listener);
  // The devices and their shares as one line of text (JSON). load_state() throws ArgumentError for a text that is none,
  // and for other devices than the engine's, saying which; a run with other devices finds its shares anew.
  std::string state() const;
  void load_state(const std::string& text);

  // A word that all ranks hear of in the same update, the next one: somebody wants the training to end. Whether one of
  // them had said so by the last update.
  void ask_to_stop();
  bool is_asked_to_stop() const;
  ExchangeStats stats() const;

  const DataParallelOptions& options() const { return options_; }

 private:
  void check(const optim::Optimizer& optimizer, const Share& share) const;

  DataParallelOptions options_;
  std::unique_ptr<parallel::Transport> transport_;
};

}  // namespace train
}  // namespace samebytes
