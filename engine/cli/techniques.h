// The techniques that --memory-limit chooses among, in the order in which it takes them, as changes of a run's options.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "samebytes/budget.h"

namespace samebytes::cli {

struct Tool {
  Technique technique;
  std::function<void(Options& options, int level)> apply;  // level 1 and up
};

// What of a workload decides which techniques there are.
struct Subject {
  std::int64_t batch = 1;
  bool is_training = true;
  bool has_head = false;  // that can be cut (workload.h)
};

// Those that the options leave open: what the user has set stays, and what changes results must be allowed.
std::vector<Tool> techniques_for(const Options& options, const Subject& subject);

// An option that keeps a technique away and that the user may drop; empty where there is none.
// `clip_norm` is what the run clips by.
std::string what_stands_in_the_way(const Options& options, double clip_norm, bool is_training);

}  // namespace samebytes::cli
