#include "train/parallel/meeting.h"

#include <string>
#include <thread>
#include <utility>

#include "core/threads.h"
#include "samebytes/error.h"

namespace samebytes::train::parallel {

void Meeting::pass(std::size_t place) {
  for (std::size_t step = 1; step <= is_finished_.size(); ++step) {
    const std::size_t next = (place + step) % is_finished_.size();
    if (is_finished_[next]) continue;
    turn_ = next;
    break;
  }
  changed_.notify_all();
}

void Meeting::wait(std::unique_lock<std::mutex>& lock, std::size_t place) {
  changed_.wait(lock, [&] { return turn_ == place; });
}

const std::vector<Moments<Array>>& Meeting::meet(std::size_t place, Moments<Array> moments) {
  std::unique_lock lock(mutex_);
  const std::size_t number = visits_[place]++;
  if (meetings_.size() <= number) meetings_.emplace_back(is_finished_.size());
  meetings_[number][place] = std::move(moments);
  pass(place);
  wait(lock, place);
  for (const Moments<Array>& each : meetings_[number])
    if (!each.mean.defined())
      throw ArgumentError("data parallel: the shares of a batch do not have the same batch norms, meeting " +
                          std::to_string(number + 1) + " has not all of them");
  return meetings_[number];
}

void Meeting::run(const std::vector<std::function<void()>>& parts) {
  turn_ = parts.size();  // nobody's, before all threads are there
  bool is_left = false;
  is_finished_.assign(parts.size(), false);
  visits_.assign(parts.size(), 0);
  meetings_.clear();
  error_ = nullptr;
  std::vector<std::thread> threads;
  const auto run_part = [&](std::size_t place) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_left || turn_ == place; });
      if (is_left) return;
    }
    std::exception_ptr error;
    try {
      parts[place]();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (error && !error_) error_ = error;
    is_finished_[place] = true;
    pass(place);
  };
  try {
    for (std::size_t place = 0; place < parts.size(); ++place)
      threads.push_back(detail::start_thread("data parallel", [&, place] { run_part(place); }));
  } catch (...) {
    error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    is_left = error_ != nullptr;
    turn_ = 0;
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  meetings_.clear();  // handles would keep what they hold
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace samebytes::train::parallel
