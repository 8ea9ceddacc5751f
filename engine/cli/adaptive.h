// What --adaptive-batch comes to: the micro-batches of the loader, half as large as the first size, and the sizes and
// rates of a train::AdaptiveBatching.
#pragma once

#include <cstdint>
#include <string>

#include "cli/options.h"
#include "cli/recipe.h"
#include "samebytes/train/session.h"

namespace samebytes::cli {

// Samples of a micro-batch for --batch, the first size. Throws UsageError for an odd one and what excludes it.
std::int64_t adaptive_micro_batch(const Options& options, std::int64_t first_batch);
// Throws UsageError for a largest size below the first, or above the set.
train::AdaptiveBatching adaptive_batching(const Options& options, const Recipe& recipe, std::int64_t first_batch,
                                          std::int64_t training_samples);
// "update 40: batch 64, noise scale 410, rate times 1.41 after 20 updates"
std::string to_text(const train::BatchReport& report);

}  // namespace samebytes::cli
