// What memory is used for: by category, by layer and by launch, now and at the peak; a file of it, and pictures.
//   sb::MemoryHistory history(engine);              // optional: allocations from here on, for the timeline
//   for (...) adam.step(loss);
//   sb::save_memory_snapshot("memory.json", sb::take_memory_snapshot(engine));
// `samebytes memory memory.json` draws it, and train, bench and profile write one with --memory-snapshot. A snapshot
// is made of what the engine counts and plans anyway; only a history keeps anything more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "samebytes/memory.h"

namespace samebytes {

class Engine;

namespace detail {
class MemoryLog;
}

// A storage that was taken (bytes above 0) or given back (below), cached ones included.
struct MemoryEvent {
  double seconds = 0;  // since the history began
  MemoryCategory category = MemoryCategory::other;
  std::int64_t bytes = 0;
  std::string what;  // op, "arena", a loader's slot
};

// A cell, such as a parameter or a moment, or what else is there under a name.
struct MemoryArray {
  std::string name;
  std::string layer;  // "h.0.mlp Linear": of the first launch that reads it
  MemoryCategory category = MemoryCategory::other;
  std::size_t bytes = 0;
};

// Bytes of the arena that hold something while a launch runs.
struct MemoryLaunch {
  std::string op, layer;
  bool is_gradient = false;  // of the reverse pass, or of the update
  std::size_t activations = 0;
  std::size_t gradients = 0;
};

// A temporary of a plan: where it lies in the arena, and from which launch to which.
struct MemoryTemporary {
  std::string op, layer;  // of the launch that writes it first
  MemoryCategory category = MemoryCategory::activations;
  std::size_t bytes = 0;
  std::size_t offset = 0;
  int segment = 0;
  int first = 0, last = 0;
};

struct MemoryPlan {
  std::size_t arena_bytes = 0;
  std::uint64_t last_used = 0;  // number of the evaluation
  std::vector<MemoryLaunch> launches;
  std::vector<MemoryTemporary> temporaries;
  // The launch with most alive in the arena; -1 where there is none.
  int peak_launch() const;
};

// One module: its own bytes, not those of the modules in it. Activations are those alive at the peak of the plan.
struct MemoryLayer {
  std::string name;  // "h.0.mlp Linear"; empty: of no layer
  std::size_t parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  std::size_t total() const { return parameters + gradients + optimizer + activations; }
};

struct MemorySnapshot {
  std::string device;
  MemoryReport report;
  std::size_t process_bytes = 0, process_peak_bytes = 0;  // resident; 0 where the system does not say
  // At the peak of the largest plan, the training step as a rule: the gradients that are alive in the arena then are
  // counted as such, the rest of it as activations.
  MemoryByCategory step;
  std::vector<MemoryLayer> layers;   // the largest first
  std::vector<MemoryArray> arrays;   // the largest first
  std::vector<MemoryPlan> plans;     // the largest arena first; eight at most
  std::vector<MemoryEvent> events;   // of a history; empty without
  std::uint64_t events_dropped = 0;  // the oldest are dropped
};

struct MemoryHistoryOptions {
  std::size_t most_events = 100000;
};

// Keeps what is taken and given back while it lives, for snapshots of this engine. Throws ArgumentError where the
// engine has one already. The engine must outlive it.
class MemoryHistory {
 public:
  explicit MemoryHistory(Engine& engine, const MemoryHistoryOptions& options = {});
  ~MemoryHistory();
  MemoryHistory(const MemoryHistory&) = delete;
  MemoryHistory& operator=(const MemoryHistory&) = delete;

 private:
  Engine* engine_;
  std::shared_ptr<detail::MemoryLog> log_;
};

MemorySnapshot take_memory_snapshot(const Engine& engine);

// JSON, written beside its place and renamed. Throws IoError.
void save_memory_snapshot(const std::string& path, const MemorySnapshot& snapshot);
// Throws IoError with the place in the file, what was expected there and what was found.
MemorySnapshot load_memory_snapshot(const std::string& path);

struct MemoryTextOptions {
  int columns = 100;  // of the terminal
  int rows = 24;      // of the timeline
  int top = 10;       // layers and arrays that are listed; the rest is one line more
};
// Text for people: categories now and at the peak, the timeline of the largest plan as stacked bars with its peak
// marked, the largest layers and arrays.
std::string memory_text(const MemorySnapshot& snapshot, const MemoryTextOptions& options = {});
// The timeline of the largest plan, stacked by category, its peak marked with op and layer; below it every temporary
// as a box (launches by bytes of the arena), and the history where there is one. Stands alone, in a browser.
std::string memory_svg(const MemorySnapshot& snapshot);

}  // namespace samebytes
