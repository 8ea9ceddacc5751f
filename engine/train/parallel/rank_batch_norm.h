// What sync_batch_norm puts in the place of batch norm where the shares are ranks.
#pragma once

#include <memory>

#include "distributed/communicator.h"
#include "samebytes/array.h"
#include "samebytes/statistics.h"

namespace samebytes::train::parallel {

// The call over the rows of all ranks of the group. This rank's rows do not count where `counts` is false.
Array rank_batch_norm(const std::shared_ptr<distributed::detail::Communicator>& group, bool counts,
                      const BatchNormCall& call);

}  // namespace samebytes::train::parallel
