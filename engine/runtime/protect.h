// SAMEBYTES_PROTECT=1: every storage has its own pages, which are closed while the host holds no view of them, so that
// a stray host pointer faults at the wrong line itself. For debugging; each view then costs two system calls.
//
// Uses memory protection keys if the CPU has them and PoCL runs the kernels: PoCL's threads start while the key is open
// to the calling thread and inherit that right; host threads do not have it. Otherwise uses mprotect: pages are also
// open while a launch uses the storage, since PoCL's kernels run in our process. SAMEBYTES_PROTECT=pages requests
// mprotect.
#pragma once

#include <cstddef>

namespace samebytes::detail {

enum class Protection { off, pages, keys };

// What the environment requests and the machine supports. Throws ArgumentError for a value other than 0, 1 or pages.
Protection wanted_protection();

// Wraps the first OpenCL call of the process: gives the calling thread, and so the driver's threads, the right to the
// key, then takes it from the calling thread. Does nothing later, or if keys are not wanted.
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
