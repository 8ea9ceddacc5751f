// Drivers that run commands inside the call that enqueues or flushes them, on the caller's thread, like PoCL's "basic"
// (later "cpu-minimal") device. Used where such a driver would have to wait for another device, and for protection
// keys, which only the driver's own threads have.
#pragma once

#include "runtime/opencl.h"

namespace samebytes::detail {

// Found out at the first question for a device, with a host function on a queue of its own; false for a device that
// runs none, true for one that refuses it again and again. Throws cl::Error and DeviceError.
bool works_inside_calls(cl_device_id device);

}  // namespace samebytes::detail
