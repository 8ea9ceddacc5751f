// Options that several verbs share, a group each, and the text that lists the workloads.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/options.h"

namespace samebytes::cli {

std::string workload_table();
void add_ranks(CLI::App& app, Options& options);
void add_workload(CLI::App& app, Options& options, bool many);
// How many devices a verb works on, and what `--device all` means to it.
enum class DeviceWish : std::uint8_t { one, together, one_after_the_other };
void add_device_options(CLI::App& app, Options& options, DeviceWish wish);
void add_co_execution(CLI::App& app, Options& options);
void add_loader_options(CLI::App& app, Options& options);
void add_output_options(CLI::App& app, Options& options);
CLI::Option* add_batch(CLI::App& app, Options& options, const char* text);
CLI::Option* add_steps(CLI::App& app, Options& options, const char* text);
void add_tokenizer(CLI::App& app, Options& options);
void add_recipe(CLI::App& app, Options& options);  // how parameters change (recipe.h)
void add_adaptive_batch(CLI::App& app, Options& options);
void add_clip_norm(CLI::App& app, Options& options);
void add_release(CLI::App& app, Options& options);
void add_moments(CLI::App& app, Options& options);
void add_weights(CLI::App& app, Options& options);
void add_memory_snapshot(CLI::App& app, Options& options);
void add_checkpointing(CLI::App& app, Options& options);
void add_head(CLI::App& app, Options& options);
void add_accumulation(CLI::App& app, Options& options);
void add_form(CLI::App& app, Options& options);
void add_data(CLI::App& app, Options& options);
void add_loading(CLI::App& app, Options& options);
void add_seeing(CLI::App& app, Options& options);
void add_shares(CLI::App& app, Options& options);
void add_survival(CLI::App& app, Options& options);
void add_lora_training(CLI::App& app, Options& options);
void add_lora_saving(CLI::App& app, Options& options);
void add_lora_loading(CLI::App& app, Options& options, const char* text);
void add_precision(CLI::App& app, Options& options, const char* text);

}  // namespace samebytes::cli
