// Runs of small launches that the host does as one command of the device's queue, and single calls of the host (Eigen).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/host_form.h"
#include "plan/host_cost.h"
#include "plan/plan.h"
#include "plan/run_access.h"

namespace samebytes::detail {

// A run: what it calls, and what to bind for it. Immutable once the plan is made; several evaluations may be in flight.
struct HostProgram {
  struct Array {
    int buffer = -1;          // -1: absent
    std::int64_t offset = 0;  // elements
  };
  struct Step {
    std::shared_ptr<const HostForm> form;
    std::shared_ptr<const LaunchInfo> info;
    std::size_t first_array = 0, first_scalar = 0;
  };
  std::vector<Step> steps;
  std::vector<Array> arrays;
  std::vector<std::pair<int, int>> scalars;  // place of the node and index; whole numbers come by their bits
};

// What an engine does on its host: the mode, and the constants of its devices, which are read when it opens and
// measured and kept at the first plan that could use them.
class HostShare {
 public:
  // Throws ArgumentError for an unknown SAMEBYTES_HOST_EXECUTION, IoError for a damaged store of constants.
  explicit HostShare(Context& context);
  // Moves what pays off, and offers the whole of a small plan to the thread that evaluates (Plan::direct). Requires:
  // order_devices() was called, and nothing was bound or built.
  void take_from(Plan& plan);

 private:
  const HostCosts& costs(int device);
  Context& context_;
  HostExecution mode_;
  std::vector<std::optional<HostCosts>> costs_;  // by device
};

// What a run is called: its first launch, or one that a test lets fail.
std::string name_of_run(const PlanLaunch& launch);

// The task of one evaluation of a run on a device.
std::shared_ptr<HostTask> bind_host_run(const std::shared_ptr<const HostProgram>& program, int device, const Plan& plan,
                                        const GraphList& list, const std::vector<Bound>& bound, Runtime& runtime,
                                        std::size_t other_bytes);
// ... of a call that an op made for the host.
std::shared_ptr<HostTask> bind_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound,
                                         Runtime& runtime, std::size_t other_bytes);

}  // namespace samebytes::detail
