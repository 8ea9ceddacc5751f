#include "runtime/protect.h"

#include <sys/mman.h>

#include <atomic>

#include "runtime/devices.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

// -2: not requested yet; -1: the machine has none.
std::atomic<int> protection_key{-2};

}  // namespace

Protection wanted_protection() {
  const std::string text = environment("SAMEBYTES_PROTECT");
  if (text.empty() || text == "0") return Protection::off;
  if (text == "pages") return Protection::pages;
  if (text != "1") throw ArgumentError("SAMEBYTES_PROTECT: expected 0, 1 or pages, got '" + text + "'");
  return protection_key.load() >= 0 ? Protection::keys : Protection::pages;
}

DriverThreads::DriverThreads() {
  const std::string text = environment("SAMEBYTES_PROTECT");
  int expected = -2;
  if (text != "1" || !protection_key.compare_exchange_strong(expected, -1)) return;
  const int allocated = pkey_alloc(0, 0);
  if (allocated < 0) return;
  protection_key = allocated;
  is_first_ = true;
}

DriverThreads::~DriverThreads() {
  if (is_first_) pkey_set(protection_key.load(), PKEY_DISABLE_ACCESS);
}

void open_pages(void* base, std::size_t bytes) noexcept {
  if (protection_key.load() >= 0)
    pkey_mprotect(base, bytes, PROT_READ | PROT_WRITE, 0);
  else
    mprotect(base, bytes, PROT_READ | PROT_WRITE);
}

void close_pages(void* base, std::size_t bytes, Protection how) noexcept {
  if (how == Protection::keys)
    pkey_mprotect(base, bytes, PROT_READ | PROT_WRITE, protection_key.load());
  else
    mprotect(base, bytes, PROT_NONE);
}

}  // namespace samebytes::detail
