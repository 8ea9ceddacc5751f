#include "plan/bind.h"

namespace samebytes::detail {
namespace {

void set(const ConstantArgument& constant, PlanLaunch& launch) {
  switch (constant.kind) {
    case KernelArgument::Kind::i32: {
      const std::int32_t v = static_cast<std::int32_t>(constant.integer);
      launch.kernel->set_bytes(constant.index, &v, sizeof v);
      break;
    }
    case KernelArgument::Kind::i64:
      launch.kernel->set_bytes(constant.index, &constant.integer, sizeof constant.integer);
      break;
    case KernelArgument::Kind::structure:
      launch.kernel->set_bytes(constant.index, constant.bytes.data(), constant.bytes.size());
      break;
    default:
      if (launch.real == Dtype::f64) {
        launch.kernel->set_bytes(constant.index, &constant.real, sizeof constant.real);
      } else {
        const float v = static_cast<float>(constant.real);
        launch.kernel->set_bytes(constant.index, &v, sizeof v);
      }
  }
}

}  // namespace

BoundConstants bind_constants(std::vector<PlanLaunch>& launches, const std::vector<ConstantArgument>& constants) {
  BoundConstants bound;
  for (const ConstantArgument& constant : constants) {
    PlanLaunch& launch = launches[constant.launch];
    if (launch.is_on_host) continue;
    set(constant, launch);
    ++bound.constants;
  }
  for (PlanLaunch& launch : launches) {
    for (const PlanArgument& argument : launch.arguments)
      if (argument.kind == PlanArgument::Kind::null_array) {
        const std::int64_t zero = 0;
        launch.kernel->set_null(argument.index);
        launch.kernel->set_bytes(argument.index + 1, &zero, sizeof zero);
        ++bound.nulls;
      }
    std::erase_if(launch.arguments, [](const PlanArgument& a) {
      return a.kind == PlanArgument::Kind::value || a.kind == PlanArgument::Kind::null_array;
    });
  }
  return bound;
}

std::string describe(const BoundConstants& bound) {
  return std::to_string(bound.constants) + " constant arguments, " + std::to_string(bound.nulls) + " absent arrays";
}

}  // namespace samebytes::detail
