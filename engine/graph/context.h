// What the arrays of one engine share: its runtime, its evaluator, its lock and its counters.
// It outlives the Engine as long as arrays do; `alive` says whether they may still be used.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/forks.h"
#include "core/source_line.h"
#include "runtime/runtime.h"
#include "samebytes/engine.h"
#include "samebytes/profile.h"
#include "samebytes/statistics.h"

namespace samebytes {
struct MemorySnapshot;
class AutocastPolicy;
}  // namespace samebytes

namespace samebytes::detail {

struct Node;
using NodePtr = std::shared_ptr<Node>;

// Runs graphs. The planner implements it; engine.cpp hands it to the context.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Enqueues what fills `roots` and every wanted node on the way (see DESIGN: a node with a user's handle). Called
  // under the lock.
  virtual void evaluate(std::span<const NodePtr> roots) = 0;
  // To be called before somebody else overwrites what a leaf holds: nodes that wait and have a user's handle run, and
  // views with one get bytes of their own. Called under the lock.
  virtual void keep_readers(const NodePtr& leaf) = 0;
  virtual PlanReport report() const = 0;
  virtual void fill(MemorySnapshot& snapshot) const = 0;  // plans, layers and arrays
  virtual std::vector<Fallback> fallbacks() const = 0;
};

struct Context {
  const ProcessMark process;  // that its engine was made in
  std::atomic<bool> alive{true};
  EngineOptions options;
  Engine* engine = nullptr;
  std::unique_ptr<Runtime> runtime;
  std::recursive_mutex mutex;  // held while graphs are evaluated
  std::unique_ptr<Evaluator> evaluator;
  std::atomic<std::uint64_t> random_counter{0};
  std::uint64_t evaluations = 0;  // under mutex
  // Nodes not yet run, so that wanted ones can run before what they read is overwritten. Under mutex.
  std::vector<std::weak_ptr<Node>> waiting;
  std::vector<std::weak_ptr<Node>> small;  // those of a few elements that read as few. Under mutex.
  // Nodes that have their value and an origin (node.h). Under mutex.
  std::vector<std::weak_ptr<Node>> taped;
  std::size_t next_sweep = 0;  // ... of them, at which they are looked through. Under mutex.
  std::uint64_t stamp = 0;     // the last one that marked nodes as visited. Under mutex.
  // One element of value 1, by dtype: where every reverse pass begins. Under mutex.
  std::map<Dtype, StoragePtr> ones;
  std::shared_ptr<const AutocastPolicy> autocast;  // null: the built-in policy. Under mutex.

  void check_alive(const char* what) const;  // throws ArgumentError, in a child of its process Error
  void forget_finished();                    // nodes that wait no more. Under mutex.
  Context();
  ~Context();  // leaves its runtime where it is in a child of its process
};
using ContextPtr = std::shared_ptr<Context>;

ContextPtr current_context();  // throws ArgumentError where no engine lives
int current_device();          // DeviceScope of this thread
void set_current_device(int device);
extern thread_local bool grad_enabled;
extern thread_local bool keeps_statistics;                         // KeepStatistics of this thread (statistics.h)
extern thread_local const BatchNormFunction* batch_norm_function;  // BatchNormScope of this thread; null: none
extern thread_local constinit SourceLine current_line;             // the same; of Here (array.h)
extern thread_local Label current_layer;                           // of the nodes that this thread builds
extern thread_local bool is_in_reverse_pass;                       // the same

}  // namespace samebytes::detail
