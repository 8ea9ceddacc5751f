// Preload: reads every sample of another set once and keeps it in host memory, for sets whose samples are slow to
// generate or decode. Transforms and shuffling still run in the loader.
#pragma once

#include "samebytes/data/dataset.h"

namespace samebytes::data {

// Reads with `threads` threads, including the caller's (0: one per core), and returns when all samples are read. The
// values do not depend on the number. Throws ArgumentError for an endless source or threads < 0, and what reading
// throws.
DatasetPtr preload(const DatasetPtr& source, int threads = 0);

}  // namespace samebytes::data
