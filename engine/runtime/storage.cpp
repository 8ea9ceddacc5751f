#include "runtime/storage.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/block.h"
#include "runtime/faults.h"
#include "runtime/runtime.h"
#include "runtime/space.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

std::atomic<std::uint64_t> next_borrow{1};

bool needs_map(MemoryMode mode) { return mode == MemoryMode::coarse || mode == MemoryMode::hostptr; }

bool is_planted(MapFault fault) { return faults().map.load(std::memory_order_relaxed) == fault; }

}  // namespace

Storage::Storage(Space& space, std::shared_ptr<Allocator> allocator, std::unique_ptr<Block> block, std::size_t bytes,
                 Category category)
    : space_(space), allocator_(std::move(allocator)), block_(std::move(block)), bytes_(bytes), category_(category) {
  MutexLock lock(mutex_);
  last_user_ = last_writer_ = std::move(block_->ticket);  // a queued launch may still read a block of the cache
  close_if_idle();
}

Storage::~Storage() {
  if (forks_ != fork_count()) {  // the child process has neither the driver's threads nor those that held the locks:
                                 // leave everything as it is
    static_cast<void>(block_.release());
    static_cast<void>(new (std::nothrow) std::pair(std::move(last_user_), std::move(last_writer_)));
    static_cast<void>(new (std::nothrow) std::vector(std::move(writers_)));
    return;
  }
  TicketPtr ticket;
  {
    MutexLock lock(mutex_);
    ticket = std::move(last_user_);
  }
  if (ticket && ticket->is_abandoned())
    keep_for_ever(std::move(block_));
  else
    allocator_->give_back(std::move(block_), category_, std::move(ticket));
}

MemoryMode Storage::mode() const { return block_->mode; }

void Storage::open() {
  if (block_->protection == Protection::off || block_->is_open || !block_->host) return;
  open_pages(block_->host, block_->page_bytes());
  block_->is_open = true;
}

void Storage::close_if_idle() {
  if (block_->protection == Protection::off || !block_->is_open || !block_->host) return;
  if (!borrows_.empty() || is_in_host_call_) return;
  if (block_->device_needs_open() && last_user_ && !last_user_->is_done()) return;
  close_pages(block_->host, block_->page_bytes(), block_->protection);
  block_->is_open = false;
}

void Storage::check_engine() const {
  if (allocator_->is_closed()) throw ArgumentError("array: its engine is gone; only destroying it is allowed");
}

void Storage::settle_writers() const {
  std::erase_if(writers_, [this](const WriteRecord& record) SAMEBYTES_REQUIRES(mutex_) {
    if (!record.ticket->is_done()) return false;
    if (record.ticket->is_failed()) {
      lost_.add(record.begin, record.end);
      if (lost_why_.empty()) lost_why_ = record.ticket->failure();
    }
    return true;
  });
}

void Storage::check_lost(const std::string& op, std::size_t begin, std::size_t end) const {
  if (lost_.is_empty() || !lost_.meets(begin, end)) return;
  throw DeviceError(op + ": the array is lost, because a queued write to it failed (" + lost_why_ + "); write it anew",
                    "clWaitForEvents", "lost", space_.name());
}

// Requires: no launch uses the bytes in a conflicting way.
void Storage::to_host(bool writes, std::size_t offset, std::size_t length) {
  Block& block = *block_;
  open();
  if (needs_map(block.mode)) {
    const bool is_double = block.mapped != Block::Mapped::no && is_planted(MapFault::double_map);
    if (block.mapped == Block::Mapped::read && writes) unmap_block(space_, block);
    if (block.mapped == Block::Mapped::no || is_double) map_block(space_, block, writes, length);
    return;
  }
  if (block.mode != MemoryMode::copy) return;
  if (!block.host) {
    block.heap = allocate_pages(block.bytes);
    if (!block.heap)
      throw OutOfMemory("host copy of an array: the host has no memory for " + std::to_string(block.bytes) + " bytes",
                        block.bytes, 0);
    block.host = static_cast<std::byte*>(block.heap);
  }
  for (const Ranges::Range& range : block.device_newer.inside(offset, offset + length)) {
    download_block(space_, block, range.begin, range.end);
    block.device_newer.remove(range.begin, range.end);
  }
  if (writes) block.host_newer.add(offset, offset + length);
}

void Storage::to_device(bool writes, const std::string& op, std::size_t offset, std::size_t length, bool whole) {
  Block& block = *block_;
  open();
  if (needs_map(block.mode)) {
    if (block.mapped == Block::Mapped::no && is_planted(MapFault::double_unmap)) block.mapped = Block::Mapped::write;
    if (block.mapped == Block::Mapped::write || (block.mapped == Block::Mapped::read && writes))
      unmap_block(space_, block);
    return;
  }
  if (block.mode != MemoryMode::copy) return;
  if (writes && whole) block.host_newer.remove(offset, offset + length);
  for (const Ranges::Range& range : block.host_newer.inside(offset, offset + length)) {
    upload_block(space_, block, range.begin, range.end, op);
    block.host_newer.remove(range.begin, range.end);
  }
  if (writes) block.device_newer.add(offset, offset + length);
}

