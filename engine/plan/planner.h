// Planner: the evaluator of an engine. Finds or makes the plan of a graph, binds it to the graph's leaves and enqueues
// it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/context.h"
#include "placement/crossings.h"
#include "placement/fallback.h"
#include "plan/host_run.h"
#include "plan/plan.h"
#include "plan/run_access.h"
#include "samebytes/explain.h"

namespace samebytes::detail {

// Zeroed storages that live as long as plans use them, shared by plans of one layout (the flat gradients of a model).
class PersistentStorages {
 public:
  StoragePtr get(Context& context, std::uint64_t fingerprint, std::size_t bytes, int device);

 private:
  std::map<std::pair<std::uint64_t, std::size_t>, std::weak_ptr<Storage>> storages_;
};

// What each buffer of a plan is bound to in one run.
struct RunBuffers {
  std::vector<Bound> bound;       // by buffer
  std::vector<StoragePtr> fresh;  // by buffer: storage of wanted values
  // With SAMEBYTES_ALLOCATOR=exact, by buffer: every temporary gets its own storage instead of arena bytes, so that an
  // overrun is detected.
  std::vector<StoragePtr> apart;
  std::vector<Storage*> arena;  // by segment
};

class Planner final : public Evaluator {
 public:
  explicit Planner(Context& context) : context_(context), share_(context), fallbacks_(context) {}
  void evaluate(std::span<const NodePtr> roots) override;
  void keep_readers(const NodePtr& leaf) override;
  PlanReport report() const override;
  std::vector<Fallback> fallbacks() const override { return fallbacks_.report(); }
  void fill(MemorySnapshot& snapshot) const override;
  std::size_t release_temporaries();  // returns the arena's bytes
  void forget();                      // drops all plans and what they hold
  std::string explain(const ExplainOptions& options) const;

 private:
  void run_asked(std::span<const NodePtr> roots);
  Plan& find_or_make(GraphList& list, bool* replayed);
  std::unique_ptr<Plan> make(GraphList& list);
  std::unique_ptr<Plan> make_with(Moves& moves, GraphList& list);  // throws Refused
  // False if a device refused a launch: the caller must plan again, with the launch on another device.
  bool try_run(Plan& plan, const GraphList& list);
  void bring_home(std::span<const NodePtr> cells);  // cells whose first values another device made in its context
  [[noreturn]] void refuse_launch(const Plan& plan, std::size_t launch, const LaunchSource& source,
                                  const DeviceError& error) const;
  void run(Plan& plan, const GraphList& list);
  RunBuffers bind_buffers(Plan& plan, const GraphList& list);
  static void acquire(const Plan& plan, const RunBuffers& buffers, Submission& submission);
  // Enqueues a kernel or a library call; refuse_launch() handles what the device refuses.
  void enqueue(Plan& plan, std::size_t at, const LaunchSource& source, const std::vector<Bound>& bound,
               Submission& submission);
  void commit(const Plan& plan, const GraphList& list, std::vector<StoragePtr>& fresh);
  Submission::Mark run_transfer(const PlanLaunch& launch, const PlanTransfer& transfer, const Plan& plan,
                                const std::vector<Bound>& bound, const std::vector<Submission::Mark>& marks,
                                Submission& submission);
  void evaluate_checked(const GraphList& list);  // op by op; stops at the first NaN
  Storage& arena_segment(const ArenaSegment& wanted);
  void name_peak(const Plan& plan);
  Storage& workspace(Submission& submission, int device, std::size_t bytes, const std::string& what);

  Context& context_;
  HostShare share_;
  Fallbacks fallbacks_;
  PersistentStorages persistent_;
  std::unique_ptr<Crossings> crossings_;  // with several contexts, from the first plan on
  std::unordered_map<Key128, std::unique_ptr<Plan>, Key128Hash> plans_;
  std::vector<std::vector<StoragePtr>> arena_;  // by context
  std::vector<StoragePtr> workspaces_;          // of library calls, one for each device that makes some
  PlanReport report_;
  int last_fallback_ = -1;  // an entry that the last run used; -1: none
  int replans_in_a_row_ = 0;
  bool warned_ = false;
};

}  // namespace samebytes::detail
