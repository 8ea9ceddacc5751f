#include "plan/host_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ops/host.h"

namespace samebytes::detail {
namespace {

// nullopt for a structure that is too large.
std::optional<HostArgument> host_argument(const KernelArgument& argument) {
  using From = KernelArgument::Kind;
  using To = HostArgument::Kind;
  HostArgument result;
  switch (argument.kind) {
    case From::array: break;
    case From::i32:
    case From::i64:
      result.kind = To::whole;
      result.whole = argument.integer;
      break;
    case From::real:
      result.kind = To::real;
      result.real = argument.real;
      break;
    case From::structure:
      if (argument.bytes.size() > HostArgument::kMostBytes) return std::nullopt;
      result.kind = To::structure;
      std::copy(argument.bytes.begin(), argument.bytes.end(), result.structure);
      break;
    case From::dynamic_real: result.kind = To::changing_real; break;
    case From::dynamic_bits: result.kind = To::changing_whole; break;
  }
  return result;
}

}  // namespace

std::shared_ptr<const HostForm> host_kernel_form(const LaunchRecord& record, const Device& device, std::int64_t values,
                                                 double products) {
  if (values > kMostHostValues || record.real != Dtype::f32 || record.entry.empty() || !record.source.empty())
    return nullptr;
  if (device.personality() != Personality::cpu || !device.info().has_fma) return nullptr;
  const HostKernel kernel = host_kernel(record.entry);
  if (!kernel.run || kernel.width != device.vector_width(Dtype::f32)) return nullptr;
  if (kernel.products > 0 && products > kMostHostConvolution) return nullptr;
  std::vector<HostArgument> arguments;
  for (const KernelArgument& argument : record.arguments) {
    const auto known = host_argument(argument);
    if (!known) return nullptr;
    arguments.push_back(*known);
  }
  HostGroups groups;
  std::copy_n(record.geometry.groups, 3, groups.count);
  const HostWork work{.steps = static_cast<double>(groups.total()),
                      .values = kernel.passes * static_cast<double>(values),
                      .products = kernel.products * products};
  const auto shared = std::make_shared<const std::vector<HostArgument>>(std::move(arguments));
  return std::make_shared<const HostForm>(
      groups.total(),
      [run = kernel.run, groups, shared](void* const* arrays, const double* scalars, std::int64_t begin,
                                         std::int64_t end) {
        run(groups, shared->data(), arrays, scalars, begin, end);
      },
      work);
}

}  // namespace samebytes::detail
