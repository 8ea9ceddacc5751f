// Cores: the processor's cores by class, for placing threads. Phones, laptops and some desktops have fast and efficient
// cores; a loader's workers (data/loader.h) suit the efficient ones, which leaves the fast ones to the device. Only
// cores that the process may use are listed, as limited by taskset, a cpuset or a container.
//   const CoreTopology cores = core_topology();
//   data::Loader batches(engine, set, {.batch = 64, .worker_cores = choose_cores(cores, "efficiency")});
// Nothing here changes the whole process: a thread can only move itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes {

// The cores that this process may run on, ascending.
std::vector<int> allowed_cores();

struct CoreClass {
  std::vector<int> cores;  // ascending
  double capacity = 1.0;   // of one core, relative to the fastest
};

struct CoreTopology {
  std::vector<CoreClass> classes;  // fastest first; one class if cores are equal or indistinguishable
  std::string source;              // "cpu_capacity", "cpu_core and cpu_atom", "cpuinfo_max_freq", or empty
  std::string to_text() const;     // "4 cores of capacity 1 (0-3), 8 of 0.6 (4-11), by cpuinfo_max_freq"
};

// Reads /sys/devices on Linux: the capacity of each core if the kernel knows it (ARM, and hybrid processors on new
// kernels), otherwise the core lists of Intel's hybrid processors, otherwise the maximum clock rates; cores within 15 %
// of each other form one class. `root` replaces /sys/devices, `allowed` replaces allowed_cores().
CoreTopology core_topology(const std::string& root = "/sys/devices");
CoreTopology core_topology(const std::string& root, std::span<const int> allowed);

// "all", "efficiency" (the slowest class), "performance" (the fastest), or a list such as "0,2-3". Returns an empty
// list if it means all allowed cores: for "all", and for the two class names if there is only one class. Throws
// ArgumentError for other text and for cores that the process may not use.
std::vector<int> choose_cores(const CoreTopology& topology, std::string_view choice);

std::string core_list_text(std::span<const int> cores);  // "0,2-3"; ascending

// Restricts the calling thread to these cores. Throws ArgumentError if the system refuses.
void run_this_thread_on(std::span<const int> cores);

}  // namespace samebytes
