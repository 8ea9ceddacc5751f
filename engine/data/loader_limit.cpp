// Limits a loader's slots while it runs.
#include <algorithm>
#include <string>
#include <utility>

#include "data/loader_state.h"
#include "samebytes/error.h"

namespace samebytes::data {

std::unique_ptr<Loader::State::BatchSlot> Loader::State::take_out(BatchSlot* slot) {
  const auto place = std::find_if(slots_.begin(), slots_.end(), [&](const auto& s) { return s.get() == slot; });
  std::unique_ptr<BatchSlot> taken = std::move(*place);
  slots_.erase(place);
  return taken;
}

std::unique_ptr<Loader::State::BatchSlot> Loader::State::take_surplus() {
  BatchSlot* const slot = free_.back();
  free_.pop_back();
  return take_out(slot);
}

void Loader::State::limit_slots(int most) {
  if (most < 1) throw ArgumentError("loader: limit_slots: expected 1 or more, got " + std::to_string(most));
  std::vector<std::unique_ptr<BatchSlot>> surplus;  // destroyed after the lock is released
  const detail::MutexLock lock(mutex_);
  most_slots_ = static_cast<std::size_t>(most);
  while (has_too_many() && !free_.empty()) surplus.push_back(take_surplus());
}

}  // namespace samebytes::data
