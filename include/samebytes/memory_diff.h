// What changed between two memory snapshots: between two moments of a run that should hold the same (a leak is a line
// whose count grows with the steps), or between two runs with different techniques. `samebytes memory FILE --diff
// LATER` prints it.
//   const sb::MemorySnapshot before = sb::take_memory_snapshot(engine);
//   train(100);
//   std::puts(sb::memory_text(sb::compare_memory(before, sb::take_memory_snapshot(engine))).c_str());
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/memory_snapshot.h"

namespace samebytes {

// Arrays of one name in one layer, or a whole layer (name empty): more of them (count, bytes above 0) or fewer.
struct MemoryChange {
  std::string name, layer;
  MemoryCategory category = MemoryCategory::other;
  std::int64_t count = 0, bytes = 0;
};

struct MemoryDifference {
  MemoryReport before, after;
  std::size_t process_before = 0, process_after = 0;  // resident
  // The second less the first, the largest growth first; what is equal is left out.
  std::vector<MemoryChange> arrays;
  std::vector<MemoryChange> layers;  // all bytes of a layer in the step; no count
};

MemoryDifference compare_memory(const MemorySnapshot& before, const MemorySnapshot& after);

// Categories before, after and what changed; then what grew and what shrank, `top` lines of each.
std::string memory_text(const MemoryDifference& difference, const MemoryTextOptions& options = {});

}  // namespace samebytes
