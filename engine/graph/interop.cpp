// A user's OpenCL work between the engine's launches.
#include "samebytes/interop/opencl.h"

#include <mutex>
#include <vector>

#include "graph/context.h"
#include "graph/node.h"
#include "graph/op.h"
#include "graph/overwrite.h"
#include "runtime/inside_calls.h"
#include "runtime/runtime.h"

namespace samebytes::interop {
namespace {

detail::Device& device_of(const Engine& engine, int device) {
  detail::Runtime& runtime = *engine.context()->runtime;
  if (device < 0 || device >= runtime.device_count())
    throw ArgumentError("interop: the engine has " + std::to_string(runtime.device_count()) + " devices, number " +
                        std::to_string(device) + " was asked for");
  return runtime.device(device);
}

DeviceBytes bytes_of_array(const Array& array) {
  const detail::Node& node = *array.node();
  const detail::Node& base = node.base();
  DeviceBytes bytes;
  bytes.element_bytes = bytes_of(array.dtype());
  bytes.offset_bytes = static_cast<std::size_t>(base.offset + (node.is_view ? node.offset : 0)) * bytes.element_bytes;
  bytes.size_bytes = static_cast<std::size_t>(array.size()) * bytes.element_bytes;
  return bytes;
}

}  // namespace

cl::Context context(const Engine& engine, int device) {
  const detail::Device& of = device_of(engine, device);
  return detail::copy_of(of.context(), of.info().name);
}
cl::Device device(const Engine& engine, int device) { return device_of(engine, device).handle(); }
cl::CommandQueue queue(const Engine& engine, int device) {
  const detail::Device& of = device_of(engine, device);
  return detail::copy_of(of.queue(), of.info().name);
}

void DeviceBytes::set_argument(const cl::Kernel& kernel, cl_uint index) const {
  if (buffer())
    detail::check_cl(clSetKernelArg(kernel(), index, sizeof(cl_mem), &buffer()), "clSetKernelArg");
  else
    detail::check_cl(clSetKernelArgSVMPointer(kernel(), index, pointer), "clSetKernelArgSVMPointer");
  const cl_long offset = static_cast<cl_long>(offset_bytes / element_bytes);
  detail::check_cl(clSetKernelArg(kernel(), index + 1, sizeof offset, &offset), "clSetKernelArg");
}

void enqueue(std::span<const Array> reads, std::span<const Array> writes, const Work& work) {
  std::vector<Array> all(reads.begin(), reads.end());
  all.insert(all.end(), writes.begin(), writes.end());
  if (all.empty()) throw ArgumentError("interop: needs at least one array");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined() || all[i].size() == 0) throw ArgumentError("interop: got an empty array or handle");
    const detail::Node& node = *all[i].node();
    if (node.context != all[0].node()->context || node.device != all[0].node()->device)
      throw ArgumentError("interop: the arrays belong to several engines or devices");
    if (!node.is_dense())
      throw ArgumentError("interop: the view " + detail::describe(all[i]) +
                          " is not contiguous; use contiguous() first");
    if (i >= reads.size() && node.base().op && !node.base().has_value)
      throw ArgumentError("interop: only a leaf or an evaluated array can be written, this is the result of " +
                          std::string(node.base().op->name()));
  }
  const detail::ContextPtr owner = all[0].node()->context;
  owner->check_alive("interop");
  const std::lock_guard lock(owner->mutex);
  eval(all);

  for (std::size_t i = reads.size(); i < all.size(); ++i)
    detail::before_foreign_write(detail::base_of(all[i].node()), __builtin_FILE(), __builtin_LINE());
  detail::Device& device = owner->runtime->device(all[0].device());
  detail::Submission submission(*owner->runtime);
  std::vector<DeviceBytes> bytes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    detail::Storage& storage = *all[i].node()->base().storage;
    DeviceBytes own = bytes_of_array(all[i]);
    submission.acquire(storage, i >= reads.size(), "interop", own.offset_bytes, own.size_bytes);
    bytes.push_back(std::move(own));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {  // bind only after every storage belongs to the device
    detail::Storage& storage = *all[i].node()->base().storage;
    if (storage.binds_pointer())
      bytes[i].pointer = storage.device_pointer();
    else
      detail::assign(bytes[i].buffer, storage.buffer(), device.info().name);
  }
  submission.enqueue_call(device, "interop", [&](const cl::CommandQueue& queue) {
    work(queue, bytes);
    return 1;
  });
  submission.finish();
}

cl::Event ready(std::span<const Array> arrays) {
  cl::Event event;
  enqueue(arrays, {}, [&](const cl::CommandQueue& queue, auto) {
    detail::on_device("ready", [&] { return queue.enqueueMarkerWithWaitList(nullptr, &event); });
  });
  return event;
}

void wait_for(const cl::Event& event, std::span<const Array> arrays) {
  if (!event()) throw ArgumentError("wait_for: expected an event, got an empty handle");
  enqueue({}, arrays, [&](const cl::CommandQueue& queue, auto) {
    detail::on_device("wait_for", [&] {
      if (event.getInfo<CL_EVENT_CONTEXT>()() != queue.getInfo<CL_QUEUE_CONTEXT>()())
        throw ArgumentError("wait_for: the event is of another context than the arrays; wait for it on the host");
      // PoCL 3.1's basic driver continues without having waited (submission.cpp).
      cl_device_id device = nullptr;
      detail::check_cl(clGetCommandQueueInfo(queue(), CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, nullptr),
                       "clGetCommandQueueInfo", "wait_for");
      if (detail::works_inside_calls(device)) {
        detail::Device& of = arrays[0].node()->context->runtime->device(arrays[0].device());
        of.runtime().watchdog()->wait_for(event(), "a command", "wait_for", of.info().name);
        return;
      }
      detail::check_cl(clEnqueueBarrierWithWaitList(queue(), 1, &event(), nullptr), "clEnqueueBarrierWithWaitList",
                       "wait_for");
    });
  });
}

namespace {

std::size_t bytes_of_shape(const Shape& shape, Dtype dtype) {
  return static_cast<std::size_t>(shape.size()) * bytes_of(dtype);
}

}  // namespace

Array adopt(const cl::Buffer& buffer, const Shape& shape, Dtype dtype) {
  const detail::ContextPtr owner = detail::current_context();
  const detail::Space& space = owner->runtime->space();
  return detail::make_leaf_on(owner, shape, dtype, detail::Category::adopted, detail::on_device(space.name(), [&] {
                                return owner->runtime->space().adopt(buffer, bytes_of_shape(shape, dtype));
                              }));
}

Array adopt_svm(void* pointer, const Shape& shape, Dtype dtype, std::function<void()> deleter) {
  const detail::ContextPtr owner = detail::current_context();
  return detail::make_leaf_on(
      owner, shape, dtype, detail::Category::adopted,
      owner->runtime->space().adopt_svm(pointer, bytes_of_shape(shape, dtype), std::move(deleter)));
}

}  // namespace samebytes::interop
