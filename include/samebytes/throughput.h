// Throughput: a comparison of devices. `samebytes bench --device all --html FILE` fills it in, and so can programs with
// their own measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/device.h"
#include "samebytes/peak.h"

namespace samebytes {

struct ThroughputDevice {
  DeviceInfo info;
  DevicePeak peak;  // measured; zero if not
};

// One workload in one mode on one device.
struct ThroughputRow {
  std::size_t device = 0;  // index into Throughput::devices
  std::string workload;
  std::string mode;  // "train", "infer"
  std::int64_t batch = 0;
  double samples_per_second = 0;
  double step_ms_p50 = 0, step_ms_p95 = 0;
  std::optional<std::int64_t> largest_batch = {};  // that fits in the device's memory
  double flops_per_step = 0;                       // required by the model
  double bytes_per_step = 0;                       // read and written by launches
  double bytes_copied_per_step = 0;                // between host and device
  double bytes_gathered_per_step = 0;              // by the host, from the data set into batches
  std::size_t peak_bytes = 0;                      // of the engine's memory
  std::optional<double> joules_per_sample = {};    // if a counter is readable

  double seconds_per_step() const {
    return samples_per_second > 0 ? static_cast<double>(batch) / samples_per_second : 0;
  }
  double gflops() const;
  double gigabytes_per_second() const;
};

struct Throughput {
  std::vector<ThroughputDevice> devices = {};
  std::vector<ThroughputRow> rows = {};
  std::string command = {};  // that produced it
  std::string date = {};
};

// One self-contained page: devices, a table of all rows, samples per second side by side, and a roofline for each
// device whose peak is known. Missing measurements are blank. Throws ArgumentError for a row with an unknown device.
std::string throughput_html(const Throughput& throughput, std::string_view title);

}  // namespace samebytes
