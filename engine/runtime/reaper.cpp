#include "runtime/reaper.h"

namespace samebytes::detail {

Reaper::~Reaper() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Reaper::add(TicketPtr ticket, std::function<void()> job) {
  MutexLock lock(mutex_);
  items_.push_back({std::move(ticket), std::move(job)});
  if (!is_started_) {  // most engines never need the thread
    is_started_ = true;
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

void Reaper::drain() {
  MutexLock lock(mutex_);
  while (!items_.empty() || is_running_) changed_.wait(mutex_);
}

void Reaper::run() {
  for (;;) {
    Item item;
    {
      MutexLock lock(mutex_);
      is_running_ = false;
      changed_.notify_all();
      while (items_.empty() && !is_stopping_) changed_.wait(mutex_);
      if (items_.empty()) return;
      item = std::move(items_.front());
      items_.pop_front();
      is_running_ = true;
    }
    if (item.ticket) item.ticket->wait_quietly();
    try {
      item.job();
    } catch (...) {
      // Nobody can receive what a user's deleter throws.
    }
  }
}

}  // namespace samebytes::detail
