// Preload: every sample of another set read once and kept in host memory, for sets whose samples are slow to make or to
// decode. Transforms and shuffling come after it, in the loader, as before.
#pragma once

#include "samebytes/data/dataset.h"

namespace samebytes::data {

// Reads with so many threads, the caller's among them (0: one for each core), and returns when all samples are there.
// The values do not depend on the number. Throws ArgumentError for a source without end or fewer than 0 threads, and
// what reading throws.
DatasetPtr preload(const DatasetPtr& source, int threads = 0);

}  // namespace samebytes::data
