#include "plan/planner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_set>

#include "graph/op.h"
#include "graph/overwrite.h"
#include "plan/collect.h"
#include "plan/enqueue.h"
#include "plan/launch_info.h"
#include "plan/op_kernels.h"
#include "plan/readers.h"
#include "plan/run_access.h"
#include "plan/zeroing.h"
#include "samebytes/log.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kMostPlansKept = 256;  // evicts the least recently used
constexpr int kReplansBeforeWarning = 32;    // a loop whose plans are never found again

// The node that fills a new cell. cell() copies its initial value, which the user may hold; if nobody does, the value
// itself becomes the cell, so that there is never a second copy.
NodePtr initial_of(const Node& cell) {
  NodePtr& initial = cell.cell->initial;
  if (initial->has_value || !initial->op || !initial->op->traits().is_copy) return initial;
  const NodePtr& source = initial->inputs[0].node;
  const bool is_plain = !source->has_value && !source->is_view && source->op && source->output < 0 &&
                        source->results.empty() && source->op->traits().in_place(0) < 0;
  const bool is_held = source->handles.load(std::memory_order_relaxed) > 0 || source.use_count() > 1;
  if (!is_plain || is_held || source->dtype != initial->dtype || source->device != initial->device) return initial;
  source->category = initial->category;
  return initial = NodePtr(source);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

StoragePtr PersistentStorages::get(Context& context, std::uint64_t fingerprint, std::size_t bytes, int device) {
  std::weak_ptr<Storage>& kept = storages_[{fingerprint ^ static_cast<std::uint64_t>(device), bytes}];
  if (StoragePtr storage = kept.lock()) return storage;
  StoragePtr storage = context.runtime->allocate(bytes, Category::gradient, "pack", "", device);
  Device& on = context.runtime->device(device);
  const Zeroing zeroing(on, *storage, bytes);
  Submission submission(*context.runtime);
  submission.acquire(*storage, true, "pack", 0, bytes, true);
  zeroing.enqueue(submission, "pack");
  submission.finish();
  kept = storage;
  return storage;
}

Plan& Planner::find_or_make(GraphList& list, bool* replayed) {
  const auto found = plans_.find(list.key);
  *replayed = found != plans_.end();
  if (*replayed) {
    replans_in_a_row_ = 0;
    found->second->last_used = context_.evaluations;
    ++found->second->replays;
    return *found->second;
  }
  if (plans_.size() >= kMostPlansKept) {
    const auto oldest = std::min_element(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) {
      return a.second->last_used < b.second->last_used;
    });
    plans_.erase(oldest);
  }
  if (++replans_in_a_row_ == kReplansBeforeWarning && !warned_) {
    warned_ = true;
    log_message("warning",
                "32 evaluations in a row needed a new plan; does a shape or an attribute change at every step?");
  }
  const RecordedSpan span(context_.runtime->recorder(), "plan");
  std::unique_ptr<Plan> plan = make(list);
  ++report_.plans_made;
  report_.nodes_fused += plan->nodes_fused;
  plan->last_used = context_.evaluations;
  return *(plans_[list.key] = std::move(plan));
}

void Planner::evaluate(std::span<const NodePtr> roots) {
  run_asked(roots);
  if (context_.small.empty()) return;
  const std::vector<NodePtr> sums = carried_sums(context_);
  if (sums.empty()) return;
  try {
    run_asked(sums);
  } catch (const Error&) {  // nobody requested them; whoever does gets the error
  }
}

void Planner::run_asked(std::span<const NodePtr> roots) {
  ++context_.evaluations;
  for (;;) {
    const auto start = std::chrono::steady_clock::now();
    bool needed = false;
    for (const NodePtr& root : roots) {
      const Node& base = root->base();
      needed = needed || !base.has_value || (base.cell && !base.storage && base.shape.size() > 0) || root->is_view;
    }
    if (!needed) return;
    std::vector<NodePtr> fresh;
    GraphList list = collect(roots, ++context_.stamp, fresh);
    if (!fresh.empty()) {  // cells at their first use
      build_ahead(list.nodes, *context_.runtime);
      std::vector<NodePtr> initials;
      initials.reserve(fresh.size());
      for (const NodePtr& cell : fresh) initials.push_back(initial_of(*cell));
      last_fallback_ = -1;
      run_asked(initials);
      if (last_fallback_ >= 0) bring_home(fresh);
      for (const NodePtr& cell : fresh) {
        cell->storage = cell->cell->initial->storage;
        cell->device = cell->cell->initial->device;
        cell->cell->initial.reset();
      }
      continue;
    }
    const bool something = std::any_of(list.nodes.begin(), list.nodes.end(),
                                       [](const NodePtr& n) { return !n->has_value && !n->is_view; });
    if (!something) return;
    if (context_.options.check_nan && roots.size() + list.nodes.size() > 0) {
      evaluate_checked(list);
      return;
    }
    for (bool has_run = false; !has_run;) {
      bool replayed = false;
      Plan& plan = find_or_make(list, &replayed);
      if (replayed) {
        ++report_.plans_replayed;
        report_.bind_seconds += seconds_since(start);
      }
      has_run = try_run(plan, list);
    }
    context_.forget_finished();
    context_.runtime->end_idle_compilers();
    return;
  }
}

