// The devices of a machine as text and as JSON, with the mode and the kernels of each and why.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "samebytes/device.h"
#include "samebytes/figures.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;

// What --device may say for it, besides a part of its name.
std::vector<std::string> names_of(const DeviceInfo& info, const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> names{info.id};
  const auto first =
      std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& d) { return d.type == info.type; });
  if (first->index == info.index) names.push_back(info.type);
  names.push_back(std::to_string(info.index));
  return names;
}

// Those that share its memory when they work together.
std::vector<std::string> companions_of(const DeviceInfo& info, const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> ids;
  for (const DeviceInfo& other : devices)
    if (other.index != info.index && other.platform == info.platform && other.refused.empty()) ids.push_back(other.id);
  return ids;
}

Json json_of(const DeviceInfo& info, const std::vector<DeviceInfo>& devices) {
  return {{"id", info.id},
          {"names", names_of(info, devices)},
          {"shares_memory_with", companions_of(info, devices)},
          {"index", info.index},
          {"name", info.name},
          {"vendor", info.vendor},
          {"platform", info.platform},
          {"driver", info.driver},
          {"opencl_c", info.opencl_c},
          {"type", info.type},
          {"svm", info.svm},
          {"unified_memory", info.unified_memory},
          {"f16", info.has_f16},
          {"f64", info.has_f64},
          {"fma", info.has_fma},
          {"cores", info.cores},
          {"vector_width", info.vector_width},
          {"memory_bytes", info.memory_bytes},
          {"max_allocation_bytes", info.max_allocation_bytes},
          {"alignment_bytes", info.alignment_bytes},
          {"max_group_size", info.max_group_size},
          {"memory_mode", name_of(info.memory_mode)},
          {"memory_reason", info.memory_reason},
          {"personality", name_of(info.personality)},
          {"personality_reason", info.personality_reason},
          {"refused", info.refused}};
}

const char* yes_no(bool yes) { return yes ? "yes" : "no"; }

std::string row(const char* key, const std::string& value) { return fmt::format("    {:<11}{}\n", key, value); }

std::string text_of(const DeviceInfo& info, const std::vector<DeviceInfo>& devices, bool first) {
  std::string text =
      fmt::format("{}  {}{}\n", info.id, info.name, first ? "   (used unless --device says otherwise)" : "");
  text += row("--device", fmt::format("{}, or a part of its name", fmt::join(names_of(info, devices), ", ")));
  text += row("driver", fmt::format("{} {}", info.platform, info.driver));
  text += row("OpenCL C", fmt::format("{}, shared virtual memory: {}, 16-bit arithmetic: {}, double: {}", info.opencl_c,
                                      info.svm, yes_no(info.has_f16), yes_no(info.has_f64)));
  text += row("size", fmt::format("{}, vectors of {} floats, {} of memory, largest array {}, aligned to {} bytes",
                                  counted_text(info.cores, "core"), info.vector_width, bytes_text(info.memory_bytes),
                                  bytes_text(info.max_allocation_bytes), info.alignment_bytes));
  if (!info.refused.empty()) {
    text += row("not used", info.refused);
    return text;
  }
  text += row("memory", fmt::format("{}: {}", name_of(info.memory_mode), info.memory_reason));
  text += row("kernels", fmt::format("{}: {}", name_of(info.personality), info.personality_reason));
  if (const auto companions = companions_of(info, devices); !companions.empty())
    text += row("together", fmt::format("shares its memory with {}", fmt::join(companions, ", ")));
  return text;
}

}  // namespace

std::string devices_text(const std::vector<DeviceInfo>& devices) {
  std::string text;
  bool first = true;
  for (const DeviceInfo& info : devices) {
    text += text_of(info, devices, first && info.refused.empty());
    if (info.refused.empty()) first = false;
  }
  return text;
}

std::string devices_json(const std::vector<DeviceInfo>& devices, const std::string& trouble) {
  Json list = Json::array();
  for (const DeviceInfo& info : devices) list.push_back(json_of(info, devices));
  return Json{{"devices", list}, {"trouble", trouble}}.dump();
}

}  // namespace samebytes
