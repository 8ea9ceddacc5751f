// Runs of small launches that the host does as one command of the device's queue, and single host calls (Eigen).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/host_form.h"
#include "plan/host_cost.h"
#include "plan/host_crew.h"
#include "plan/plan.h"
#include "plan/run_access.h"

namespace samebytes::detail {

// A run: the functions it calls and the arguments to bind. Immutable once planned; several evaluations may be in
// flight.
struct HostProgram {
  struct Array {
    int buffer = -1;          // -1: absent
    std::int64_t offset = 0;  // elements
  };
  struct Step {
    std::shared_ptr<const HostForm> form;
    std::shared_ptr<const LaunchInfo> info;
    std::size_t first_array = 0, first_scalar = 0;
    bool is_shared = false;  // long enough for a crew
  };
  std::vector<Step> steps;
  std::vector<Array> arrays;
  std::vector<std::pair<int, int>> scalars;  // place of the node and index; integers as their bits
};

// The host's share of an engine's work: the mode, and the constants of its devices, which are read when the engine
// opens, or measured and stored at the first plan that could use them.
class HostShare {
 public:
  // Throws ArgumentError for an unknown SAMEBYTES_HOST_EXECUTION, IoError for a damaged store of constants.
  explicit HostShare(Context& context);
  // Moves launches to the host if that pays off, and offers a small plan as a whole to the evaluating thread
  // (Plan::direct). Requires: order_devices() was called, and nothing was bound or built.
  void take_from(Plan& plan);
  // Helps with Plan::direct; null where nobody could.
  HostCrew* crew() const { return crew_.get(); }

 private:
  const HostCosts& costs(int device);
  HostCosts direct_costs() const;  // of the engine's own thread; measures nothing on the device
  Context& context_;
  HostExecution mode_;
  std::vector<std::optional<HostCosts>> costs_;  // by device
  std::unique_ptr<HostCrew> crew_;
};

// The name of a run: its first launch, or one that a test lets fail.
std::string name_of_run(const PlanLaunch& launch);

// The task for one evaluation of a run on a device; a crew shares its long launches.
std::shared_ptr<HostTask> bind_host_run(const std::shared_ptr<const HostProgram>& program, int device, const Plan& plan,
                                        const GraphList& list, const std::vector<Bound>& bound, Runtime& runtime,
                                        std::size_t other_bytes, HostCrew* crew = nullptr);
// The task for a host call that an op recorded.
std::shared_ptr<HostTask> bind_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound,
                                         Runtime& runtime, std::size_t other_bytes);

}  // namespace samebytes::detail
