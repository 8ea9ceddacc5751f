#include "samebytes/slot.h"

#include <utility>

#include "graph/context.h"
#include "graph/op.h"
#include "samebytes/error.h"
#include "samebytes/profile.h"

namespace samebytes {

struct Slot::State {
  detail::ContextPtr context;
  detail::StoragePtr storage;  // null for 0 bytes
  std::uint64_t borrow = 0;    // while the host fills it
  bool is_filled = false;      // since it was last lent
};

Slot::Slot(std::shared_ptr<detail::Context> engine, std::size_t bytes, const std::string& what)
    : state_(std::make_unique<State>()) {
  state_->context = std::move(engine);
  state_->context->check_alive("slot");
  state_->storage = state_->context->runtime->allocate(bytes, detail::Category::slot, what);
}

Slot::~Slot() {
  if (state_) end_fill();
}
Slot::Slot(Slot&&) noexcept = default;
Slot& Slot::operator=(Slot&& other) noexcept {
  Slot taken(std::move(other));
  std::swap(state_, taken.state_);
  return *this;
}

std::size_t Slot::bytes() const { return state_->storage ? state_->storage->bytes() : 0; }

std::span<std::byte> Slot::begin_fill(const char* file, int line) {
  state_->context->check_alive("slot");
  if (!state_->storage) return {};
  const ProfileSpan span("wait for device");
  const std::size_t size = state_->storage->bytes();
  state_->is_filled = true;
  return {static_cast<std::byte*>(state_->storage->acquire_host(true, 0, size, file, line, &state_->borrow)), size};
}

void Slot::end_fill() noexcept {
  if (state_->storage && state_->borrow != 0) state_->storage->release_host(std::exchange(state_->borrow, 0));
}

Array Slot::lend(const Shape& shape, Dtype dtype, std::function<void()> returned) {
  state_->context->check_alive("slot");
  const std::size_t need = static_cast<std::size_t>(shape.size()) * bytes_of(dtype);
  if (need > bytes())
    throw ArgumentError("slot: " + std::string(name_of(dtype)) + " " + shape.to_string() + " needs " +
                        std::to_string(need) + " bytes, the slot has " + std::to_string(bytes()));
  if (need == 0) {
    returned();
    return detail::make_leaf(state_->context, shape, dtype, detail::Category::slot);
  }
  if (std::exchange(state_->is_filled, false)) state_->context->runtime->count_gather(need);
  // The array holds the storage through this pointer; the loan ends when the last copy of it is gone.
  struct Loan {
    detail::ContextPtr context;  // outlives the storage
    detail::StoragePtr storage;
    std::function<void()> returned;
    void operator()(detail::Storage*) const { returned(); }
  };
  detail::Storage* const storage = state_->storage.get();
  return detail::make_leaf_on(state_->context, shape, dtype, detail::Category::slot,
                              detail::StoragePtr(storage, Loan{state_->context, state_->storage, std::move(returned)}));
}

Array share_rows(const Array& a, std::int64_t begin, std::int64_t end) {
  detail::require(a.defined() && a.shape().rank() >= 1, "share_rows", "needs an array of rank 1 or more", a, "src");
  Shape shape = a.shape();
  if (begin < 0 || begin > end || end > shape[0])
    throw ArgumentError("share_rows: rows [" + std::to_string(begin) + ", " + std::to_string(end) +
                        ") are not in src " + detail::describe(a));
  a.eval();
  const detail::Node &node = *a.node(), &base = node.base();
  detail::require(node.is_dense() && !base.cell, "share_rows", "needs a contiguous array that shows no cell", a, "src");
  const std::int64_t row = shape[0] == 0 ? 0 : shape.size() / shape[0];
  shape[0] = end - begin;
  Array rows = detail::make_leaf_on(node.context, shape, a.dtype(), base.category, base.storage);
  rows.node()->device = node.device;
  rows.node()->offset = base.offset + (node.is_view ? node.offset : 0) + begin * row;
  rows.node()->is_read_only = base.is_read_only;
  return rows;
}

Array show_rows(const Array& a, std::int64_t begin, std::int64_t end) {
  Array rows = share_rows(a, begin, end);
  rows.node()->is_read_only = true;
  return rows;
}

bool is_of(const Array& a, const std::shared_ptr<detail::Context>& engine) {
  return a.defined() && a.node()->context == engine;
}

}  // namespace samebytes
