// What the verbs of a language model's folder share.
#pragma once

#include <memory>

#include "cli/options.h"
#include "cli/session.h"
#include "samebytes/models/pretrained.h"

namespace samebytes::cli {

// Throws UsageError for a folder without config.json.
void expect_language_folder(const Options& options);
models::Quantise quantise_of(const Options& options);  // --quantise
// The model of the folder with the adapters of --adapter.
std::unique_ptr<models::Pretrained> open_language_model(const Options& options);

}  // namespace samebytes::cli
