// The loader of a training: how many batches it has ready (--slots, --max-slots) and where its workers run
// (--loader-cores).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/options.h"
#include "samebytes/data.h"

namespace samebytes::cli {

// loader_options() of session.h and these two. Throws UsageError for what does not go together and for cores that there
// are not.
data::LoaderOptions training_loader_options(const Options& options, std::int64_t batch);
// For people: what --loader-cores came to; empty where nothing was asked for.
std::string loading_text(const Options& options, const data::LoaderOptions& loading);
void add_loading_to(nlohmann::ordered_json& line, const data::LoaderOptions& loading);

}  // namespace samebytes::cli
