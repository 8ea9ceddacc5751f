// Plan: the compiled form of one graph structure: an ordered list of launches with every buffer at a fixed place. It is
// made once per structure, then only bound to the leaves of the next graph and enqueued.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/graph_list.h"
#include "graph/launch.h"
#include "placement/fallback.h"
#include "plan/arena.h"
#include "profile/recorder.h"

namespace samebytes::detail {

struct HostProgram;  // host_run.h

// Where a buffer gets its bytes at each run.
struct PlanBuffer {
  enum class Kind : std::uint8_t {
    leaf,        // the storage of a leaf or of a node that had its value: place `node`
    own,         // a wanted value: fresh storage, handed to place `node`
    arena,       // a temporary
    persistent,  // storage owned by the plan: the flat gradients
    part,        // a piece of buffer `parent` (packed gradients)
    empty,       // no elements
  };
  Kind kind = Kind::empty;
  Dtype dtype = Dtype::f32;
  std::size_t bytes = 0;
  int node = -1;
  int parent = -1;
  std::int64_t offset = 0;  // elements within the parent
  int device = 0;
  int space = 0;              // the context that holds it
  int first = -1, last = -1;  // launches, for the arena
  std::uint64_t devices = 0;  // one bit per device that uses it
  int part_of_leaf = -1;      // for a cell inside a flat cell of the same plan: the flat cell's buffer
  bool by_parts = false;      // in the arena, with a lifetime per part (pack_parts.h)
  ArenaPlace place;
  StoragePtr storage;  // persistent
};

using Extent = std::pair<std::int64_t, std::int64_t>;  // begin and end in elements of a buffer; end -1: all of them
inline constexpr Extent kWhole = {0, -1};

struct PlanArgument {
  enum class Kind : std::uint8_t { array, null_array, value, scalar_real, scalar_bits };
  Kind kind;
  int index;  // of the kernel's argument; an array takes two
  int buffer = -1;
  std::int64_t offset = 0;    // elements, added to the buffer's own
  int node = -1, scalar = 0;  // place and index of a changing scalar
  bool writes = false;
  // The last bound values, so that only changes are set.
  const void* bound_base = nullptr;
  std::int64_t bound_offset = -1;
};

// Bytes that a launch copies from a buffer of one context to a buffer of another.
struct PlanTransfer {
  int from = -1, to = -1;                      // buffers
  std::size_t from_offset = 0, to_offset = 0;  // bytes
  std::size_t bytes = 0;
  int maker = -1, reader = -1;  // places of the nodes that made them and read them first; -1: none
};

// A kernel of a program; null until the planner's own kernels are built.
struct PlanKernel {
  std::unique_ptr<Kernel> kernel;
  Dtype real = Dtype::f32;
  Geometry geometry;
  std::vector<PlanArgument> arguments;
};

// A library function that fills the queue itself.
struct PlanLibraryCall {
  QueueCall call;
};

// An op's host function: runs in the device's queue or, if it waits for others, on the evaluating thread.
struct PlanHostCall {
  HostCall call;
  bool waits = false;
  std::function<void()> when_unfinished;  // see Launch::host_call
};

// What the host does instead of this and the next launches; null: an earlier launch's run includes this one.
struct PlanHostRun {
  std::shared_ptr<const HostProgram> program;
};

// A buffer that a launch reads or writes.
struct PlanOperand {
  Operand operand;
  int buffer = -1;
  std::int64_t offset = 0;  // elements
  bool writes = false;
  Extent extent = kWhole;  // elements of the buffer
};

struct PlanLaunch {
  std::string what;
  int node = -1;                 // place of the node (or one of them) that it computes; -1: a transfer
  std::uint64_t kernel_key = 0;  // of its kernel and groups; only with EngineOptions::fallback (placement/fallback.h)
  int device = 0;                // of a transfer: the number of devices, as if it ran on one more
  std::variant<PlanKernel, PlanLibraryCall, PlanHostCall, PlanHostRun, PlanTransfer> work;
  std::vector<PlanOperand> operands;          // kept while planning, and for calls while they run
  std::shared_ptr<const HostForm> host_form;  // the host form that may replace the kernel
  std::shared_ptr<LaunchInfo> info;           // for the profile
  std::vector<int> after;                     // launches on other devices that must end first
  bool is_awaited = false;                    // by a launch on another device

  PlanKernel* kernel() { return std::get_if<PlanKernel>(&work); }  // null for other kinds
  const PlanKernel* kernel() const { return std::get_if<PlanKernel>(&work); }
  const PlanTransfer* transfer() const { return std::get_if<PlanTransfer>(&work); }
};

// How a run uses a whole storage, per buffer that is not a temporary.
struct PlanUse {
  int buffer;
  bool writes;
  std::string what;  // first op that uses it that way
};

// An item in the arena: one temporary, those that share its bytes in place, or a part of a flat gradient.
struct PlanTemporary {
  ArenaRequest request;
  ArenaPlace place;
};

// A cell that the plan reads or overwrites, and the layer of the first launch that does.
struct PlanCell {
  std::weak_ptr<Node> cell;
  Label layer;
};

// The k-th arena storage of a context.
struct ArenaSegment {
  std::size_t bytes = 0;
  int space = 0;
  int k = 0;
};

// What a pass of make_plan() did, as a line for explain().
struct PlanPass {
  std::string name, did;
};

struct Plan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanLaunch> launches;
  std::vector<PlanUse> uses;
  std::vector<ArenaSegment> arena_segments;
  std::size_t arena_bytes() const;  // of all segments
  std::vector<PlanTemporary> temporaries;
  int peak_launch = -1;  // the launch at which most of the arena is alive
  std::vector<PlanCell> cells;
  std::vector<int> buffer_of;   // by place: the buffer that holds the node's value, -1 for none
  std::vector<int> late_cells;  // places of nodes whose run overwrites cells
  std::uint64_t nodes_fused = 0;
  std::uint64_t host_runs = 0, launches_on_host = 0;
  std::shared_ptr<const HostProgram> direct;  // all of it as one run of the evaluating thread; null if that is slower
  std::size_t relayout_bytes = 0;
  // The weight of a run among the submissions in flight: Ticket::kStep, or less if it takes a fraction of a
  // millisecond.
  int weight() const;
  std::size_t transfer_bytes = 0;    // between contexts
  std::vector<std::string> reasons;  // why work and bytes are where they are, for explain()
  std::vector<PlanPass> passes;      // in running order
  double flops = 0, bytes = 0;       // of all launches, as the profile counts them
  bool several_devices = false;
  std::vector<PlacedElsewhere> fallbacks;
  int first_overwrite = -1;     // first launch that overwrites data from before the run; -1: none
  bool has_run = false;         // all its launches were enqueued at least once
  std::uint64_t last_used = 0;  // for the cache
  std::uint64_t replays = 0;
};

class HostShare;           // the host's part of plans; host_run.h
class PersistentStorages;  // zeroed storages shared by plans of one layout; defined in planner.h

// Throws whatever the ops' launch() throws, BuildError, OutOfMemory, Refused (placement/fallback.h).
std::unique_ptr<Plan> make_plan(const GraphList& list, Context& context, PersistentStorages& persistent,
                                HostShare& share, KernelMaker& kernels, bool fused);

}  // namespace samebytes::detail
