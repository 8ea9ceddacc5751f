// Where a plan's launches find memory besides their arrays, and what happens in an engine with several contexts: work
// stays where its bytes are, and transfers are added.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/by_cost.h"
#include "plan/planner.h"
#include "plan/zeroing.h"

namespace samebytes::detail {
namespace {

constexpr const char* kMeasuring = "measuring contexts";

std::function<void()> pass_over(Runtime& runtime, Device& device, Storage& storage, std::size_t bytes) {
  const auto zeroing = std::make_shared<const Zeroing>(device, storage, bytes);
  return [&runtime, &storage, bytes, zeroing] {
    Submission submission(runtime);
    submission.acquire(storage, true, kMeasuring, 0, bytes, true);
    zeroing->enqueue(submission, kMeasuring);
    submission.finish()->wait();
  };
}

// Records why nodes were moved, and how much of their work each run does.
void note_moves(const Moves& moves, Plan& plan) {
  const std::map<int, int> entries = moves.entries();
  if (entries.empty()) return;
  std::map<int, PlacedElsewhere> counted;  // by entry
  for (const auto& [place, entry] : entries) counted[entry].entry = entry;
  for (const PlanLaunch& launch : plan.launches) {
    const PlanTransfer* const transfer = launch.transfer();
    if (!transfer) {
      if (const auto found = entries.find(launch.node); found != entries.end()) ++counted[found->second].launches;
      continue;
    }
    int entry = moves.entry_behind(transfer->reader, entries);
    if (entry < 0) entry = moves.entry_behind(transfer->maker, entries);
    if (entry >= 0) counted[entry].bytes += transfer->bytes;
  }
  for (const auto& [entry, each] : counted) plan.fallbacks.push_back(each);
  const std::vector<std::string> reasons = moves.reasons(entries);
  plan.reasons.insert(plan.reasons.begin(), reasons.begin(), reasons.end());
}

}  // namespace

Storage& Planner::arena_segment(const ArenaSegment& wanted) {
  const auto space = static_cast<std::size_t>(wanted.space), k = static_cast<std::size_t>(wanted.k);
  if (arena_.size() <= space) arena_.resize(space + 1);
  if (arena_[space].size() <= k) arena_[space].resize(k + 1);
  StoragePtr& segment = arena_[space][k];
  if (!segment || segment->bytes() < wanted.bytes) {
    segment.reset();  // freed before the larger one is allocated
    segment = context_.runtime->space(wanted.space).allocate(wanted.bytes, Category::arena, "arena");
  }
  return *segment;
}

// One per device is enough: its queue is in order.
Storage& Planner::workspace(Submission& submission, int device, std::size_t bytes, const std::string& what) {
  const auto place = static_cast<std::size_t>(device);
  if (workspaces_.size() <= place) workspaces_.resize(place + 1);
  StoragePtr& workspace = workspaces_[place];
  if (!workspace || workspace->bytes() < bytes)
    workspace = context_.runtime->allocate(bytes, Category::library, what, "", device);
  submission.acquire(*workspace, true, what, 0, workspace->bytes(), true);
  return *workspace;
}

Submission::Mark Planner::run_transfer(const PlanLaunch& launch, const PlanTransfer& t, const Plan& plan,
                                       const std::vector<Bound>& bound, const std::vector<Submission::Mark>& marks,
                                       Submission& submission) {
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
  Moves moves(list, context_, fallbacks_);
  for (;;) {
    try {
      return make_with(moves, list);
    } catch (const Refused& refused) {
      const int spaces = context_.runtime->space_count();
      moves.move(refused);
      if (context_.runtime->space_count() != spaces) crossings_.reset();  // a new context was opened
    }
  }
}

std::unique_ptr<Plan> Planner::make_with(Moves& moves, GraphList& list) {
  std::optional<PlacementByCost> left;
  if (context_.runtime->space_count() > 1) {
    if (!crossings_)
      crossings_ = std::make_unique<Crossings>(context_, [this](Device& device, Storage& storage, std::size_t bytes) {
        return pass_over(*context_.runtime, device, storage, bytes);
      });
    left.emplace(list, context_, *crossings_, moves);
  }
  KernelMaker kernels(fallbacks_, &list);
  std::unique_ptr<Plan> plan = make_plan(list, context_, persistent_, share_, kernels, !context_.options.check_nan);
  if (left) plan->reasons.insert(plan->reasons.begin(), left->reasons().begin(), left->reasons().end());
  note_moves(moves, *plan);
  return plan;
}

void Planner::refuse_launch(const Plan& plan, std::size_t launch, const LaunchSource& source,
                            const DeviceError& error) const {
  const std::string text = error.what() + source.text();
  if (plan.has_run)  // it ran before, so the device itself has a problem
    throw DeviceError(text, error.call(), error.status(), error.device());
  if (fallbacks_.is_on()) throw LaunchRefused(error, static_cast<int>(launch));
  throw DeviceError(with_hint(plan.launches[launch].what, text), error.call(), error.status(), error.device());
}

bool Planner::try_run(Plan& plan, const GraphList& list) {
  try {
    run(plan, list);
    return true;
  } catch (const LaunchRefused& refused) {
    const DeviceError& error = refused.error();
    const PlanLaunch& launch = plan.launches[static_cast<std::size_t>(refused.launch())];
    fallbacks_.note_refused(launch.device, launch.kernel_key, error.what());
    const bool is_late = plan.first_overwrite >= 0 && plan.first_overwrite < refused.launch();
    plans_.erase(list.key);
    if (is_late)
      throw DeviceError(std::string(error.what()) +
                            "; what the run had begun to overwrite is lost, the next one has the op on another device",
                        error.call(), error.status(), error.device());
    context_.runtime->forget_refusal();
    return false;
  }
}

void Planner::bring_home(std::span<const NodePtr> cells) {
  Runtime& runtime = *context_.runtime;
  for (const NodePtr& cell : cells) {
    Node& value = *cell->cell->initial;
    if (!value.storage || &value.storage->space() == &runtime.device(cell->device).space()) continue;
    const std::size_t bytes = static_cast<std::size_t>(value.shape.size()) * bytes_of(value.dtype);
    const std::size_t offset = static_cast<std::size_t>(value.offset) * bytes_of(value.dtype);
    StoragePtr home = runtime.allocate(bytes, value.category, cell->cell->name, "", cell->device);
    Submission submission(runtime);
    submission.acquire(*value.storage, false, "transfer", offset, bytes);
    submission.acquire(*home, true, "transfer", 0, bytes, true);
    submission.begin_transfers();
    submission.transfer(
        {.from = value.storage.get(), .from_offset = offset, .to = home.get(), .to_offset = 0, .bytes = bytes}, {},
        "transfer");
    submission.finish();
    fallbacks_.add_bytes(last_fallback_, bytes);
    value.storage = std::move(home);
    value.offset = 0;
    value.device = cell->device;
  }
}

}  // namespace samebytes::detail
