// Node: one value of the lazy graph: a leaf with storage, an op that will compute it, or a view of another node. Ids
// grow with creation, so sorting by comes_before is a topological order. A node that got its value is a leaf to the
// planner; its origin records how it was made, for the reverse pass, while that may still be needed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/source_line.h"
#include "graph/segment.h"
#include "runtime/storage.h"
#include "samebytes/array.h"
#include "samebytes/dtype.h"
#include "samebytes/profile.h"
#include "samebytes/shape.h"

namespace samebytes::detail {

class Op;
struct Context;
struct Node;
using NodePtr = std::shared_ptr<Node>;

using Strides = std::array<std::int64_t, Shape::kMaxRank>;  // in elements
Strides dense_strides(const Shape& shape);

// An input of a node, with the version that its bytes had when the edge was made.
struct Edge {
  std::shared_ptr<Node> node;
  std::uint32_t version = 0;
};

// A scalar that may change from step to step: passed by value at enqueue, neither hashed nor compiled in.
union Scalar {
  double real;
  std::uint64_t bits;
  Scalar() : bits(0) {}
  Scalar(double v) : real(v) {}
  Scalar(std::uint64_t v) : bits(v) {}
};

// How a node that has its value was made. The reverse pass walks over it as over a waiting node.
struct Origin {
  std::shared_ptr<const Op> op;  // null if the origin is lost
  std::vector<Edge> inputs;
  std::vector<Scalar> scalars;
  // If the origin is lost: which ancestor was overwritten, and by whom; and the ids of all nodes that a gradient could
  // be taken by, ascending.
  std::string lost;
  std::vector<std::uint64_t> lost_sources;
};

struct CellState {
  std::string name;
  std::shared_ptr<Node> initial;             // evaluated into the storage at first use
  std::weak_ptr<Node> whole;                 // the flat cell that contains this one, while it lives
  std::vector<std::weak_ptr<Node>> members;  // cells inside this flat cell: overwriting it overwrites them
  // A 16-bit cell with the same values, rounded, and how many versions ahead this cell was when they last agreed
  // (graph/working_copy.h).
  std::shared_ptr<Node> working;
  std::uint32_t working_lead = 0;
};

struct Node {
  std::shared_ptr<const Op> op;  // null for a leaf and for a node that has its value
  std::vector<Edge> inputs;
  std::unique_ptr<Origin> origin;  // of a node that has its value, and of an update that ran
  std::vector<Scalar> scalars;
  Shape shape;
  Dtype dtype = Dtype::f32;
  int device = 0;
  int output = -1;                               // >= 0: the k-th result of inputs[0], a node of several results
  std::vector<std::pair<Shape, Dtype>> results;  // of a node of several results, else empty
  bool state_written = false;                    // an earlier run overwrote its state cells
  bool is_view = false;                          // offset and strides below are relative to the storage of base()
  bool tracks_gradient = true;                   // false for nodes built under NoGrad
  bool is_gradient = false;                      // added by the reverse pass
  bool is_repeated = false;                      // ... to recompute a checkpointed value
  SegmentPtr segment;                            // the innermost checkpoint it was built in, if any
  Label layer;                                   // the ProfileScope it was built in
  SourceLine written_at;                         // the user's line that asked for it
  std::uint64_t id = 0;
  bool is_snapshot = false;     // a copy of inputs[0] before an overwrite, with the same id (graph/snapshot.h)
  std::atomic<int> handles{0};  // held by users; edges do not count

  std::int64_t offset = 0;  // elements, into the storage (leaf or valued) or relative to base (view)
  Strides strides{};        // of a view; others are dense
  StoragePtr storage;       // of a leaf or a valued node; null for an empty array
  bool has_value = false;
  bool was_made = false;                  // by an evaluation
  std::atomic<std::uint32_t> version{0};  // of a leaf's bytes: how often they were overwritten
  std::uint64_t changed_at = 0;           // number of the evaluation that last overwrote them; 0: the host did
  const char* changed_in = nullptr;       // file of the view through which the host last wrote
  int changed_in_line = 0;
  bool is_read_only = false;  // of a leaf: mutable_host() refuses (show_rows, slot.h)
  Category category = Category::value;
  std::unique_ptr<CellState> cell;  // not null for cells

  std::shared_ptr<Context> context;
  std::uint64_t mark = 0;  // stamp of the last visit, under the engine's lock
  int place = 0;           // position in the list being planned or bound, under the engine's lock

  ~Node();  // takes long chains apart without recursion

  // The op and inputs that the reverse pass sees: the same before and after the node got its value.
  const std::shared_ptr<const Op>& tape_op() const { return origin ? origin->op : op; }
  const std::vector<Edge>& tape_inputs() const { return origin ? origin->inputs : inputs; }
  const std::vector<Scalar>& tape_scalars() const { return origin ? origin->scalars : scalars; }

  const Node& base() const {  // the node whose storage a view shows
    const Node* n = this;
    while (n->is_view) n = n->inputs[0].node.get();
    return *n;
  }
  bool is_dense() const;               // row-major without gaps
  std::string name() const;            // of a cell; "the array" for any other leaf
  std::string overwritten_by() const;  // "evaluation 12", "mutable_host() at train.cpp:40"
};

// The order in which nodes were built. A copy that the planner inserts between two nodes has the first one's id.
bool comes_before(const NodePtr& a, const NodePtr& b);

}  // namespace samebytes::detail
