#include "plan/enqueue.h"

#include <algorithm>

#include "graph/graph_list.h"

namespace samebytes::detail {

void bind_arguments(PlanLaunch& launch, const GraphList& list, const std::vector<Bound>& bound) {
  for (PlanArgument& argument : launch.arguments) {
    switch (argument.kind) {
      case PlanArgument::Kind::array: {
        const Bound& at = bound[static_cast<std::size_t>(argument.buffer)];
        const void* base = base_of(*at.storage);
        if (base != argument.bound_base) {
          launch.kernel->set_storage(argument.index, *at.storage);
          argument.bound_base = base;
        }
        const std::int64_t offset = at.offset + argument.offset;
        if (offset != argument.bound_offset) {
          launch.kernel->set_bytes(argument.index + 1, &offset, sizeof offset);
          argument.bound_offset = offset;
        }
        break;
      }
      case PlanArgument::Kind::scalar_real: {
        const double v = list.nodes[static_cast<std::size_t>(argument.node)]
                             ->scalars[static_cast<std::size_t>(argument.scalar)]
                             .real;
        if (launch.real == Dtype::f64) {
          launch.kernel->set_bytes(argument.index, &v, sizeof v);
        } else {
          const float f = static_cast<float>(v);
          launch.kernel->set_bytes(argument.index, &f, sizeof f);
        }
        break;
      }
      case PlanArgument::Kind::scalar_bits: {
        const std::uint64_t v = list.nodes[static_cast<std::size_t>(argument.node)]
                                    ->scalars[static_cast<std::size_t>(argument.scalar)]
                                    .bits;
        launch.kernel->set_bytes(argument.index, &v, sizeof v);
        break;
      }
      default: break;
    }
  }
}

void run_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound,
                   Submission& submission) {
  RunAccess access(launch, bound);
  std::vector<Submission::HostUse> uses;
  for (std::size_t o = 0; o < launch.operands.size(); ++o)
    uses.push_back({bound[static_cast<std::size_t>(launch.operands[o].second)].storage, launch.operand_writes[o] != 0});
  submission.run_host(launch.what.c_str(), uses, [&](const std::function<void*(Storage&)>& address) {
    launch.host_call([&](Operand operand) -> void* {
      const auto found = std::find_if(launch.operands.begin(), launch.operands.end(), [&](const auto& o) {
        return o.first.kind == operand.kind && o.first.index == operand.index;
      });
      const std::size_t width = bytes_of(plan.buffers[static_cast<std::size_t>(found->second)].dtype);
      return static_cast<char*>(address(access.storage(operand))) +
             static_cast<std::size_t>(access.offset(operand)) * width;
    });
  });
}

}  // namespace samebytes::detail
