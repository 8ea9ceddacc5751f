// What people ask about devices: the list with the environment applied, why there is none, pinning of threads.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "runtime/devices.h"
#include "runtime/kernel_cache.h"
#include "samebytes/error.h"

namespace samebytes {

namespace {

using detail::environment;

bool can_write(const std::string& folder) {
  std::error_code failed, unseen;
  std::filesystem::create_directories(folder, failed);
  if (failed && !std::filesystem::is_directory(folder, unseen)) return false;
  std::string probe = folder + "/samebytes-XXXXXX";
  const int file = mkstemp(probe.data());
  if (file < 0) return false;
  close(file);
  unlink(probe.c_str());
  return true;
}

constexpr const char* kInstall = "install a driver, for instance with `apt install pocl-opencl-icd` for the processor";

}  // namespace

std::vector<DeviceInfo> list_devices() {
  MemoryMode mode{};
  Personality personality{};
  const bool has_mode = detail::read_memory_mode(&mode), has_personality = detail::read_personality(&personality);
  std::vector<DeviceInfo> infos;
  for (detail::FoundDevice& found : detail::find_devices()) {
    DeviceInfo& info = found.info;
    std::string reason;
    if (has_mode) {
      if (detail::can_use_mode(info, mode, &reason)) {
        info.memory_mode = mode;
        info.memory_reason = "asked for by SAMEBYTES_MEMORY";
      } else if (info.refused.empty()) {
        info.refused = std::string("SAMEBYTES_MEMORY=") + name_of(mode) + ": " + reason;
      }
    }
    if (has_personality) {
      info.personality = personality;
      info.personality_reason = "asked for by SAMEBYTES_PERSONALITY";
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::string explain_no_device() {
  std::string trouble;
  const std::vector<detail::FoundDevice> devices = detail::find_devices(&trouble);
  std::string refused;
  for (const detail::FoundDevice& found : devices) {
    if (found.info.refused.empty()) return {};
    refused += (refused.empty() ? "" : "; ") + found.info.name + ": " + found.info.refused;
  }
  // Check the cache folder first: a machine may have other, empty platforms beside a PoCL that cannot start.
  const std::vector<cl::Platform> platforms = detail::find_platforms(trouble.empty() ? &trouble : nullptr);
  const bool has_pocl = std::any_of(platforms.begin(), platforms.end(), [](const cl::Platform& platform) {
    const std::string name = detail::on_device("", [&] { return platform.getInfo<CL_PLATFORM_NAME>(); });
    return name.find("Portable Computing Language") != std::string::npos;
  });
  const std::string cache = detail::kernel_cache_folder();
  if (has_pocl && !can_write(cache))
    return "No OpenCL device: PoCL is installed, but its kernel cache folder " + cache +
           " cannot be written; set POCL_CACHE_DIR to a folder that can.";
  if (!refused.empty()) return "No OpenCL device can be used (" + refused + "); " + kInstall + ".";
  if (!trouble.empty()) return "No OpenCL device: " + trouble + "; the OpenCL loader or its drivers are broken.";
  if (platforms.empty()) {
    const std::string vendors = environment("OCL_ICD_VENDORS");
    if (!vendors.empty())
      return "No OpenCL platform: OCL_ICD_VENDORS is " + vendors +
             ", where no working driver is registered; unset it or " + kInstall + ".";
    return std::string("No OpenCL platform is installed; ") + kInstall + ".";
  }
  return std::string("The installed OpenCL platforms offer no device; ") + kInstall + ".";
}

void pin_threads(int threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int machine = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  const int usable = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : machine;
  const int wanted = threads > 0 ? std::min(threads, usable) : usable;
  // PoCL pins thread i to core i of the machine: correct only if this process may use every core.
  if (usable == machine && wanted == machine) setenv("POCL_AFFINITY", "1", 0);
  if (wanted >= machine) return;
  for (const char* name : {"POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT", "POCL_MAX_COMPUTE_UNITS"})  // by version
    setenv(name, std::to_string(wanted).c_str(), threads > 0 ? 1 : 0);
}

}  // namespace samebytes
