// How an engine gets its devices: the requested ones or parts of one, the spare device of an engine with fallback, and
// the contexts that they share.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/mutex.h"
#include "runtime/devices.h"
#include "runtime/runtime.h"
#include "runtime/spare_device.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kMostDevices =
    62;  // a submission has one bit per device including a spare one, and plans one for transfers

// Sub-devices are made once and live as long as the process: a worker of PoCL 3.1 still reads the device of an event
// that clFinish has waited for, and crashes the process if the last engine on a sub-device has just released it.
const std::vector<cl_device_id>& sub_devices_of(cl_device_id parent, const std::vector<int>& split,
                                                const std::string& name) {
  static Mutex mutex;
  using Made = std::map<std::pair<cl_device_id, std::vector<int>>, std::vector<cl_device_id>>;
  static Made& made = *new Made;
  const MutexLock lock(mutex);
  std::vector<cl_device_id>& parts = made[{parent, split}];
  if (!parts.empty()) return parts;
  std::vector<cl_device_partition_property> wanted{CL_DEVICE_PARTITION_BY_COUNTS};
  wanted.insert(wanted.end(), split.begin(), split.end());
  wanted.push_back(CL_DEVICE_PARTITION_BY_COUNTS_LIST_END);
  wanted.push_back(0);
  std::vector<cl_device_id> all(split.size());
  const cl_int outcome =
      clCreateSubDevices(parent, wanted.data(), static_cast<cl_uint>(all.size()), all.data(), nullptr);
  if (outcome != CL_SUCCESS) {
    const std::string status = status_name(outcome);
    throw DeviceError("engine: the driver of " + name + " makes no parts of it (clCreateSubDevices: " + status +
                          "); leave split and threads out, or limit the driver's own threads",
                      "clCreateSubDevices", status, name);
  }
  return parts = std::move(all);
}

// The device of a user's queue, after checking that the queue, its context and the options agree.
FoundDevice device_of_given(const RuntimeOptions& options) {
  const auto& [context, queue] = *options.given;
  if (!context() || !queue()) throw ArgumentError("engine: expected a context and a queue, got an empty handle");
  if (!options.device.empty() || !options.devices.empty() || !options.split.empty())
    throw ArgumentError("engine: the queue says which device works; leave device, devices and split out");
  const cl_command_queue_properties has = queue.getInfo<CL_QUEUE_PROPERTIES>();
  if (queue.getInfo<CL_QUEUE_CONTEXT>()() != context())
    throw ArgumentError("engine: the queue belongs to another context than the one given with it");
  if (has & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    throw ArgumentError("engine: expected an in-order queue, got one with CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE");
  if (options.profile && !(has & CL_QUEUE_PROFILING_ENABLE))
    throw ArgumentError("engine: profile was asked for; make the queue with CL_QUEUE_PROFILING_ENABLE");
  cl_device_id device = nullptr;
  check_cl(clGetCommandQueueInfo(queue(), CL_QUEUE_DEVICE, sizeof(cl_device_id), &device, nullptr),
           "clGetCommandQueueInfo", "the queue that was given");
  FoundDevice found = find_device(device);
  if (!found.info.refused.empty())
    throw ArgumentError("engine: '" + found.info.name + "' cannot be used: " + found.info.refused);
  return found;
}

// A device, or its parts if it is split.
std::vector<FoundDevice> parts_of(FoundDevice found, const RuntimeOptions& options) {
  const DeviceInfo& info = found.info;
  std::vector<int> split = options.split;
  if (split.empty() && options.threads > 0 && options.threads < info.cores) split = {options.threads};
  std::vector<FoundDevice> parts;
  if (split.empty()) {
    parts.push_back(std::move(found));
    return parts;
  }
  const int cores = std::accumulate(split.begin(), split.end(), 0);
  const bool has_bad = std::any_of(split.begin(), split.end(), [](int count) { return count < 1; });
  if (has_bad || cores > info.cores || split.size() > kMostDevices)
    throw ArgumentError("engine: split wants parts of 1 or more cores, " + std::to_string(info.cores) +
                        " in all; got " + std::to_string(cores) + " in " + std::to_string(split.size()) + " parts");
  const std::vector<cl_device_id>& handles = sub_devices_of(found.handle, split, info.name);
  for (std::size_t i = 0; i < split.size(); ++i) {
    FoundDevice& part = parts.emplace_back(FoundDevice{info, found.platform, handles[i]});
    part.info.cores = split[i];
    if (split.size() > 1) part.info.id += "." + std::to_string(i);
  }
  return parts;
}

// One mode for all devices of a context.
void choose_common_mode(const std::vector<DeviceInfo*>& infos, int space, const RuntimeOptions& options) {
  MemoryMode mode = MemoryMode::system;
  for (const DeviceInfo* info : infos) mode = worse_of(mode, info->memory_mode);
  std::string reason = "what all devices of its platform can use";
  if (options.force_mode) {
    mode = options.mode;
    reason = "asked for";
  } else if (read_memory_mode(&mode, space)) {
    reason = "asked for by SAMEBYTES_MEMORY";
  }
  for (DeviceInfo* info : infos) {
    std::string why_not;
    if (!can_use_mode(*info, mode, &why_not))
      throw ArgumentError(std::string("engine: memory mode ") + samebytes::name_of(mode) + " cannot be used on " +
                          info->name + ": " + why_not);
    if (info->memory_mode != mode) info->memory_reason = reason;
    if (reason.rfind("asked", 0) == 0) info->memory_reason = reason;
    info->memory_mode = mode;
  }
}

}  // namespace

