// Raw OpenCL beside Samebytes: its context and queue, and the bytes of arrays as OpenCL sees them, for kernels,
// libraries and events of your own. Handles stay the engine's; retain what you keep. A kernel that is one work-item per
// element is simpler as custom_op().
//   interop::enqueue({x}, {y}, [&](cl_command_queue queue, std::span<const interop::DeviceBytes> bytes) {
//     bytes[0].set_argument(kernel, 0);  // two arguments: __global const float* x, long x_offset
//     bytes[1].set_argument(kernel, 2);
//     clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr);
//   });
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>

#include "samebytes/array.h"
#include "samebytes/engine.h"

namespace samebytes::interop {

cl_context context(const Engine& engine);
// Of one of the engine's devices; throws ArgumentError beyond device_count().
cl_device_id device_id(const Engine& engine, int device = 0);
// The device's in-order queue. What is enqueued on it outside of enqueue() is ordered with the engine's launches, but
// the engine does not know which arrays it uses.
cl_command_queue queue(const Engine& engine, int device = 0);

// An array's bytes on its device, valid inside enqueue() only. Exactly one of pointer and buffer is set.
struct DeviceBytes {
  void* pointer = nullptr;       // of the storage (memory modes system, fine, coarse)
  cl_mem buffer = nullptr;       // over the storage (memory modes hostptr, copy)
  std::size_t offset_bytes = 0;  // of the array's first element in the storage
  std::size_t size_bytes = 0;
  std::size_t element_bytes = 0;

  // Binds the storage as argument `index` and the offset in elements, a long, as argument `index` + 1: what every
  // kernel of Samebytes takes, and the only form that works in each memory mode. Throws DeviceError.
  void set_argument(cl_kernel kernel, cl_uint index) const;
};

// Evaluates the arrays, hands their bytes to the device and calls `work` once, which enqueues on the given queue and
// nowhere else; the bytes come in the order reads, writes. It runs after everything evaluated before and before
// everything evaluated later; the arrays may be viewed or used at once. Returns without waiting. Arrays that are
// written must be leaves, cells or have their value. Throws ArgumentError for no arrays, empty arrays, views that are
// not contiguous, arrays of several engines or devices, and for a living HostView that is in the way. What `work`
// throws is thrown on.
// An op on a written array that was added before and is not yet evaluated sees the new bytes: evaluate it first.
void enqueue(std::span<const Array> reads, std::span<const Array> writes,
             const std::function<void(cl_command_queue queue, std::span<const DeviceBytes> bytes)>& work);
inline void enqueue(std::initializer_list<Array> reads, std::initializer_list<Array> writes,
                    const std::function<void(cl_command_queue queue, std::span<const DeviceBytes> bytes)>& work) {
  enqueue(std::span<const Array>(reads.begin(), reads.size()), std::span<const Array>(writes.begin(), writes.size()),
          work);
}

}  // namespace samebytes::interop
