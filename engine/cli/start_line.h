// The line that opens the log of a training: what is trained, on what, and how. `samebytes doctor` reads it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "cli/recipe.h"
#include "cli/session.h"

namespace samebytes::cli {

struct StartFacts {
  const Options& options;
  const Workload& workload;
  const Recipe& recipe;
  const Summary& summary;
  const data::Split& split;
  std::int64_t batch;
  std::int64_t steps;
};
// Keys are added to, never renamed.
nlohmann::ordered_json start_line(const StartFacts& facts, Engine& engine, nn::Module& net);

}  // namespace samebytes::cli
