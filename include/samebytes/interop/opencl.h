// OpenCL of your own beside Samebytes, as <CL/opencl.hpp> speaks it: the engine's context, queues and bytes for your
// programs; your context, queue, buffers and SVM pointers for the engine; events both ways. A kernel that is one
// work-item per element is simpler as custom_op().
//   sb::Engine engine(context, queue);  // on yours; or sb::Engine engine; and its own from context(), queue()
//   interop::enqueue({x}, {y}, [&](const cl::CommandQueue& queue, std::span<const interop::DeviceBytes> bytes) {
//     bytes[0].set_argument(kernel, 0);  // two arguments: __global const float* x, long x_offset
//     bytes[1].set_argument(kernel, 2);
//     queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(items));
//   });
//
// Ownership. Every handle is retained by whoever holds it: yours may be let go of before the engine, the engine's may
// be kept after it. ~Engine waits for all that is on its queue, your commands too. Order. An in-order queue keeps your
// commands and the engine's launches in the order of the calls. The engine does not see which arrays your own commands
// use, and small evaluations and views of the host do not pass through the queue: give such arrays to enqueue(), or
// tell their order by wait_for() and ready(). Memory modes. All of them; system, fine and coarse bind SVM pointers,
// hostptr and copy bind buffers. The mode is chosen for the queue's device; other devices of your context are left
// alone. Errors. ArgumentError for handles and arrays that do not go together, DeviceError for what OpenCL refuses.
// Your own calls throw cl::Error. One program has one setting of exceptions for <CL/opencl.hpp>, whose functions are
// inline: on.
#pragma once

#if defined(CL_HPP_) && !defined(CL_HPP_ENABLE_EXCEPTIONS)
#error "samebytes/interop/opencl.h: define CL_HPP_ENABLE_EXCEPTIONS before <CL/opencl.hpp>, in the whole program"
#endif
#ifndef CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_ENABLE_EXCEPTIONS
#endif
#ifndef CL_HPP_TARGET_OPENCL_VERSION
#define CL_HPP_TARGET_OPENCL_VERSION 300
#endif
#ifndef CL_HPP_MINIMUM_OPENCL_VERSION
#define CL_HPP_MINIMUM_OPENCL_VERSION 110
#endif
#include <CL/opencl.hpp>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>

#include "samebytes/array.h"
#include "samebytes/engine.h"

namespace samebytes::interop {

// Of one of the engine's devices; throw ArgumentError beyond device_count(). The queue is in-order.
cl::Context context(const Engine& engine, int device = 0);
cl::Device device(const Engine& engine, int device = 0);
cl::CommandQueue queue(const Engine& engine, int device = 0);

// An array's bytes on its device: exactly one of pointer and buffer is set. Valid inside enqueue(), and after it for
// your own queues between ready() and wait_for().
struct DeviceBytes {
  void* pointer = nullptr;       // of the storage (memory modes system, fine, coarse)
  cl::Buffer buffer;             // over the storage (memory modes hostptr, copy)
  std::size_t offset_bytes = 0;  // of the array's first element in the storage
  std::size_t size_bytes = 0;
  std::size_t element_bytes = 0;

  // Binds the storage as argument `index` and the offset in elements, a long, as argument `index` + 1: what every
  // kernel of Samebytes takes, and the only form that works in each memory mode. Throws DeviceError.
  void set_argument(const cl::Kernel& kernel, cl_uint index) const;
};

using Work = std::function<void(const cl::CommandQueue& queue, std::span<const DeviceBytes> bytes)>;

// Evaluates the arrays, hands their bytes to the device and calls `work` once, which enqueues on the given queue and
// nowhere else; the bytes come in the order reads, writes. It runs after everything evaluated before and before
// everything evaluated later; the arrays may be viewed or used at once. Returns without waiting. Arrays that are
// written must be leaves, cells or have their value. Throws ArgumentError for no arrays, empty arrays, views that are
// not contiguous, arrays of several engines or devices, and for a living HostView that is in the way. What `work`
// throws is thrown on.
// An op on a written array that was added before and is not yet evaluated sees the new bytes: evaluate it first.
void enqueue(std::span<const Array> reads, std::span<const Array> writes, const Work& work);
inline void enqueue(std::initializer_list<Array> reads, std::initializer_list<Array> writes, const Work& work) {
  enqueue(std::span<const Array>(reads.begin(), reads.size()), std::span<const Array>(writes.begin(), writes.size()),
          work);
}

// Evaluates the arrays without waiting; the event is complete once their bytes are there: for wait lists of your own
// queues. Throws as enqueue().
cl::Event ready(std::span<const Array> arrays);
inline cl::Event ready(const Array& array) { return ready(std::span<const Array>(&array, 1)); }

// What uses these arrays from now on, view or launch, comes after the event, which belongs to commands of yours that
// read or write them. Returns without waiting. Throws as enqueue() for arrays that are written, and ArgumentError for
// an event of another context.
void wait_for(const cl::Event& event, std::span<const Array> arrays);
inline void wait_for(const cl::Event& event, const Array& array) { wait_for(event, std::span<const Array>(&array, 1)); }

// Your buffer as a leaf of the current engine: its first shape.size() elements of dtype. Nothing is copied but what the
// host views where the device has memory of its own. The buffer is retained until nothing uses the array. Commands of
// yours on it come before by wait_for(). Throws ArgumentError for a buffer that is of another context, too small,
// adopted already or not CL_MEM_READ_WRITE.
Array adopt(const cl::Buffer& buffer, const Shape& shape, Dtype dtype);

// The same for memory from clSVMAlloc() in the engine's context, fine-grained where the engine's mode is fine or
// system. `deleter` runs when nothing uses the bytes any more. Throws ArgumentError where the engine's mode binds
// buffers.
Array adopt_svm(void* pointer, const Shape& shape, Dtype dtype, std::function<void()> deleter = {});

}  // namespace samebytes::interop
