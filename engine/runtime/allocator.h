// Allocates, caches and frees the blocks of one engine, and keeps the ledger of memory.
// Storages hold it by shared_ptr, so that an array may be destroyed after its engine; a closed allocator frees at once.
// Thread-safe. Only take() may block, and only before it throws OutOfMemory.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/mutex.h"
#include "profile/memory_log.h"
#include "runtime/block.h"
#include "runtime/reaper.h"

namespace samebytes::detail {

struct Usm;

// The bytes that a block of `bytes` really takes: whole pages up to 64 KiB and from 16 MiB on; eight steps per power of
// two in between.
std::size_t size_class(std::size_t bytes);

// 85 % of the smallest of: the cgroup's limit, the memory available now, and the memory of a device with its own.
std::size_t default_memory_limit(const DeviceInfo& info);

struct AllocatorSetup {
  cl::Context context;
  DeviceInfo info;
  MemoryMode mode;
  bool has_shadow = false;  // coarse mode on a device whose map does nothing
  bool is_dry = false;      // blocks are address space that is never written
  bool is_exact = false;    // SAMEBYTES_ALLOCATOR=exact
  bool has_guards = false;
  Protection protection = Protection::off;
  std::size_t limit = 0;
  const Usm* usm = nullptr;   // in mode usm
  WatchdogPtr watchdog = {};  // where it has given up, memory stays as it is: commands may still run
};

class Allocator {
 public:
  explicit Allocator(AllocatorSetup setup);
  ~Allocator();

  // Returns a block of at least `bytes` (exactly `bytes` in exact mode), counted as live. Launches of the block's
  // ticket may still use the bytes. Throws OutOfMemory.
  std::unique_ptr<Storage::Block> take(std::size_t bytes, Category category, const std::string& what,
                                       const char* layer = "", FirstUse first = FirstUse::host);
  // A block over the user's memory; null if the driver refuses or the host has no memory for a shadow.
  std::unique_ptr<Storage::Block> wrap(void* pointer, std::size_t bytes, MemoryMode mode,
                                       std::function<void()> deleter);
  // A block over a user's buffer, which the host sees at `host` or, if that is null, through copies.
  std::unique_ptr<Storage::Block> wrap(cl::Buffer buffer, void* host, std::size_t bytes);
  void give_back(std::unique_ptr<Storage::Block> block, Category category, TicketPtr ticket) noexcept;

  std::size_t clear_cache();  // does not wait: the reaper frees busy blocks
  void set_limit(std::size_t bytes);
  void close();  // frees the cache; blocks that return later are freed at once
  bool is_exact() const { return setup_.is_exact; }
  bool is_closed() const { return is_closed_.load(std::memory_order_acquire); }
  void fill(MemoryReport* report) const;
  // How often the peak was raised; and who caused the last raise, if a plan knows more than a single allocation.
  std::uint64_t peaks() const;
  void name_peak(const std::string& what, const char* layer);
  bool set_log(std::shared_ptr<MemoryLog> log);
  // Its log, or an empty one, with the memory now in use here and in other spaces.
  std::shared_ptr<const MemoryLog> log(std::vector<MemoryArray> others) const;
  std::vector<MemoryArray> in_use() const;  // without the storages of cells, which report themselves
  HeldPeak held_peak() const;
  Reaper& reaper() { return *reaper_; }

  // Throws ArgumentError if [pointer, pointer + bytes) overlaps memory that the engine already knows.
  void claim(const void* pointer, std::size_t bytes, const std::string& what);
  void unclaim(const void* pointer);

  // Exact mode: one line per storage whose guard bytes were overwritten; empty if all are intact.
  std::vector<std::string> check_guards() const;

 private:
  using BlockPtr = std::unique_ptr<Storage::Block>;
  BlockPtr make_block(std::size_t bytes);  // null if the driver has no memory
  bool make_svm(Storage::Block& block, std::size_t bytes);
  bool make_host(Storage::Block& block, std::size_t bytes);
  bool make_buffer(Storage::Block& block, void* host);
  BlockPtr make_reserved(std::size_t bytes);
  void free_block(BlockPtr block) noexcept;
  void count_adopted(Storage::Block& block);
  BlockPtr take_cached(std::size_t capacity, FirstUse first) SAMEBYTES_REQUIRES(mutex_);
  std::vector<BlockPtr> trim(std::size_t target) SAMEBYTES_REQUIRES(mutex_);
  void count_live(Storage::Block& block, Category category, const std::string& what, const char* layer)
      SAMEBYTES_REQUIRES(mutex_);
  std::size_t held() const SAMEBYTES_REQUIRES(mutex_);
  [[noreturn]] void throw_out_of_memory(std::size_t need, const std::string& what, const std::string& reason);
  std::string ways_out() const SAMEBYTES_REQUIRES(mutex_);
  void free_later(BlockPtr block, TicketPtr ticket);
  void free_all(std::vector<BlockPtr> blocks) noexcept;
  static std::string damage_of(const Storage::Block& block);

  const AllocatorSetup setup_;
  std::unique_ptr<Reaper> reaper_;

  mutable Mutex mutex_;
  std::map<std::size_t, std::vector<BlockPtr>> cache_ SAMEBYTES_GUARDED_BY(mutex_);  // by capacity, oldest first
  std::map<std::uintptr_t, std::uintptr_t> claimed_ SAMEBYTES_GUARDED_BY(mutex_);    // begin to end of known memory
  std::set<const Storage::Block*> guarded_ SAMEBYTES_GUARDED_BY(mutex_);
  std::unordered_set<const Storage::Block*> live_ SAMEBYTES_GUARDED_BY(mutex_);  // without adopted ones
  mutable std::vector<std::string> damage_ SAMEBYTES_GUARDED_BY(mutex_);         // found when blocks were freed
  std::array<std::size_t, 8> live_by_category_ SAMEBYTES_GUARDED_BY(mutex_){};
  std::size_t cached_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::size_t limit_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::size_t peak_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::uint64_t peaks_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::string peak_cause_ SAMEBYTES_GUARDED_BY(mutex_), peak_layer_ SAMEBYTES_GUARDED_BY(mutex_);
  std::array<std::size_t, 8> peak_by_category_ SAMEBYTES_GUARDED_BY(mutex_){};
  std::shared_ptr<MemoryLog> log_ SAMEBYTES_GUARDED_BY(mutex_);
  HeldPeak held_peak_ SAMEBYTES_GUARDED_BY(mutex_);
  std::size_t most_held_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::uint64_t driver_allocations_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_stamp_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> is_closed_{false};  // changed under the mutex
};

}  // namespace samebytes::detail