struct Runtime::Wanted {
  FoundDevice found;
  TuningPtr tuning;
  int space = 0;
};

// The devices in order, each with its choices and the number of its space: one space per platform.
std::vector<Runtime::Wanted> Runtime::wanted_devices() {
  if (!options_.devices.empty() && !options_.device.empty())
    throw ArgumentError("engine: device and devices were both given; name all of them in devices");
  MemoryMode forced = options_.mode;
  const bool is_forced = options_.force_mode || read_memory_mode(&forced);
  std::vector<FoundDevice> found;
  if (options_.given)
    found.push_back(on_device("the queue that was given", [&] { return device_of_given(options_); }));
  else if (options_.devices.empty())
    found.push_back(find_device(options_.device));
  else
    found = find_devices(options_.devices, is_forced ? &forced : nullptr);
  if (!options_.split.empty() && found.size() > 1)
    throw ArgumentError("engine: split is of one device, " + std::to_string(found.size()) + " were named");
  std::vector<Wanted> wanted;
  for (FoundDevice& each : found) {
    read_personality(&each.info.personality);
    std::string file;
    TuningPtr tuning = load_tuning(options_.tuning, each.info, &file);
    if (!file.empty() && tuning_file_.find(file) == std::string::npos)
      tuning_file_ += (tuning_file_.empty() ? "" : ", ") + file;
    for (FoundDevice& part : parts_of(std::move(each), options_)) wanted.push_back({std::move(part), tuning});
  }
  if (wanted.size() > kMostDevices)
    throw ArgumentError("engine: expected at most " + std::to_string(kMostDevices) + " devices, got " +
                        std::to_string(wanted.size()));
  const std::string contexts = environment("SAMEBYTES_CONTEXTS");
  if (!contexts.empty() && contexts != "platform" && contexts != "separate")
    throw ArgumentError("SAMEBYTES_CONTEXTS: expected platform or separate, got '" + contexts + "'");
  std::vector<cl_platform_id> platforms;
  for (Wanted& each : wanted) {
    const auto known = std::find(platforms.begin(), platforms.end(), each.found.platform());
    each.space = static_cast<int>(known - platforms.begin());
    if (contexts == "separate") each.space = static_cast<int>(platforms.size());
    if (each.space == static_cast<int>(platforms.size())) platforms.push_back(each.found.platform());
  }
  return wanted;
}

