#include "runtime/inside_calls.h"

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "core/mutex.h"
#include "runtime/devices.h"
#include "runtime/watchdog.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

struct Seen {
  std::atomic<bool> has_run{false};
  std::thread::id thread;
};

void CL_CALLBACK note_thread(void* argument) {
  Seen& seen = **static_cast<Seen**>(argument);
  seen.thread = std::this_thread::get_id();
  seen.has_run.store(true, std::memory_order_release);
}

bool find_out(const cl::Device& device) {
  if (!(device.getInfo<CL_DEVICE_EXECUTION_CAPABILITIES>() & CL_EXEC_NATIVE_KERNEL)) return false;
  const cl::Context context(device);
  const std::string name = device.getInfo<CL_DEVICE_NAME>();
  const cl::CommandQueue queue = make_queue(context, device, 0, name);
  auto seen = std::make_unique<Seen>();
  Seen* argument = seen.get();
  constexpr std::size_t kPointerBytes = sizeof(void*);  // the driver copies the pointer
  Watchdog watchdog(EngineOptions{}.stall_seconds);
  const cl_int status = watchdog.call("clEnqueueNativeKernel", name, [&] {
    return clEnqueueNativeKernel(queue.get(), note_thread, &argument, kPointerBytes, 0, nullptr, nullptr, 0, nullptr,
                                 nullptr);
  });
  if (status != CL_SUCCESS) return true;  // nobody knows: then the host waits for other devices, which suits both
  queue.flush();
  // A driver's own thread may be as quick, so the thread decides.
  const bool is_inside = seen->has_run.load(std::memory_order_acquire) && seen->thread == std::this_thread::get_id();
  try {
    watchdog.finish(queue, name);
  } catch (const DeviceError&) {
    static_cast<void>(seen.release());  // the driver may write to it at any time
    throw;
  }
  return is_inside;
}

}  // namespace

bool works_inside_calls(cl_device_id device) {
  static Mutex& mutex = *new Mutex;
  static auto& known = *new std::map<cl_device_id, bool>;
  const MutexLock lock(mutex);
  const auto found = known.find(device);
  if (found != known.end()) return found->second;
  return known[device] = find_out(borrow(device));
}

}  // namespace samebytes::detail
