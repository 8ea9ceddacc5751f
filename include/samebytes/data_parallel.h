// DataParallel: a step of training on several devices of one engine (the one-process form, as PyTorch's
// nn.DataParallel). A batch is cut into shares, whole samples, by what each device was measured to do beside the
// others; each share's loss and gradients run on its device, over the same bytes of the batch and of the parameters;
// gradients are added in the order of the devices where they lie, weighted by samples, and one update is made of them.
// In shared memory nothing is copied.
//   sb::Engine engine({.split = {1, 1}});
//   sb::DataParallel parallel(engine, net);
//   for (const data::Batch& batch : batches)
//     loss.add(parallel.step(adam, batch.samples(), [&](std::int64_t begin, std::int64_t end) {
//       const data::Batch piece = batch.piece(begin, end);
//       return cross_entropy(net(piece[0]), piece[1]);
//     }));
// Shares are found before the first step and then fixed, so that a run repeats bit for bit where they are the same:
// devices that are alike get equal ones without being measured, others what measure_shares() finds. state() keeps them.
//
// The update of a step is made when all gradients are there. A device that a launch fails on, or that does not answer
// within a time limit, is given up (device_watch.h): the step is made again from the state before it, and its share
// goes to the others from then on. One that becomes much slower than it was gets a smaller share. events() says what
// happened. What fails on the last device is thrown.
//
// A step waits for the gradients, and so for the step before it. The network's batch norm takes its statistics of each
// share, and running statistics are those of the largest one, unless sync_batch_norm is on. One thread at a time; the
// network's buffers, the optimizer and the engine must outlive what uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/nn/module.h"
#include "samebytes/optim/grad_scaler.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes {

class Engine;

struct DataParallelOptions {
  // Of each device of the engine, in any unit: {3, 1}. A device with 0 is left out. Empty: found before the first step.
  std::vector<double> shares = {};
  std::int64_t least = 2;  // samples; a device that would get fewer of a batch gets none. Batch norm needs two
  // Shares follow the times of the last steps. What a run computes then depends on them and does not repeat.
  bool rebalance = false;
  // Statistics of all shares together, as PyTorch's SyncBatchNorm has them: the same as of the whole batch, at two
  // meetings of the devices for each layer. The function that builds the loss is then called in a thread for each
  // share, one at a time, and opens its own scopes (Autocast).
  bool sync_batch_norm = false;
  // A device that has not answered after so many times the median step, and least_seconds, is given up.
  double time_limit = 20;
  double least_seconds = 10;
  // One whose samples take so many times what they took for a quarter of a second, while those of others do not, gets a
  // smaller share. 0: never.
  double slow_factor = 3;
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

// How many of `samples` each device gets: in proportion to `parts`, the rest by the largest remainders; fewer than
// `least` of a device go to the one with the largest part. Throws ArgumentError unless parts are finite, none negative,
// and one is above 0.
std::vector<std::int64_t> cut_by_shares(std::int64_t samples, const std::vector<double>& parts, std::int64_t least = 1);

class DataParallel {
 public:
  // Builds the mean loss of samples [begin, end) of the batch.
  using LossOf = std::function<Array(std::int64_t begin, std::int64_t end)>;
  // Builds something else of them.
  using ResultsOf = std::function<std::vector<Array>(std::int64_t begin, std::int64_t end)>;

  // Throws ArgumentError for options out of range and another number of shares than the engine has devices.
  DataParallel(Engine& engine, nn::Module& net, const DataParallelOptions& options = {});

  // One step of the optimizer with the mean loss of a batch, which it returns. Throws ArgumentError for an optimizer
  // with release_gradients, which updates before all gradients are there, and what loss_of and the devices throw. Where
  // one device has the whole batch, for good, this is Optimizer::step(): what fails on it is thrown, later if need be.
  Array step(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of);
  // ... scaled; ends in scaler.update().
  Array step(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of, optim::GradScaler& scaler);
  // Several batches, or pieces of one, before an update: adds the gradient of this one's mean loss, which it returns,
  // weighted by its samples, to what was added since the last update; each device does so in flat arrays of its own.
  // With a scaler the gradient is that of the scaled loss.
  Array add(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of);
  Array add(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of, optim::GradScaler& scaler);
  // One step of the optimizer with the mean over all samples that were added; does nothing where there are none. With a
  // scaler it ends in scaler.update().
  void update(optim::Optimizer& optimizer);
  void update(optim::Optimizer& optimizer, optim::GradScaler& scaler);
  std::int64_t added() const { return added_; }  // samples since the last update
  // What `results_of` builds of each share, in the order of the samples, made side by side; for evaluation.
  struct ShareResults {
    std::int64_t begin, end;
    std::vector<Array> results;
  };
  std::vector<ShareResults> map(std::int64_t samples, const ResultsOf& results_of);

  // Finds the shares, where they are not known yet, by steps without an update on a batch of so many samples; all
  // devices work side by side, because they may share cores and memory. Up to four rounds, each with the shares of the
  // one before. A device alone is tried, too, unless all are parts of one, and keeps the whole batch where that is not
  // slower. Of CPU devices with more cores together than the host has, only the one that is fastest alone takes part.
  void measure_shares(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of);
  bool has_shares() const { return !parts_.empty(); }
  // Of a batch of so many samples. Equal ones where none were found yet.
  std::vector<std::int64_t> shares(std::int64_t samples) const;
  // "39 + 25 of 64 samples on cpu:0.0, cpu:0.1"
  std::string to_text(std::int64_t samples) const;

