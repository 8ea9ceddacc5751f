#include "cli/workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/text.h"
#include "cli/usage_error.h"

namespace samebytes::cli {

Workload make_workload(const std::string& name, const WorkloadOptions& options) {
  std::vector<std::string> names;
  for (const WorkloadEntry& entry : workloads::all()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    const auto check_option = [&](const char* option, bool is_given) {
      if (is_given && std::find(entry.takes.begin(), entry.takes.end(), option) == entry.takes.end())
        throw UsageError(fmt::format("{} has no {}", name, option));
    };
    check_option("--size", options.size.has_value());
    check_option("--context", options.context.has_value());
    check_option("--name", options.name.has_value());
    check_option("--tokenizer", options.tokenizer.has_value());
    return entry.make(options);
  }
  const std::string near = nearest_word(name, names);
  throw UsageError(fmt::format("there is no workload {}{}; there are {}", name,
                               near.empty() ? "" : ", did you mean " + near + "?", list_text(names)));
}

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
    return loss(net, batch, {.chunks = std::max<std::int64_t>(0, head.chunks), .late_weight_gradient = head.is_late});
  };
  return result;
}

}  // namespace samebytes::cli
