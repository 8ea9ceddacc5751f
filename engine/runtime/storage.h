// One allocation in one memory mode. Views of arrays carry offsets into it.
//
// State rules: a storage belongs to the device or is mapped for the host (modes coarse, hostptr, copy; a no-op in fine
// and system). `acquire_*_host` maps and waits for the last ticket that matters; `acquire_device` unmaps. Memory stays
// mapped while idle: releasing a view does not unmap, the next device use does. Borrows cover byte ranges; a device use
// that meets a living writing borrow (or a device write that meets a reading one) throws ArgumentError with the op and
// the place of the view. Thread-safe: one mutex per storage guards mapping state and borrows.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/forks.h"
#include "core/mutex.h"
#include "runtime/opencl.h"
#include "runtime/ranges.h"
#include "runtime/ticket.h"
#include "samebytes/device.h"
#include "samebytes/memory.h"

namespace samebytes::detail {

class Allocator;
class Runtime;
class Space;
class Storage;
using StoragePtr = std::shared_ptr<Storage>;

// What an allocation is for; the memory ledger keeps one account per category.
enum class Category : std::uint8_t { value, parameter, gradient, optimizer, arena, slot, library, adopted };

// Modes in which host and device address the same bytes at any time; nothing is mapped, only waited for.
inline bool needs_no_map(MemoryMode mode) {
  return mode == MemoryMode::system || mode == MemoryMode::fine || mode == MemoryMode::usm;
}

// Who uses the storage first. A device's first write comes after the queued launches, so its storage may take a block
// that they still use, which is warm in the caches. The host would have to wait for them.
enum class FirstUse : std::uint8_t { host, device };

// Bytes by category at the moment when their sum, with the cache's, was largest.
struct HeldPeak {
  std::array<std::size_t, 8> by_category{};
  std::size_t cached = 0;
};

class Storage : public std::enable_shared_from_this<Storage> {
 public:
  struct Block;  // the raw allocation in its mode: SVM pointer, host pointer, cl_mem, shadow; defined in storage.cpp

  Storage(Space& space, std::shared_ptr<Allocator> allocator, std::unique_ptr<Block> block, std::size_t bytes,
          Category category);
  // Never blocks: the block returns to the allocator with its ticket, or goes to the reaper; a child process leaks it.
  ~Storage();
  Storage(const Storage&) = delete;

  std::size_t bytes() const { return bytes_; }
  MemoryMode mode() const;
  Category category() const { return category_; }
  Space& space() const { return space_; }

  // Host side. Returns the host address of byte 0. Waits for the last writer (reading) or the last user (writing), maps
  // if needed, registers a borrow of [offset, offset + length) made at file:line. Throws the DeviceError of a failed
  // writer.
  void* acquire_host(bool writes, std::size_t offset, std::size_t length, const char* file, int line,
                     std::uint64_t* borrow_id);
  void release_host(std::uint64_t borrow_id) noexcept;

  // Device side; Submission calls it for every storage of a launch list before it enqueues anything. From here on the
  // (still open) ticket uses the storage. `whole`: the launches overwrite every byte of the range before they read any
  // (copy mode then skips the upload). Throws ArgumentError for a conflicting living view, DeviceError for lost bytes.
  // Returns whether the submissions that used the storage before are done.
  bool acquire_device(const TicketPtr& ticket, bool writes, const std::string& op, std::size_t offset,
                      std::size_t length, bool whole = false);
  // For a host function in the middle of a submission whose earlier launches are complete: hands the bytes to the host,
  // and back.
  void* begin_host_call(bool writes, const std::string& op);
  void* host_pointer() const;  // of byte 0; valid only inside a borrow or a host call
  void end_host_call(const std::string& op);

  // What a kernel argument binds: an SVM pointer (fine, coarse, system) or a cl_mem (hostptr, copy).
  bool binds_pointer() const;
  void* device_pointer() const;
  const cl::Buffer& buffer() const;
  // A cl_mem over the same bytes for CLBlast, made once; null if the device failed the self-test.
  cl_mem alias();

  bool is_busy() const;  // a ticket that uses it is not complete
  void wait();           // waits for the last user
  bool has_borrows() const { return borrow_count_.load(std::memory_order_acquire) != 0; }
  bool is_lost() const;  // a queued write to it failed; using it throws until those bytes are rewritten

 private:
  friend class Allocator;
  struct BorrowRecord {
    std::uint64_t id;
    bool writes;
    std::size_t offset, length;
    const char* file;
    int line;
  };
  struct WriteRecord {  // a queued write that is not known to have succeeded
    TicketPtr ticket;
    std::size_t begin, end;
  };
  void open() SAMEBYTES_REQUIRES(mutex_);           // SAMEBYTES_PROTECT: the host may touch the pages
  void close_if_idle() SAMEBYTES_REQUIRES(mutex_);  // ... until no view or launch needs them
  void check_engine() const;                        // throws ArgumentError if the engine is gone
  void settle_writers() const SAMEBYTES_REQUIRES(mutex_);
  void check_lost(const std::string& op, std::size_t begin, std::size_t end) const SAMEBYTES_REQUIRES(mutex_);
  void to_host(bool writes, std::size_t offset, std::size_t length) SAMEBYTES_REQUIRES(mutex_);
  void to_device(bool writes, const std::string& op, std::size_t offset, std::size_t length, bool whole)
      SAMEBYTES_REQUIRES(mutex_);

  Space& space_;
  const std::shared_ptr<Allocator> allocator_;
  std::unique_ptr<Block> block_;
  const std::size_t bytes_;
  const Category category_;
  const unsigned forks_ = fork_count();
  std::atomic<int> borrow_count_{0};

  mutable Mutex mutex_;  // also guards the block's state
  bool is_in_host_call_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  std::vector<BorrowRecord> borrows_ SAMEBYTES_GUARDED_BY(mutex_);
  TicketPtr last_user_ SAMEBYTES_GUARDED_BY(mutex_);
  TicketPtr last_writer_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable std::vector<WriteRecord> writers_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable Ranges lost_ SAMEBYTES_GUARDED_BY(mutex_);
  mutable std::string lost_why_ SAMEBYTES_GUARDED_BY(mutex_);
};

}  // namespace samebytes::detail
