// The use of memory by category, layer and launch, now and at the peak, as a file and as pictures.
//   sb::MemoryHistory history(engine);              // optional: records allocations for the timeline
//   for (...) adam.step(loss);
//   sb::save_memory_snapshot("memory.json", sb::take_memory_snapshot(engine));
// `samebytes memory memory.json` draws it; train, bench and profile write one with --memory-snapshot. A snapshot uses
// what the engine counts and plans anyway; only a history records more.
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

// An allocation (bytes above 0) or release (below 0) of a storage, including cached ones.
struct MemoryEvent {
  double seconds = 0;  // since the history began
  MemoryCategory category = MemoryCategory::other;
  std::int64_t bytes = 0;
  std::string what;  // op, "arena", a loader's slot
};

// A cell, such as a parameter or a moment, or another named array.
struct MemoryArray {
  std::string name;
  std::string layer;  // of the first launch that reads it: "h.0.mlp Linear"
  MemoryCategory category = MemoryCategory::other;
  std::size_t bytes = 0;
};

// Live bytes of the arena while a launch runs.
struct MemoryLaunch {
  std::string op, layer;
  bool is_gradient = false;  // of the backward pass or of the update
  std::size_t activations = 0;
  std::size_t gradients = 0;
};

// A temporary of a plan: its place in the arena and its first and last launch.
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
  std::uint64_t last_used = 0;  // index of the evaluation
  std::vector<MemoryLaunch> launches;
  std::vector<MemoryTemporary> temporaries;
  // The launch with the most live bytes in the arena; -1 without launches.
  int peak_launch() const;
};

// One module: its own bytes, without its children's. Activations are those live at the peak of the plan.
struct MemoryLayer {
  std::string name;  // "h.0.mlp Linear"; empty: outside of all layers
  std::size_t parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  std::size_t total() const { return parameters + gradients + optimizer + activations; }
};

struct MemorySnapshot {
  std::string device;
  MemoryReport report;
  std::size_t process_bytes = 0, process_peak_bytes = 0;  // resident; 0 if unknown
  // At the peak of the largest plan, usually the training step: live gradients in the arena count as gradients, its
  // other bytes as activations.
  MemoryByCategory step;
  std::vector<MemoryLayer> layers;   // largest first
  std::vector<MemoryArray> arrays;   // largest first
  std::vector<MemoryPlan> plans;     // largest arena first; at most eight
  std::vector<MemoryEvent> events;   // of a history; empty without one
  std::uint64_t events_dropped = 0;  // number of oldest events dropped
};

struct MemoryHistoryOptions {
  std::size_t most_events = 100000;
};

// Records allocations and releases while it lives, for snapshots of this engine. Throws ArgumentError if the engine
// already has one. The engine must outlive it.
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

// Writes JSON, atomically. Throws IoError.
void save_memory_snapshot(const std::string& path, const MemorySnapshot& snapshot);
// Throws IoError with the position in the file, what was expected and what was found.
MemorySnapshot load_memory_snapshot(const std::string& path);

struct MemoryTextOptions {
  int columns = 100;  // of the terminal
  int rows = 24;      // of the timeline
  int top = 10;       // listed layers and arrays; one further line sums the rest
};
// Text for people: categories now and at the peak, the timeline of the largest plan as stacked bars with its peak
// marked, the largest layers and arrays.
std::string memory_text(const MemorySnapshot& snapshot, const MemoryTextOptions& options = {});
// Categories, peak and layers as one line of JSON, without its end.
std::string memory_json(const MemorySnapshot& snapshot);
// The timeline of the largest plan, stacked by category, its peak marked with op and layer; below it each temporary as
// a box (launches by bytes of the arena), and the history, if any. Self-contained, for a browser.
std::string memory_svg(const MemorySnapshot& snapshot);

}  // namespace samebytes
