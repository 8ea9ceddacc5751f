// The cost model of co-execution: it decides which launches of a plan the host does itself, on the same bytes. A launch
// costs the device a fixed time however small it is; a run of neighbouring launches becomes one command, a host
// function in the device's queue. The constants are measured once per device and stored beside the tuner's store; the
// choice changes no byte of any result (graph/host_form.h). docs/decisions/co_execution.md has the measurements.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/host_form.h"
#include "runtime/runtime.h"
#include "samebytes/engine.h"

namespace samebytes::detail {

// Seconds. The defaults are those of two cores of a Zen 4 EPYC with PoCL 3.1.
struct HostCosts {
  double launch = 2e-6;     // one more small launch among other launches
  double crossing = 2e-6;   // a host function between two launches, without its work
  double step = 15e-9;      // of HostWork
  double value = 0.3e-9;    // of HostWork
  double product = 0.1e-9;  // of HostWork
};

// The host's time for a launch, without the crossing.
double seconds_on_host(const HostCosts& costs, const HostWork& work);

// One launch of a device, in queue order.
struct HostCandidate {
  const HostForm* form = nullptr;  // null: only the device can do it
  bool begins = false;             // must not share a run with the launch before it
  bool ends = false;               // ... with the launch after it
};

// Which launches the host does, by place: the choice with the shortest queue time, where each run must gain more than
// two launches; with HostExecution::always every launch that it can do, with off none.
std::vector<bool> choose_for_host(const HostCosts& costs, std::span<const HostCandidate> launches, HostExecution mode);

// The mode from the engine's option or else from SAMEBYTES_HOST_EXECUTION; throws ArgumentError for an unknown word.
HostExecution host_execution(const EngineOptions& options);

// ---- the constants and their store

// The path of a device's constants: beside the tuner's store (tuning_path). Empty if that has no path.
std::string host_costs_path(const DeviceInfo& info);
std::string host_costs_text(const HostCosts& costs, const DeviceInfo& info);
// Throws IoError "host costs: FILE: KEY: expected ..., found ..." for anything but a complete store. Returns nullopt if
// it was made for another device, driver or number of cores.
std::optional<HostCosts> parse_host_costs(std::string_view text, const std::string& path, const DeviceInfo& info);
// The stored constants of a device; nullopt if there is no store. Throws like parse_host_costs.
std::optional<HostCosts> load_host_costs(const DeviceInfo& info);
// What the host's work takes, measured once in a process, in less than a millisecond; the rest as built in.
HostCosts host_work_costs();
// Times launches, crossings and host forms for about 20 ms. Requires: nothing is enqueued on the device.
HostCosts measure_host_costs(Runtime& runtime, Device& device);

}  // namespace samebytes::detail