// Placed behind the others, in one of their contexts or in a new one. It uses the built-in choices.
void Runtime::add_spare(std::vector<Wanted>& wanted) {
  std::vector<FoundDevice> own;
  std::vector<int> spaces;
  for (const Wanted& each : wanted) {
    own.push_back(each.found);
    spaces.push_back(each.space);
  }
  const bool are_separate = options_.given || environment("SAMEBYTES_CONTEXTS") == "separate";
  std::optional<SpareDevice> spare = find_spare(own, spaces, are_separate);
  if (!spare) return;
  RuntimeOptions whole = options_;
  whole.split.clear();
  if (!spare->is_part_of_own) spare->found = std::move(parts_of(std::move(spare->found), whole).front());
  DeviceInfo& info = spare->found.info;
  std::string ignored;
  if (spare->space < 0) {
    MemoryMode mode = options_.mode;
    const bool is_asked_for = options_.force_mode || read_memory_mode(&mode, own_spaces_);
    if (is_asked_for && can_use_mode(info, mode, &ignored)) info.memory_mode = mode;
    spare->space = own_spaces_;
  } else {
    const auto beside = std::find(spaces.begin(), spaces.end(), spare->space);
    info.memory_mode = own[static_cast<std::size_t>(beside - spaces.begin())].info.memory_mode;
  }
  wanted.push_back({spare->found, load_tuning("", info, &ignored), spare->space});
}

void Runtime::make_devices(std::vector<Wanted> wanted) {
  const auto infos_of = [&](int space) {
    std::vector<DeviceInfo*> infos;
    for (Wanted& each : wanted)
      if (each.space == space) infos.push_back(&each.found.info);
    return infos;
  };
  own_devices_ = static_cast<int>(wanted.size());
  for (auto infos = infos_of(0); !infos.empty(); infos = infos_of(own_spaces_))
    choose_common_mode(infos, own_spaces_++, options_);
  if (options_.fallback) add_spare(wanted);
  for (int s = 0;; ++s) {
    const std::vector<DeviceInfo*> infos = infos_of(s);
    if (infos.empty()) break;
    std::vector<cl::Device> handles;  // each once
    for (const Wanted& each : wanted)
      if (each.space == s && std::none_of(handles.begin(), handles.end(),
                                          [&](const cl::Device& known) { return known() == each.found.handle; }))
        handles.push_back(borrow(each.found.handle));
    DeviceInfo common = *infos.front();
    for (const DeviceInfo* info : infos) {
      common.max_allocation_bytes = std::min(common.max_allocation_bytes, info->max_allocation_bytes);
      common.alignment_bytes = std::max(common.alignment_bytes, info->alignment_bytes);
    }
    spaces_.push_back(std::make_unique<Space>(*this, s, std::move(common), handles));
  }
  std::vector<bool> has_first(spaces_.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Wanted& each = wanted[i];
    Space& space = *spaces_[static_cast<std::size_t>(each.space)];
    devices_.push_back(std::make_unique<Device>(space, static_cast<int>(i), std::move(each.found.info),
                                                std::move(each.tuning), borrow(each.found.handle), options_.profile));
    if (options_.fallback) devices_.back()->kernels().keep_what_builds();
    if (!has_first[static_cast<std::size_t>(each.space)]) space.set_first_device(*devices_.back());
    has_first[static_cast<std::size_t>(each.space)] = true;
  }
  tails_.resize(devices_.size());
  crossings_.resize(spaces_.size());
  places_.resize(devices_.size());
  std::iota(places_.begin(), places_.end(), 0);
  is_given_up_.resize(devices_.size());
}

void Runtime::open_devices() { make_devices(wanted_devices()); }

}  // namespace samebytes::detail