  const DataParallelOptions& options() const { return options_; }
  const std::vector<std::int64_t>& samples() const { return samples_; }  // that each device has trained on
  const std::vector<DeviceEvent>& events() const { return events_; }
  void set_listener(std::function<void(const DeviceEvent&)> listener) { listener_ = std::move(listener); }
  std::int64_t steps() const { return steps_; }

  // The devices and their shares as one line of text (JSON). load_state() throws ArgumentError for a text that is none,
  // and for other devices than the engine's, saying which; a run with other devices finds its shares anew.
  std::string state() const;
  void load_state(const std::string& text);

 private:
  struct Piece {
    int device;
    std::int64_t begin, end;
    std::vector<Array> results;  // of map(), or the loss
    std::vector<Array> gradients;
    std::int64_t samples() const { return end - begin; }
  };
  // What a step builds: of each piece on its device, and then of all of them.
  struct Job {
    std::function<void(Piece& piece, double weight)> each;
    std::function<void(std::vector<Piece>& pieces)> together;
  };
  struct Failure {
    DeviceEvent::Kind kind;
    int device;
    std::string why;
  };
  // The random counter and the network's buffers, to go back to.
  class Kept {
   public:
    Kept(Engine& engine, nn::Module& net);
    void restore() const;

   private:
    struct Buffer {
      Array array;
      std::vector<std::byte> bytes;
    };
    Engine& engine_;
    std::uint64_t counter_;
    std::vector<Buffer> buffers_;
  };

  // One evaluation on all devices; makes it again without those that fail. Writes the seconds of each device, if asked.
  std::vector<Piece> run(std::int64_t samples, const Job& job, std::vector<double>* times = nullptr);
  std::vector<Piece> cut(std::int64_t samples) const;
  void build(std::vector<Piece>& pieces, std::int64_t samples, const Job& job, std::vector<Array>& roots);
  void build_synced(std::vector<Piece>& pieces, std::int64_t samples, const Job& job, std::vector<Array>& roots);
  std::optional<Failure> evaluate(const std::vector<Piece>& pieces, const std::vector<Array>& roots, double expected,
                                  std::vector<double>& seconds);
  double limit_of_step() const;
  int left() const;  // devices that were not given up
  // The gradients of each share: in flat cells of their own, or, where `added` samples are, in the sums.
  Job gradient_job(optim::Optimizer& optimizer, const LossOf& loss_of, optim::GradScaler* scaler,
                   std::int64_t added = 0);
  std::vector<Array> stored_gradients(const optim::Optimizer& optimizer, const Array& loss, int device);
  Array step_with(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of, optim::GradScaler* scaler);
  void check(const optim::Optimizer& optimizer, std::int64_t samples) const;
  int only_device() const;
  Array step_alone(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of, optim::GradScaler* scaler,
                   int device);
  Array mean_of(const std::vector<Piece>& pieces, std::int64_t samples);
  void apply(optim::Optimizer& optimizer, const std::vector<Array>& gradients, optim::GradScaler* scaler);
  // shared_accumulation.cpp
  Array add_with(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of, optim::GradScaler* scaler);
  void update_with(optim::Optimizer& optimizer, optim::GradScaler* scaler);
  std::vector<Array> added_gradients(const optim::Optimizer& optimizer, const Array& loss, int device,
                                     std::int64_t samples);
  // shares.cpp
  void find_shares(std::int64_t samples, const Job& job);
  void keep_one_of_shared_cores(std::int64_t samples, const Job& job, std::vector<double>& parts);
  double time_of(std::int64_t samples, const Job& job, std::vector<double>& seconds);
  void watch(const std::vector<Piece>& pieces, const std::vector<double>& seconds, std::int64_t samples);
  void set_parts(std::vector<double> parts);
  void give_up(const Failure& failure, std::int64_t samples);
  void tell(DeviceEvent::Kind kind, int device, std::string text);
  bool are_alike() const;
  bool are_parts_of_one() const;
  std::vector<std::string> names() const;

  Engine* engine_;
  nn::Module* net_;
  DataParallelOptions options_;
  std::vector<std::string> names_;  // of the devices
  std::vector<double> parts_;       // of each device; empty: not known yet
  std::vector<std::int64_t> samples_;
  std::map<std::pair<const void*, int>, std::vector<Array>> gradients_;  // flat cells of an optimizer, on a device
  // What a device added since the last update, in flat cells, and those that the next gradient makes of it: where a
  // device fails, the sums are as they were.
  struct Sum {
    std::vector<Array> cells, next;
    bool is_begun = false;
  };
  std::map<int, Sum> sums_;
  const void* summed_for_ = nullptr;  // the optimizer
  std::int64_t added_ = 0;
  std::vector<DeviceEvent> events_;
  std::function<void(const DeviceEvent&)> listener_;
  std::int64_t steps_ = 0;
  std::vector<std::deque<double>> recent_;  // seconds a sample, of each device
  std::vector<double> usual_;               // ... its median when the shares were new; 0: not known
  std::vector<int> slow_steps_;             // in a row
  std::vector<double> slow_seconds_;        // that they took
  std::deque<double> step_seconds_;
  double last_seconds_ = 0;    // of the last evaluation, until all devices were done
  std::int64_t last_cut_ = 0;  // samples of the largest batch
};

}  // namespace samebytes
