// SAMEBYTES_PROTECT=1: every storage has its own pages, and they are closed while the host holds no view of them, so
// that a stray host pointer faults at the line that is wrong. For finding mistakes; each view then costs two system
// calls.
//
// Memory protection keys where the CPU has them and PoCL runs the kernels: its threads are started while the key is
// open to the calling thread and inherit that right, host threads do not have it. Else mprotect: pages are open while a
// launch uses the storage too, since PoCL's kernels run in our process. SAMEBYTES_PROTECT=pages asks for mprotect.
#pragma once

#include <cstddef>

namespace samebytes::detail {

enum class Protection { off, pages, keys };

// What the environment asks for and the machine can do. Throws ArgumentError for another value than 0, 1 or pages.
Protection wanted_protection();

// Around the first OpenCL call of the process: gives the calling thread, and so the driver's threads, the right to the
// key, then takes it from the calling thread. Harmless afterwards, and where keys are not wanted.
class DriverThreads {
 public:
  DriverThreads();
  ~DriverThreads();
  DriverThreads(const DriverThreads&) = delete;

 private:
  bool is_first_ = false;
};

// Requires: whole pages that belong to one storage.
void open_pages(void* base, std::size_t bytes) noexcept;
void close_pages(void* base, std::size_t bytes, Protection how) noexcept;

}  // namespace samebytes::detail
