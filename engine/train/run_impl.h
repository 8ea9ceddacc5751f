// What a RunState holds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "samebytes/engine.h"
#include "samebytes/run_state.h"
#include "train/run_parts.h"

namespace samebytes {

struct RunState::Impl {
  explicit Impl(Engine& engine_) : engine(engine_) {}
  void add(detail::Part part);
  // Throws ArgumentError where the source is not of this run.
  void check(const detail::RunSource& source) const;
  RunOrigin restore(const detail::RunSource& source);

  Engine& engine;
  std::vector<std::pair<std::string, std::string>> expected;
  std::vector<detail::Part> parts;
};

}  // namespace samebytes
