#include "runtime/runtime.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/hash.h"
#include "core/mutex.h"
#include "runtime/allocator.h"
#include "runtime/carrier.h"
#include "runtime/devices.h"
#include "runtime/ledger.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

constexpr std::size_t kMostDevices = 62;  // a submission keeps a bit for each, and plans one for transfers

Handle<cl_command_queue> make_queue(cl_context context, cl_device_id id, const std::string& name,
                                    cl_command_queue_properties properties = 0) {
  cl_int status = CL_SUCCESS;
  Handle<cl_command_queue> queue(clCreateCommandQueue(context, id, properties, &status));
  check_cl(status, "clCreateCommandQueue", name);
  return queue;
}

// Parts of a device are made once and live as long as the process: a worker of PoCL 3.1 still looks at the device of an
// event that clFinish has waited for, and ends the process where the last engine on a part has just released it.
std::vector<cl_device_id> sub_devices_of(cl_device_id parent, const std::vector<int>& split, const std::string& name) {
  static Mutex mutex;
  static std::map<std::pair<cl_device_id, std::vector<int>>, std::vector<cl_device_id>> made;
  const MutexLock lock(mutex);
  std::vector<cl_device_id>& ids = made[{parent, split}];
  if (!ids.empty()) return ids;
  std::vector<cl_device_partition_property> wanted{CL_DEVICE_PARTITION_BY_COUNTS};
  wanted.insert(wanted.end(), split.begin(), split.end());
  wanted.push_back(CL_DEVICE_PARTITION_BY_COUNTS_LIST_END);
  wanted.push_back(0);
  std::vector<cl_device_id> parts(split.size());
  check_cl(clCreateSubDevices(parent, wanted.data(), static_cast<cl_uint>(parts.size()), parts.data(), nullptr),
           "clCreateSubDevices", name);
  return ids = parts;
}

// A device, or the parts that it is to be split into.
std::vector<FoundDevice> parts_of(const FoundDevice& found, const RuntimeOptions& options) {
  const DeviceInfo& info = found.info;
  std::vector<int> split = options.split;
  if (split.empty() && options.threads > 0 && options.threads < info.cores) split = {options.threads};
  if (split.empty()) return {found};
  const int cores = std::accumulate(split.begin(), split.end(), 0);
  const bool has_bad = std::any_of(split.begin(), split.end(), [](int count) { return count < 1; });
  if (has_bad || cores > info.cores || split.size() > kMostDevices)
    throw ArgumentError("engine: split wants parts of 1 or more cores, " + std::to_string(info.cores) + " in all; " +
                        std::to_string(cores) + " in " + std::to_string(split.size()) + " parts came");
  const std::vector<cl_device_id> ids = sub_devices_of(found.id, split, info.name);
  std::vector<FoundDevice> parts;
  for (std::size_t i = 0; i < split.size(); ++i) {
    FoundDevice& part = parts.emplace_back(found);
    part.id = ids[i];
    part.info.cores = split[i];
    if (split.size() > 1) part.info.id += "." + std::to_string(i);
  }
  return parts;
}

