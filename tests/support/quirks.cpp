#include "support/quirks.h"

#include "runtime/devices.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"

namespace samebytes::testing {

std::string why_no_parts() {
  static const std::string why = []() -> std::string {
    const DeviceInfo device = detail::choose_device("");
    if (device.cores < 2) return "needs_two_cores: " + device.name + " has one";
    detail::RuntimeOptions options;
    options.split = {1, 1};
    try {
      const detail::Runtime runtime(options);
    } catch (const DeviceError& error) {
      return std::string("parts_are_refused: ") + error.what();
    }
    return {};
  }();
  return why;
}

std::string failed_waits_look_complete() {
  static const std::string why = []() -> std::string {
    const detail::FoundDevice found = detail::find_device("");
    const cl::Device device = detail::borrow(found.handle);
    const cl::Context context(device);
    const cl::CommandQueue queue(context, device);
    const cl::Buffer buffer(context, CL_MEM_READ_WRITE, sizeof(int));
    cl::UserEvent gate(context);
    const std::vector<cl::Event> before{gate};
    cl::Event event;
    queue.enqueueFillBuffer(buffer, 1, 0, sizeof(int), &before, &event);
    gate.setStatus(CL_OUT_OF_RESOURCES);
    clWaitForEvents(1, &event());
    return event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() == CL_COMPLETE
               ? "failed_waits_look_complete: " + found.info.name
               : "";
  }();
  return why;
}

}  // namespace samebytes::testing
