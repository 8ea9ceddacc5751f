#include "cli/loading.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/usage_error.h"
#include "samebytes/cores.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

constexpr int kMostSlots = 8;  // where nothing is said, and in 256 MB at most
constexpr const char* kAll = "all";

int most_slots(const Options& options, int slots) {
  const bool is_planned = options.limit.memory || options.limit.automatic_batch || options.limit.rehearses;
  if (!options.loading.most_slots) return options.slots || is_planned ? 0 : std::max(kMostSlots, slots);
  if (options.slots && *options.loading.most_slots < *options.slots)
    throw UsageError(fmt::format("--max-slots {} is below --slots {}", *options.loading.most_slots, *options.slots));
  if (is_planned)
    throw UsageError(
        "--max-slots takes memory as waits ask for it, which --memory-limit and --batch auto cannot plan; --slots says "
        "how many there are");
  return std::max(*options.loading.most_slots, slots);
}

}  // namespace

data::LoaderOptions training_loader_options(const Options& options, std::int64_t batch) {
  data::LoaderOptions loading = loader_options(options, batch);
  if (options.loading.most_slots) loading.slots = std::min(loading.slots, *options.loading.most_slots);
  loading.most_slots = most_slots(options, loading.slots);
  if (options.loading.cores == kAll) return loading;
  try {
    loading.worker_cores = choose_cores(core_topology(), options.loading.cores);
  } catch (const ArgumentError& error) {
    throw UsageError(std::string("--loader-") + error.what());
  }
  return loading;
}

std::string loading_text(const Options& options, const data::LoaderOptions& loading) {
  if (options.loading.cores == kAll) return {};
  if (!loading.worker_cores.empty()) return "loader on cores " + core_list_text(loading.worker_cores);
  return fmt::format("--loader-cores {}: there is one class of cores here ({}), so the loader uses all",
                     options.loading.cores, core_topology().to_text());
}

void add_loading_to(nlohmann::ordered_json& line, const data::LoaderOptions& loading) {
  if (loading.most_slots > loading.slots) line["max_slots"] = loading.most_slots;
  if (!loading.worker_cores.empty()) line["loader_cores"] = core_list_text(loading.worker_cores);
}

}  // namespace samebytes::cli
