// Snapshot: a copy of an array as it is before something overwrites its bytes. The planner puts it in the place of an
// input whose reader runs later than that, or of what a view shows that the user still holds.
#pragma once

#include "graph/op.h"

namespace samebytes::detail {

// The planner writes its kernel, and fuses it with nothing: it must run where it stands.
class Snapshot final : public Op {
 public:
  Snapshot() : Op({.takes_strides = InputSet::all()}) {}
  std::string_view name() const override { return "snapshot"; }
  void launch(Launch& run) const override;  // never called
  std::vector<Array> gradient(const GradientRequest& request) const override { return {request.dy[0]}; }
};

// A node with the values of `node`, of its id, so that it stands right behind it.
NodePtr snapshot_of(const NodePtr& node);

}  // namespace samebytes::detail
