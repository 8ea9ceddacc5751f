#include "runtime/spare_device.h"

#include <algorithm>
#include <string>

namespace samebytes::detail {
namespace {

bool is_own(const FoundDevice& found, const std::vector<FoundDevice>& own) {
  return std::any_of(own.begin(), own.end(), [&](const FoundDevice& o) { return o.info.index == found.info.index; });
}

// The index of a context that the device can join without changing it for the others.
int shared_space(const DeviceInfo& info, const cl::Platform& platform, const std::vector<FoundDevice>& own,
                 const std::vector<int>& spaces) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    const DeviceInfo& other = own[i].info;
    std::string reason;
    if (own[i].platform() == platform() && can_use_mode(info, other.memory_mode, &reason) &&
        info.max_allocation_bytes >= other.max_allocation_bytes && info.alignment_bytes <= other.alignment_bytes)
      return spaces[i];
  }
  return -1;
}

}  // namespace

std::optional<SpareDevice> find_spare(const std::vector<FoundDevice>& own, const std::vector<int>& spaces,
                                      bool are_separate) {
  const std::vector<FoundDevice> all = find_devices();
  const auto other_cpu = [&](bool is_any) -> std::optional<SpareDevice> {
    for (const FoundDevice& found : all) {
      const DeviceInfo& info = found.info;
      if (!info.refused.empty() || info.type != "cpu" || is_own(found, own)) continue;
      if (!is_any && info.personality != Personality::cpu) continue;
      SpareDevice spare{.found = found};
      read_personality(&spare.found.info.personality);
      if (!are_separate) spare.space = shared_space(info, found.platform, own, spaces);
      return spare;
    }
    return {};
  };
  if (std::optional<SpareDevice> spare = other_cpu(false)) return spare;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto whole =
        std::find_if(all.begin(), all.end(), [&](const auto& f) { return f.info.index == own[i].info.index; });
    if (own[i].info.type != "cpu" || whole == all.end()) continue;
    const bool is_cpu = own[i].info.personality == Personality::cpu;
    if (!is_cpu && whole->info.personality != Personality::cpu) continue;  // it cannot run the cpu kernels
    SpareDevice spare{.found = own[i], .space = are_separate ? -1 : spaces[i], .is_part_of_own = true};
    DeviceInfo& info = spare.found.info;
    info.personality = is_cpu ? Personality::gpu : Personality::cpu;
    info.personality_reason = "for what the kernels of the other personality cannot do";
    info.id += std::string("/") + samebytes::name_of(info.personality);
    return spare;
  }
  return other_cpu(true);
}

}  // namespace samebytes::detail
