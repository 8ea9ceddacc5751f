// The raw allocation of a storage in its memory mode, and the few operations that the driver offers on it.
// A block is owned by one Storage or by the allocator's cache; the storage's mutex guards it while it is in use.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "runtime/protect.h"
#include "runtime/ranges.h"
#include "runtime/storage.h"

namespace samebytes::detail {

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kGuardBytes = 64;  // on each side, in SAMEBYTES_ALLOCATOR=exact

struct Storage::Block {
  enum class Mapped : std::uint8_t { no, read, write };

  MemoryMode mode = MemoryMode::fine;
  std::size_t bytes = 0;        // usable; at least what the storage requested
  std::byte* host = nullptr;    // where the host sees byte 0; null in copy mode until the host asks
  std::byte* device = nullptr;  // SVM address of byte 0; differs from host only with a shadow
  void* svm = nullptr;          // returned by clSVMAlloc
  void* heap = nullptr;         // returned by the host's allocator
  std::size_t reserved = 0;     // address space, in a dry run
  cl::Buffer buffer;            // hostptr and copy
  cl::Buffer alias;             // for CLBlast, made at first use
  Mapped mapped = Mapped::no;
  cl::Event unmapped;  // the last unmap, on the first device's queue; a map on the host's queue comes after it
  bool is_guarded = false;
  Protection protection = Protection::off;
  bool is_open = true;  // with protection: the host may touch the pages
  bool is_adopted = false;
  std::function<void()> deleter;  // of adopted memory
  std::string what, layer;        // who took it last
  Category category = Category::value;
  TicketPtr ticket;         // last user, while in the cache
  std::uint64_t stamp = 0;  // when it entered the cache
  // Copy mode: bytes where one side is newer. If neither is set, both sides are equal or nobody ever wrote.
  Ranges host_newer, device_newer;

  std::size_t page_bytes() const { return (bytes + kPage - 1) / kPage * kPage; }
  // Driver threads have the right to keys; with mprotect, a kernel needs the host's own pages to be open.
  bool device_needs_open() const { return protection == Protection::pages && (!device || device == host); }
  std::byte* guarded_base() const { return device ? device : host; }
};

// Driver operations. The runtime's ledgers count what they move.
void map_block(Space& space, Storage::Block& block, bool writes, std::size_t length);
void unmap_block(Space& space, Storage::Block& block);
void download_block(Space& space, Storage::Block& block, std::size_t begin, std::size_t end);
void upload_block(Space& space, Storage::Block& block, std::size_t begin, std::size_t end, const std::string& op);

// A device that was given up may still write there, so the bytes are never reused while the process lives, not even at
// its end. The process can still reach them: they are no leak.
void keep_for_ever(std::unique_ptr<Storage::Block> block) noexcept;

// Page-aligned memory of the host, freed with std::free. Null if there is not enough.
void* allocate_pages(std::size_t bytes);

}  // namespace samebytes::detail
