// Compares two memory snapshots: of two moments of a run that should be equal (a leak is a line whose count grows with
// the steps), or of two runs with different techniques. `samebytes memory FILE --diff LATER` prints it.
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

// The change of the arrays with one name in one layer, or of a whole layer (name empty): growth has count and bytes
// above 0.
struct MemoryChange {
  std::string name, layer;
  MemoryCategory category = MemoryCategory::other;
  std::int64_t count = 0, bytes = 0;
};

struct MemoryDifference {
  MemoryReport before, after;
  std::size_t process_before = 0, process_after = 0;  // resident
  // Second minus first, largest growth first, without equal entries.
  std::vector<MemoryChange> arrays;
  std::vector<MemoryChange> layers;  // all bytes of a layer in the step; no count
};

MemoryDifference compare_memory(const MemorySnapshot& before, const MemorySnapshot& after);

// Categories before, after and their change; then growth and shrinkage, `top` lines of each.
std::string memory_text(const MemoryDifference& difference, const MemoryTextOptions& options = {});
// The same as one line of JSON, without its end.
std::string memory_json(const MemoryDifference& difference);

}  // namespace samebytes
