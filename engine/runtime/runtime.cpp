#include "runtime/runtime.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/mutex.h"
#include "runtime/allocator.h"
#include "runtime/devices.h"
#include "runtime/ledger.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

constexpr int kMostDevices = 64;  // a submission keeps a bit for each

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

}  // namespace

Device::Device(Runtime& runtime, int index, DeviceInfo info, cl_context context, cl_device_id id, bool profile)
    : runtime_(runtime),
      index_(index),
      info_(std::move(info)),
      context_(context),
      id_(id),
      queue_(make_queue(context, id, info_.name, profile ? CL_QUEUE_PROFILING_ENABLE : 0)),
      kernels_(*this) {
  // A simulator has bytes of its own behind the pointers of its kernels.
  const MemoryMode mode = info_.memory_mode;
  const bool shares_bytes = mode == MemoryMode::fine || mode == MemoryMode::system;
  if (!shares_bytes || info_.platform == "Oclgrind" || runtime_.is_dry()) return;
  cl_device_exec_capabilities can = 0;
  check_cl(clGetDeviceInfo(id_, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, nullptr), "clGetDeviceInfo",
           info_.name);
  runs_host_functions_ = (can & CL_EXEC_NATIVE_KERNEL) != 0;
}

void Device::finish() { check_cl(clFinish(queue()), "clFinish", info_.name); }

void Device::calibrate_clock() { clock_.calibrate(queue(), info_.name); }

int vector_width_of(const DeviceInfo& info, Dtype real) {
  if (info.personality == Personality::gpu) return 1;
  const int width = info.vector_width >= 16 ? 16 : info.vector_width >= 8 ? 8 : 4;
  return real == f64 ? width / 2 : width;
}

const Tuning& Device::tuning() const { return runtime_.tuning(); }

Runtime::Runtime(const RuntimeOptions& options) : options_(options), ledger_(std::make_unique<Ledger>()) {
  if (options.steps_in_flight < 1)
    throw ArgumentError("engine: steps_in_flight is 1 or more, " + std::to_string(options.steps_in_flight) + " came");
  FoundDevice found = find_device(options.device);
  choose_mode(&found.info);
  read_personality(&found.info.personality);
  tuning_ = load_tuning(options.tuning, found.info, &tuning_file_);
  make_devices(found.info, found.id);
  host_queue_ = make_queue(context(), device(0).id(), device_name());

  const std::string allocator = environment("SAMEBYTES_ALLOCATOR");
  if (!allocator.empty() && allocator != "exact" && allocator != "cache")
    throw ArgumentError("SAMEBYTES_ALLOCATOR: cache or exact, '" + allocator + "' came");
  AllocatorSetup setup{.context = context(), .info = found.info, .mode = mode_};
  setup.is_dry = options.dry_run;
  setup.has_shadow = coarse_shadow_;
  setup.is_exact = allocator == "exact";
  // A simulator that sees every access (Oclgrind) wants nothing around the array.
  setup.has_guards = setup.is_exact && !setup.is_dry && found.info.platform != "Oclgrind" && mode_ != MemoryMode::copy;
  setup.protection = setup.is_dry ? Protection::off : wanted_protection();
  const bool is_pocl = found.info.platform == "Portable Computing Language" && found.info.name.rfind("pthread", 0) == 0;
  if (setup.protection == Protection::keys && !is_pocl) setup.protection = Protection::pages;
  if (setup.protection != Protection::off && setup.is_exact)
    throw ArgumentError("SAMEBYTES_PROTECT closes whole pages, SAMEBYTES_ALLOCATOR=exact has none: set one of them");
  if (setup.protection != Protection::off && found.info.type != "cpu" && mode_ != MemoryMode::hostptr &&
      mode_ != MemoryMode::copy)
    throw ArgumentError(std::string("SAMEBYTES_PROTECT: the memory of mode ") + samebytes::name_of(mode_) +
                        " belongs to the driver of " + found.info.name +
                        "; use SAMEBYTES_MEMORY=hostptr or copy with it");
  setup.limit = options.memory_limit ? options.memory_limit : default_memory_limit(found.info);
  allocator_ = std::make_shared<Allocator>(std::move(setup));
}

void Runtime::choose_mode(DeviceInfo* info) {
  if (options_.force_mode) {
    info->memory_mode = options_.mode;
    info->memory_reason = "asked for";
  } else if (read_memory_mode(&info->memory_mode)) {
    info->memory_reason = "asked for by SAMEBYTES_MEMORY";
  }
  std::string reason;
  if (!can_use_mode(*info, info->memory_mode, &reason))
    throw ArgumentError(std::string("engine: memory mode ") + samebytes::name_of(info->memory_mode) +
                        " cannot be used on " + info->name + ": " + reason);
  mode_ = info->memory_mode;
  // A device with fine-grained SVM has an empty map, with which no missing map would ever show.
  coarse_shadow_ = mode_ == MemoryMode::coarse && info->svm != "coarse";
}

