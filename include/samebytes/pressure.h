// PressureGuard: keeps a run away from the point where a system begins to swap or kills the process. Once a step it
// compares what the process uses with what it can have at all: at 85 % the engine's cache of free blocks is given back,
// and if that is not enough the log sink is told, once; at 95 % it throws, so that a run ends with a message and with
// everything it has saved. Values never change. One thread at a time.
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

namespace samebytes {

class Engine;

struct MemoryFigures {
  std::size_t used = 0;   // by this process: resident pages
  std::size_t limit = 0;  // that it can have: what it uses and what is still available to it; 0: not known
};

// From /proc and from the memory controllers of the cgroups that the process is in, versions 1 and 2: pages of files
// that can be dropped count as available. All 0 where the system says nothing.
MemoryFigures process_memory();

struct PressureOptions {
  double trim_share = 0.85;  // of the limit: the cache is given back
  double stop_share = 0.95;  // OutOfMemory
  std::size_t limit = 0;     // bytes of the process; 0: the figures' own limit
  double seconds = 0.2;      // between two looks at the figures; 0: at every call
  std::function<MemoryFigures()> figures = process_memory;
};

enum class Pressure : std::uint8_t { low, trimmed, high };

class PressureGuard {
 public:
  // Throws ArgumentError unless 0 < trim_share <= stop_share. The engine must outlive it.
  explicit PressureGuard(Engine& engine, PressureOptions options = {});
  // What was found now, low between two looks. trimmed: giving the cache back was enough; high: it was not, there is a
  // warning the first time. Throws OutOfMemory with use, limit and ways out.
  Pressure look();
  std::size_t trimmed_bytes() const { return trimmed_; }  // given back since the start

 private:
  MemoryFigures read() const;
  Engine& engine_;
  PressureOptions options_;
  std::chrono::steady_clock::time_point next_{};
  std::size_t trimmed_ = 0;
  bool has_warned_ = false;
};

}  // namespace samebytes
