// What SyncBatchNorm puts in the place of batch norm.
#pragma once

#include <memory>

#include "distributed/communicator.h"
#include "samebytes/array.h"
#include "samebytes/statistics.h"

namespace samebytes::distributed::detail {

// The call over the rows of all ranks of the group. This rank's rows do not count where `counts` is false.
Array normalised(const std::shared_ptr<Communicator>& group, bool counts, const BatchNormCall& call);

}  // namespace samebytes::distributed::detail
