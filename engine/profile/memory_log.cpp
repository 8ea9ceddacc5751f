#include "profile/memory_log.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "profile/recorder.h"

namespace samebytes::detail {

MemoryLog::MemoryLog(std::size_t most) : most_(most), start_(steady_seconds()) {}

void MemoryLog::add(MemoryCategory category, std::int64_t bytes, const std::string& what) {
  const double now = steady_seconds() - start_;
  MutexLock lock(mutex_);
  if (events_.size() >= most_) {
    ++dropped_;
    if (most_ == 0) return;
    events_.pop_front();
  }
  events_.push_back({now, category, bytes, what});
}

void MemoryLog::set_in_use(std::vector<MemoryArray> arrays) {
  MutexLock lock(mutex_);
  in_use_ = std::move(arrays);
}

void MemoryLog::fill(MemorySnapshot& snapshot) const {
  MutexLock lock(mutex_);
  snapshot.events.assign(events_.begin(), events_.end());
  snapshot.events_dropped = dropped_;
  snapshot.arrays.insert(snapshot.arrays.end(), in_use_.begin(), in_use_.end());
  std::stable_sort(snapshot.arrays.begin(), snapshot.arrays.end(), [](const MemoryArray& a, const MemoryArray& b) {
    return std::tie(b.bytes, a.category, a.name, a.layer) < std::tie(a.bytes, b.category, b.name, b.layer);
  });
}

}  // namespace samebytes::detail
