// Sets a storage to zero by a kernel of the program that nearly every process has. One that the planner writes would be
// a program of its own, for which PoCL takes 25 to 60 ms at each start, also where it has compiled it before.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/kernels.h"
#include "runtime/runtime.h"

namespace samebytes::detail {

class Zeroing {
 public:
  // The first `bytes` of the storage.
  Zeroing(Device& device, const Storage& storage, std::size_t bytes);
  // Enqueues it; the caller has acquired the storage.
  void enqueue(Submission& submission, const char* what) const;

 private:
  Device& device_;
  std::unique_ptr<Kernel> kernel_;
  Geometry geometry_;
};

}  // namespace samebytes::detail
