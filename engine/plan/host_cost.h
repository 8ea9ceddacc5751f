// The cost model of co-execution: which launches of a plan the host does itself, over the same bytes. A launch costs
// the device a fixed time however small it is; a run of neighbouring ones becomes one command, a host function in the
// device's queue. The constants are measured once for a device and kept beside the tuner's store; a choice changes no
// byte of any result (graph/host_form.h). docs/decisions/co_execution.md has the measurements behind it.
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

// Seconds. The built-in ones are those of two cores of a Zen 4 EPYC with PoCL 3.1.
struct HostCosts {
  double launch = 2e-6;     // what one more small launch costs where its neighbours are launches, too
  double crossing = 2e-6;   // a host function between two launches, without what it does
  double step = 15e-9;      // of HostWork
  double value = 0.3e-9;    // of HostWork
  double product = 0.1e-9;  // of HostWork
};

// What the host needs for a launch, without the crossing.
double seconds_on_host(const HostCosts& costs, const HostWork& work);

// One launch of a device, in the order of its queue.
struct HostCandidate {
  const HostForm* form = nullptr;  // null: only the device can do it
  bool begins = false;             // must not be in one run with the launch before it
  bool ends = false;               // ... with the launch after it
};

// Which launches the host does, by place: those that make the queue shortest, where a whole run gains more than two
// launches; with HostExecution::always all that it can do, with off none.
std::vector<bool> choose_for_host(const HostCosts& costs, std::span<const HostCandidate> launches, HostExecution mode);

// The mode that an engine asked for, by its option or else by SAMEBYTES_HOST_EXECUTION; throws ArgumentError for an
// unknown word.
HostExecution host_execution(const EngineOptions& options);

// ---- the constants and their store

// Where those of a device lie: beside the tuner's store (tuning_path). Empty where that has no place.
std::string host_costs_path(const DeviceInfo& info);
std::string host_costs_text(const HostCosts& costs, const DeviceInfo& info);
// Throws IoError "host costs: FILE: KEY: expected ..., found ..." for anything but a whole store. Nothing where it was
// made for another device, driver or number of cores.
std::optional<HostCosts> parse_host_costs(std::string_view text, const std::string& path, const DeviceInfo& info);
// What is kept for a device; nothing where there is no store. Throws as parse_host_costs.
std::optional<HostCosts> load_host_costs(const DeviceInfo& info);
// Times launches, crossings and host forms for about 20 ms. Requires: nothing is enqueued on the device.
HostCosts measure_host_costs(Runtime& runtime, Device& device);

}  // namespace samebytes::detail