// One mode for all devices of a context.
void choose_mode(const std::vector<DeviceInfo*>& infos, int space, const RuntimeOptions& options) {
  MemoryMode mode = MemoryMode::system;
  for (const DeviceInfo* info : infos) mode = std::max(mode, info->memory_mode);  // the best is the first
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

Device::Device(Space& space, int index, DeviceInfo info, TuningPtr tuning, cl_device_id id, bool profile)
    : space_(space),
      index_(index),
      info_(std::move(info)),
      tuning_(std::move(tuning)),
      id_(id),
      queue_(make_queue(space.context(), id, info_.name, profile ? CL_QUEUE_PROFILING_ENABLE : 0)),
      kernels_(*this) {
  // A simulator has bytes of its own behind the pointers of its kernels.
  const MemoryMode mode = info_.memory_mode;
  const bool shares_bytes = mode == MemoryMode::fine || mode == MemoryMode::system;
  if (!shares_bytes || info_.platform == "Oclgrind" || runtime().is_dry()) return;
  cl_device_exec_capabilities can = 0;
  check_cl(clGetDeviceInfo(id_, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, nullptr), "clGetDeviceInfo",
           info_.name);
  runs_host_functions_ = (can & CL_EXEC_NATIVE_KERNEL) != 0;
}

void Device::finish() { check_cl(clFinish(queue()), "clFinish", info_.name); }

void Device::drop_queue(bool makes_another) {
  if (!queue_) return;
  cl_command_queue_properties properties = 0;
  check_cl(clGetCommandQueueInfo(queue(), CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr),
           "clGetCommandQueueInfo", info_.name);
  queue_.release();  // to release it may wait for what is in it
  if (makes_another) queue_ = make_queue(space_.context(), id_, info_.name, properties);
}

void Device::calibrate_clock() { clock_.calibrate(queue(), info_.name); }

int vector_width_of(const DeviceInfo& info, Dtype real) {
  if (info.personality == Personality::gpu) return 1;
  const int width = info.vector_width >= 16 ? 16 : info.vector_width >= 8 ? 8 : 4;
  return real == f64 ? width / 2 : width;
}

struct Runtime::Wanted {
  FoundDevice found;
  TuningPtr tuning;
  int space = 0;
};

Runtime::Runtime(const RuntimeOptions& options) : options_(options), ledger_(std::make_unique<Ledger>()) {
  if (options.steps_in_flight < 1)
    throw ArgumentError("engine: steps_in_flight is 1 or more, " + std::to_string(options.steps_in_flight) + " came");
  make_devices(wanted_devices());
  for (const auto& space : spaces_) space->open_memory(options);
}

// The devices in their order, each with its choices and the number of its space: one for each platform.
std::vector<Runtime::Wanted> Runtime::wanted_devices() {
  if (!options_.devices.empty() && !options_.device.empty())
    throw ArgumentError("engine: device and devices were both given; name all of them in devices");
  MemoryMode forced = options_.mode;
  const bool is_forced = options_.force_mode || read_memory_mode(&forced);
  std::vector<FoundDevice> found;
  if (options_.devices.empty())
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
    for (FoundDevice& part : parts_of(each, options_)) wanted.push_back({std::move(part), tuning});
  }
  if (wanted.size() > kMostDevices)
    throw ArgumentError("engine: at most " + std::to_string(kMostDevices) + " devices, " +
                        std::to_string(wanted.size()) + " came");
  const std::string contexts = environment("SAMEBYTES_CONTEXTS");
  if (!contexts.empty() && contexts != "platform" && contexts != "separate")
    throw ArgumentError("SAMEBYTES_CONTEXTS: platform or separate, '" + contexts + "' came");
  std::vector<cl_platform_id> platforms;
  for (Wanted& each : wanted) {
    const auto known = std::find(platforms.begin(), platforms.end(), each.found.platform);
    each.space = static_cast<int>(known - platforms.begin());
    if (contexts == "separate") each.space = static_cast<int>(platforms.size());
    if (each.space == static_cast<int>(platforms.size())) platforms.push_back(each.found.platform);
  }
  return wanted;
}

