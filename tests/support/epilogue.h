// An op launched with an epilogue, as the planner does it where an addition, a ReLU or a ReLU's gradient follows.
#pragma once

#include <string_view>
#include <utility>

#include "graph/launch.h"
#include "graph/op.h"

namespace samebytes::testing {

// The last input is a gate where there is one, the one before it (or the last) is added, and without a gate ReLU
// follows.
class WithEpilogue final : public detail::Op {
 public:
  WithEpilogue(detail::OpPtr op, bool has_residual, bool has_gate)
      : op_(std::move(op)), has_residual_(has_residual), has_gate_(has_gate) {}
  std::string_view name() const override { return "with_epilogue"; }
  void hash(detail::Hasher& hasher) const override {
    hasher.add(op_->fingerprint() + (has_residual_ ? 1 : 0) + (has_gate_ ? 2 : 0));
  }
  void launch(detail::Launch& run) const override {
    const int last = run.src_count() - 1;
    run.set_epilogue({.residual = has_residual_ ? run.src(last - (has_gate_ ? 1 : 0)) : detail::Launch::none(),
                      .relu = !has_gate_,
                      .gate = has_gate_ ? run.src(last) : detail::Launch::none()});
    op_->launch(run);
  }

 private:
  detail::OpPtr op_;
  bool has_residual_, has_gate_;
};

}  // namespace samebytes::testing
