// Overwrites: which nodes of a run overwrite what others read. An array means the value that it had when the expression
// was written, so whoever reads the old value runs before it is overwritten, or reads a copy that was made before.
#pragma once

#include <unordered_map>
#include <vector>

#include "graph/graph_list.h"
#include "graph/op.h"

namespace samebytes::detail {

class Overwrites {
 public:
  explicit Overwrites(const std::vector<NodePtr>& nodes);  // whose places are their indices
  bool any() const { return !by_cell_.empty(); }

  // Calls visit(input, place) for each input of `reader` that is overwritten in this run after it has its value, by the
  // node at `place`; not for inputs that only carry state, which an op reads and writes itself.
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
  // Whether the update at `place` writes at each element of its cell just that element of `input`.
  static bool is_same_element(const Node& update, const Node& input);

 private:
  static const Node* target(const Node& base);  // the cell whose bytes a base shows, null for others

  std::unordered_map<const Node*, std::vector<int>> by_cell_;  // ascending places; parts and wholes count as well
};

// Puts a snapshot (graph/snapshot.h) before what overwrites it into the place of each input whose reader comes later.
void take_snapshots(std::vector<NodePtr>& nodes);

// Throws ArgumentError where two updates write to the same bytes, or one would run before another write that was
// written earlier: which one came last would be chance.
void check_single_updates(const std::vector<NodePtr>& nodes);

}  // namespace samebytes::detail
