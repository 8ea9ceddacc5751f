#include "runtime/runtime.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/hash.h"
#include "runtime/allocator.h"
#include "runtime/carrier.h"
#include "runtime/compilers.h"
#include "runtime/devices.h"
#include "runtime/kernel_cache.h"
#include "runtime/ledger.h"
#include "runtime/matrix_instructions.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

cl::CommandQueue make_queue(const Device& device, cl_command_queue_properties properties) {
  return detail::make_queue(device.context(), device.handle(), properties, device.info().name);
}

// Of PoCL alone, which keeps what it compiled where other processes of it look.
std::unique_ptr<Compilers> make_compilers(const Device& device) {
  const RuntimeOptions& options = device.space().runtime().options();
  if (options.kernel_compiler.empty() || options.dry_run || device.kernel_cache() == nullptr) return nullptr;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int usable = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return std::make_unique<Compilers>(options.kernel_compiler, device.info().platform, device.info().name,
                                     options.threads > 0 ? std::min(options.threads, usable) : usable);
}

// As the driver, which reads the environment once.
const std::string& kept_kernels() {
  static const std::string folder = environment("POCL_KERNEL_CACHE") == "0" ? "" : kernel_cache_folder();
  return folder;
}

}  // namespace

Device::Device(Space& space, int index, DeviceInfo info, TuningPtr tuning, cl::Device handle, bool profile)
    : space_(space),
      index_(index),
      info_(std::move(info)),
      tuning_(std::move(tuning)),
      handle_(std::move(handle)),
      queue_(index == 0 && runtime().options().given ? copy_of(runtime().options().given->queue, info_.name)
                                                     : make_queue(*this, profile ? CL_QUEUE_PROFILING_ENABLE : 0)),
      compilers_(make_compilers(*this)),
      kernels_(*this) {
  // A simulator keeps its own bytes behind the pointers of its kernels.
  const bool shares_bytes = needs_no_map(info_.memory_mode);
  if (!shares_bytes || info_.platform == "Oclgrind" || runtime().is_dry()) return;
  const auto can = on_device(info_.name, [&] { return handle_.getInfo<CL_DEVICE_EXECUTION_CAPABILITIES>(); });
  runs_host_functions_ = (can & CL_EXEC_NATIVE_KERNEL) != 0;
}

KernelCache* Device::kernel_cache() const {
  return info_.platform == "Portable Computing Language" ? &space_.runtime().kernel_cache() : nullptr;
}

void Device::finish(const Watchdog::Pending& pending) {
  runtime().watchdog()->finish(
      queue_, info_.name, pending ? pending : [this] { return runtime().pending_text(); });
}

bool Device::has(Instruction instruction, std::atomic<int>& answer) const {
  constexpr int kUnknown = -1, kLanes = 16;
  int has = answer.load(std::memory_order_relaxed);
  if (has == kUnknown) {
    const bool fits = instruction == Instruction::ptx_mma
                          ? personality() == Personality::gpu
                          : personality() == Personality::cpu && vector_width(Dtype::f32) == kLanes;
    const bool may = fits && (space_.runtime().options().matrix_instructions & bit_of(instruction)) != 0;
    const auto works = [&] {  // a dry run runs no trial on a CPU
      return space_.runtime().is_dry() && instruction != Instruction::ptx_mma ? cpu_has(instruction)
                                                                              : can_use(instruction, info_, handle_());
    };
    has = may && works() ? 1 : 0;
    answer.store(has, std::memory_order_relaxed);
  }
  return has == 1;
}

void Device::leave() { queue_() = nullptr; }

void Device::drop_queue(bool makes_another) {
  if (!queue_()) return;
  const auto properties = on_device(info_.name, [&] { return queue_.getInfo<CL_QUEUE_PROPERTIES>(); });
  queue_() = nullptr;  // never released: releasing may wait for the commands in it
  if (makes_another) queue_ = make_queue(*this, properties);
}

void Device::calibrate_clock() { clock_.calibrate(queue_, runtime().watchdog(), info_.name); }

int vector_width_of(const DeviceInfo& info, Dtype real) {
  if (info.personality == Personality::gpu) return 1;
  const int width = info.vector_width >= 16 ? 16 : info.vector_width >= 8 ? 8 : 4;
  return real == f64 ? width / 2 : width;
}

Runtime::Runtime(RuntimeOptions options)
    : options_(std::move(options)),
      watchdog_(std::make_shared<Watchdog>(options_.stall_seconds)),
      ledger_(std::make_unique<Ledger>()),
      kernel_cache_(std::make_unique<KernelCache>(kept_kernels())) {
  if (!(options_.stall_seconds >= 0))
    throw ArgumentError("engine: stall_seconds must be 0 or more, got " + std::to_string(options_.stall_seconds));
  if (options_.steps_in_flight < 1)
    throw ArgumentError("engine: steps_in_flight must be 1 or more, got " + std::to_string(options_.steps_in_flight));
  open_devices();
  const auto is_a_cpu = [](const auto& device) { return device->info().type == "cpu"; };
  if (std::none_of(devices_.begin(), devices_.end(), is_a_cpu)) watchdog_->set_waiting(Waiting::looks);
  for (const auto& space : spaces_) space->open_memory(options_);
}