void Runtime::make_devices(std::vector<Wanted> wanted) {
  for (int s = 0;; ++s) {
    std::vector<cl_device_id> ids;
    std::vector<DeviceInfo*> infos;
    for (Wanted& each : wanted)
      if (each.space == s) {
        ids.push_back(each.found.id);
        infos.push_back(&each.found.info);
      }
    if (ids.empty()) break;
    choose_mode(infos, s, options_);
    DeviceInfo common = *infos.front();
    for (const DeviceInfo* info : infos) {
      common.max_allocation_bytes = std::min(common.max_allocation_bytes, info->max_allocation_bytes);
      common.alignment_bytes = std::max(common.alignment_bytes, info->alignment_bytes);
    }
    spaces_.push_back(std::make_unique<Space>(*this, s, std::move(common), ids));
  }
  std::vector<bool> has_first(spaces_.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Wanted& each = wanted[i];
    Space& space = *spaces_[static_cast<std::size_t>(each.space)];
    devices_.push_back(std::make_unique<Device>(space, static_cast<int>(i), std::move(each.found.info),
                                                std::move(each.tuning), each.found.id, options_.profile));
    if (!has_first[static_cast<std::size_t>(each.space)]) space.set_first_device(*devices_.back());
    has_first[static_cast<std::size_t>(each.space)] = true;
  }
  tails_.resize(devices_.size());
  crossings_.resize(spaces_.size());
  places_.resize(devices_.size());
  std::iota(places_.begin(), places_.end(), 0);
  is_given_up_.resize(devices_.size());
}

Runtime::~Runtime() {
  std::deque<TicketPtr> tickets;
  {
    MutexLock lock(mutex_);
    tickets.swap(in_flight_);
  }
  for (const TicketPtr& ticket : tickets) ticket->wait_quietly();
  if (carrier_) {  // which reads the times of its transfers: those that nobody asked for go first
    Profile ignored;
    recorder_.take(0, ignored);
    carrier_.reset();
  }
  if (spaces_.empty() || !spaces_.back()->allocator()) return;  // the constructor threw
  for (const auto& device : devices_) clFinish(device->queue());
  for (const auto& space : spaces_) {
    clFinish(space->host_queue());
    space->allocator()->close();
  }
}

const std::string& Runtime::device_name() const { return devices_[0]->info().name; }

std::string Runtime::tuning_hash() const {
  const std::string first = devices_[0]->tuning().hash();
  Hasher hasher;
  bool is_one = true;
  for (const auto& device : devices_) {
    hasher.add(std::string_view(device->tuning().hash()));
    is_one = is_one && device->tuning().hash() == first;
  }
  return is_one ? first : hex_of(hasher.key().a);
}

void Runtime::set_tuning(const TuningPtr& tuning) {
  for (const auto& device : devices_) device->set_tuning(tuning);
}

StoragePtr Runtime::allocate(std::size_t bytes, Category category, const std::string& what, const char* layer,
                             int device) {
  return devices_[static_cast<std::size_t>(device)]->space().allocate(bytes, category, what, layer);
}

StoragePtr Runtime::adopt(void* pointer, std::size_t bytes, std::function<void()> deleter, Adoption* verdict) {
  return space().adopt(pointer, bytes, std::move(deleter), verdict);
}

std::size_t Runtime::clear_cache() {
  std::size_t bytes = 0;
  for (const auto& space : spaces_) bytes += space->allocator()->clear_cache();
  return bytes;
}

std::uint64_t Runtime::memory_peaks() const {
  std::uint64_t sum = 0;
  for (const auto& space : spaces_) sum += space->allocator()->peaks();
  return sum;
}

void Runtime::name_memory_peak(const std::string& what, const char* layer) {
  space().allocator()->name_peak(what, layer);
}

bool Runtime::set_memory_log(const std::shared_ptr<MemoryLog>& log) {
  bool is_set = true;
  for (const auto& each : spaces_) is_set = each->allocator()->set_log(log) && is_set;
  return is_set;
}

std::shared_ptr<const MemoryLog> Runtime::memory_log() const {
  std::vector<MemoryArray> others;
  for (std::size_t s = 1; s < spaces_.size(); ++s)
    for (MemoryArray& array : spaces_[s]->allocator()->in_use()) others.push_back(std::move(array));
  return space().allocator()->log(std::move(others));
}

void Runtime::set_memory_limit(std::size_t bytes) {
  for (const auto& space : spaces_) space->allocator()->set_limit(bytes);
}

