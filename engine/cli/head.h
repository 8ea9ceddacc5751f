// The chunked head of a workload whose model ends in a product with its classes: --head-chunks, --late-head-gradient.
#pragma once

#include "cli/options.h"
#include "cli/workload.h"

namespace samebytes::cli {

// The workload whose loss is made as the options ask for: chunk by chunk, or as it is. Throws UsageError for one whose
// model has no such head.
Workload with_head(const Workload& workload, const Options& options);

}  // namespace samebytes::cli
