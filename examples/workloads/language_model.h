// A language model of a Hugging Face folder or of a GGUF file as a workload: adapters beside it learn the answers of
// conversations.
#pragma once

#include <string>

#include "samebytes/models/pretrained.h"
#include "workloads/workload.h"

namespace samebytes::workloads {

// Whether this is a folder with a config.json, or a GGUF file.
bool is_language_model(const std::string& path);

// How it is opened: with WorkloadOptions::quantise, or with the file's own blocks. Throws OptionError for both.
models::PretrainedOptions opening_of(const std::string& path, const WorkloadOptions& options);

// Reads the config, and with --data the tokenizer, the chat template and the samples. Throws OptionError for a model
// that writes no text, IoError.
Workload language_workload(const std::string& folder, const WorkloadOptions& options);

}  // namespace samebytes::workloads
