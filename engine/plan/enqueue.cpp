#include "plan/enqueue.h"

#include <algorithm>

#include "graph/graph_list.h"
#include "plan/launch_info.h"

namespace samebytes::detail {

namespace {

void set_arguments(PlanLaunch& launch, const GraphList& list, const std::vector<Bound>& bound) {
  PlanKernel& work = *launch.kernel();
  for (PlanArgument& argument : work.arguments) {
    switch (argument.kind) {
      case PlanArgument::Kind::array: {
        const Bound& at = bound[static_cast<std::size_t>(argument.buffer)];
        const void* base = base_of(*at.storage);
        if (base != argument.bound_base) {
          work.kernel->set_storage(argument.index, *at.storage);
          argument.bound_base = base;
        }
        const std::int64_t offset = at.offset + argument.offset;
        if (offset != argument.bound_offset) {
          work.kernel->set_bytes(argument.index + 1, &offset, sizeof offset);
          argument.bound_offset = offset;
        }
        break;
      }
      case PlanArgument::Kind::scalar_real: {
        const double v = list.nodes[static_cast<std::size_t>(argument.node)]
                             ->scalars[static_cast<std::size_t>(argument.scalar)]
                             .real;
        if (work.real == Dtype::f64) {
          work.kernel->set_bytes(argument.index, &v, sizeof v);
        } else {
          const float f = static_cast<float>(v);
          work.kernel->set_bytes(argument.index, &f, sizeof f);
        }
        break;
      }
      case PlanArgument::Kind::scalar_bits: {
        const std::uint64_t v = list.nodes[static_cast<std::size_t>(argument.node)]
                                    ->scalars[static_cast<std::size_t>(argument.scalar)]
                                    .bits;
        work.kernel->set_bytes(argument.index, &v, sizeof v);
        break;
      }
      default: break;
    }
  }
}

}  // namespace

void bind_arguments(PlanLaunch& launch, const GraphList& list, const std::vector<Bound>& bound) {
  try {
    set_arguments(launch, list, bound);
  } catch (const DeviceError& error) {
    throw_named(launch, source_of(launch, list), error);
  }
}

void run_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound,
                   Submission& submission) {
  RunAccess access(launch, bound);
  std::vector<Submission::HostUse> uses;
  for (const PlanOperand& o : launch.operands)
    uses.push_back({bound[static_cast<std::size_t>(o.buffer)].storage, o.writes});
  const PlanHostCall& host = std::get<PlanHostCall>(launch.work);
  submission.run_host(launch.what.c_str(), uses, [&](const std::function<void*(Storage&)>& address) {
    if (host.when_unfinished) submission.when_unfinished(host.when_unfinished);
    host.call([&](Operand operand) -> void* {
      const int buffer = access.operand(operand).buffer;
      const std::size_t width = bytes_of(plan.buffers[static_cast<std::size_t>(buffer)].dtype);
      return static_cast<char*>(address(access.storage(operand))) +
             static_cast<std::size_t>(access.offset(operand)) * width;
    });
  });
}

}  // namespace samebytes::detail
