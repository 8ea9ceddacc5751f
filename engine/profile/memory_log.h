// MemoryLog: what an allocator took and gave back while a MemoryHistory lives, and what is in use when a snapshot is
// taken. Bounded; thread-safe.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "samebytes/memory_snapshot.h"

namespace samebytes::detail {

class MemoryLog {
 public:
  explicit MemoryLog(std::size_t most);
  void add(MemoryCategory category, std::int64_t bytes, const std::string& what);
  void set_in_use(std::vector<MemoryArray> arrays);
  // Events, and what is in use among the arrays.
  void fill(MemorySnapshot& snapshot) const;

 private:
  const std::size_t most_;
  const double start_;
  mutable Mutex mutex_;
  std::vector<MemoryArray> in_use_ SAMEBYTES_GUARDED_BY(mutex_);
  std::deque<MemoryEvent> events_ SAMEBYTES_GUARDED_BY(mutex_);
  std::uint64_t dropped_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
};

}  // namespace samebytes::detail
