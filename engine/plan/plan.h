// Plan: what one graph structure becomes - an ordered list of launches with every buffer at a fixed place. Made once
// per structure, then only bound to the leaves of the next graph and enqueued.
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

// Where the bytes of a buffer come from at each run.
struct PlanBuffer {
  enum class Kind : std::uint8_t {
    leaf,        // the storage of a leaf or of a node that had its value: place `node`
    own,         // a wanted value: fresh storage, handed to place `node`
    arena,       // a temporary
    persistent,  // storage of the plan itself: the flat gradients
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
  int space = 0;              // context where it lies
  int first = -1, last = -1;  // launches, for the arena
  std::uint64_t devices = 0;  // a bit for each that uses it
  int part_of_leaf = -1;      // of a cell that is a part of a flat one in the same plan: that one's buffer
  bool by_parts = false;      // in the arena, each part for its own life (pack_parts.h)
  ArenaPlace place;
  StoragePtr storage;  // persistent
};

using Extent = std::pair<std::int64_t, std::int64_t>;  // elements of a buffer, begin and end; end -1: all of them
inline constexpr Extent kWhole = {0, -1};

struct PlanArgument {
  enum class Kind : std::uint8_t { array, null_array, value, scalar_real, scalar_bits };
  Kind kind;
  int index;  // of the kernel; an array takes two
  int buffer = -1;
  std::int64_t offset = 0;    // elements, on top of the buffer's own
  int node = -1, scalar = 0;  // place and index of a changing scalar
  bool writes = false;
  // What was bound last, so that only changes are set again.
  const void* bound_base = nullptr;
  std::int64_t bound_offset = -1;
};

// Bytes that a launch carries from a buffer of one context to a buffer of another.
struct PlanTransfer {
  int from = -1, to = -1;                      // buffers
  std::size_t from_offset = 0, to_offset = 0;  // bytes
  std::size_t bytes = 0;
  int maker = -1, reader = -1;  // places of the nodes whose launches made them and read them first; -1: none
};

// A kernel of a program; null until those that the planner writes are built.
struct PlanKernel {
  std::unique_ptr<Kernel> kernel;
  Dtype real = Dtype::f32;
  Geometry geometry;
  std::vector<PlanArgument> arguments;
};

// A library's function that fills the queue itself.
struct PlanLibraryCall {
  QueueCall call;
};

// An op's function of the host: in the device's queue, or, if it waits for others, on the thread that evaluates.
struct PlanHostCall {
  HostCall call;
  bool waits = false;
};

// What the host does instead of a kernel, with the launches after it; null: in the run of one before.
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
  int node = -1;                 // place of the node that it is for, or of one of them; -1: of a transfer
  std::uint64_t kernel_key = 0;  // of its kernel and groups; with EngineOptions::fallback only (placement/fallback.h)
  int device = 0;                // of a transfer: the number of devices, as if it ran on one more
  std::variant<PlanKernel, PlanLibraryCall, PlanHostCall, PlanHostRun, PlanTransfer> work;
  std::vector<PlanOperand> operands;          // while the plan is made, and of calls while it runs
  std::shared_ptr<const HostForm> host_form;  // what the host may do instead of a kernel
  std::shared_ptr<LaunchInfo> info;           // for the profile
  std::vector<int> after;                     // launches on other devices that must be done first
  bool is_awaited = false;                    // by a launch on another device

  PlanKernel* kernel() { return std::get_if<PlanKernel>(&work); }  // null for other kinds
  const PlanKernel* kernel() const { return std::get_if<PlanKernel>(&work); }
  const PlanTransfer* transfer() const { return std::get_if<PlanTransfer>(&work); }
};

// How a whole storage is used by a run, per buffer that is not a temporary.
struct PlanUse {
  int buffer;
  bool writes;
  std::string what;  // first op that uses it that way
};

// What lies in the arena: one temporary, those that share its bytes in place, or a part of a flat gradient.
struct PlanTemporary {
  ArenaRequest request;
  ArenaPlace place;
};

// A cell that the plan reads or overwrites, and the layer of the first launch that does.
struct PlanCell {
  std::weak_ptr<Node> cell;
  Label layer;
};

// A storage of the arena: the k-th one of a context.
struct ArenaSegment {
  std::size_t bytes = 0;
  int space = 0;
  int k = 0;
};

// What a pass of make_plan() did, in a line for explain().
struct PlanPass {
  std::string name, did;
};

struct Plan {
  std::vector<PlanBuffer> buffers;
  std::vector<PlanLaunch> launches;
  std::vector<PlanUse> uses;
  std::vector<ArenaSegment> arena_segments;
  std::size_t arena_bytes() const;  // of all of them
  std::vector<PlanTemporary> temporaries;
  int peak_launch = -1;  // with most alive in the arena
  std::vector<PlanCell> cells;
  std::vector<int> buffer_of;   // by place: the buffer that holds the node's value, -1 for none
  std::vector<int> late_cells;  // places of nodes whose run overwrites cells
  std::uint64_t nodes_fused = 0;
  std::uint64_t host_runs = 0, launches_on_host = 0;
  std::shared_ptr<const HostProgram> direct;  // all of it, for the thread that evaluates; null where that does not pay
  std::size_t relayout_bytes = 0;
  // How much a run of it counts in what is in flight: Ticket::kStep, or less where it takes a fraction of a
  // millisecond.
  int weight() const;
  std::size_t transfer_bytes = 0;    // between contexts
  std::vector<std::string> reasons;  // why work and bytes are where they are, for explain()
  std::vector<PlanPass> passes;      // in their order
  double flops = 0, bytes = 0;       // of all launches, as the profile counts them
  bool several_devices = false;
  std::vector<PlacedElsewhere> fallbacks;
  int first_overwrite = -1;     // launch that first writes into what was there before the run; -1: none
  bool has_run = false;         // all its launches were enqueued once
  std::uint64_t last_used = 0;  // for the cache
};

class HostShare;           // the host's part of plans; host_run.h
class PersistentStorages;  // zeroed storages shared by plans of one layout; defined in planner.h

// Throws whatever the ops' launch() throws, BuildError, OutOfMemory, Refused (placement/fallback.h).
std::unique_ptr<Plan> make_plan(const GraphList& list, Context& context, PersistentStorages& persistent,
                                HostShare& share, KernelMaker& kernels, bool fused);

}  // namespace samebytes::detail
