// Devices as the runtime finds them: the information of `list_devices` with the OpenCL handles.
// Used by the runtime only.
#pragma once

#include <vector>

#include "runtime/opencl.h"
#include "samebytes/device.h"

namespace samebytes::detail {

// Devices that the driver lists live as long as the process, parts of them as long as something is made of them: nobody
// counts who uses them. The wrapper's copies do, and make queries for it that nobody checks.
struct FoundDevice {
  DeviceInfo info;
  cl::Platform platform;
  cl_device_id handle = nullptr;
};

// A wrapper that owns nothing; do not copy it.
inline cl::Device borrow(cl_device_id device) {
  cl::Device borrowed;
  borrowed() = device;
  return borrowed;
}

// Empty if there is no driver, or if the loader fails, which *trouble then says.
std::vector<cl::Platform> find_platforms(std::string* trouble = nullptr);

// Best first. Does not apply SAMEBYTES_MEMORY and SAMEBYTES_PERSONALITY.
// `trouble`: the call and status of a driver that does not start.
std::vector<FoundDevice> find_devices(std::string* trouble = nullptr);

// The device that `name` selects, see choose_device.
FoundDevice find_device(const std::string& name);

// The device behind a user's handle, which may be a sub-device.
FoundDevice find_device(cl_device_id device);

// The devices that a list of names selects, in its order; {"all"}: every device that supports the requested memory
// mode, if one is requested. Throws like find_device, and ArgumentError for an empty name, a device named twice, or
// "all" among others.
std::vector<FoundDevice> find_devices(const std::vector<std::string>& names, const MemoryMode* wanted);

// SAMEBYTES_MEMORY, SAMEBYTES_PERSONALITY: false if not set; throw ArgumentError that lists the legal values.
// SAMEBYTES_MEMORY may be a comma list: one mode per context, the last one for the rest.
bool read_memory_mode(MemoryMode* mode, int context = 0);
bool read_personality(Personality* personality);

// All modes, best first.
inline constexpr MemoryMode kMemoryModes[] = {MemoryMode::system, MemoryMode::fine,    MemoryMode::usm,
                                              MemoryMode::coarse, MemoryMode::hostptr, MemoryMode::copy};
// Of two modes, the one that less devices need.
MemoryMode worse_of(MemoryMode a, MemoryMode b);

// Whether a device can run a mode at all; if not, the reason.
bool can_use_mode(const DeviceInfo& info, MemoryMode mode, std::string* reason);

// An environment variable; empty if not set.
std::string environment(const char* name);

}  // namespace samebytes::detail
