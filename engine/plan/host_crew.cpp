#include "plan/host_crew.h"

#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace samebytes::detail {
namespace {

using namespace std::chrono_literals;

// A loop of calls has its next run within this time; a helper without one sleeps.
constexpr auto kAwake = 50us;
// Looks at the offer between two times that a waiting thread gives its core away.
constexpr int kLooks = 32;

constexpr int kNextBits = 16, kPartsBits = 16;
constexpr std::uint64_t kOne = 1;
std::uint64_t offer_of(std::uint64_t run, int parts) {
  return run << (kNextBits + kPartsBits) | static_cast<std::uint64_t>(parts) << kNextBits;
}
std::uint64_t run_of(std::uint64_t offer) { return offer >> (kNextBits + kPartsBits); }
int parts_of(std::uint64_t offer) { return static_cast<int>((offer >> kNextBits) & ((kOne << kPartsBits) - 1)); }
int next_of(std::uint64_t offer) { return static_cast<int>(offer & ((kOne << kNextBits) - 1)); }

// Waits for as long as kLooks looks take or until the condition holds.
template <class Condition>
bool look_for(const Condition& condition) {
  for (int i = 0; i < kLooks; ++i) {
    if (condition()) return true;
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
  std::this_thread::yield();
  return condition();
}

}  // namespace

HostCrew::~HostCrew() {
  if (!process_.is_here()) {  // a child process has none of the threads
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  is_stopping_ = true;
  wake();
  for (std::thread& thread : threads_) thread.join();
}

bool HostCrew::is_busy() const { return Clock::now() - last_run_ < kAwake; }

void HostCrew::wake() {
  MutexLock lock(mutex_);
  ++wakes_;
  woken_.notify_all();
}

bool HostCrew::take_parts() {
  bool has_taken = false;
  for (;;) {
    const std::uint64_t seen = offer_.load(std::memory_order_relaxed);
    if (next_of(seen) >= parts_of(seen)) return has_taken;
    const std::uint64_t taken = offer_.fetch_add(1, std::memory_order_acq_rel);  // of this run or of a later one
    if (next_of(taken) >= parts_of(taken)) return has_taken;
    (*work_)(next_of(taken));
    done_.fetch_add(1, std::memory_order_release);
    has_taken = true;
  }
}

void HostCrew::run(int parts, const std::function<void(int)>& work) {
  const bool is_loop = is_busy();
  work_ = &work;
  done_.store(0, std::memory_order_relaxed);
  offer_.store(offer_of(run_of(offer_.load(std::memory_order_relaxed)) + 1, parts), std::memory_order_release);
  if (is_loop && threads_.empty())
    start_helpers();
  else if (is_loop && sleeping_.load(std::memory_order_relaxed) > 0)
    wake();
  take_parts();
  const auto is_done = [&] { return done_.load(std::memory_order_acquire) == parts; };
  while (!look_for(is_done)) {
  }
  last_run_ = Clock::now();
}

void HostCrew::start_helpers() {
  if (is_refused_) return;
  try {
    for (int i = 0; i < helpers_; ++i) threads_.emplace_back([this] { help(); });
  } catch (const std::system_error&) {
    is_refused_ = true;
  }
}

void HostCrew::help() {
  Clock::time_point last = Clock::now();
  while (!is_stopping_.load(std::memory_order_relaxed)) {
    const auto is_offered = [this] {
      const std::uint64_t seen = offer_.load(std::memory_order_relaxed);
      return next_of(seen) < parts_of(seen);
    };
    if (look_for(is_offered)) {
      if (take_parts()) last = Clock::now();
      continue;
    }
    if (Clock::now() - last < kAwake) continue;
    MutexLock lock(mutex_);
    sleeping_.fetch_add(1, std::memory_order_relaxed);
    for (const std::uint64_t before = wakes_; wakes_ == before && !is_stopping_.load(std::memory_order_relaxed);)
      woken_.wait(mutex_);
    sleeping_.fetch_sub(1, std::memory_order_relaxed);
    last = Clock::now();
  }
}

}  // namespace samebytes::detail
