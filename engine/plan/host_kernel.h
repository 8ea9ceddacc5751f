// Host forms of launches whose kernel the host has in its own text (ops/host_kernels_native.cpp). No op asks for one.
#pragma once

#include <cstdint>
#include <memory>

#include "graph/launch.h"

namespace samebytes::detail {

// The host form of a recorded launch whose largest array has `values` elements, and which multiplies and adds
// `products` times; null unless its kernel is compiled for the host, computes in f32 and has vectors of the device's
// width.
std::shared_ptr<const HostForm> host_kernel_form(const LaunchRecord& record, const Device& device, std::int64_t values,
                                                 double products);

}  // namespace samebytes::detail
