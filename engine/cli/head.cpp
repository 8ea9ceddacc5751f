#include "cli/head.h"

#include "cli/usage_error.h"

namespace samebytes::cli {

Workload with_head(const Workload& workload, const Options& options) {
  const HeadOptions& head = options.head;
  if (!head.is_chunked()) {
    if (head.is_late) throw UsageError("--late-head-gradient needs --head-chunks N|auto, with N above 1");
    return workload;
  }
  if (!workload.chunked_loss || workload.right || workload.is_binary)  // those need the output
    throw UsageError("--head-chunks: " + workload.name + " has no product with classes at its end that could be cut");
  Workload result = workload;
  result.whole_loss = [loss = workload.chunked_loss, head](nn::Module& net, const data::Batch& batch) {
    return loss(net, batch, head);
  };
  return result;
}

}  // namespace samebytes::cli
