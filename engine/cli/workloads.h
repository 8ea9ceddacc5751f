// The workloads (examples/workloads) by name, as the options ask for them, and the adapters (samebytes/nn/lora.h) of
// train, bench, eval and generate: --lora-rank and its companions, --lora, --lora-save.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "samebytes/io.h"
#include "samebytes/nn.h"
#include "workloads/workload.h"

namespace samebytes::cli {

using workloads::Defaults;
using workloads::with_data_kept;
using workloads::with_hollow_data;
using workloads::Workload;
using workloads::WorkloadEntry;

// Throws UsageError with what there is and the nearest name, and for an option that the workload does not take.
Workload make_workload(const std::string& name, const WorkloadOptions& options);

// Those that the options name; all, if none.
std::vector<Workload> chosen_workloads(const Options& options);

// The workload whose loss is made as the options ask for: chunk by chunk (--head-chunks), or as it is. Throws
// UsageError for a workload whose model does not end in a product with its classes.
Workload with_head(const Workload& workload, const Options& options);

bool has_adapters(const Options& options);
// Throws UsageError for options that do not go together. Before anything is written.
void check_lora(const Options& options);
// Freezes the network and gives it the adapters that the options ask for, with the values of --lora; before the
// optimizer is made. Returns what to tell people, empty where there is nothing. Throws UsageError, IoError.
std::string add_adapters(const Options& options, nn::Module& net);
// --lora-save.
void save_adapters(const Options& options, nn::Module& net, const io::Metadata& metadata);
// What any verb can load: the adapters become a part of the weights. Nothing where there are none.
void merge_adapters(nn::Module& net);

}  // namespace samebytes::cli
