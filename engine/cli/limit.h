// How a run is fitted into memory before it starts: rehearsals of the true step (EngineOptions::dry_run) give the peak
// of any batch and any technique, and the search over them gives the options that the run then takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/options.h"
#include "cli/summary.h"
#include "cli/workloads.h"
#include "samebytes/estimate.h"

namespace samebytes::cli {

// What an engine of these options may allocate; 0: the library's own limit.
std::size_t engine_limit(const Options& options);

// What a run would hold: living bytes at their peak, and by category, with what is kept for reuse.
struct Rehearsal {
  std::size_t live_peak = 0;
  MemoryParts parts = {};
};

// Two steps and a test of what train does. Requires: options and workload are those of rehearsal(). In train.cpp.
Rehearsal rehearse_train(const Options& options, const Workload& workload);
// Two steps of what bench does.
Rehearsal rehearse_bench(const Options& options, const std::string& device, const Workload& workload, bool is_training);

// The options that the run takes, and what was chosen.
struct Fitted {
  Options options;
  std::string text = {};  // a line for people; empty where nothing was asked for
  std::optional<std::size_t> planned = {};
  std::string techniques = {};
  void fill(Summary& summary) const;
  nlohmann::ordered_json to_json() const;  // an event of the log
};

// The largest batch whose step fits into what the device gives, found by planning; nothing where not even one sample
// does. Requires: this thread has no living engine.
std::optional<std::int64_t> largest_bench_batch(const Options& options, const std::string& device,
                                                const Workload& workload, bool is_training);

// Throws UsageError for options that do not go together, OutOfMemory where nothing fits: with the smallest budget that
// would do, and by which techniques.
Fitted fit_train(const Options& options, const Workload& workload);
Fitted fit_bench(const Options& options, const std::string& device, const Workload& workload, bool is_training);

}  // namespace samebytes::cli