void Runtime::make_devices(const DeviceInfo& info, cl_device_id parent) {
  std::vector<int> split = options_.split;
  if (split.empty() && options_.threads > 0 && options_.threads < info.cores) split = {options_.threads};
  std::vector<cl_device_id> ids{parent};
  if (!split.empty()) {
    const int cores = std::accumulate(split.begin(), split.end(), 0);
    const bool has_bad = std::any_of(split.begin(), split.end(), [](int count) { return count < 1; });
    if (has_bad || cores > info.cores || split.size() > kMostDevices)
      throw ArgumentError("engine: split wants parts of 1 or more cores, " + std::to_string(info.cores) + " in all; " +
                          std::to_string(cores) + " in " + std::to_string(split.size()) + " parts came");
    ids = sub_devices_of(parent, split, info.name);
  }
  cl_int status = CL_SUCCESS;
  context_ = Handle<cl_context>(
      clCreateContext(nullptr, static_cast<cl_uint>(ids.size()), ids.data(), nullptr, nullptr, &status));
  check_cl(status, "clCreateContext", info.name);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    DeviceInfo part = info;
    if (!split.empty()) part.cores = split[i];
    devices_.push_back(
        std::make_unique<Device>(*this, static_cast<int>(i), std::move(part), context(), ids[i], options_.profile));
  }
  tails_.resize(devices_.size());
}

Runtime::~Runtime() {
  std::deque<TicketPtr> tickets;
  {
    MutexLock lock(mutex_);
    tickets.swap(in_flight_);
  }
  for (const TicketPtr& ticket : tickets) ticket->wait_quietly();
  if (!allocator_) return;  // the constructor threw
  for (const auto& device : devices_) clFinish(device->queue());
  clFinish(host_queue());
  allocator_->close();
}

const std::string& Runtime::device_name() const { return devices_[0]->info().name; }

StoragePtr Runtime::allocate(std::size_t bytes, Category category, const std::string& what, const char* layer) {
  if (bytes == 0) return nullptr;
  std::unique_ptr<Storage::Block> block = allocator_->take(bytes, category, what, layer);
  return std::make_shared<Storage>(*this, allocator_, std::move(block), bytes, category);
}

std::size_t Runtime::clear_cache() { return allocator_->clear_cache(); }

std::uint64_t Runtime::memory_peaks() const { return allocator_->peaks(); }
void Runtime::name_memory_peak(const std::string& what, const char* layer) { allocator_->name_peak(what, layer); }
bool Runtime::set_memory_log(std::shared_ptr<MemoryLog> log) { return allocator_->set_log(std::move(log)); }
std::shared_ptr<const MemoryLog> Runtime::memory_log() const { return allocator_->log(); }

void Runtime::set_memory_limit(std::size_t bytes) { allocator_->set_limit(bytes); }

bool Runtime::is_exact() const { return allocator_->is_exact(); }

std::vector<std::string> Runtime::check_guards() const { return allocator_->check_guards(); }

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
  allocator_->fill(&report);
  return report;
}

HeldPeak Runtime::held_peak() const { return allocator_->held_peak(); }

TransferReport Runtime::transfers() const {
  TransferReport report;
  report.bytes_to_device = ledger_->to_device.load(std::memory_order_relaxed);
  report.bytes_to_host = ledger_->to_host.load(std::memory_order_relaxed);
  report.bytes_copied = report.bytes_to_device + report.bytes_to_host;
  report.bytes_mapped = ledger_->mapped.load(std::memory_order_relaxed);
  report.relayout_bytes = ledger_->relayout.load(std::memory_order_relaxed);
  return report;
}

void Runtime::count_copy(std::size_t bytes, bool to_device, const std::string& what) {
  if (options_.forbid_copies && bytes)
    throw ArgumentError(what + ": forbid_copies is set and " + std::to_string(bytes) + " bytes would be copied " +
                        (to_device ? "to" : "from") + " " + device_name() + " (memory mode " +
                        samebytes::name_of(mode_) + ")");
  (to_device ? ledger_->to_device : ledger_->to_host).fetch_add(bytes, std::memory_order_relaxed);
}

void Runtime::count_map(std::size_t bytes) { ledger_->mapped.fetch_add(bytes, std::memory_order_relaxed); }

void Runtime::count_relayout(std::size_t bytes) { ledger_->relayout.fetch_add(bytes, std::memory_order_relaxed); }

std::uint64_t Runtime::programs_built() const {
  std::uint64_t sum = 0;
  for (const auto& device : devices_) sum += device->kernels().programs_built();
  return sum;
}

}  // namespace samebytes::detail
