// What a device computes with each style of kernels, by a probe of about a millisecond. It decides the personality of
// CPU devices whose driver does not announce fused multiply-add, and is kept in devices.json beside the tuner's stores.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/opencl.h"
#include "samebytes/device.h"

namespace samebytes::detail {

// fma() is computed by the hardware: emulated, it is tens of times slower than a multiplication and an addition.
bool has_fast_fma(const KernelSpeed& speed);
// A group of one item with vectors does as much as many items do together.
bool has_fast_vectors(const KernelSpeed& speed);
std::string text_of_speed(const KernelSpeed& speed);  // "float16 in one item 95, 64 items 40, ... GFLOP/s"

// Throws cl::Error.
KernelSpeed measure_kernel_speed(cl_device_id device);

// What a store has, by platform, device, driver and cores; nothing where there is none. Throws IoError for a damaged
// one.
std::map<std::string, KernelSpeed> read_kernel_speeds(const std::string& path);

// What was measured in this process or stands in the store, else measures and keeps it. Empty if the device cannot run
// the probe. Throws IoError for a damaged store.
std::optional<KernelSpeed> known_kernel_speed(const DeviceInfo& info, cl_device_id device);

}  // namespace samebytes::detail
