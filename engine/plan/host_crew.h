// Threads that share a run of the host with the thread that evaluates (Plan::direct). Waking a thread takes longer than
// the run itself, so helpers stay awake for a moment after each run, give their core to whoever wants it meanwhile, and
// take only what the evaluating thread has not begun: a helper that is late finds nothing and delays nobody.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "core/forks.h"
#include "core/mutex.h"

namespace samebytes::detail {

class HostCrew {
 public:
  static constexpr int kMostParts = 1 << 15;
  // Starts no thread before it is worth it, and goes on with fewer where the system starts no more.
  explicit HostCrew(int helpers) : helpers_(helpers) {}
  ~HostCrew();
  HostCrew(const HostCrew&) = delete;
  HostCrew& operator=(const HostCrew&) = delete;

  int helpers() const { return helpers_; }
  // Whether runs follow each other so closely that the helpers are, or will be, awake.
  bool is_busy() const;
  // Calls work(part) once for each part in [0, parts) and returns when all calls have. From one thread at a time; work
  // must not throw. Requires: parts <= kMostParts.
  void run(int parts, const std::function<void(int)>& work);

 private:
  using Clock = std::chrono::steady_clock;
  void start_helpers();
  void help();
  void wake();
  bool take_parts();  // false if none is left

  const int helpers_;
  const ProcessMark process_;
  bool is_refused_ = false;  // the system starts no thread
  Clock::time_point last_run_;
  // The run that is offered: its number, its parts, and the next one that nobody has taken. `work_` is valid for
  // whoever has taken a part.
  std::atomic<std::uint64_t> offer_{0};
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<int> done_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<bool> is_stopping_{false};
  Mutex mutex_;
  CondVar woken_;
  std::uint64_t wakes_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace samebytes::detail
