// Known mistakes of drivers, by name. A test that meets one says SAMEBYTES_SKIP_QUIRK(predicate) and the skip prints
// its name.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "samebytes/engine.h"

namespace samebytes::testing {

// Mesa 22.3's llvmpipe loses lanes of vectors stored to private arrays in long kernels. It never chooses the cpu
// personality by itself (no fused multiply-add, vectors of one float); tests force it.
inline bool private_arrays_lose_lanes(const Engine& engine) {
  const DeviceInfo& device = engine.device();
  return device.personality == Personality::cpu && device.name.find("llvmpipe") != std::string::npos;
}

// Intel's CPU runtime 2026.2 says CL_COMPLETE of a command that it has not run because a user event before it failed
// (tests/drivers/failed_user_event.cpp), so a planted failure is not seen. Empty, or the reason to skip.
std::string failed_waits_look_complete();

#define SAMEBYTES_NEEDS_FAILED_WAITS() \
  if (const std::string why = ::samebytes::testing::failed_waits_look_complete(); !why.empty()) GTEST_SKIP() << why

// Why the first device cannot be split into two parts; empty if it can. "needs_two_cores: ...", or "parts_are_refused:
// ..." where the driver refuses (PoCL 7.1 says CL_DEVICE_PARTITION_FAILED for every device).
std::string why_no_parts();

#define SAMEBYTES_NEEDS_PARTS() \
  if (const std::string why = ::samebytes::testing::why_no_parts(); !why.empty()) GTEST_SKIP() << why

#define SAMEBYTES_SKIP_QUIRK(predicate) \
  if (::samebytes::testing::predicate(engine())) GTEST_SKIP() << #predicate << ": " << engine().device().name

}  // namespace samebytes::testing
