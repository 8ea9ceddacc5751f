// PressureGuard: keeps a run from the point where the system swaps or kills the process. Once per step it compares the
// process's memory with its limit. At 85 % it releases the engine's cache of free blocks; if that is not enough, it
// asks the `reliefs` (such as batches prepared ahead) to give something up, one per call, so that the run continues
// with less; if none has anything left, it warns the log sink once. At 95 % with nothing left it throws, so the run
// ends with a message and with everything saved so far. Values change only if a relief changes them. Use it from one
// thread at a time.
//   PressureGuard guard(engine);
//   for (const auto& [image, label] : batches) {
//     adam.step(cross_entropy(net(image), label));
//     guard.look();
//   }
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace samebytes {

class Engine;

struct MemoryFigures {
  std::size_t used = 0;   // resident pages of this process
  std::size_t limit = 0;  // its use plus what is still available to it; 0: unknown
};

// Reads /proc and the memory controllers of the process's cgroups, versions 1 and 2; droppable file pages count as
// available. All 0 if the system does not report them.
MemoryFigures process_memory();

// Memory that a run can give up while it continues.
struct Relief {
  // Gives some up and returns a description, such as "loader: 1 batch in memory instead of 2"; nullopt if nothing is
  // left.
  std::function<std::optional<std::string>()> give_up;
};

// An action of a guard and its reason.
struct PressureAction {
  std::string text;
  MemoryFigures figures;  // before it
};

struct PressureOptions {
  double trim_share = 0.85;  // of the limit: releases the cache
  double stop_share = 0.95;  // OutOfMemory
  std::size_t limit = 0;     // bytes for the process; 0: the limit in `figures`
  double seconds = 0.2;      // least time between two checks; 0: check at every call
  std::function<MemoryFigures()> figures = process_memory;
  std::vector<Relief> reliefs = {};                      // after the cache, in this order, one per check
  std::function<void(const PressureAction&)> tell = {};  // called per relief, and for the cache when pressure begins
};

enum class Pressure : std::uint8_t { low, trimmed, relieved, high };

class PressureGuard {
 public:
  // Throws ArgumentError unless 0 < trim_share <= stop_share. The engine must outlive it.
  explicit PressureGuard(Engine& engine, PressureOptions options = {});
  // Checks the memory; returns low if the last check was too recent. trimmed: releasing the cache was enough; relieved:
  // a relief also gave something up, whose memory is released in the next steps; high: no relief was left, with a
  // warning the first time. Throws OutOfMemory with use, limit and ways out.
  Pressure look();
  std::size_t trimmed_bytes() const { return trimmed_; }  // released since the start

 private:
  MemoryFigures read() const;
  void tell(std::string text, const MemoryFigures& figures) const;
  bool relieve(const MemoryFigures& figures);
  Engine& engine_;
  PressureOptions options_;
  std::chrono::steady_clock::time_point next_{};
  std::size_t trimmed_ = 0;
  std::size_t relief_ = 0;  // the first one that may have something left
  bool is_under_pressure_ = false;
  bool has_warned_ = false;
};

// Releases the memory of the engine's temporaries once the launches that use it are complete; the next evaluation
// allocates what it needs. For a run that needs less from now on. Returns the bytes released.
std::size_t release_temporaries(Engine& engine);

}  // namespace samebytes
