// Where the buffers of a plan lie in one run, and what recorded calls see of them.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace samebytes::detail {

// A storage and the element where a buffer begins in it, for one run.
struct Bound {
  Storage* storage = nullptr;
  std::int64_t offset = 0;
};

inline const void* base_of(const Storage& storage) {
  return storage.binds_pointer() ? storage.device_pointer() : static_cast<const void*>(storage.buffer()());
}

// What a recorded call to a library or to the host asks for while its plan runs.
class RunAccess final : public CallAccess {
 public:
  using Workspace = std::function<Storage&(std::size_t bytes)>;
  RunAccess(const PlanLaunch& launch, const std::vector<Bound>& bound, Workspace workspace = {})
      : launch_(launch), bound_(bound), workspace_(std::move(workspace)) {}
  Storage& storage(Operand operand) override { return *bound_[buffer(operand).first].storage; }
  std::int64_t offset(Operand operand) override {
    const auto [b, offset] = buffer(operand);
    return bound_[b].offset + offset;
  }
  Storage& workspace(std::size_t bytes) override { return workspace_(bytes); }

 private:
  std::pair<int, std::int64_t> buffer(Operand operand) const {
    for (std::size_t i = 0; i < launch_.operands.size(); ++i)
      if (launch_.operands[i].first.kind == operand.kind && launch_.operands[i].first.index == operand.index)
        return {launch_.operands[i].second, launch_.operand_offsets[i]};
    throw Error(launch_.what + ": a call asks for an operand that it did not declare");
  }
  const PlanLaunch& launch_;
  const std::vector<Bound>& bound_;
  const Workspace workspace_;
};

}  // namespace samebytes::detail
