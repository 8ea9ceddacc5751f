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

#define SAMEBYTES_SKIP_QUIRK(predicate) \
  if (::samebytes::testing::predicate(engine())) GTEST_SKIP() << #predicate << ": " << engine().device().name

}  // namespace samebytes::testing
