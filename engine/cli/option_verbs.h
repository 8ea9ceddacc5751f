// The verbs with their options; each function adds one to the program.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace samebytes::cli {

CLI::App* add_devices(CLI::App& app, Options& options);
CLI::App* add_train(CLI::App& app, Options& options);
CLI::App* add_eval(CLI::App& app, Options& options);
CLI::App* add_bench(CLI::App& app, Options& options);
CLI::App* add_generate(CLI::App& app, Options& options);
CLI::App* add_tune(CLI::App& app, Options& options);
CLI::App* add_profile(CLI::App& app, Options& options);
CLI::App* add_memory(CLI::App& app, Options& options);
CLI::App* add_estimate(CLI::App& app, Options& options);
CLI::App* add_sweep(CLI::App& app, Options& options);
CLI::App* add_doctor(CLI::App& app, Options& options);

std::vector<std::string> verb_names();

}  // namespace samebytes::cli
