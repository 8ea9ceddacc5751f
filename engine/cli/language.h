// What the verbs of a language model share.
#pragma once

#include <memory>

#include "cli/options.h"
#include "cli/session.h"
#include "samebytes/models/pretrained.h"

namespace samebytes::cli {

// Throws UsageError for what is neither a folder with config.json nor a GGUF file.
void expect_language_model(const Options& options);
// --quantise. Throws OptionError where the file has blocks of its own.
models::PretrainedOptions opening_of(const Options& options);
// The model with the adapters of --adapter.
std::unique_ptr<models::Pretrained> open_language_model(const Options& options);

}  // namespace samebytes::cli
