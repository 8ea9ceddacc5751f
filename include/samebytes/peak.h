// What a device can do at most, measured: the denominators of every "fraction of peak". Used by `samebytes bench` and
// the benchmarks.
#pragma once

namespace samebytes {

struct DevicePeak {
  double gflops = 0;  // f32 multiply-adds in registers, each counted as two, in 1e9 a second
  double gigabytes_per_second =
      0;  // c = a + b over arrays far larger than the caches: 12 bytes an element, in 1e9 a second
};

// Of the current engine's device: the best of several runs with several launches in flight. Takes about a second,
// blocks, and uses up to 192 MiB of the engine's memory meanwhile (less where its limit is small).
DevicePeak measure_peak();

}  // namespace samebytes
