// Where the launches of a plan find memory beside their arrays, and what is done where an engine has several contexts:
// work that is left where its bytes are, and transfers.
#include "plan/leave.h"
#include "plan/planner.h"

namespace samebytes::detail {

Storage& Planner::arena_segment(const ArenaSegment& wanted) {
  const auto space = static_cast<std::size_t>(wanted.space), k = static_cast<std::size_t>(wanted.k);
  if (arena_.size() <= space) arena_.resize(space + 1);
  if (arena_[space].size() <= k) arena_[space].resize(k + 1);
  StoragePtr& segment = arena_[space][k];
  if (!segment || segment->bytes() < wanted.bytes) {
    segment.reset();  // goes back before the larger one is asked for
    segment = context_.runtime->space(wanted.space).allocate(wanted.bytes, Category::arena, "arena");
  }
  return *segment;
}

// One is enough for each device: its queue is in order.
Storage& Planner::workspace(Submission& submission, int device, std::size_t bytes, const std::string& what) {
  const auto place = static_cast<std::size_t>(device);
  if (workspaces_.size() <= place) workspaces_.resize(place + 1);
  StoragePtr& workspace = workspaces_[place];
  if (!workspace || workspace->bytes() < bytes)
    workspace = context_.runtime->allocate(bytes, Category::library, what, "", device);
  submission.acquire(*workspace, true, what, 0, workspace->bytes(), true);
  return *workspace;
}

Submission::Mark Planner::run_transfer(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound,
                                       const std::vector<Submission::Mark>& marks, Submission& submission) {
  const PlanTransfer& t = *launch.transfer;
  const auto start_of = [&](int buffer) {
    return static_cast<std::size_t>(bound[static_cast<std::size_t>(buffer)].offset) *
           bytes_of(plan.buffers[static_cast<std::size_t>(buffer)].dtype);
  };
  std::vector<const Submission::Mark*> after;
  for (const int other : launch.after) after.push_back(&marks[static_cast<std::size_t>(other)]);
  return submission.transfer({.from = bound[static_cast<std::size_t>(t.from)].storage,
                              .from_offset = start_of(t.from) + t.from_offset,
                              .to = bound[static_cast<std::size_t>(t.to)].storage,
                              .to_offset = start_of(t.to) + t.to_offset,
                              .bytes = t.bytes},
                             after, launch.what.c_str(), launch.info);
}

std::unique_ptr<Plan> Planner::make(GraphList& list) {
  const bool fused = !context_.options.check_nan;
  if (context_.runtime->space_count() == 1) return make_plan(list, context_, persistent_, share_, fused);
  if (!crossings_) crossings_ = std::make_unique<Crossings>(context_);
  const LeftWork left(list, context_, *crossings_);
  std::unique_ptr<Plan> plan = make_plan(list, context_, persistent_, share_, fused);
  plan->reasons.insert(plan->reasons.begin(), left.reasons().begin(), left.reasons().end());
  return plan;
}

}  // namespace samebytes::detail
