// The devices of a machine as text and as JSON, with the mode and the kernels of each and why.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/device.h"
#include "samebytes/error.h"
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

const DeviceFigures& figures_of(std::size_t device, const std::vector<DeviceFigures>& figures) {
  static const DeviceFigures none;
  return device < figures.size() ? figures[device] : none;
}

Json json_of(const DeviceInfo& info, const std::vector<DeviceInfo>& devices, const DeviceFigures& figures) {
  Json speed = Json::object(), hand_over = Json::object(), instructions = Json::object();
  for (const MatrixInstruction& each : figures.instructions)
    instructions[each.name] = {{"works", each.works}, {"trouble", each.trouble}};
  if (figures.speed)
    speed = {
        {"vectors", figures.speed->vectors}, {"items", figures.speed->items}, {"products", figures.speed->products}};
  for (const HandOver& cost : figures.hand_over)
    hand_over[name_of(cost.mode)] = {{"to_device_seconds", cost.to_device}, {"to_host_seconds", cost.to_host}};
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
          {"gflops", speed},
          {"matrix_instructions", instructions},
          {"hand_over_bytes", figures.handed_over},
          {"hand_over", hand_over},
          {"refused", info.refused}};
}

const char* yes_no(bool yes) { return yes ? "yes" : "no"; }

std::string row(const char* key, const std::string& value) { return fmt::format("    {:<11}{}\n", key, value); }

std::string text_of(const DeviceInfo& info, const std::vector<DeviceInfo>& devices, bool first,
                    const DeviceFigures& figures) {
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
  if (figures.speed)
    text += row("measured", fmt::format("multiply-adds of vectors {:.3g} GFLOP/s, of 64 items {:.3g}, of vectors with "
                                        "a separate addition {:.3g}",
                                        figures.speed->vectors, figures.speed->items, figures.speed->products));
  std::vector<std::string> instructions;
  for (const MatrixInstruction& each : figures.instructions)
    instructions.push_back(each.works ? each.name + " works" : fmt::format("{}: {}", each.name, each.trouble));
  if (!instructions.empty()) text += row("matrices", fmt::format("{}", fmt::join(instructions, "; ")));
  std::vector<std::string> costs;
  for (const HandOver& cost : figures.hand_over)
    costs.push_back(fmt::format("{} {:.3g} + {:.3g}", name_of(cost.mode), 1e3 * cost.to_device, 1e3 * cost.to_host));
  if (!costs.empty())
    text += row("hand over", fmt::format("{} to the device and back, in ms: {}", bytes_text(figures.handed_over),
                                         fmt::join(costs, ", ")));
  if (const auto companions = companions_of(info, devices); !companions.empty())
    text += row("together", fmt::format("shares its memory with {}", fmt::join(companions, ", ")));
  return text;
}

}  // namespace

DeviceFigures measure_device(const DeviceInfo& device) {
  DeviceFigures figures;
  if (!device.refused.empty()) return figures;
  try {
    figures.speed = measure_kernel_speed(device);
    figures.instructions = find_matrix_instructions(device);
    figures.hand_over = measure_hand_over(device, figures.handed_over);
  } catch (const DeviceError&) {  // a device that cannot run the probe is listed without it
  }
  return figures;
}

std::string devices_text(const std::vector<DeviceInfo>& devices, const std::vector<DeviceFigures>& figures) {
  std::string text;
  bool first = true;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const bool is_used = devices[i].refused.empty();
    text += text_of(devices[i], devices, first && is_used, figures_of(i, figures));
    if (is_used) first = false;
  }
  return text;
}

std::string devices_json(const std::vector<DeviceInfo>& devices, const std::string& trouble,
                         const std::vector<DeviceFigures>& figures) {
  Json list = Json::array();
  for (std::size_t i = 0; i < devices.size(); ++i) list.push_back(json_of(devices[i], devices, figures_of(i, figures)));
  return detail::to_line(Json{{"devices", list}, {"trouble", trouble}});
}

}  // namespace samebytes
