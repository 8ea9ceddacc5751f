// Throughput: what devices reach, beside each other. `samebytes bench --device all --html FILE` fills it in; a program
// that measures something of its own can, too.
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
  DevicePeak peak;  // measured; zero where it was not
};

// One workload in one mode on one device.
struct ThroughputRow {
  std::size_t device = 0;  // place in Throughput::devices
  std::string workload;
  std::string mode;  // "train", "infer"
  std::int64_t batch = 0;
  double samples_per_second = 0;
  double step_ms_p50 = 0, step_ms_p95 = 0;
  std::optional<std::int64_t> largest_batch = {};  // that fits into the device's memory
  double flops_per_step = 0;                       // that the model needs
  double bytes_per_step = 0;                       // that launches read and write
  double bytes_copied_per_step = 0;                // between host and device
  double bytes_gathered_per_step = 0;              // by the host, from the data set into batches
  std::size_t peak_bytes = 0;                      // of the engine's memory
  std::optional<double> joules_per_sample = {};    // where a counter can be read

  double seconds_per_step() const {
    return samples_per_second > 0 ? static_cast<double>(batch) / samples_per_second : 0;
  }
  double gflops() const;
  double gigabytes_per_second() const;
};

struct Throughput {
  std::vector<ThroughputDevice> devices = {};
  std::vector<ThroughputRow> rows = {};
  std::string command = {};  // that made it
  std::string date = {};
};

// One self-contained page: devices, a table of all rows, samples a second side by side, and a roofline for each device
// whose peak is known. What was not measured is blank. Throws ArgumentError for a row whose device is not there.
std::string throughput_html(const Throughput& throughput, std::string_view title);

}  // namespace samebytes
