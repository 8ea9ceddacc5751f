#include "plan/bind.h"

#include "plan/launch_info.h"

namespace samebytes::detail {
namespace {

void set(const ConstantArgument& constant, PlanKernel& work) {
  switch (constant.kind) {
    case KernelArgument::Kind::i32: {
      const std::int32_t v = static_cast<std::int32_t>(constant.integer);
      work.kernel->set_bytes(constant.index, &v, sizeof v);
      break;
    }
    case KernelArgument::Kind::i64:
      work.kernel->set_bytes(constant.index, &constant.integer, sizeof constant.integer);
      break;
    case KernelArgument::Kind::structure:
      work.kernel->set_bytes(constant.index, constant.bytes.data(), constant.bytes.size());
      break;
    default:
      if (work.real == Dtype::f64) {
        work.kernel->set_bytes(constant.index, &constant.real, sizeof constant.real);
      } else {
        const float v = static_cast<float>(constant.real);
        work.kernel->set_bytes(constant.index, &v, sizeof v);
      }
  }
}

template <class Fn>
void naming(const PlanLaunch& launch, const Fn& fn) {
  try {
    fn();
  } catch (const DeviceError& error) {
    throw_named(launch, {launch.info, {}}, error);
  }
}

}  // namespace

BoundConstants bind_constants(std::vector<PlanLaunch>& launches, const std::vector<ConstantArgument>& constants) {
  BoundConstants bound;
  for (const ConstantArgument& constant : constants) {
    PlanLaunch& launch = launches[constant.launch];
    PlanKernel* const work = launch.kernel();
    if (!work) continue;  // the host does this launch
    naming(launch, [&] { set(constant, *work); });
    ++bound.constants;
  }
  for (PlanLaunch& launch : launches) {
    PlanKernel* const work = launch.kernel();
    if (!work) continue;
    for (const PlanArgument& argument : work->arguments)
      if (argument.kind == PlanArgument::Kind::null_array) {
        const std::int64_t zero = 0;
        naming(launch, [&] {
          work->kernel->set_null(argument.index);
          work->kernel->set_bytes(argument.index + 1, &zero, sizeof zero);
        });
        ++bound.nulls;
      }
    std::erase_if(work->arguments, [](const PlanArgument& a) {
      return a.kind == PlanArgument::Kind::value || a.kind == PlanArgument::Kind::null_array;
    });
  }
  return bound;
}

std::string describe(const BoundConstants& bound) {
  return std::to_string(bound.constants) + " constant arguments, " + std::to_string(bound.nulls) + " absent arrays";
}

}  // namespace samebytes::detail
