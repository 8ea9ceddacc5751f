// A mutex that clang's thread-safety analysis understands, its scoped lock and its condition variable.
// State behind a mutex is marked SAMEBYTES_GUARDED_BY(mutex_); a function that wants the lock held
// SAMEBYTES_REQUIRES(mutex_). Costs exactly what std::mutex costs; under other compilers the marks are empty.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SAMEBYTES_THREAD_MARK(x) __attribute__((x))
#else
#define SAMEBYTES_THREAD_MARK(x)
#endif
#define SAMEBYTES_GUARDED_BY(mutex) SAMEBYTES_THREAD_MARK(guarded_by(mutex))
#define SAMEBYTES_REQUIRES(...) SAMEBYTES_THREAD_MARK(requires_capability(__VA_ARGS__))
#define SAMEBYTES_EXCLUDES(...) SAMEBYTES_THREAD_MARK(locks_excluded(__VA_ARGS__))

namespace samebytes::detail {

class SAMEBYTES_THREAD_MARK(capability("mutex")) Mutex {
 public:
  void lock() SAMEBYTES_THREAD_MARK(acquire_capability()) { mutex_.lock(); }
  void unlock() SAMEBYTES_THREAD_MARK(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SAMEBYTES_THREAD_MARK(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SAMEBYTES_THREAD_MARK(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SAMEBYTES_THREAD_MARK(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // May wake without reason: call it in a loop over the condition.
  void wait(Mutex& mutex) SAMEBYTES_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // The same, at most for so long.
  template <class Duration>
  void wait_for(Mutex& mutex, Duration most) SAMEBYTES_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, most);
    lock.release();
  }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace samebytes::detail
