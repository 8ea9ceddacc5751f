// Where the buffers of a plan lie in one run, and the view that recorded calls have of them.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace samebytes::detail {

// The storage of a buffer and the element at which it begins, for one run.
struct Bound {
  Storage* storage = nullptr;
  std::int64_t offset = 0;
};

inline const void* base_of(const Storage& storage) {
  return storage.binds_pointer() ? storage.device_pointer() : static_cast<const void*>(storage.buffer()());
}

// Answers the queries of a recorded library or host call while its plan runs.
class RunAccess final : public CallAccess {
 public:
  using Workspace = std::function<Storage&(std::size_t bytes)>;
  RunAccess(const PlanLaunch& launch, const std::vector<Bound>& bound, Workspace workspace = {})
      : launch_(launch), bound_(bound), workspace_(std::move(workspace)) {}
  Storage& storage(Operand operand) override { return *bound_of(operand).storage; }
  std::int64_t offset(Operand operand) override { return bound_of(operand).offset + this->operand(operand).offset; }
  Storage& workspace(std::size_t bytes) override { return workspace_(bytes); }
  const PlanOperand& operand(Operand asked) const {
    for (const PlanOperand& o : launch_.operands)
      if (o.operand.kind == asked.kind && o.operand.index == asked.index) return o;
    throw Error(launch_.what + ": a call asks for an operand that it did not declare");
  }

 private:
  const Bound& bound_of(Operand asked) const { return bound_[static_cast<std::size_t>(operand(asked).buffer)]; }
  const PlanLaunch& launch_;
  const std::vector<Bound>& bound_;
  const Workspace workspace_;
};

}  // namespace samebytes::detail
