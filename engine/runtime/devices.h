// Devices as the runtime finds them: what `list_devices` tells, with the OpenCL handles beside it.
// Used by the runtime only.
#pragma once

#include <vector>

#include "runtime/opencl.h"
#include "samebytes/device.h"

namespace samebytes::detail {

struct FoundDevice {
  DeviceInfo info;
  cl::Platform platform;
  cl::Device handle;
};

std::vector<cl::Platform> find_platforms();  // none where there is no driver

// Best first. Environment: SAMEBYTES_MEMORY and SAMEBYTES_PERSONALITY are not applied here.
std::vector<FoundDevice> find_devices();

// The device meant by `name`, see choose_device.
FoundDevice find_device(const std::string& name);

// The device behind a handle of the user's, which may be a part of one.
FoundDevice find_device(const cl::Device& device);

// The devices meant by a list of names, in its order; {"all"}: each that can be used in the memory mode that is asked
// for, if any. Throws as find_device, and ArgumentError for an empty name, a device named twice and "all" among others.
std::vector<FoundDevice> find_devices(const std::vector<std::string>& names, const MemoryMode* wanted);

// SAMEBYTES_MEMORY, SAMEBYTES_PERSONALITY: throw ArgumentError naming what there is; false where not set.
// SAMEBYTES_MEMORY may be a comma list: one for each context, the last one for the rest.
bool read_memory_mode(MemoryMode* mode, int context = 0);
bool read_personality(Personality* personality);

// Whether a device can run a mode at all; the reason where not.
bool can_use_mode(const DeviceInfo& info, MemoryMode mode, std::string* reason);

// Variables of the environment, empty where not set.
std::string environment(const char* name);

}  // namespace samebytes::detail
