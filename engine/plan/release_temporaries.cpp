// Frees the arena, which otherwise keeps the size of the largest plan so far, even of plans that no longer run.
#include <mutex>

#include "plan/planner.h"
#include "samebytes/pressure.h"

namespace samebytes {
namespace detail {

std::size_t Planner::release_temporaries() {
  std::size_t bytes = 0;
  for (const auto& segments : arena_)
    for (const StoragePtr& segment : segments)
      if (segment) bytes += segment->bytes();
  arena_.clear();
  return bytes;
}

void Planner::forget() {
  plans_.clear();
  arena_.clear();
  workspaces_.clear();
}

}  // namespace detail

std::size_t release_temporaries(Engine& engine) {
  const auto& context = engine.context();
  const std::lock_guard lock(context->mutex);
  auto* const planner = dynamic_cast<detail::Planner*>(context->evaluator.get());
  return planner ? planner->release_temporaries() : 0;
}

}  // namespace samebytes
