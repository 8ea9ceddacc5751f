// The measured peak performance of a device, the denominator of every "fraction of peak". `samebytes bench` and the
// benchmarks use it.
#pragma once

namespace samebytes {

struct DevicePeak {
  double gflops = 0;  // f32 multiply-adds in registers, each counted as two, in 1e9 per second
  double gigabytes_per_second =
      0;  // c = a + b on arrays far beyond the caches: 12 bytes per element, in 1e9 per second
};

// Measures the current engine's device: the best of several runs with several launches in flight. Blocks for about a
// second and uses up to 192 MiB of the engine's memory (less if its limit is small).
DevicePeak measure_peak();

}  // namespace samebytes
