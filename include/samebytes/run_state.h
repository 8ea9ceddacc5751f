// RunState: the complete state of a training run in one file, so that an interrupted run continues with the same bytes
// as an uninterrupted one: parameters and buffers, the state of optimizers, schedules, scalers and averages, random
// counters, the place in the epoch, the means of the epoch so far. Register once, then save and load:
//   RunState run(engine);
//   run.expect("batch", "64");            // load() rejects a file with another value
//   run.add("model", net);
//   run.add("optimizer", adam);
//   run.add("training", batches);         // its place: resumes within an epoch
//   CheckpointFolder folder("checkpoints", {.keep = 3});
//   if (const auto newest = folder.newest().checkpoint) run.load(newest->path);
//   while (batches.place().epoch < 10)    // not a loop over epochs: the first pass may be the rest of one
//     for (const auto& [image, label] : batches) {
//       adam.step(cross_entropy(net(image), label));
//       if (adam.step_count() % 100 == 0) folder.save(run, adam.step_count());
//     }
// Files are safetensors (io/safetensors.h): the arrays as they lie in memory, everything else as JSON in the header,
// with checksums of both. They are written straight from the shared memory, under a temporary name, synced and renamed:
// a killed program leaves only complete files. Registered objects must outlive the RunState and must not move. Use it
// from one thread.
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

// Where a state was made. With a different device or other choices of the tuner (tune.h) a run resumes, but not bit for
// bit.
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
  std::string description;  // the rest, as JSON
  std::size_t bytes() const;
};

class RunState {
 public:
  // Registers the engine's random counter.
  explicit RunState(Engine& engine);
  ~RunState();
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  // Registers a value that must be equal when the run resumes: an option, the size of the data set.
  void expect(const std::string& name, const std::string& value);

  // Registers parts of the run, each under a unique name without "/". Throws ArgumentError for a duplicate name and for
  // a loader over a stream, which cannot seek. Schedules are functions of the step and need no registration, except
  // Plateau. Samplers, except HardExamples, are functions of seed, epoch and position: the loader's place is their
  // whole state. Add an optimizer whose state is sharded over processes after sharding it: the file has the complete
  // state, so in each save() every process sends its shard to rank 0; processes that do not save call
  // Optimizer::whole_state() instead.
  void add(const std::string& name, nn::Module& module);          // parameters and buffers
  void add_trained(const std::string& name, nn::Module& module);  // ... but frozen parameters, which load() leaves
  void add(const std::string& name, optim::Optimizer& optimizer);
  void add(const std::string& name, optim::GradScaler& scaler);
  void add(const std::string& name, optim::Ema& ema);
  void add(const std::string& name, optim::Accumulator& accumulator);
  void add(const std::string& name, optim::Plateau& plateau);
  void add(const std::string& name, optim::NoiseScaleMeter& meter);  // together with its accumulator
  void add(const std::string& name, optim::AdaptiveBatch& batch);
  void add(const std::string& name, data::Loader& loader);
  void add(const std::string& name, data::HardExamples& sampler);
  void add(const std::string& name, Mean& mean);
  void add(const std::string& name, Accuracy& accuracy);
  void add(const std::string& name, std::int64_t& number);
  void add(const std::string& name, double& number);
  // Anything else, as text.
  void add(const std::string& name, std::function<std::string()> get, std::function<void(const std::string&)> set);

  // Waits for enqueued work, then writes, without copies where memory is shared. Call it between two steps. Throws
  // ArgumentError while averages are swapped in (EmaScope), IoError as AtomicFile does; an older file then stays
  // intact. A new file is for its owner alone.
  void save(const std::string& path) const;
  // Throws IoError for a missing, truncated or damaged file, and ArgumentError if expected values, registered names,
  // shapes or dtypes differ (the message has both sides); changes nothing then.
  RunOrigin load(const std::string& path);

  // The same in host memory, as a full copy. After a DeviceError, restore it in a new engine.
  RunSnapshot snapshot() const;
  RunOrigin restore(const RunSnapshot& snapshot);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads a whole state file and compares its checksums. Throws IoError, naming the tensor or the missing part.
void check_run_file(const std::string& path);

// The text in a state file under a name that was added with two functions; nullopt if it has none. For information
// needed before the state can be loaded, such as the fold of the data it was made on. Throws IoError as
// check_run_file() does.
std::optional<std::string> run_text(const std::string& path, const std::string& name);

struct Checkpoint {
  std::string path;
  std::int64_t step = 0;
};

struct CheckpointFolderOptions {
  int keep = 3;  // newest files to keep; 0: all
};

// A folder of state files, "checkpoint-000001200.safetensors" after step 1200, for one run at a time.
class CheckpointFolder {
 public:
  // Makes the folder. Throws ArgumentError for a negative `keep`, IoError if it cannot be made.
  explicit CheckpointFolder(std::string path, const CheckpointFolderOptions& options = {});

  // Writes the state after `step`, then removes the oldest files beyond `keep`, counted back from this step, and
  // incomplete files of killed programs once they are an hour old: a younger one may be another machine's. Returns the
  // path. Throws as RunState::save() does.
  std::string save(const RunState& run, std::int64_t step) const;

  std::vector<Checkpoint> list() const;  // by name only, oldest first
  struct Newest {
    std::optional<Checkpoint> checkpoint;  // the newest undamaged one, if any
    std::vector<std::string> damaged;      // newer damaged ones, each with its fault
  };
  Newest newest() const;
  const std::string& path() const { return path_; }

 private:
  void remove_old(std::int64_t newest_step) const;
  std::string path_;
  CheckpointFolderOptions options_;
};

}  // namespace samebytes