void* Storage::acquire_host(bool writes, std::size_t offset, std::size_t length, const char* file, int line,
                            std::uint64_t* borrow_id) {
  check_engine();
  for (;;) {
    TicketPtr blocking;
    {
      MutexLock lock(mutex_);
      const TicketPtr& last = writes ? last_user_ : last_writer_;
      if (!last || last->is_done()) {
        settle_writers();
        if (writes) {
          lost_.remove(offset, offset + length);
          if (lost_.is_empty()) lost_why_.clear();
        } else {
          check_lost("host", offset, offset + length);
        }
        to_host(writes, offset, length);
        *borrow_id = next_borrow.fetch_add(1, std::memory_order_relaxed);
        borrows_.push_back({*borrow_id, writes, offset, length, file, line});
        borrow_count_.store(static_cast<int>(borrows_.size()), std::memory_order_release);
        return block_->host;
      }
      blocking = last;
    }
    blocking->wait_quietly();  // check_lost reports its failure to whoever uses the bytes that it wrote
  }
}

void Storage::release_host(std::uint64_t borrow_id) noexcept {
  MutexLock lock(mutex_);
  auto found = std::find_if(borrows_.begin(), borrows_.end(), [&](const BorrowRecord& b) { return b.id == borrow_id; });
  if (found == borrows_.end()) return;
  borrows_.erase(found);
  borrow_count_.store(static_cast<int>(borrows_.size()), std::memory_order_release);
  close_if_idle();
}

bool Storage::acquire_device(const TicketPtr& ticket, bool writes, const std::string& op, std::size_t offset,
                             std::size_t length, bool whole) {
  check_engine();
  const std::size_t end = offset + length;
  MutexLock lock(mutex_);
  for (const BorrowRecord& borrow : borrows_) {
    if (!borrow.writes && !writes) continue;
    // A mapping covers the whole allocation, so a view of any part conflicts.
    const bool meets = needs_map(block_->mode) || (borrow.offset < end && offset < borrow.offset + borrow.length);
    if (!meets) continue;
    throw ArgumentError(op + ": cannot " + (writes ? "write" : "read") + " an array while a " +
                        (borrow.writes ? "writing" : "reading") + " view of it lives, made at " + borrow.file + ":" +
                        std::to_string(borrow.line));
  }
  if (!writers_.empty()) settle_writers();
  if (!lost_.is_empty()) {
    if (writes && whole)
      lost_.remove(offset, end);
    else
      check_lost(op, offset, end);
  }
  if (!writes || !whole)
    for (const WriteRecord& record : writers_)
      if (record.ticket != ticket && record.begin < end && offset < record.end) ticket->reads_from(record.ticket);
  to_device(writes, op, offset, length, whole);
  const bool is_free = !last_user_ || last_user_ == ticket || last_user_->is_done();
  last_user_ = ticket;
  if (block_->protection != Protection::off) {
    close_if_idle();
    if (block_->is_open && borrows_.empty())
      allocator_->reaper().add(ticket, [weak = weak_from_this()] {
        if (StoragePtr storage = weak.lock()) {
          MutexLock again(storage->mutex_);
          storage->close_if_idle();
        }
      });
  }
  if (!writes) return is_free;
  last_writer_ = ticket;
  for (WriteRecord& record : writers_)
    if (record.ticket == ticket) {
      record.begin = std::min(record.begin, offset);
      record.end = std::max(record.end, end);
      return is_free;
    }
  writers_.push_back({ticket, offset, end});
  return is_free;
}

void* Storage::begin_host_call(bool writes, const std::string& op) {
  MutexLock lock(mutex_);
  for (const BorrowRecord& borrow : borrows_)
    if (writes || borrow.writes)
      throw ArgumentError(op + ": cannot run while a view of its array lives, made at " + borrow.file + ":" +
                          std::to_string(borrow.line));
  is_in_host_call_ = true;
  to_host(writes, 0, bytes_);
  return block_->host;
}

void Storage::end_host_call(const std::string& op) {
  MutexLock lock(mutex_);
  if (block_->mapped != Block::Mapped::no) unmap_block(space_, *block_);
  to_device(false, op, 0, bytes_, false);
  // Later launches of the same submission may overwrite what it acquired for writing; the host then asks the device.
  if (block_->mode == MemoryMode::copy)
    for (const WriteRecord& record : writers_)
      if (record.ticket == last_writer_) block_->device_newer.add(record.begin, record.end);
  is_in_host_call_ = false;
}

void* Storage::host_pointer() const { return block_->host; }

bool Storage::binds_pointer() const { return block_->device != nullptr; }

void* Storage::device_pointer() const { return block_->device; }

const cl::Buffer& Storage::buffer() const { return block_->buffer; }

cl_mem Storage::alias() {
  check_engine();
  if (block_->buffer()) return block_->buffer();
  if (!space_.alias_works()) return nullptr;
  MutexLock lock(mutex_);
  if (!block_->alias())
    block_->alias = on_device(space_.name(), [&] {
      return cl::Buffer(space_.context(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, block_->bytes, block_->device);
    });
  return block_->alias();
}

bool Storage::is_busy() const {
  MutexLock lock(mutex_);
  return last_user_ && !last_user_->is_done();
}

void Storage::wait() {
  check_engine();
  TicketPtr last;
  {
    MutexLock lock(mutex_);
    last = last_user_;
  }
  if (last) last->wait_quietly();
  MutexLock lock(mutex_);
  settle_writers();
  check_lost("wait", 0, bytes_);
}

bool Storage::is_lost() const {
  MutexLock lock(mutex_);
  settle_writers();
  return !lost_.is_empty();
}

}  // namespace samebytes::detail
