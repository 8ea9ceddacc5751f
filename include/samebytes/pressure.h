// PressureGuard: keeps a run away from the point where a system begins to swap or kills the process. Once a step it
// compares what the process uses with what it can have at all: at 85 % the engine's cache of free blocks is given back;
// if that is not enough, what the run can do without (`reliefs`, such as batches prepared ahead), one thing at each
// look, so that it goes on in less; and if nothing is left the log sink is told, once. At 95 % with nothing left it
// throws, so that a run ends with a message and with everything it has saved. Values change only where a relief
// changes them. One thread at a time.
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
  std::size_t used = 0;   // by this process: resident pages
  std::size_t limit = 0;  // that it can have: what it uses and what is still available to it; 0: not known
};

// From /proc and from the memory controllers of the cgroups that the process is in, versions 1 and 2: pages of files
// that can be dropped count as available. All 0 where the system says nothing.
MemoryFigures process_memory();

// Something that a run can give up while it goes on.
struct Relief {
  // Gives some of it up and says what, such as "loader: 1 batch in memory instead of 2"; nothing where nothing is left.
  std::function<std::optional<std::string>()> give_up;
};

// What a guard did, and why.
struct PressureAction {
  std::string text;
  MemoryFigures figures;  // before it
};

struct PressureOptions {
  double trim_share = 0.85;  // of the limit: the cache is given back
  double stop_share = 0.95;  // OutOfMemory
  std::size_t limit = 0;     // bytes of the process; 0: the figures' own limit
  double seconds = 0.2;      // between two looks at the figures; 0: at every call
  std::function<MemoryFigures()> figures = process_memory;
  std::vector<Relief> reliefs = {};                      // after the cache, in this order, one at each look
  std::function<void(const PressureAction&)> tell = {};  // of each relief, and of the cache when pressure begins
};

enum class Pressure : std::uint8_t { low, trimmed, relieved, high };

class PressureGuard {
 public:
  // Throws ArgumentError unless 0 < trim_share <= stop_share. The engine must outlive it.
  explicit PressureGuard(Engine& engine, PressureOptions options = {});
  // What was found now, low between two looks. trimmed: giving the cache back was enough; relieved: it was not, and a
  // relief gave something up, whose memory comes back with the next steps; high: there was none left, and there is a
  // warning the first time. Throws OutOfMemory with use, limit and ways out.
  Pressure look();
  std::size_t trimmed_bytes() const { return trimmed_; }  // given back since the start

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

// Gives back the memory of the engine's temporaries, after the launches that use it: the next evaluation takes as much
// as it needs itself. For a run that needs less from now on; bytes that it had.
std::size_t release_temporaries(Engine& engine);

}  // namespace samebytes
