// One device of several that fails, does not answer or slows down, from outside the library: LD_PRELOAD this and say in
// SAMEBYTES_DEVICE_TROUBLE what happens from which launch of which queue on, counted from 0 in the order in which
// queues get their first launch: "fail 1 300", "silent 1 300", "slow 1 300 500" (microseconds before each launch).
// "no_compiler": no device has one.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

namespace {

struct Trouble {
  std::string what;
  int queue = -1;
  long launch = 0;
  int microseconds = 0;
  Trouble() {
    const char* text = std::getenv("SAMEBYTES_DEVICE_TROUBLE");
    std::istringstream words(text != nullptr ? text : "");
    words >> what >> queue >> launch >> microseconds;
  }
};

struct Place {
  int number;
  long launches = 0;
};
std::mutex g_mutex;
std::map<cl_command_queue, Place> g_places;
bool g_is_over = false;

void CL_CALLBACK sleep_a_while(void* microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(*static_cast<int*>(microseconds)));
}

}  // namespace

extern "C" cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const size_t* offset, const size_t* global, const size_t* local, cl_uint waits,
                                         const cl_event* wait_list, cl_event* event) {
  static const auto real =
      reinterpret_cast<decltype(&clEnqueueNDRangeKernel)>(dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel"));
  static const Trouble trouble;
  bool is_meant = false;
  {
    const std::lock_guard lock(g_mutex);
    Place& place = g_places.try_emplace(queue, Place{static_cast<int>(g_places.size())}).first->second;
    is_meant = !g_is_over && place.number == trouble.queue && place.launches++ >= trouble.launch;
    if (is_meant && trouble.what != "slow") g_is_over = true;
  }
  const auto pass_on = [&] { return real(queue, kernel, dimensions, offset, global, local, waits, wait_list, event); };
  if (!is_meant) return pass_on();
  if (trouble.what == "fail") return CL_OUT_OF_RESOURCES;
  if (trouble.what == "slow") {
    int pause = trouble.microseconds;
    clEnqueueNativeKernel(queue, sleep_a_while, &pause, sizeof pause, 0, nullptr, nullptr, 0, nullptr, nullptr);
    return pass_on();
  }
  cl_context context = nullptr;  // silent: waits for an event that never comes
  clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr);
  const cl_event never = clCreateUserEvent(context, nullptr);
  return real(queue, kernel, dimensions, offset, global, local, 1, &never, event);
}

extern "C" cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void* value, size_t* size) {
  static const auto real = reinterpret_cast<decltype(&clGetDeviceInfo)>(dlsym(RTLD_NEXT, "clGetDeviceInfo"));
  static const bool is_meant = Trouble().what == "no_compiler";
  const cl_int status = real(device, what, room, value, size);
  if (is_meant && what == CL_DEVICE_COMPILER_AVAILABLE && status == CL_SUCCESS && value != nullptr)
    *static_cast<cl_bool*>(value) = CL_FALSE;
  return status;
}
