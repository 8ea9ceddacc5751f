// The workloads (examples/workloads) by name, as the options ask for them.
#pragma once

#include <string>

#include "cli/options.h"
#include "workloads/workload.h"

namespace samebytes::cli {

using workloads::Defaults;
using workloads::Workload;
using workloads::WorkloadEntry;

// Throws UsageError with what there is and the nearest name, and for an option that the workload does not take.
Workload make_workload(const std::string& name, const WorkloadOptions& options);

// The workload whose loss is made as the options ask for: chunk by chunk (--head-chunks), or as it is. Throws
// UsageError for a workload whose model does not end in a product with its classes.
Workload with_head(const Workload& workload, const Options& options);

}  // namespace samebytes::cli
