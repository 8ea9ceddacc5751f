// What `samebytes train` gives up while memory is short, before its pressure guard would end it: batches prepared
// ahead, then half of a piece at a time. The update stays that of the whole batch.
#pragma once

#include <functional>
#include <string>

#include "cli/accumulate.h"
#include "cli/options.h"
#include "samebytes/data.h"
#include "samebytes/engine.h"
#include "samebytes/nn.h"
#include "samebytes/pressure.h"

namespace samebytes::cli {

// What a run is made of; all of it must outlive the guard.
struct RunInMemory {
  Engine& engine;
  nn::Module& net;
  optim::Optimizer& optimizer;
  Accumulation& accumulation;
  data::Loader& training;
  data::Loader& test;
  std::int64_t batch;
};

// The options of a guard that relieves the run. `tell` gets what is given up, and once, where pieces would help but
// would change results by more than rounding, what allows them.
PressureOptions pressure_options(const Options& options, const RunInMemory& run,
                                 std::function<void(const PressureAction&)> tell);

}  // namespace samebytes::cli
