// What the runtime's tests share: an engine's runtime in a given mode, small kernels, and host reads and writes in one
// line.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/devices.h"
#include "runtime/faults.h"
#include "runtime/kernels.h"
#include "runtime/runtime.h"
#include "runtime/storage.h"
#include "samebytes/error.h"
#include "support/errors.h"

namespace samebytes::detail {

inline RuntimeOptions options_for(MemoryMode mode) {
  RuntimeOptions options;
  options.force_mode = true;
  if (const char* device = std::getenv("SAMEBYTES_TEST_DEVICE")) options.device = device;
  options.mode = mode;
  return options;
}

// For tests of no mode in particular: fine-grained SVM where the device has it, else what the device prefers.
inline RuntimeOptions options_of_device() {
  RuntimeOptions options = options_for(MemoryMode::fine);
  std::string reason;
  options.force_mode = can_use_mode(choose_device(options.device), MemoryMode::fine, &reason);
  return options;
}

// Those that the device of the tests can use; without a device, or where a child process must not open one before its
// test does (SAMEBYTES_TEST_LATE_DEVICE), all but usm, and the tests say what is missing.
inline std::vector<MemoryMode> modes_of_device() {
  std::vector<MemoryMode> modes;
  const char* const name = std::getenv("SAMEBYTES_TEST_DEVICE");
  DeviceInfo info;
  bool has_device = std::getenv("SAMEBYTES_TEST_LATE_DEVICE") == nullptr;
  try {
    if (has_device) info = choose_device(name != nullptr ? name : "");
  } catch (const Error&) {
    has_device = false;
  }
  std::string reason;
  for (const MemoryMode mode : kMemoryModes)
    if (has_device ? can_use_mode(info, mode, &reason) : mode != MemoryMode::usm) modes.push_back(mode);
  return modes;
}

inline const char* kTestKernels = R"(
__kernel void add_one(ARRAY_INPLACE(float, x), const int n) {
  START(x);
  const int i = (int)get_global_id(0);
  if (i < n) x[i] += 1.0f;
}
__kernel void fill(ARRAY_INPLACE(float, x), const int n, const float value) {
  START(x);
  const int i = (int)get_global_id(0);
  if (i < n) x[i] = value;
}
__kernel void copy(ARRAY(const float, a), ARRAY(float, b), const int n) {
  START(a);
  START(b);
  const int i = (int)get_global_id(0);
  if (i < n) b[i] = a[i];
}
)";

inline Geometry rows(int count) {
  Geometry geometry;
  geometry.groups[0] = static_cast<std::size_t>(count);
  return geometry;
}

inline std::unique_ptr<Kernel> test_kernel(Runtime& runtime, const char* entry, int device = 0) {
  return runtime.device(device).kernels().make_generated(f32, kTestKernels, entry, "test kernels");
}

inline void write_host(Storage& storage, const std::vector<float>& values, std::size_t first = 0) {
  std::uint64_t borrow = 0;
  auto* bytes =
      static_cast<std::byte*>(storage.acquire_host(true, first * 4, values.size() * 4, __FILE__, __LINE__, &borrow));
  std::memcpy(bytes + first * 4, values.data(), values.size() * 4);
  storage.release_host(borrow);
}

inline std::vector<float> read_host(Storage& storage, std::size_t count, std::size_t first = 0) {
  std::uint64_t borrow = 0;
  const auto* bytes =
      static_cast<const std::byte*>(storage.acquire_host(false, first * 4, count * 4, __FILE__, __LINE__, &borrow));
  std::vector<float> values(count);
  std::memcpy(values.data(), bytes + first * 4, count * 4);
  storage.release_host(borrow);
  return values;
}

// One submission: x[first, first + n) += 1.
inline TicketPtr add_one(Runtime& runtime, Kernel& kernel, Storage& storage, int n, std::int64_t first = 0,
                         int device = 0, const char* op = "add_one") {
  Submission submission(runtime);
  submission.acquire(storage, true, op, static_cast<std::size_t>(first) * 4, static_cast<std::size_t>(n) * 4);
  kernel.set_storage(0, storage);
  kernel.set_bytes(1, &first, sizeof first);
  kernel.set_bytes(2, &n, sizeof n);
  submission.enqueue(runtime.device(device), kernel, rows(n), op);
  return submission.finish();
}

inline TicketPtr fill(Runtime& runtime, Kernel& kernel, Storage& storage, int n, float value, bool whole = true) {
  Submission submission(runtime);
  submission.acquire(storage, true, "fill", 0, static_cast<std::size_t>(n) * 4, whole);
  const std::int64_t start = 0;
  kernel.set_storage(0, storage);
  kernel.set_bytes(1, &start, sizeof start);
  kernel.set_bytes(2, &n, sizeof n);
  kernel.set_bytes(3, &value, sizeof value);
  submission.enqueue(runtime.device(), kernel, rows(n), "fill");
  return submission.finish();
}

inline std::vector<float> counting(int n, float start = 0) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = start + static_cast<float>(i);
  return values;
}

}  // namespace samebytes::detail
