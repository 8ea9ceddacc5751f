// The options of a run's memory: --batch auto, --memory-limit, --allow, --memory-guard; and the verb estimate.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace samebytes::cli {

CLI::Option* add_batch_or_auto(CLI::App& app, Options& options);
void add_limit(CLI::App& app, Options& options);
void add_pressure_limit(CLI::App& app, Options& options);

}  // namespace samebytes::cli
