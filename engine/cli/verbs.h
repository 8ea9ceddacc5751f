// The verbs of the command, one file each. They print to the terminal, throw UsageError or an Error, and return the
// status.
#pragma once

#include "cli/options.h"

namespace samebytes::cli {

int run_devices(const Options& options);
int run_train(const Options& options);
int run_eval(const Options& options);
int run_bench(const Options& options);
int run_generate(const Options& options);
int run_tune(const Options& options);
int run_profile(const Options& options);
int run_memory(const Options& options);
int run_doctor(const Options& options);
int run_sweep(const Options& options);
int run_estimate(const Options& options);

}  // namespace samebytes::cli
