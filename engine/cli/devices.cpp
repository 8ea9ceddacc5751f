// samebytes devices: every OpenCL device of the machine, and which memory mode and kernels Samebytes chose for it and
// why.
#include "samebytes/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
int run_devices(const Options& options) {
  const std::vector<DeviceInfo> devices = list_devices();
  const std::string trouble = explain_no_device();
  std::vector<DeviceFigures> figures;
  for (const DeviceInfo& device : devices) figures.push_back(measure_device(device));
  fmt::print("{}", options.json ? devices_json(devices, trouble, figures) + "\n" : devices_text(devices, figures));
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
