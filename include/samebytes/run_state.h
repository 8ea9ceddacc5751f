// RunState: everything that the rest of a training run depends on, in one file, so that a run that was interrupted goes
// on with the same bytes as if it had not been: parameters and buffers, what optimizers, schedules, scalers and
// averages remember, random counters, the place in the epoch, the means of the epoch so far. Register once, then save
// and load:
//   RunState run(engine);
//   run.expect("batch", "64");            // a file that says something else is refused
//   run.add("model", net);
//   run.add("optimizer", adam);
//   run.add("training", batches);         // its place: the loop goes on in the middle of an epoch
//   CheckpointFolder folder("checkpoints", {.keep = 3});
//   if (const auto newest = folder.newest().checkpoint) run.load(newest->path);
//   while (batches.place().epoch < 10)    // not a loop over epochs: the first pass may be the rest of one
//     for (const auto& [image, label] : batches) {
//       adam.step(cross_entropy(net(image), label));
//       if (adam.step_count() % 100 == 0) folder.save(run, adam.step_count());
//     }
// Files are safetensors (io/safetensors.h): the arrays as they lie in memory, all else as JSON in the header, checksums
// over both. They are written straight from the shared memory, under a temporary name, synced and renamed: a killed
// program leaves whole files only. What is registered must outlive the RunState and stay where it is. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "samebytes/host_array.h"

namespace samebytes {

class Accuracy;
class Engine;
class Mean;
namespace nn {
class Module;
}
namespace optim {
class Accumulator;
class AdaptiveBatch;
class Ema;
class GradScaler;
class NoiseScaleMeter;
class Optimizer;
class Plateau;
}  // namespace optim
namespace data {
class HardExamples;
class Loader;
}  // namespace data

// Where a state was made. Elsewhere, or with other choices of the tuner (tune.h), it goes on, but not bit for bit.
struct RunOrigin {
  std::string device;
  std::string tuning;  // TuningReport::hash
  friend bool operator==(const RunOrigin&, const RunOrigin&) = default;
};

// A state kept in host memory.
struct RunSnapshot {
  struct Tensor {
    std::string name;
    HostArray values;
  };
  std::vector<Tensor> tensors;
  std::string description;  // JSON: the rest
  std::size_t bytes() const;
};

class RunState {
 public:
  // Holds the engine's random counter.
  explicit RunState(Engine& engine);
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // A word that must be the same where the run goes on: an option, the size of the data set.
  void expect(const std::string& name, const std::string& value);

  // What belongs to the run, each under a name of its own without "/". Throws ArgumentError for a name that came before
  // and for a loader over a stream, which cannot be read from another place. A schedule is a function of the step and
  // needs no place here, but for a plateau. All samplers but HardExamples are functions of seed, epoch and position:
  // the loader's place is all of their state. An optimizer whose state is sharded over processes is added after it was
  // sharded: the file has all of it, which every process then gives to rank 0 in its save(), those that write nothing
  // by Optimizer::whole_state().
  void add(const std::string& name, nn::Module& module);  // parameters and buffers
  void add(const std::string& name, optim::Optimizer& optimizer);
  void add(const std::string& name, optim::GradScaler& scaler);
  void add(const std::string& name, optim::Ema& ema);
  void add(const std::string& name, optim::Accumulator& accumulator);
  void add(const std::string& name, optim::Plateau& plateau);
  void add(const std::string& name, optim::NoiseScaleMeter& meter);  // beside its accumulator
  void add(const std::string& name, optim::AdaptiveBatch& batch);
  void add(const std::string& name, data::Loader& loader);
  void add(const std::string& name, data::HardExamples& sampler);
  void add(const std::string& name, Mean& mean);
  void add(const std::string& name, Accuracy& accuracy);
  void add(const std::string& name, std::int64_t& number);
  void add(const std::string& name, double& number);
  // Anything else, as text.
  void add(const std::string& name, std::function<std::string()> get, std::function<void(const std::string&)> set);

  // Waits for what is enqueued, then writes; nothing is copied where memory is shared. Call it between two steps.
  // Throws ArgumentError while averages are swapped in (EmaScope), IoError as AtomicFile does: an older file stays
  // whole then.
  void save(const std::string& path) const;
  // Throws IoError for a missing, cut or damaged file, and ArgumentError, saying what it has and what this run has,
  // where expected words, registered names, shapes or dtypes differ; nothing is changed then.
  RunOrigin load(const std::string& path);

  // The same in host memory, a copy of every byte. After a DeviceError: restored in a new engine.
  RunSnapshot snapshot() const;
  RunOrigin restore(const RunSnapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads all of a state's file and compares its checksums. Throws IoError, naming the tensor or what is missing.
void check_run_file(const std::string& path);

// The text that a state's file has under a name that was added with two functions; nothing where it has none. For what
// must be known before there is anything to load the state into: which fold of the data it was made on. Throws IoError
// as check_run_file() does.
std::optional<std::string> run_text(const std::string& path, const std::string& name);

struct Checkpoint {
  std::string path;
  std::int64_t step = 0;
};

struct CheckpointFolderOptions {
  int keep = 3;  // files at a time; 0: all
};

// A folder of states, "checkpoint-000001200.safetensors" after step 1200, for one run at a time.
class CheckpointFolder {
 public:
  // Makes the folder. Throws ArgumentError for a negative `keep`, IoError where it cannot be made.
  explicit CheckpointFolder(std::string path, const CheckpointFolderOptions& options = {});

  // Writes the state after `step`, then removes the oldest files beyond `keep`, counted from this step back, and what
  // killed programs left half written. Returns the path. Throws as RunState::save() does.
  std::string save(const RunState& run, std::int64_t step) const;

  std::vector<Checkpoint> list() const;  // by name alone, oldest first
  struct Newest {
    std::optional<Checkpoint> checkpoint;  // the newest whole one, if there is any
    std::vector<std::string> damaged;      // newer ones that are not, each with what is wrong
  };
  Newest newest() const;
  const std::string& path() const { return path_; }

 private:
  void remove_old(std::int64_t newest_step) const;
  std::string path_;
  CheckpointFolderOptions options_;
};

}  // namespace samebytes