void Planner::enqueue(Plan& plan, std::size_t at, const LaunchSource& source, const std::vector<Bound>& bound,
                      Submission& submission) {
  PlanLaunch& launch = plan.launches[at];
  Device& device = context_.runtime->device(launch.device);
  try {
    if (const auto* library = std::get_if<PlanLibraryCall>(&launch.work)) {
      RunAccess access(launch, bound, [&](std::size_t bytes) -> Storage& {
        return workspace(submission, launch.device, bytes, launch.what);
      });
      submission.enqueue_call(
          device, launch.what.c_str(), [&](const cl::CommandQueue& queue) { return library->call(queue, access); },
          launch.info);
    } else {
      const PlanKernel& work = *launch.kernel();
      submission.enqueue(device, *work.kernel, work.geometry, launch.what.c_str(), launch.info);
    }
  } catch (const DeviceError& error) {
    refuse_launch(plan, at, source, error);
  } catch (const OutOfMemory& error) {  // of a library's workspace
    throw OutOfMemory(error.what() + source.text(), error.need(), error.budget());
  }
}

void Planner::run(Plan& plan, const GraphList& list) {
  const auto start = std::chrono::steady_clock::now();
  Runtime& runtime = *context_.runtime;
  RunBuffers buffers = bind_buffers(plan, list);
  const std::vector<Bound>& bound = buffers.bound;
  const RecordedSpan span(runtime.recorder(), "enqueue");
  Submission submission(runtime);
  submission.set_weight(plan.weight());
  std::size_t other_bytes = 0;
  if (runtime.recorder().is_active()) {
    std::size_t in_arena = 0;
    for (const auto& segments : arena_)
      for (const StoragePtr& segment : segments) in_arena += segment ? segment->bytes() : 0;
    other_bytes = runtime.memory().live_bytes - in_arena;
    submission.set_other_bytes(other_bytes);
  }
  acquire(plan, buffers, submission);
  const int n = plan.several_devices ? runtime.device_count() : 0;  // each after all that the devices have to do
  for (int p = 0; p < n * n; ++p) submission.order_after(runtime.device(p / n), runtime.device(p % n));
  if (plan.transfer_bytes > 0) submission.begin_transfers();
  report_.bind_seconds += seconds_since(start);

  const bool is_direct = plan.direct && submission.can_run_directly();
  if (is_direct)
    submission.run_directly(*bind_host_run(plan.direct, 0, plan, list, bound, runtime, other_bytes, share_.crew()),
                            plan.direct->steps.size());
  if (!plan.has_run && !is_direct && needs_compiling(plan)) {
    for (PlanLaunch& launch : plan.launches)
      if (launch.kernel()) bind_arguments(launch, list, bound);
    compile_ahead(plan, runtime);
  }
  std::vector<Submission::Mark> marks(plan.several_devices ? plan.launches.size() : 0);
  for (std::size_t l = 0; l < plan.launches.size() && !is_direct; ++l) {
    PlanLaunch& launch = plan.launches[l];
    if (const PlanTransfer* transfer = launch.transfer()) {
      marks[l] = run_transfer(launch, *transfer, plan, bound, marks, submission);
      continue;
    }
    Device& device = runtime.device(launch.device);
    const LaunchSource source = source_of(launch, list);
    submission.set_source(source);
    for (const int other : launch.after) submission.order_after(device, marks[static_cast<std::size_t>(other)]);
    if (const auto* run = std::get_if<PlanHostRun>(&launch.work)) {
      if (run->program)
        submission.enqueue_host(device, name_of_run(launch).c_str(),
                                bind_host_run(run->program, launch.device, plan, list, bound, runtime, other_bytes));
    } else if (const auto* call = std::get_if<PlanHostCall>(&launch.work)) {
      if (call->waits || !device.runs_host_functions()) {
        run_host_call(launch, plan, bound, submission);
        continue;
      }
      submission.enqueue_host(device, launch.what.c_str(), bind_host_call(launch, plan, bound, runtime, other_bytes));
    } else {
      if (launch.kernel()) bind_arguments(launch, list, bound);
      enqueue(plan, l, source, bound, submission);
    }
    if (launch.is_awaited) marks[l] = submission.mark(device);
  }
  submission.finish();
  plan.has_run = true;
  count_run(report_, plan, submission.launches(), is_direct);
  fallbacks_.count(plan.fallbacks);
  if (!plan.fallbacks.empty()) last_fallback_ = plan.fallbacks.front().entry;
  runtime.count_relayout(plan.relayout_bytes);

  commit(plan, list, buffers.fresh);
}

void Planner::keep_readers(const NodePtr& leaf) {
  const std::vector<NodePtr> leaves = overlapping(leaf);
  // Nobody can read a leaf that only handles hold.
  if (leaves.size() == 1 && !leaf->cell && leaf.use_count() - leaf->handles.load(std::memory_order_relaxed) <= 2)
    return;
  if (leaf->storage && leaf->storage->is_lost()) return;  // its contents are gone
  std::unordered_set<const Node*> targets;
  for (const NodePtr& other : leaves) targets.insert(other.get());
  Readers readers = readers_of(context_, targets);
  for (NodePtr& copy : detach_views(readers.views)) readers.waiting.push_back(std::move(copy));
  if (!readers.waiting.empty()) run_asked(readers.waiting);
}

}  // namespace samebytes::detail
