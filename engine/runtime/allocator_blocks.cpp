// How the allocator gets blocks from the driver and returns them: one way per memory mode, guards in exact mode.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/available_memory.h"
#include "runtime/allocator.h"
#include "runtime/devices.h"
#include "runtime/usm.h"

namespace samebytes::detail {

namespace {

constexpr unsigned char kGuardValue = 0xA5;
constexpr std::size_t kGuardedBase = 128;  // room for the guard; keeps the driver's alignment

std::byte* round_up(void* pointer, std::size_t alignment) {
  const auto value = reinterpret_cast<std::uintptr_t>(pointer);
  return reinterpret_cast<std::byte*>((value + alignment - 1) / alignment * alignment);
}

// Returns the pages of a block to the system before the block is freed. The host's allocator may keep freed memory,
// for example below a smaller allocation.
void drop_pages(void* pointer, std::size_t bytes) {
  constexpr std::size_t kWorthACall = std::size_t{1} << 20;
  std::byte* const begin = round_up(pointer, kPage);
  const std::size_t padding = static_cast<std::size_t>(begin - static_cast<std::byte*>(pointer));
  if (bytes < kWorthACall + padding) return;
  madvise(begin, (bytes - padding) / kPage * kPage, MADV_DONTNEED);
}

}  // namespace

std::size_t default_memory_limit(const DeviceInfo& info) {
  std::size_t least = available_memory().value_or(info.memory_bytes);
  if (info.type != "cpu" && info.memory_bytes) least = std::min(least, info.memory_bytes);
  return least / 100 * 85;
}

bool Allocator::make_svm(Storage::Block& block, std::size_t bytes) {
  cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
  if (setup_.mode == MemoryMode::fine) flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
  // CPU drivers align to 128 bytes and refuse more, so the block gets room to begin on a page. On other devices the
  // driver's pointer is used as it is: CLBlast's buffer must begin exactly there.
  const bool pads = setup_.info.type == "cpu";
  const std::size_t around = block.is_guarded                      ? kGuardedBase + kGuardBytes
                             : block.protection != Protection::off ? kPage
                                                                   : 0;
  const std::size_t extra = pads ? kPage + around : 0;
  if (bytes + extra > setup_.info.max_allocation_bytes) return false;
  if (setup_.mode == MemoryMode::usm)
    block.svm = setup_.usm->allocate(setup_.context(), bytes + extra);
  else
    block.svm = clSVMAlloc(setup_.context(), flags, bytes + extra, 0);
  if (!block.svm) return false;
  block.device = pads ? round_up(block.svm, kPage) : static_cast<std::byte*>(block.svm);
  if (block.is_guarded) {
    // The padding has room for the front guard: the page starts at most kPage - 1 bytes in.
    block.device = round_up(block.svm, kPage);
    if (block.device - static_cast<std::byte*>(block.svm) < static_cast<std::ptrdiff_t>(kGuardBytes))
      block.device += kGuardedBase;
  }
  return true;
}

bool Allocator::make_host(Storage::Block& block, std::size_t bytes) {
  const std::size_t extra = block.is_guarded ? kGuardedBase + kGuardBytes : 0;
  block.heap = allocate_pages(bytes + extra);
  if (!block.heap) return false;
  block.host = static_cast<std::byte*>(block.heap) + (block.is_guarded ? kGuardedBase : 0);
  return true;
}

// Makes the buffer over host memory, or where the driver likes if `host` is null.
bool Allocator::make_buffer(Storage::Block& block, void* host) {
  try {
    block.buffer = cl::Buffer(setup_.context, CL_MEM_READ_WRITE | (host ? CL_MEM_USE_HOST_PTR : 0), block.bytes, host);
  } catch (const cl::Error&) {  // like nullptr from clSVMAlloc: the caller handles it
    return false;
  }
  return true;
}

// Reads as zeros; a page takes memory only once the host writes it.
std::unique_ptr<Storage::Block> Allocator::make_reserved(std::size_t bytes) {
  auto block = std::make_unique<Storage::Block>();
  void* const space = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  block->mode = MemoryMode::system;
  block->bytes = bytes;
  block->reserved = bytes;
  block->host = block->device = static_cast<std::byte*>(space);
  const auto begin = reinterpret_cast<std::uintptr_t>(space);
  MutexLock lock(mutex_);
  claimed_.emplace(begin, begin + bytes);
  return block;
}

std::unique_ptr<Storage::Block> Allocator::make_block(std::size_t bytes) {
  if (setup_.is_dry) return make_reserved(bytes);
  auto block = std::make_unique<Storage::Block>();
  block->mode = setup_.mode;
  block->bytes = bytes;
  block->is_guarded = setup_.has_guards && setup_.mode != MemoryMode::copy;
  block->protection = setup_.protection;
  bool made = false;
  switch (setup_.mode) {
    case MemoryMode::system:
      made = make_host(*block, bytes);
      block->device = block->host;
      break;
    case MemoryMode::fine:
    case MemoryMode::usm:
      made = make_svm(*block, bytes);
      block->host = block->device;
      break;
    case MemoryMode::coarse:
      made = make_svm(*block, bytes);
      if (made && setup_.has_shadow) {
        block->heap = allocate_pages(bytes);
        block->host = static_cast<std::byte*>(block->heap);
        made = block->heap != nullptr;
      } else {
        block->host = block->device;
      }
      break;
    case MemoryMode::hostptr:
      made = make_host(*block, bytes);
      made = made && make_buffer(*block, block->host);
      break;
    case MemoryMode::copy: made = make_buffer(*block, nullptr); break;
  }
  if (!made) {
    block->is_guarded = false;
    free_block(std::move(block));
    return nullptr;
  }
  if (block->is_guarded) {
    std::memset(block->guarded_base() - kGuardBytes, kGuardValue, kGuardBytes);
    std::memset(block->guarded_base() + bytes, kGuardValue, kGuardBytes);
  }
  if (block->host) {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(block->host);
    MutexLock lock(mutex_);
    claimed_.emplace(begin, begin + bytes);
  }
  return block;
}

std::unique_ptr<Storage::Block> Allocator::wrap(void* pointer, std::size_t bytes, MemoryMode mode,
                                                std::function<void()> deleter) {
  auto block = std::make_unique<Storage::Block>();
  block->mode = mode;
  block->bytes = bytes;
  block->host = static_cast<std::byte*>(pointer);
  if (mode == MemoryMode::hostptr && !make_buffer(*block, pointer)) return nullptr;
  if (mode != MemoryMode::hostptr) block->device = block->host;
  if (mode == MemoryMode::coarse && setup_.has_shadow) {
    block->heap = allocate_pages(bytes);
    if (!block->heap) return nullptr;
    block->host = static_cast<std::byte*>(block->heap);
  }
  block->deleter = std::move(deleter);
  count_adopted(*block);
  return block;
}

std::unique_ptr<Storage::Block> Allocator::wrap(cl::Buffer buffer, void* host, std::size_t bytes) {
  auto block = std::make_unique<Storage::Block>();
  block->mode = host ? MemoryMode::hostptr : MemoryMode::copy;
  block->bytes = bytes;
  block->host = static_cast<std::byte*>(host);
  block->buffer = std::move(buffer);
  if (!host) block->device_newer.add(0, bytes);
  count_adopted(*block);
  return block;
}

void Allocator::count_adopted(Storage::Block& block) {
  block.is_adopted = true;
  MutexLock lock(mutex_);
  live_by_category_[static_cast<std::size_t>(Category::adopted)] += block.bytes;
}

void keep_for_ever(std::unique_ptr<Storage::Block> block) noexcept {
  try {
    static Mutex& mutex = *new Mutex;
    static auto& kept = *new std::vector<std::unique_ptr<Storage::Block>>;
    const MutexLock lock(mutex);
    kept.push_back(std::move(block));
  } catch (const std::bad_alloc&) {
    static_cast<void>(block.release());
  }
}

void Allocator::free_block(BlockPtr block) noexcept {
  if (setup_.watchdog && setup_.watchdog->is_given_up()) {
    keep_for_ever(std::move(block));
    return;
  }
  if (block->host) unclaim(block->host);
  if (block->is_adopted && block->device) unclaim(block->device);
  if (block->is_guarded) {
    const std::string damage = damage_of(*block);
    MutexLock lock(mutex_);
    guarded_.erase(block.get());
    if (!damage.empty()) damage_.push_back(damage);
  }
  { const cl::Buffer alias = std::move(block->alias), buffer = std::move(block->buffer); }  // before what is under them
  if (block->protection != Protection::off && !block->is_open) open_pages(block->host, block->page_bytes());
  // PoCL's shared memory on a CPU is the host's own; other drivers own what they allocate.
  const bool is_host = setup_.info.type == "cpu" && setup_.info.platform == "Portable Computing Language";
  if (block->svm && is_host) drop_pages(block->device, block->bytes);
  if (block->reserved > 0) munmap(block->host, block->reserved);
  if (block->svm && block->mode == MemoryMode::usm)
    setup_.usm->release(setup_.context(), block->svm);
  else if (block->svm)
    clSVMFree(setup_.context(), block->svm);
  if (block->heap) drop_pages(block->heap, block->bytes);
  std::free(block->heap);
  if (!block->deleter) return;
  try {
    block->deleter();
  } catch (...) {
    // Nobody can receive what the user's deleter throws.
  }
}

std::string Allocator::damage_of(const Storage::Block& block) {
  const auto* base = reinterpret_cast<const unsigned char*>(block.guarded_base());
  for (std::size_t i = 0; i < kGuardBytes; ++i) {
    if (base[block.bytes + i] != kGuardValue)
      return "a storage of " + std::to_string(block.bytes) + " bytes was written " + std::to_string(i) +
             " bytes past its end";
    if (base[-1 - static_cast<std::ptrdiff_t>(i)] != kGuardValue)
      return "a storage of " + std::to_string(block.bytes) + " bytes was written " + std::to_string(i + 1) +
             " bytes before its start";
  }
  return {};
}

std::vector<std::string> Allocator::check_guards() const {
  MutexLock lock(mutex_);
  std::vector<std::string> all = std::move(damage_);
  damage_.clear();
  for (const Storage::Block* block : guarded_)
    if (std::string damage = damage_of(*block); !damage.empty()) all.push_back(std::move(damage));
  return all;
}

}  // namespace samebytes::detail
