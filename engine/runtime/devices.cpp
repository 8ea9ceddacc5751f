#include "runtime/devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>

#include "core/forks.h"
#include "core/mutex.h"
#include "runtime/kernel_speed.h"
#include "runtime/protect.h"
#include "runtime/usm.h"
#include "samebytes/error.h"
#include "samebytes/log.h"

namespace samebytes {

const char* name_of(MemoryMode mode) {
  switch (mode) {
    case MemoryMode::system: return "system";
    case MemoryMode::fine: return "fine";
    case MemoryMode::coarse: return "coarse";
    case MemoryMode::hostptr: return "hostptr";
    case MemoryMode::copy: return "copy";
    case MemoryMode::usm: return "usm";
  }
  return "?";
}

const char* name_of(Personality personality) { return personality == Personality::cpu ? "cpu" : "gpu"; }

namespace detail {

namespace {

constexpr int kQueries = 3;

// Whether an error is the answer to a query, and not its failure.
bool is_answer(cl_int status) {
  return status == CL_INVALID_VALUE || status == CL_DEVICE_NOT_FOUND || status == -1001 /* no platform */;
}

// What a query gives; one that fails is made again. Throws cl::Error.
template <class Query>
auto ask(const Query& query) {
  for (int i = 1;; ++i) {
    try {
      auto answer = query();
      if (i > 1) log_message("warning", "recovered: a query for devices failed at first; nothing is lost");
      return answer;
    } catch (const cl::Error& error) {
      if (is_answer(error.err()) || i == kQueries) throw;
    }
  }
}

// A query that the driver does not know gives an empty value, or the fallback.
template <cl_device_info what, class T = decltype(cl::Device().getInfo<what>())>
T info_of(const cl::Device& device, T fallback = {}) {
  try {
    return ask([&] { return device.getInfo<what>(); });
  } catch (const cl::Error& error) {
    if (!is_answer(error.err())) throw;
    return fallback;
  }
}

template <cl_device_info what>
std::string text_of(const cl::Device& device) {
  const std::string text = info_of<what>(device);
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The number in "OpenCL 3.0 PoCL ..." and "OpenCL C 1.2 PoCL".
std::string version_in(const std::string& text) {
  const auto start = text.find_first_of("0123456789");
  return start == std::string::npos ? "" : text.substr(start, text.find(' ', start) - start);
}

void choose_memory_mode(DeviceInfo* info) {
  if (info->svm == "system") {
    info->memory_mode = MemoryMode::system;
    info->memory_reason = "the device reads any host pointer";
  } else if (info->svm.rfind("fine", 0) == 0) {
    info->memory_mode = MemoryMode::fine;
    info->memory_reason = "fine-grained buffer SVM";
  } else if (info->has_usm && (info->unified_memory || info->type == "cpu")) {
    info->memory_mode = MemoryMode::usm;
    info->memory_reason = "the device reads the host's memory of cl_intel_unified_shared_memory";
  } else if (info->svm == "coarse") {
    info->memory_mode = MemoryMode::coarse;
    info->memory_reason = "coarse-grained SVM";
  } else if (info->unified_memory || info->type == "cpu") {
    info->memory_mode = MemoryMode::hostptr;
    info->memory_reason = "no SVM, but the device shares the host's memory";
  } else {
    info->memory_mode = MemoryMode::copy;
    info->memory_reason = "no SVM and memory of its own";
  }
}

// By what the driver announces, or by a probe where it does not announce fused multiply-add.
void choose_personality(DeviceInfo* info, const cl::Device& device) {
  info->personality = Personality::gpu;
  if (info->type != "cpu") {
    info->personality_reason = "the device is no CPU";
    return;
  }
  std::string measured;
  bool are_vectors_slow = false;
  if (!info->has_fma && info->refused.empty()) {
    if (const std::optional<KernelSpeed> speed = known_kernel_speed(*info, device())) {
      info->has_fma = has_fast_fma(*speed);
      are_vectors_slow = !has_fast_vectors(*speed);
      measured = "; measured: " + text_of_speed(*speed);
    }
  }
  if (!info->has_fma) {
    info->personality_reason = "the CPU device has no fast fused multiply-add" + measured;
  } else if (info->vector_width < 4) {
    info->personality_reason =
        "the CPU device has vectors of " + std::to_string(info->vector_width) + " float" + measured;
  } else if (are_vectors_slow) {
    info->personality_reason = "the CPU device is slow with vectors in groups of one item" + measured;
  } else {
    info->personality = Personality::cpu;
    info->personality_reason =
        "a CPU with vectors of " + std::to_string(info->vector_width) + " float and fused multiply-add" + measured;
  }
}

std::vector<cl_device_id> devices_of(const cl::Platform& platform) {
  const auto list = [&](cl_uint room, cl_device_id* devices, cl_uint* count) {
    const cl_int status = clGetDeviceIDs(platform(), CL_DEVICE_TYPE_ALL, room, devices, count);
    if (status != CL_SUCCESS) throw cl::Error(status, "clGetDeviceIDs");
  };
  cl_uint count = 0;
  list(0, nullptr, &count);
  std::vector<cl_device_id> devices(count);
  list(count, devices.data(), nullptr);
  return devices;
}

// Null for a device that is no part of another one.
cl_device_id whole_of(cl_device_id device) {
  return ask([&] {
    cl_device_id whole = nullptr;
    const cl_int status = clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof(cl_device_id), &whole, nullptr);
    if (status != CL_SUCCESS && !is_answer(status)) throw cl::Error(status, "clGetDeviceInfo");
    return whole;
  });
}

FoundDevice look_at(const cl::Platform& platform, const std::string& platform_name, cl_device_id handle) {
  const cl::Device device = borrow(handle);
  DeviceInfo info;
  info.name = text_of<CL_DEVICE_NAME>(device);
  info.vendor = text_of<CL_DEVICE_VENDOR>(device);
  info.platform = platform_name;
  info.driver = text_of<CL_DRIVER_VERSION>(device);
  info.opencl_c = version_in(text_of<CL_DEVICE_OPENCL_C_VERSION>(device));
  const auto type = info_of<CL_DEVICE_TYPE>(device);
  info.type = type & CL_DEVICE_TYPE_GPU ? "gpu" : type & CL_DEVICE_TYPE_CPU ? "cpu" : "accelerator";
  const std::string version = version_in(text_of<CL_DEVICE_VERSION>(device));
  const bool has_svm_query = version.empty() ? false : version[0] >= '2';
  const auto svm = has_svm_query ? info_of<CL_DEVICE_SVM_CAPABILITIES>(device) : 0;
  info.svm = svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM     ? "system"
             : svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER   ? (svm & CL_DEVICE_SVM_ATOMICS ? "fine+atomics" : "fine")
             : svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER ? "coarse"
                                                       : "none";
  info.unified_memory = info_of<CL_DEVICE_HOST_UNIFIED_MEMORY>(device) != CL_FALSE;
  const std::string extensions = " " + text_of<CL_DEVICE_EXTENSIONS>(device) + " ";
  info.has_usm = extensions.find(" cl_intel_unified_shared_memory ") != std::string::npos &&
                 find_usm(platform(), device()) != nullptr;
  info.has_f16 = extensions.find(" cl_khr_fp16 ") != std::string::npos;
  info.has_f64 =
      extensions.find(" cl_khr_fp64 ") != std::string::npos || info_of<CL_DEVICE_DOUBLE_FP_CONFIG>(device) != 0;
  info.has_fma = (info_of<CL_DEVICE_SINGLE_FP_CONFIG>(device) & CL_FP_FMA) != 0;
  info.cores = static_cast<int>(info_of<CL_DEVICE_MAX_COMPUTE_UNITS>(device, 1));
  info.vector_width = static_cast<int>(info_of<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>(device, 1));
  info.memory_bytes = info_of<CL_DEVICE_GLOBAL_MEM_SIZE>(device);
  info.max_allocation_bytes = info_of<CL_DEVICE_MAX_MEM_ALLOC_SIZE>(device);
  info.alignment_bytes = info_of<CL_DEVICE_MEM_BASE_ADDR_ALIGN>(device, 1024) / 8;
  info.max_group_size = info_of<CL_DEVICE_MAX_WORK_GROUP_SIZE>(device, 1);
  choose_memory_mode(&info);
  if (!info_of<CL_DEVICE_AVAILABLE>(device))
    info.refused = "the driver says that it is not available";
  else if (!info_of<CL_DEVICE_COMPILER_AVAILABLE>(device))
    info.refused = "its driver has no compiler";
  else if (version < "1.2")
    info.refused = "OpenCL " + version + ", 1.2 is needed";
  choose_personality(&info, device);
  return {std::move(info), platform, handle};
}

bool contains(std::string text, std::string part) {
  auto lower = [](unsigned char c) { return static_cast<char>(std::tolower(c)); };
  std::transform(text.begin(), text.end(), text.begin(), lower);
  std::transform(part.begin(), part.end(), part.begin(), lower);
  return text.find(part) != std::string::npos;
}

// A real GPU, then a CPU that runs the cpu kernels (PoCL), then the rest; software renderers last.
int rank_of(const DeviceInfo& info) {
  if (!info.refused.empty()) return 0;
  if (contains(info.name, "llvmpipe") || contains(info.name, "softpipe")) return 1;
  if (info.type == "gpu") return 5;
  if (info.personality == Personality::cpu) return 4;
  return info.type == "accelerator" ? 3 : 2;
}

std::string list_text(const std::vector<FoundDevice>& devices) {
  std::string text;
  for (const FoundDevice& found : devices) {
    const DeviceInfo& info = found.info;
    text += (text.empty() ? "" : ", ") + info.id + " '" + info.name + "'";
    if (!info.refused.empty()) text += " (refused: " + info.refused + ")";
  }
  return text;
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool read_memory_mode(MemoryMode* mode, int context) {
  const std::string text = environment("SAMEBYTES_MEMORY");
  if (text.empty()) return false;
  std::size_t begin = 0;
  for (std::size_t comma = 0; context > 0 && (comma = text.find(',', begin)) != std::string::npos; --context)
    begin = comma + 1;
  const std::string word = text.substr(begin, text.find(',', begin) - begin);
  for (const MemoryMode each : kMemoryModes)
    if (word == name_of(each)) {
      *mode = each;
      return true;
    }
  throw ArgumentError("SAMEBYTES_MEMORY: expected system, fine, usm, coarse, hostptr or copy, got '" + word + "'");
}

bool read_personality(Personality* personality) {
  const std::string text = environment("SAMEBYTES_PERSONALITY");
  if (text.empty()) return false;
  if (text != "cpu" && text != "gpu")
    throw ArgumentError("SAMEBYTES_PERSONALITY: expected cpu or gpu, got '" + text + "'");
  *personality = text == "cpu" ? Personality::cpu : Personality::gpu;
  return true;
}

bool can_use_mode(const DeviceInfo& info, MemoryMode mode, std::string* reason) {
  const bool fine = info.svm.rfind("fine", 0) == 0 || info.svm == "system";
  switch (mode) {
    case MemoryMode::system:
      // A CPU device with fine-grained SVM runs its kernels in this process, so any pointer works, although the driver
      // does not announce it.
      *reason = "the device does not read any host pointer (SVM: " + info.svm + ")";
      return info.svm == "system" || (fine && info.type == "cpu");
    case MemoryMode::fine: *reason = "the device has no fine-grained SVM (SVM: " + info.svm + ")"; return fine;
    case MemoryMode::coarse: *reason = "the device has no SVM"; return fine || info.svm == "coarse";
    case MemoryMode::usm: *reason = "the driver has no cl_intel_unified_shared_memory"; return info.has_usm;
    case MemoryMode::hostptr:
    case MemoryMode::copy: return true;
  }
  return false;
}

MemoryMode worse_of(MemoryMode a, MemoryMode b) {
  return std::find(std::begin(kMemoryModes), std::end(kMemoryModes), a) <
                 std::find(std::begin(kMemoryModes), std::end(kMemoryModes), b)
             ? b
             : a;
}

std::vector<cl::Platform> find_platforms(std::string* trouble) {
  try {
    return ask([] {
      std::vector<cl::Platform> platforms;
      cl::Platform::get(&platforms);
      return platforms;
    });
  } catch (const cl::Error& error) {
    if (trouble && !is_answer(error.err()))
      *trouble = std::string(error.what()) + " failed: " + status_name(error.err());
    return {};  // the loader reports an error if there is no platform
  }
}

std::vector<FoundDevice> find_devices(std::string* trouble) {
  static const ProcessMark first;  // drivers start threads at the first query for devices
  first.check("devices", "OpenCL was first used");
  const DriverThreads rights;
  // Drivers start at the first query, and not all of them stand two that start at once.
  static Mutex& mutex = *new Mutex;
  const MutexLock lock(mutex);
  std::vector<FoundDevice> found;
  for (const cl::Platform& platform : find_platforms(trouble)) {
    try {
      const std::string name = ask([&] { return platform.getInfo<CL_PLATFORM_NAME>(); });
      for (const cl_device_id device : ask([&] { return devices_of(platform); }))
        found.push_back(look_at(platform, name, device));
    } catch (const cl::Error& error) {  // a driver that does not start; explain_no_device() reports it
      if (is_answer(error.err())) continue;
      const std::string why = std::string(error.what()) + " failed: " + status_name(error.err());
      if (trouble) *trouble = why;
      log_message("warning", "devices: a driver is left out, since " + why);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const FoundDevice& a, const FoundDevice& b) {
    const int ra = rank_of(a.info), rb = rank_of(b.info);
    if (ra != rb) return ra > rb;
    if (a.info.unified_memory != b.info.unified_memory)
      return !a.info.unified_memory;  // of two GPUs, prefer the one with its own memory
    const bool are_cpus = a.info.type == "cpu" && b.info.type == "cpu";
    return are_cpus && a.info.cores > b.info.cores;
  });
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].info.index = static_cast<int>(i);
    found[i].info.id = found[i].info.type + ":" + std::to_string(seen[found[i].info.type]++);
  }
  return found;
}

FoundDevice find_device(const std::string& name) {
  std::vector<FoundDevice> devices = find_devices();
  const bool any =
      std::any_of(devices.begin(), devices.end(), [](const FoundDevice& d) { return d.info.refused.empty(); });
  if (!any) throw DeviceError(explain_no_device(), "clGetDeviceIDs", "CL_DEVICE_NOT_FOUND", "");
  if (name.empty()) return std::move(devices.front());
  FoundDevice* chosen = nullptr;
  const bool is_index = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  for (FoundDevice& device : devices) {
    const DeviceInfo& info = device.info;
    const bool is_exact = is_index ? std::to_string(info.index) == name : info.id == name || info.type == name;
    if (is_exact) {
      chosen = &device;
      break;
    }
  }
  for (FoundDevice& device : devices)
    if (!chosen && !is_index && (contains(device.info.name, name) || contains(device.info.platform, name)))
      chosen = &device;
  if (!chosen) throw ArgumentError("device: no device is called '" + name + "'; there is " + list_text(devices));
  if (!chosen->info.refused.empty())
    throw ArgumentError("device: '" + chosen->info.name + "' cannot be used: " + chosen->info.refused);
  return std::move(*chosen);
}

FoundDevice find_device(cl_device_id device) {
  cl_device_id whole = device;
  for (cl_device_id parent = device; parent; parent = whole_of(parent)) whole = parent;
  const cl::Device asked = borrow(device);
  for (FoundDevice& found : find_devices()) {
    if (found.handle != whole) continue;
    found.handle = device;
    found.info.cores = static_cast<int>(info_of<CL_DEVICE_MAX_COMPUTE_UNITS>(asked, 1));
    return found;
  }
  throw ArgumentError("device: '" + info_of<CL_DEVICE_NAME>(asked) + "' belongs to no platform that is installed");
}

std::vector<FoundDevice> find_devices(const std::vector<std::string>& names, const MemoryMode* wanted) {
  std::vector<FoundDevice> chosen;
  if (names == std::vector<std::string>{"all"}) {
    std::string left_out;
    for (FoundDevice& found : find_devices()) {
      std::string reason = found.info.refused;
      if (!reason.empty() || (wanted && !can_use_mode(found.info, *wanted, &reason)))
        left_out += (left_out.empty() ? "" : "; ") + found.info.id + " '" + found.info.name + "': " + reason;
      else
        chosen.push_back(std::move(found));
    }
    if (chosen.empty() && left_out.empty()) return {find_device("")};  // throws, and says what to install
    if (chosen.empty()) throw ArgumentError("devices: of all, none can be used (" + left_out + ")");
    return chosen;
  }
  for (const std::string& name : names) {
    if (name == "all")
      throw ArgumentError("devices: expected 'all' stands alone, got " + std::to_string(names.size()) + " names");
    if (name.empty()) throw ArgumentError("devices: a name is empty; there is " + list_text(find_devices()));
    FoundDevice found = find_device(name);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i].handle == found.handle)
        throw ArgumentError("devices: '" + names[i] + "' and '" + name + "' are one device, " + found.info.id + " '" +
                            found.info.name + "'");
    chosen.push_back(std::move(found));
  }
  return chosen;
}

DeviceInfo choose_device(const std::string& name) { return find_device(name).info; }

}  // namespace detail
}  // namespace samebytes
