// The ledger of transfers: what one engine has moved between host and device since it started. Always on; each count
// costs one atomic addition. The allocator keeps the ledger of memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/runtime.h"

namespace samebytes::detail {

struct Runtime::Ledger {
  std::atomic<std::uint64_t> to_device{0};
  std::atomic<std::uint64_t> to_host{0};
  std::atomic<std::uint64_t> crossed{0};
  std::atomic<std::uint64_t> crossings{0};
  std::atomic<std::uint64_t> mapped{0};
  std::atomic<std::uint64_t> relayout{0};
  std::atomic<std::uint64_t> gathered{0};
};

}  // namespace samebytes::detail
