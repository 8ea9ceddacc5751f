// Turns a filled slot into a batch: lends its fields, or shows rows of the data set's arrays instead.
#include <functional>
#include <utility>

#include "data/loader_state.h"

namespace samebytes::data {

using detail::MutexLock;

Batch Loader::State::lend(BatchSlot& slot) {
  // Keeps the state alive as long as the arrays live; the return of the last field frees the slot.
  const auto returned = [state = shared_from_this(), back = &slot] {
    if (state->is_forked()) return;  // a worker may have held the lock
    std::unique_ptr<BatchSlot> surplus;
    const MutexLock lock(state->mutex_);
    if (--back->lent > 0) return;
    if (state->has_too_many()) surplus = state->take_out(back);
    if (!surplus) state->free_.push_back(back);
    state->for_workers_.notify_all();
  };
  std::vector<Array> arrays;
  std::int64_t epoch = 0;
  {
    const MutexLock lock(mutex_);
    epoch = epoch_;
  }
  if (slot.shown >= 0) {  // the slot itself is free immediately
    struct GiveBack {
      const std::function<void()> once;
      std::size_t fields;
      ~GiveBack() {
        for (std::size_t i = 0; i < fields; ++i) once();
      }
    } const give_back{returned, slot.fields.size()};
    return show(slot, epoch);
  }
  try {
    for (std::size_t i = 0; i < slot.fields.size(); ++i)
      arrays.push_back(slot.fields[i].lend(slot.specs[i].shape, slot.specs[i].dtype, returned));
  } catch (...) {
    for (std::size_t i = arrays.size(); i < slot.fields.size(); ++i) returned();
    throw;
  }
  return Batch(std::move(arrays), names_, epoch, slot.step, slot.samples);
}

Batch Loader::State::show(const BatchSlot& slot, std::int64_t epoch) const {
  std::vector<Array> arrays;
  for (const Array& all : *arrays_) arrays.push_back(show_rows(all, slot.shown, slot.shown + slot.samples));
  return Batch(std::move(arrays), names_, epoch, slot.step, slot.samples);
}

}  // namespace samebytes::data
