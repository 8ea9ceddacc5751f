// The worker behind `samebytes bench --serve`; its protocol is told in bench_serve.cpp.
#pragma once

#include "cli/options.h"
#include "cli/workload.h"

namespace samebytes::cli {

// Obeys the lines of the standard input until it ends; returns the status.
int serve_bench(const Options& options, const Workload& workload);

}  // namespace samebytes::cli
