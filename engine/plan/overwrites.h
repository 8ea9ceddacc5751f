// Overwrites: which nodes of a run overwrite what others read. An array has the value that it had when the expression
// was written, so readers of the old value run before the overwrite, or read a copy made before it.
#pragma once

#include <unordered_map>
#include <vector>

#include "graph/graph_list.h"
#include "graph/op.h"

namespace samebytes::detail {

class Overwrites {
 public:
  explicit Overwrites(const std::vector<NodePtr>& nodes);  // Requires: each node's place is its index.
  bool any() const { return !by_cell_.empty(); }

  // Calls visit(input, place) for each input of `reader` that the node at `place` overwrites later in this run; not for
  // inputs that only carry state, which an op reads and writes itself.
  template <class Visit>
  void each(const Node& reader, Visit visit) const {
    if (!any() || reader.has_value || reader.is_view || reader.output >= 0) return;
    for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
      if (reader.op && reader.op->traits().is_state(static_cast<int>(i))) continue;
      const Node& base = reader.inputs[i].node->base();
      const Node* const cell = target(base);
      const auto found = cell ? by_cell_.find(cell) : by_cell_.end();
      if (found == by_cell_.end()) continue;
      const int after = base.cell ? -1 : (base.output >= 0 ? base.inputs[0].node->place : base.place);
      for (const int place : found->second)
        if (place > after) visit(i, place);
    }
  }
  // Whether the update at `place` writes each element of its cell from exactly that element of `input`.
  static bool is_same_element(const Node& update, const Node& input);

 private:
  static const Node* target(const Node& base);  // the cell whose bytes a base shows, null if it shows none

  std::unordered_map<const Node*, std::vector<int>> by_cell_;  // ascending places; includes parts and wholes
};

// Replaces each input whose reader runs after an overwrite by a snapshot (graph/snapshot.h) taken before it.
void take_snapshots(std::vector<NodePtr>& nodes);

// Throws ArgumentError if two updates write to the same bytes, or if one would run before a write that was requested
// earlier: the order would be arbitrary.
void check_single_updates(const std::vector<NodePtr>& nodes);

}  // namespace samebytes::detail
