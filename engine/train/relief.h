// What a run gives up while memory is short, before its pressure guard would end it: batches prepared ahead, then half
// of a piece at a time. The update stays that of the whole batch.
#pragma once

#include <functional>

#include "samebytes/pressure.h"
#include "samebytes/train/session.h"

namespace samebytes::train {

// What a run is made of; all of it must outlive the guard.
struct RunInMemory {
  Engine& engine;
  nn::Module& net;
  optim::Optimizer& optimizer;
  Accumulation& accumulation;
  data::Loader& training;
  data::Loader* validation;   // may be null
  const std::int64_t& batch;  // samples of the largest batch so far
  bool may_halve;             // its pieces
};

// The options of a guard that relieves the run. `tell` gets what is given up, and once, where pieces would help but
// would change results by more than rounding, what allows them.
PressureOptions pressure_options(const PressureRelief& relief, const RunInMemory& run,
                                 std::function<void(const PressureAction&)> tell);

}  // namespace samebytes::train
