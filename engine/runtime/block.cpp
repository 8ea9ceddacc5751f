#include "runtime/block.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/faults.h"
#include "runtime/runtime.h"
#include "runtime/space.h"
#include "samebytes/error.h"

namespace samebytes::detail {

Faults& faults() {
  static Faults planted;
  return planted;
}

namespace {

using Block = Storage::Block;

bool is_fault(MapFault fault) { return faults().map.load(std::memory_order_relaxed) == fault; }

// Does by hand what a driver does on a device that does not share the host's memory: the host and the device each have
// a block, and only map and unmap copy bytes between the two.
void map_shadow(Block& block) { std::memcpy(block.host, block.device, block.bytes); }
void unmap_shadow(Block& block) { std::memcpy(block.device, block.host, block.bytes); }

void flush(Space& space, const cl::CommandQueue& queue) {
  const auto call = [&] { return clFlush(queue()); };
  check_cl(space.runtime().watchdog()->call("clFlush", space.name(), call), "clFlush", space.name());
}

void wait_for_transfer(Space& space, const cl::Event& done, const char* call) {
  flush(space, space.host_queue());
  space.runtime().watchdog()->wait_for(done(), call, "bringing an array to the host", space.name());
}

}  // namespace

void* allocate_pages(std::size_t bytes) { return std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage); }

void map_block(Space& space, Block& block, bool writes, std::size_t length) {
  space.runtime().count_map(length);
  const bool is_shadowed = block.mode == MemoryMode::coarse && block.host != block.device;
  const cl_map_flags flags = writes ? CL_MAP_READ | CL_MAP_WRITE : CL_MAP_READ;
  std::vector<cl::Event> before;
  if (block.unmapped()) {
    const cl::CommandQueue& queue = space.first_device().queue();
    if (queue()) flush(space, queue);  // none where its device was given up
    before.push_back(std::exchange(block.unmapped, cl::Event()));
  }
  if (is_fault(MapFault::skip_map)) {
  } else if (is_shadowed) {
    map_shadow(block);
  } else if (block.mode == MemoryMode::coarse) {
    cl::Event done;
    // The wrappers give the calls of shared memory the names of those of buffers.
    check_cl(
        clEnqueueSVMMap(space.host_queue()(), CL_FALSE, flags, block.device, block.bytes,
                        static_cast<cl_uint>(before.size()), before.empty() ? nullptr : &before.front()(), &done()),
        "clEnqueueSVMMap", space.name());
    wait_for_transfer(space, done, "clEnqueueSVMMap");
  } else {
    cl::Event done;
    const void* const mapped = on_device(space.name(), [&] {
      return space.host_queue().enqueueMapBuffer(block.buffer, CL_FALSE, flags, 0, block.bytes, &before, &done);
    });
    wait_for_transfer(space, done, "clEnqueueMapBuffer");
    if (mapped != block.host)
      throw DeviceError("clEnqueueMapBuffer: the pointer is not the one that the buffer was made with on " +
                            space.name() + "; use SAMEBYTES_MEMORY=copy",
                        "clEnqueueMapBuffer", "CL_MAP_FAILURE", space.name());
  }
  block.mapped = writes ? Block::Mapped::write : Block::Mapped::read;
}

void unmap_block(Space& space, Block& block) {
  const bool is_shadowed = block.mode == MemoryMode::coarse && block.host != block.device;
  if (is_fault(MapFault::skip_unmap)) {
  } else if (is_shadowed) {
    // A mapping for reading copies nothing back.
    if (block.mapped == Block::Mapped::write) unmap_shadow(block);
  } else {
    const cl::CommandQueue& queue = space.first_device().queue();
    cl::Event done;
    if (block.mode == MemoryMode::coarse)
      check_cl(clEnqueueSVMUnmap(queue(), block.device, 0, nullptr, &done()), "clEnqueueSVMUnmap", space.name());
    else
      check_cl(clEnqueueUnmapMemObject(queue(), block.buffer(), block.host, 0, nullptr, &done()),
               "clEnqueueUnmapMemObject", space.name());
    block.unmapped = std::move(done);
    space.note_housekeeping();
  }
  block.mapped = Block::Mapped::no;
}

void download_block(Space& space, Block& block, std::size_t begin, std::size_t end) {
  space.runtime().count_copy(end - begin, false, "reading an array on the host");
  cl::Event done;
  on_device(space.name(), [&] {
    return space.host_queue().enqueueReadBuffer(block.buffer, CL_FALSE, begin, end - begin, block.host + begin, nullptr,
                                                &done);
  });
  wait_for_transfer(space, done, "clEnqueueReadBuffer");
}

void upload_block(Space& space, Block& block, std::size_t begin, std::size_t end, const std::string& op) {
  space.runtime().count_copy(end - begin, true, op);
  // Does not block: the next host write waits for the submission that this upload belongs to.
  on_device(space.name(), [&] {
    return space.first_device().queue().enqueueWriteBuffer(block.buffer, CL_FALSE, begin, end - begin,
                                                           block.host + begin);
  });
  space.note_housekeeping();
}

}  // namespace samebytes::detail
