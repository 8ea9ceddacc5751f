// What the arrays of one engine share: its runtime, its evaluator, its lock and its counters. It outlives the Engine as
// long as arrays do; `alive` says whether they may still be used.
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
  // Enqueues everything that computes `roots` and every wanted node on the way (see DESIGN: a node with a user's
  // handle). Called under the lock.
  virtual void evaluate(std::span<const NodePtr> roots) = 0;
  // Call before anything else overwrites what a leaf holds: runs waiting nodes with a user's handle, and gives views
  // with a handle their own bytes. Called under the lock.
  virtual void keep_readers(const NodePtr& leaf) = 0;
  virtual PlanReport report() const = 0;
  virtual void fill(MemorySnapshot& snapshot) const = 0;  // plans, layers and arrays
  virtual std::vector<Fallback> fallbacks() const = 0;
};

struct Context {
  const ProcessMark process;  // the process that made the engine
  std::atomic<bool> alive{true};
  EngineOptions options;
  Engine* engine = nullptr;
  std::unique_ptr<Runtime> runtime;
  std::recursive_mutex mutex;  // held while graphs are evaluated
  std::unique_ptr<Evaluator> evaluator;
  std::atomic<std::uint64_t> random_counter{0};
  std::uint64_t evaluations = 0;  // under mutex
  // Nodes that have not run, so that wanted ones can run before their inputs are overwritten. Under mutex.
  std::vector<std::weak_ptr<Node>> waiting;
  std::vector<std::weak_ptr<Node>> small;  // the waiting nodes with few elements and small inputs. Under mutex.
  // Nodes that have their value and an origin (node.h). Under mutex.
  std::vector<std::weak_ptr<Node>> taped;
  std::size_t next_sweep = 0;  // size of `taped` at which to sweep it next. Under mutex.
  std::uint64_t stamp = 0;     // the last stamp used to mark visited nodes. Under mutex.
  // One element of value 1 per dtype: the start of every reverse pass. Under mutex.
  std::map<Dtype, StoragePtr> ones;
  std::shared_ptr<const AutocastPolicy> autocast;  // null: the built-in policy. Under mutex.

  void check_alive(const char* what) const;  // throws ArgumentError; in a child of its process, Error
  void forget_finished();                    // drops nodes that no longer wait. Under mutex.
  Context();
  ~Context();  // in a child of its process, leaks the runtime
};
using ContextPtr = std::shared_ptr<Context>;

ContextPtr current_context();  // throws ArgumentError if no engine lives
int current_device();          // DeviceScope of this thread
void set_current_device(int device);
extern thread_local bool grad_enabled;
extern thread_local bool keeps_statistics;                         // KeepStatistics of this thread (statistics.h)
extern thread_local const BatchNormFunction* batch_norm_function;  // BatchNormScope of this thread; null: none
extern thread_local constinit SourceLine current_line;             // SourceLine of this thread; see Here (array.h)
extern thread_local Label current_layer;                           // layer of the nodes that this thread builds
extern thread_local bool is_in_reverse_pass;  // whether this thread builds nodes of the reverse pass

}  // namespace samebytes::detail
