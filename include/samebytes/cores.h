// Cores: the processor's cores by class, for threads that should not run just anywhere. Phones, laptops and some
// desktops have fast cores and efficient ones; a loader's workers (data/loader.h) suit the latter, so that the fast
// ones are the device's. Only cores that the process may use are there: taskset, a cpuset or a container's share are
// obeyed.
//   const CoreTopology cores = core_topology();
//   data::Loader batches(engine, set, {.batch = 64, .worker_cores = choose_cores(cores, "efficiency")});
// Nothing here changes the process: a thread is moved where it asks for it itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes {

// The numbers of the cores that this process may run on, ascending.
std::vector<int> allowed_cores();

struct CoreClass {
  std::vector<int> cores;  // ascending
  double capacity = 1.0;   // of one of them, in shares of the fastest
};

struct CoreTopology {
  std::vector<CoreClass> classes;  // the fastest first; one where all are alike or nothing tells them apart
  std::string source;              // what told: "cpu_capacity", "cpu_core and cpu_atom", "cpuinfo_max_freq", or nothing
  std::string to_text() const;     // "4 cores of capacity 1 (0-3), 8 of 0.6 (4-11), by cpuinfo_max_freq"
};

// What Linux says in /sys/devices: the capacity of each core where the kernel knows it (ARM, and hybrid processors on
// new kernels), else the lists of Intel's hybrid processors, else the highest clock rates; cores within 15 % of each
// other are one class. `root` stands for /sys/devices, `allowed` for allowed_cores().
CoreTopology core_topology(const std::string& root = "/sys/devices");
CoreTopology core_topology(const std::string& root, std::span<const int> allowed);

// "all", "efficiency" (the slowest class), "performance" (the fastest), or a list such as "0,2-3". Empty where all
// allowed cores are meant: for "all", and for the two words where there is one class. Throws ArgumentError for another
// text and for cores that the process may not use.
std::vector<int> choose_cores(const CoreTopology& topology, std::string_view choice);

std::string core_list_text(std::span<const int> cores);  // "0,2-3"; ascending

// From now on the calling thread runs on these cores alone. Throws ArgumentError where the system refuses.
void run_this_thread_on(std::span<const int> cores);

}  // namespace samebytes