Runtime::~Runtime() {
  std::deque<TicketPtr> tickets;
  {
    MutexLock lock(mutex_);
    tickets.swap(in_flight_);
  }
  for (const TicketPtr& ticket : tickets) ticket->wait_quietly();
  if (carrier_) {  // it reads the times of its transfers: release the unread ones first
    Profile ignored;
    recorder_.take(0, ignored);
    carrier_.reset();
  }
  if (spaces_.empty() || !spaces_.back()->allocator()) return;  // the constructor threw
  const auto finish = [&](const cl::CommandQueue& queue, const std::string& name) {
    try {
      if (queue() && !watchdog_->is_given_up()) watchdog_->finish(queue, name);
    } catch (const DeviceError& error) {  // what may still run keeps its memory
      watchdog_->give_up(error.what());
    }
  };
  for (const auto& device : devices_) finish(device->queue(), device->info().name);
  for (const auto& space : spaces_) finish(space->host_queue(), space->name());
  if (watchdog_->is_given_up()) {
    leave_queues();
    kernel_cache_->keep_marker();
  }
  for (const auto& space : spaces_) space->allocator()->close();
}

// Releasing a queue may wait for the commands in it, and they may read what they were given.
void Runtime::leave_queues() {
  for (const auto& device : devices_) device->leave();
  for (const auto& space : spaces_) space->leave();
  for (cl::Event& tail : tails_) tail() = nullptr;
  for (cl::Event& crossing : crossings_) crossing() = nullptr;
}

const std::string& Runtime::device_name() const { return devices_[0]->info().name; }

std::string Runtime::tuning_hash() const {
  const std::string first = devices_[0]->tuning().hash();
  Hasher hasher;
  bool is_one = true;
  for (int d = 0; d < own_devices_; ++d) {
    const std::string& hash = devices_[static_cast<std::size_t>(d)]->tuning().hash();
    hasher.add(std::string_view(hash));
    is_one = is_one && hash == first;
  }
  return is_one ? first : hex_of(hasher.key().a);
}

void Runtime::set_tuning(const TuningPtr& tuning) {
  for (int d = 0; d < own_devices_; ++d) devices_[static_cast<std::size_t>(d)]->set_tuning(tuning);
}

StoragePtr Runtime::allocate(std::size_t bytes, Category category, const std::string& what, const char* layer,
                             int device, FirstUse first) {
  return devices_[static_cast<std::size_t>(device)]->space().allocate(bytes, category, what, layer, first);
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

void Runtime::set_memory_fraction(double fraction) {
  constexpr std::size_t kNoLimit = std::size_t{1} << 62;  // small enough to be added to
  for (const auto& space : spaces_) {
    const double bytes = fraction * static_cast<double>(space->info().memory_bytes);
    const bool has_limit = fraction > 0 && bytes < static_cast<double>(kNoLimit);
    space->allocator()->set_limit(has_limit ? static_cast<std::size_t>(bytes) : kNoLimit);
  }
}

bool Runtime::is_exact() const { return space().allocator()->is_exact(); }

std::vector<std::string> Runtime::check_guards() const {
  std::vector<std::string> lines;
  for (const auto& space : spaces_)
    for (std::string& line : space->allocator()->check_guards()) lines.push_back(std::move(line));
  return lines;
}

// Kernels are fit for the cache once a later ticket than that of their first launch is done.
void Runtime::settle_kernels(std::uint64_t newest, std::uint64_t done) {
  if (!kernel_cache_->is_unsettled()) return;
  if (const std::uint64_t uses = kernel_cache_->uses(); uses != kernel_uses_) {
    kernel_uses_ = uses;
    kernels_settle_at_ = newest;
  } else if (done >= kernels_settle_at_) {
    kernel_cache_->settle();
  }
}

void Runtime::compile(Device& device, const std::vector<CompileJob>& jobs) {
  constexpr std::size_t kWorthIt = 2;  // one is compiled as well by the driver here
  if (device.compilers() == nullptr || jobs.size() < kWorthIt || !device.compilers()->is_usable()) return;
  compiled_.asked.fetch_add(jobs.size(), std::memory_order_relaxed);
  device.compilers()->run(jobs, [&] { compiled_.done.fetch_add(1, std::memory_order_relaxed); });
  compiled_at_ = std::chrono::steady_clock::now();
  are_compiling_ = true;
}

void Runtime::end_idle_compilers() {
  constexpr std::chrono::seconds kIdle{1};
  if (!are_compiling_ || std::chrono::steady_clock::now() - compiled_at_ < kIdle) return;
  are_compiling_ = false;
  for (const auto& device : devices_)
    if (device->compilers() != nullptr) device->compilers()->close();
}

void Runtime::wait() {
  std::deque<TicketPtr> tickets;
  TicketPtr failed;
  {
    MutexLock lock(mutex_);
    tickets = in_flight_;  // they stay there, for whoever asks meanwhile what is pending
    failed.swap(failed_);
  }
  // Start with the last one, so that this thread wakes only once.
  for (auto ticket = tickets.rbegin(); ticket != tickets.rend(); ++ticket) (*ticket)->wait_quietly();
  {
    MutexLock lock(mutex_);
    const auto is_told = [&](const TicketPtr& ticket) { return std::ranges::count(tickets, ticket) > 0; };
    std::erase_if(in_flight_, is_told);
    if (failed_ && is_told(failed_)) failed_.reset();
  }
  for (const TicketPtr& ticket : tickets)
    if (!failed && ticket->is_failed()) failed = ticket;
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
    report.peak_bytes += other.peak_bytes;  // each context's own peak, whenever it occurred
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
  report.bytes_gathered = ledger_->gathered.load(std::memory_order_relaxed);
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

void Runtime::count_gather(std::size_t bytes) { ledger_->gathered.fetch_add(bytes, std::memory_order_relaxed); }

std::uint64_t Runtime::programs_built() const {
  std::uint64_t sum = 0;
  for (const auto& device : devices_) sum += device->kernels().programs_built();
  return sum;
}

}  // namespace samebytes::detail
