// Snapshot: a copy of an array made before something overwrites its bytes. The planner puts it in place of an input
// whose reader runs later, or of what a view that the user still holds shows.
#pragma once

#include "graph/op.h"

namespace samebytes::detail {

// The planner writes its kernel and fuses it with nothing: it must run at its place.
class Snapshot final : public Op {
 public:
  Snapshot() : Op({.takes_strides = InputSet::all()}) {}
  std::string_view name() const override { return "snapshot"; }
  void launch(Launch& run) const override;  // never called
  std::vector<Array> gradient(const GradientRequest& request) const override { return {request.dy[0]}; }
};

// A node with the values and the id of `node`, so that it comes right after it.
NodePtr snapshot_of(const NodePtr& node);

}  // namespace samebytes::detail