bool Runtime::is_exact() const { return space().allocator()->is_exact(); }

std::vector<std::string> Runtime::check_guards() const {
  std::vector<std::string> lines;
  for (const auto& space : spaces_)
    for (std::string& line : space->allocator()->check_guards()) lines.push_back(std::move(line));
  return lines;
}

void Runtime::wait() {
  std::deque<TicketPtr> tickets;
  TicketPtr failed;
  {
    MutexLock lock(mutex_);
    tickets.swap(in_flight_);
    failed.swap(failed_);
  }
  for (const TicketPtr& ticket : tickets) {
    ticket->wait_quietly();
    if (!failed && ticket->is_failed()) failed = ticket;
  }
  if (failed) failed->throw_if_failed();
}

MemoryReport Runtime::memory() const {
  MemoryReport report;
  space().allocator()->fill(&report);
  for (std::size_t s = 1; s < spaces_.size(); ++s) {
    MemoryReport other;
    spaces_[s]->allocator()->fill(&other);
    report.live_bytes += other.live_bytes;
    report.cached_bytes += other.cached_bytes;
    report.adopted_bytes += other.adopted_bytes;
    report.library_bytes += other.library_bytes;
    report.peak_bytes += other.peak_bytes;  // each context's own, whenever that was
    report.allocations += other.allocations;
    report.live_by_category += other.live_by_category;
    report.peak_by_category += other.peak_by_category;
  }
  return report;
}

HeldPeak Runtime::held_peak() const {
  HeldPeak peak;
  for (const auto& space : spaces_) {
    const HeldPeak own = space->allocator()->held_peak();
    peak.cached += own.cached;
    for (std::size_t i = 0; i < own.by_category.size(); ++i) peak.by_category[i] += own.by_category[i];
  }
  return peak;
}

TransferReport Runtime::transfers() const {
  TransferReport report;
  report.bytes_to_device = ledger_->to_device.load(std::memory_order_relaxed);
  report.bytes_to_host = ledger_->to_host.load(std::memory_order_relaxed);
  report.bytes_between_contexts = ledger_->crossed.load(std::memory_order_relaxed);
  report.crossings = ledger_->crossings.load(std::memory_order_relaxed);
  report.bytes_copied = report.bytes_to_device + report.bytes_to_host + report.bytes_between_contexts;
  report.bytes_mapped = ledger_->mapped.load(std::memory_order_relaxed);
  report.relayout_bytes = ledger_->relayout.load(std::memory_order_relaxed);
  return report;
}

void Runtime::count_copy(std::size_t bytes, bool to_device, const std::string& what) {
  if (options_.forbid_copies && bytes)
    throw ArgumentError(what + ": forbid_copies is set and " + std::to_string(bytes) + " bytes would be copied " +
                        (to_device ? "to" : "from") + " " + device_name() + " (memory mode " +
                        samebytes::name_of(mode()) + ")");
  (to_device ? ledger_->to_device : ledger_->to_host).fetch_add(bytes, std::memory_order_relaxed);
}

void Runtime::count_crossing(std::size_t bytes, const std::string& what) {
  if (options_.forbid_copies && bytes)
    throw ArgumentError(what + ": forbid_copies is set and " + std::to_string(bytes) +
                        " bytes would cross from one context to another");
  ledger_->crossed.fetch_add(bytes, std::memory_order_relaxed);
  ledger_->crossings.fetch_add(1, std::memory_order_relaxed);
}

void Runtime::count_map(std::size_t bytes) { ledger_->mapped.fetch_add(bytes, std::memory_order_relaxed); }

void Runtime::count_relayout(std::size_t bytes) { ledger_->relayout.fetch_add(bytes, std::memory_order_relaxed); }

std::uint64_t Runtime::programs_built() const {
  std::uint64_t sum = 0;
  for (const auto& device : devices_) sum += device->kernels().programs_built();
  return sum;
}

}  // namespace samebytes::detail
