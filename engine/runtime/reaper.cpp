#include "runtime/reaper.h"

#include <system_error>

namespace samebytes::detail {

Reaper::~Reaper() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  drain();
}

void Reaper::add(TicketPtr ticket, std::function<void()> job) {
  MutexLock lock(mutex_);
  items_.push_back({std::move(ticket), std::move(job)});
  if (!is_started_) {  // most engines never need the thread
    try {
      thread_ = std::thread([this] { run(); });
      is_started_ = true;
    } catch (const std::system_error&) {  // destructors add
    }
  }
  changed_.notify_all();
}

void Reaper::drain() {
  while (finish_next(Wait::for_nobody)) {
  }
}

void Reaper::finish(Item item) {
  const TicketPtr ticket = std::move(item.ticket);
  const std::function<void()> job = std::move(item.job);
  if (ticket) ticket->wait_quietly(true);
  try {
    job();
  } catch (...) {
    // Nobody can receive what a user's deleter throws.
  }
}

void Reaper::run() {
  while (finish_next(Wait::for_more)) {
  }
}

bool Reaper::finish_next(Wait wait) {
  Item item;
  {
    MutexLock lock(mutex_);
    // Who drains leaves the items to the thread, if there is one.
    while (is_running_ || (wait == Wait::for_more ? items_.empty() && !is_stopping_ : is_started_ && !items_.empty()))
      changed_.wait(mutex_);
    if (items_.empty()) return false;
    item = std::move(items_.front());
    items_.pop_front();
    is_running_ = true;
  }
  finish(std::move(item));
  MutexLock lock(mutex_);
  is_running_ = false;
  changed_.notify_all();
  return true;
}

}  // namespace samebytes::detail
