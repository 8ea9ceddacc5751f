// samebytes devices: every OpenCL device of the machine, and which memory mode and kernels Samebytes chose for it and
// why.
#include "samebytes/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

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

Json to_json(const DeviceInfo& info, const std::vector<DeviceInfo>& devices) {
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

void print_row(const char* key, const std::string& value) { fmt::print("    {:<11}{}\n", key, value); }

void print_device(const DeviceInfo& info, const std::vector<DeviceInfo>& devices, bool first) {
  fmt::print("{}  {}{}\n", info.id, info.name, first ? "   (used unless --device says otherwise)" : "");
  print_row("--device", fmt::format("{}, or a part of its name", fmt::join(names_of(info, devices), ", ")));
  print_row("driver", fmt::format("{} {}", info.platform, info.driver));
  print_row("OpenCL C", fmt::format("{}, shared virtual memory: {}, 16-bit arithmetic: {}, double: {}", info.opencl_c,
                                    info.svm, yes_no(info.has_f16), yes_no(info.has_f64)));
  print_row("size",
            fmt::format("{} {}, vectors of {} floats, {} of memory, largest array {}, aligned to {} bytes", info.cores,
                        info.cores == 1 ? "core" : "cores", info.vector_width, bytes_text(info.memory_bytes),
                        bytes_text(info.max_allocation_bytes), info.alignment_bytes));
  if (!info.refused.empty()) {
    print_row("not used", info.refused);
    return;
  }
  print_row("memory", fmt::format("{}: {}", name_of(info.memory_mode), info.memory_reason));
  print_row("kernels", fmt::format("{}: {}", name_of(info.personality), info.personality_reason));
  if (const auto companions = companions_of(info, devices); !companions.empty())
    print_row("together", fmt::format("shares its memory with {}", fmt::join(companions, ", ")));
}

}  // namespace

int run_devices(const Options& options) {
  const std::vector<DeviceInfo> devices = list_devices();
  const std::string trouble = explain_no_device();
  if (options.json) {
    Json list = Json::array();
    for (const DeviceInfo& info : devices) list.push_back(to_json(info, devices));
    fmt::print("{}\n", Json{{"devices", list}, {"trouble", trouble}}.dump());
  } else {
    bool first = true;
    for (const DeviceInfo& info : devices) {
      print_device(info, devices, first && info.refused.empty());
      if (info.refused.empty()) first = false;
    }
  }
  if (trouble.empty()) return kDone;
  std::fflush(stdout);
  fmt::print(stderr, "samebytes: {}\n", trouble);
  return kFailed;
}

bool is_list(const std::string& device) { return device == "all" || device.find(',') != std::string::npos; }

void expect_one_device(const Options& options, const std::string& verb) {
  if (is_list(options.device))
    throw UsageError(verb + " uses one device, --device " + options.device +
                     " names several; train and bench take them");
}

EngineOptions devices_of(const Options& options, const std::string& device) {
  EngineOptions result;
  result.split = options.devices.split;
  if (!is_list(device)) {
    result.device = device;
    return result;
  }
  for (std::size_t begin = 0; begin <= device.size();) {
    const std::size_t end = std::min(device.find(',', begin), device.size());
    result.devices.push_back(device.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

}  // namespace samebytes::cli
