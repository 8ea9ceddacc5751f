// A device that fails now and then, from outside the library: LD_PRELOAD this and say in SAMEBYTES_FAIL_LAUNCHES which
// kernel launches of the process fail, counted from 1: "300,700". With a "q" before it ("q300") a launch is taken by
// the queue and fails there, as a GPU's may. SAMEBYTES_DEVICE_ROOM says how many bytes of shared memory the device has
// in all; beyond that it gives none.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Wanted {
  std::set<long> refused, queued;
  Wanted() {
    const char* text = std::getenv("SAMEBYTES_FAIL_LAUNCHES");
    std::istringstream words(text != nullptr ? text : "");
    for (std::string word; std::getline(words, word, ',');) {
      const bool is_queued = !word.empty() && word[0] == 'q';
      (is_queued ? queued : refused).insert(std::strtol(word.c_str() + (is_queued ? 1 : 0), nullptr, 10));
    }
  }
};

std::atomic<long> g_launches{0};

struct Room {
  std::size_t left = std::getenv("SAMEBYTES_DEVICE_ROOM") != nullptr
                         ? std::strtoull(std::getenv("SAMEBYTES_DEVICE_ROOM"), nullptr, 10)
                         : ~std::size_t{0};
  std::map<void*, std::size_t> given;
  std::mutex mutex;
};
Room& room() {
  static Room the_room;
  return the_room;
}

}  // namespace

extern "C" cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const size_t* offset, const size_t* global, const size_t* local, cl_uint waits,
                                         const cl_event* wait_list, cl_event* event) {
  static const auto real =
      reinterpret_cast<decltype(&clEnqueueNDRangeKernel)>(dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel"));
  static const Wanted wanted;
  const long number = ++g_launches;
  if (wanted.refused.count(number) != 0) return CL_OUT_OF_RESOURCES;
  if (wanted.queued.count(number) == 0)
    return real(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
  clFinish(queue);  // PoCL 3.1 may end in an assertion where an event fails while its neighbours are being finished
  cl_context context = nullptr;
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  std::vector<cl_event> events(wait_list, wait_list + waits);
  events.push_back(clCreateUserEvent(context, nullptr));
  const cl_int status =
      real(queue, kernel, dimensions, offset, global, local, static_cast<cl_uint>(events.size()), events.data(), event);
  clSetUserEventStatus(events.back(), CL_OUT_OF_RESOURCES);
  clReleaseEvent(events.back());
  return status;
}

extern "C" void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, std::size_t bytes, cl_uint alignment) {
  static const auto real = reinterpret_cast<decltype(&clSVMAlloc)>(dlsym(RTLD_NEXT, "clSVMAlloc"));
  const std::lock_guard lock(room().mutex);
  if (bytes > room().left) return nullptr;
  void* const pointer = real(context, flags, bytes, alignment);
  if (pointer == nullptr) return nullptr;
  room().left -= bytes;
  room().given[pointer] = bytes;
  return pointer;
}

extern "C" void clSVMFree(cl_context context, void* pointer) {
  static const auto real = reinterpret_cast<decltype(&clSVMFree)>(dlsym(RTLD_NEXT, "clSVMFree"));
  {
    const std::lock_guard lock(room().mutex);
    if (const auto found = room().given.find(pointer); found != room().given.end()) {
      room().left += found->second;
      room().given.erase(found);
    }
  }
  real(context, pointer);
}
