// A language model of a Hugging Face folder as a workload: adapters beside it learn the answers of conversations.
#pragma once

#include <string>

#include "samebytes/models/pretrained.h"
#include "workloads/workload.h"

namespace samebytes::workloads {

// Whether the folder has a config.json.
bool is_language_folder(const std::string& folder);

// WorkloadOptions::quantise, which is one of its words.
models::Quantise quantise_of(const WorkloadOptions& options);

// Reads the config, and with --data the tokenizer, the chat template and the samples. Throws OptionError for a model
// that writes no text, IoError.
Workload language_workload(const std::string& folder, const WorkloadOptions& options);

}  // namespace samebytes::workloads
