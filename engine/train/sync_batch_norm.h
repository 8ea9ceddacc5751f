// Batch norm over the shares of a batch that are built beside each other.
#pragma once

#include <vector>

#include "samebytes/statistics.h"
#include "train/meeting.h"

namespace samebytes::detail {

// The answer of part `place` to batch_norm_train: normalised by the moments of all parts together (T. Chan et al.,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979), in public ops, so that its
// gradient flows through them. Into `updates`, where it is not null, go the nodes that overwrite running statistics.
Array sync_batch_norm(Meeting& meeting, std::size_t place, const BatchNormCall& call, std::vector<Array>* updates);

}  // namespace samebytes::detail
