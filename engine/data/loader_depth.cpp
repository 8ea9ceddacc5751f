// Sets a loader's number of slots: the initial ones, one more if the loop itself holds all of them, and with most_slots
// more, according to the measured waits.
#include <algorithm>
#include <utility>

#include "data/loader_state.h"
#include "samebytes/error.h"
#include "samebytes/log.h"

namespace samebytes::data {

using detail::MutexLock;

void Loader::State::add_slot() {
  std::unique_ptr<BatchSlot> slot;
  std::int64_t epoch = 0;
  {
    const MutexLock lock(mutex_);
    epoch = epoch_;
  }
  try {
    slot = make_slot(epoch);
  } catch (const OutOfMemory& error) {
    const MutexLock lock(mutex_);
    std::int64_t held = next_step_;
    for (const auto& other : slots_)
      if (other->lent > 0) held = std::min(held, other->step);
    active_ = false;
    throw OutOfMemory(
        "loader: batch of step " + std::to_string(held) + " is still held; copy what you keep (" + error.what() + ")",
        error.need(), error.budget());
  }
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    free_.push_back(slot.get());
    slots_.push_back(std::move(slot));
    ++stats_.extra_slots;
    is_first = !std::exchange(told_, true);
    for_workers_.notify_all();
  }
  if (is_first)
    log_message("info", "loader: the loop holds all " + std::to_string(options_.slots) +
                            " batches, one more was taken; copy what you keep, or ask for more slots");
}

void Loader::State::follow_depth(double waited, double seconds) {
  int slots = 0;
  {
    const MutexLock lock(mutex_);
    const int before = depth_.slots();
    depth_.observe({waited, seconds, std::exchange(slot_was_wanted_, false)});
    slots = depth_.slots();
    if (slots < before) {  // a worker releases one when it gets a free slot
      ++stats_.narrowed;
      surplus_ += before - slots;
    }
    if (slots <= before) return;
    surplus_ = 0;
  }
  widen(slots);
}

void Loader::State::widen(int slots) {
  const double stalled = [&] {
    const MutexLock lock(mutex_);
    return depth_.stalled();
  }();
  int have = 0;
  bool is_full = false;
  for (;;) {
    std::int64_t epoch = 0;
    {
      const MutexLock lock(mutex_);
      have = static_cast<int>(slots_.size());
      slots = static_cast<int>(std::min(static_cast<std::size_t>(slots), most_slots_));
      epoch = epoch_;
    }
    std::size_t bytes = 0;
    for (const FieldSpec& spec : collate_->fields(samples(), batches_.at(epoch, 0)))
      bytes += detail::bytes_of_field(spec);
    is_full = bytes * (static_cast<std::size_t>(have) + 1) > options_.most_slot_bytes;
    if (have >= slots || is_full) break;
    std::unique_ptr<BatchSlot> slot;
    try {
      slot = make_slot(epoch);
    } catch (const OutOfMemory&) {
      is_full = true;
      break;
    }
    const MutexLock lock(mutex_);
    free_.push_back(slot.get());
    slots_.push_back(std::move(slot));
    for_workers_.notify_all();
  }
  {
    const MutexLock lock(mutex_);
    if (is_full) depth_.set_most(have);
    ++stats_.widened;
  }
  log_message("info", "loader: " + std::to_string(have) + " batches in memory, since the loop waited for them " +
                          std::to_string(static_cast<int>(100 * stalled)) + " % of its time" +
                          (is_full ? "; there is no room for more" : ""));
}

}  // namespace samebytes::data
