// The runtime of one engine: its devices (whole ones or parts, each with one in-order queue), the spaces that they
// share (one OpenCL context per platform) and the ledgers. The layers above get storages from it and hand it
// submissions. Thread-safe, except that submissions are made under the engine's lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "profile/recorder.h"
#include "runtime/kernels.h"
#include "runtime/matrix_instructions.h"
#include "runtime/opencl.h"
#include "runtime/queue_clock.h"
#include "runtime/space.h"
#include "runtime/storage.h"
#include "runtime/ticket.h"
#include "runtime/tuning.h"
#include "runtime/watchdog.h"
#include "samebytes/device.h"
#include "samebytes/memory.h"

namespace samebytes::detail {

class Carrier;
class Compilers;
class KernelCache;
class MemoryLog;
struct FoundDevice;

// A user's context and in-order queue, which the runtime uses instead of its own.
struct GivenQueue {
  cl::Context context;
  cl::CommandQueue queue;
};

struct RuntimeOptions {
  std::string device;                // "", "cpu", "gpu:0", an index, or part of a name
  std::vector<std::string> devices;  // several names, or "all"; instead of `device`
  std::vector<int> split;            // sub-devices by cores; empty: the whole device
  int threads = 0;                   // PoCL's thread limit that the command requested; 0: all
  bool force_mode = false;           // false: SAMEBYTES_MEMORY, or the runtime chooses
  MemoryMode mode = MemoryMode::fine;
  bool forbid_copies = false;
  std::size_t memory_limit = 0;  // 0: 85 % of the smaller of the cgroup's limit and the available memory
  int steps_in_flight = 3;
  double stall_seconds = 300;                           // after which a wait ends with a DeviceError; 0: never
  bool dry_run = false;                                 // builds, allocates and enqueues nothing, but counts everything
  bool profile = false;                                 // queues record the times of their commands
  bool fallback = false;                                // adds a spare CPU device for what the others cannot run
  std::optional<GivenQueue> given;                      // instead of device, devices and split
  Instructions matrix_instructions = kAllInstructions;  // those that kernels use where they work
  std::string kernel_compiler;        // a program that compiles kernels beside this one (compilers.h); empty: none
  std::optional<std::string> tuning;  // a store file, "" for the built-in choices; nullopt: the device's own store
};

// Vector lanes that kernels of `real` (f32 or f64) use; 1 in the gpu personality.
int vector_width_of(const DeviceInfo& info, Dtype real);

// One device, or sub-device, of the engine.
class Device {
 public:
  Device(Space& space, int index, DeviceInfo info, TuningPtr tuning, cl::Device handle, bool profile);
  int index() const { return index_; }
  const DeviceInfo& info() const { return info_; }
  Personality personality() const { return info_.personality; }
  int vector_width(Dtype real) const { return vector_width_of(info_, real); }
  const Tuning& tuning() const { return *tuning_; }
  void set_tuning(TuningPtr tuning) { tuning_ = std::move(tuning); }
  Space& space() const { return space_; }
  const cl::Context& context() const { return space_.context(); }
  const cl::Device& handle() const { return handle_; }
  const cl::CommandQueue& queue() const { return queue_; }
  void finish(const Watchdog::Pending& pending = {});  // waits for everything enqueued on it
  // Whether products of bf16 use vdpbf16ps; the first call tries it (matrix_instructions.h).
  bool has_bf16_dots() const { return has(Instruction::avx512_bf16, bf16_dots_); }
  // The same of tdpbf16ps; every CPU that has it rounds by an instruction of AVX512-BF16, too.
  bool has_bf16_tiles() const { return has(Instruction::amx_bf16, bf16_tiles_); }
  // The same of bytes: vpdpbusd, and tdpbusd, which a CPU with tdpbssd has, too.
  bool has_int8_dots() const { return has(Instruction::avx512_vnni, int8_dots_); }
  bool has_int8_tiles() const { return has(Instruction::amx_int8, int8_tiles_); }
  // Whether products of 16-bit types use mma.sync of NVIDIA's GPUs.
  bool has_ptx_mma() const { return has(Instruction::ptx_mma, ptx_mma_); }
  KernelLibrary& kernels() { return kernels_; }
  KernelCache* kernel_cache() const;  // null: its driver keeps no kernels that we know of
  // Processes that compile kernels for it, with RuntimeOptions::kernel_compiler; null: this one does.
  Compilers* compilers() const { return compilers_.get(); }
  // Whether its queue can run host functions between kernels, on the bytes that kernels see (enqueue_host).
  bool runs_host_functions() const { return runs_host_functions_; }
  // Converts the times of this device's events to the host's clock; calibrate() while nothing is enqueued.
  const EventClock& clock() const { return clock_; }
  void calibrate_clock();
  // Abandons the queue with its commands; nobody waits for them. Opens a new queue if `makes_another`.
  void drop_queue(bool makes_another);
  void leave();  // never releases its queue
  Runtime& runtime() { return space_.runtime(); }

 private:
  bool has(Instruction instruction, std::atomic<int>& answer) const;
  Space& space_;
  int index_;
  DeviceInfo info_;
  TuningPtr tuning_;
  cl::Device handle_;
  cl::CommandQueue queue_;
  bool runs_host_functions_ = false;
  mutable std::atomic<int> bf16_dots_ = -1, bf16_tiles_ = -1, ptx_mma_ = -1;  // -1: not yet asked
  mutable std::atomic<int> int8_dots_ = -1, int8_tiles_ = -1;
  const std::unique_ptr<Compilers> compilers_;
  KernelLibrary kernels_;
  QueueClock clock_;
};

// Everything that one evaluation enqueues. Use: acquire every storage, enqueue in order, finish. Storages must live
// until finish(); the runtime keeps their memory while the device uses it.
class Submission {
 public:
  explicit Submission(Runtime& runtime);
  ~Submission();  // finishes without throwing if finish() was not called
  Submission(const Submission&) = delete;

  // Throws ArgumentError if a living view conflicts, DeviceError if the bytes are lost; see Storage::acquire_device.
  void acquire(Storage& storage, bool writes, const std::string& op, std::size_t offset, std::size_t length,
               bool whole = false);

  // The source of the next launches, for errors.
  void set_source(LaunchSource source) { source_ = std::move(source); }

  // Enqueues one kernel on a device. Errors name `op`. Returns the launch's index in this submission. Throws
  // DeviceError.
  std::uint64_t enqueue(Device& device, Kernel& kernel, const Geometry& geometry, const char* op,
                        const std::shared_ptr<const LaunchInfo>& info = nullptr);
  // The last command enqueued on a device, or a transfer, for others to wait for. An empty mark is already complete.
  struct Mark {
    cl::Event event;      // of a transfer: in its target's context
    cl::Event at_source;  // transfers only
    int device = -1;      // -1: a transfer
    int space = -1;       // the space of `event`
  };
  Mark mark(Device& device);
  // Makes later work of `device` wait for a mark of another device of its space, for a transfer from or to its space,
  // or for everything enqueued so far on `other` (no effect if that is in another space).
  void order_after(Device& device, const Mark& mark);
  void order_after(Device& device, Device& other);
  // Copies bytes from one space to another on a thread of the runtime, after the marks and after all earlier transfers.
  // Requires: both storages were acquired, and begin_transfers() came before the first launch. Throws ArgumentError if
  // copies are forbidden.
  struct Crossing {
    Storage* from;
    std::size_t from_offset;
    Storage* to;
    std::size_t to_offset;
    std::size_t bytes;
  };
  void begin_transfers();
  Mark transfer(const Crossing& crossing, const std::vector<const Mark*>& after, const char* op,
                const std::shared_ptr<const LaunchInfo>& info = nullptr);
  // A library call on the queue (CLBlast): fn enqueues on the given queue and returns its number of launches.
  void enqueue_call(Device& device, const char* op, const std::function<int(const cl::CommandQueue&)>& fn,
                    const std::shared_ptr<const LaunchInfo>& info = nullptr);
  // For the profile: the bytes that the engine holds besides the arena.
  void set_other_bytes(std::size_t bytes) { other_bytes_ = bytes; }
  // Puts a host function into the queue of a device that runs_host_functions(): earlier commands are complete when it
  // runs, and later ones wait for it. No other thread waits. Requires: the storages it touches were acquired.
  void enqueue_host(Device& device, const char* op, std::shared_ptr<HostTask> task);
  // Runs the function at once on the calling thread, in place of `launches` launches. Requires: can_run_directly(), the
  // engine's one device runs_host_functions(), and nothing else is in this submission.
  void run_directly(HostTask& task, std::uint64_t launches);
  // Whether every launch of earlier submissions that uses the acquired storages has ended. Injected faults apply to
  // launches only.
  bool can_run_directly() const;
  // For any device: waits for what was enqueued, then runs fn on the calling thread. Requires: the storages it touches
  // were acquired; the runtime acquires them for the host and returns them to the device afterwards.
  struct HostUse {
    Storage* storage;
    bool writes;
  };
  // fn gets a function that returns the host address of byte 0 of a storage.
  void run_host(const char* op, const std::vector<HostUse>& uses,
                const std::function<void(const std::function<void*(Storage&)>&)>& fn);

  // Called if this submission ends before finish(), while its storages are still kept: what uses their bytes beside it
  // must let go of them. What it throws is dropped.
  void when_unfinished(std::function<void()> fn) { unfinished_.push_back(std::move(fn)); }

  // Its weight among the submissions in flight, as a part of Ticket::kStep.
  void set_weight(int weight) { ticket_->set_weight(weight); }
  // Flushes, closes the ticket, and limits the submissions in flight: waits for the oldest if there are too many.
  TicketPtr finish();
  std::uint64_t launches() const { return launches_; }

 private:
  static std::uint64_t bit_of(const Device& device) { return std::uint64_t{1} << device.index(); }
  std::uint64_t count_launches(std::uint64_t count);  // returns the index of the first
  void begin_device(Device& device);                  // at the first command on it
  void flush(Device& device);
  void add_event(Device& device, cl::Event event, const char* op, const std::shared_ptr<const LaunchInfo>& info,
                 LaunchSource source);
  std::string pending_text() const;  // what this or an earlier submission waits for
  void close() noexcept;

  Runtime& runtime_;
  TicketPtr ticket_;
  std::uint64_t begun_ = 0;      // one bit per device that got a command
  std::uint64_t unflushed_ = 0;  // one bit per device with unflushed commands
  std::uint64_t launches_ = 0;
  std::size_t other_bytes_ = 0;
  LaunchSource source_;
  std::vector<std::function<void()>> unfinished_;
  bool is_finished_ = false;
  bool is_free_ = true;                      // everything that was acquired is idle
  bool is_direct_ = false;                   // this thread did the work itself
  std::vector<cl::Event> before_transfers_;  // the first transfer waits for these
};

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options);
  ~Runtime();

  const RuntimeOptions& options() const { return options_; }
  // The devices that launches may use: the engine's own and, once it is open, the spare one, which comes last.
  int device_count() const { return own_devices_ + (is_spare_open_.load(std::memory_order_acquire) ? 1 : 0); }
  int own_device_count() const { return own_devices_; }
  int lane_count() const { return static_cast<int>(devices_.size()); }           // with the spare one, open or not
  int spare() const { return own_devices_ < lane_count() ? own_devices_ : -1; }  // its index; -1: there is none
  // The first call waits for everything enqueued. Requires: spare() >= 0; the engine's lock.
  void open_spare();
  // If the device was given up: the one that does its work.
  Device& device(int index = 0) {
    return *devices_[static_cast<std::size_t>(places_[static_cast<std::size_t>(index)])];
  }
  const std::string& device_name() const;
  int space_count() const {
    return is_spare_open_.load(std::memory_order_acquire) ? static_cast<int>(spaces_.size()) : own_spaces_;
  }
  Space& space(int index = 0) const { return *spaces_[static_cast<std::size_t>(index)]; }
  // The mode of the first space, the only one unless devices of several platforms work together.
  MemoryMode mode() const { return space().mode(); }
  const cl::Context& context() const { return space().context(); }
  bool is_dry() const { return options_.dry_run; }
  bool is_exact() const;  // SAMEBYTES_ALLOCATOR=exact
  bool coarse_shadow() const { return space().coarse_shadow(); }

  // Throws OutOfMemory with `what` (an op or an owner), the need, the budget and the cheapest remedies. The bytes are
  // not zeroed. Returns null for 0 bytes. The storage lies where `device` reads it without a copy. `what` and the layer
  // also name who caused the peak.
  StoragePtr allocate(std::size_t bytes, Category category, const std::string& what, const char* layer = "",
                      int device = 0, FirstUse first = FirstUse::host);
  std::uint64_t memory_peaks() const;  // how often the peak was raised
  void name_memory_peak(const std::string& what, const char* layer);
  // Records every allocation and release from now on; null stops it. False if there is a log already.
  bool set_memory_log(const std::shared_ptr<MemoryLog>& log);
  std::shared_ptr<const MemoryLog> memory_log() const;
  // Adopts the user's memory. The reaper runs deleter once nothing uses the bytes. verdict says adopted, or copied and
  // why.
  StoragePtr adopt(void* pointer, std::size_t bytes, std::function<void()> deleter, Adoption* verdict);
  std::size_t clear_cache();  // bytes freed
  // SAMEBYTES_ALLOCATOR=exact puts guard bytes around each storage: returns one line per storage whose guard was
  // overwritten since the last call.
  std::vector<std::string> check_guards() const;
  bool alias_works() { return space().alias_works(); }
  void set_memory_limit(std::size_t bytes);
  void set_memory_fraction(double fraction);  // of the memory that the devices of each context have; 0: no limit
  std::string tuning_hash() const;            // covers the choices of all devices
  const std::string& tuning_file() const { return tuning_file_; }  // empty: built-in choices
  // For the tuner and tests. Requires: nothing was planned or built yet.
  void set_tuning(const TuningPtr& tuning);

  Recorder& recorder() { return recorder_; }
  const WatchdogPtr& watchdog() const { return watchdog_; }
  KernelCache& kernel_cache() const { return *kernel_cache_; }

  void wait();  // for everything enqueued so far; throws DeviceError
  MemoryReport memory() const;
  // By category, at the moment of the highest total, cached blocks included.
  HeldPeak held_peak() const;
  TransferReport transfers() const;
  void count_copy(std::size_t bytes, bool to_device, const std::string& what);  // throws if copies are forbidden
  void count_map(std::size_t bytes);
  void count_crossing(std::size_t bytes, const std::string& what);  // between spaces; throws like count_copy
  void count_relayout(std::size_t bytes);
  void count_gather(std::size_t bytes);  // by the host, into a slot
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  std::uint64_t programs_built() const;
  // Kernels that compiler processes were asked for, and those that they have dealt with.
  struct CompileCount {
    std::atomic<std::uint64_t> asked{0}, done{0};
  };
  CompileCount& compiled() { return compiled_; }
  // Has the device's jobs done, if it has compilers and they are worth it; they end a while after their last job.
  void compile(Device& device, const std::vector<CompileJob>& jobs);
  void end_idle_compilers();

  // Which devices have finished what was enqueued so far (several_devices.cpp): seconds from `start` until each had,
  // infinite if it had not after `limit` seconds; and the device on which a launch failed first, -1 if none. Clears
  // failures.
  struct Standing {
    std::vector<double> seconds;
    int failed = -1;
    int silent = -1;  // the device of the first command that has not ended; -1: none
    std::string why;  // it failed, or what a device that has not answered still has to do
  };
  // The last event of each device; empty if there is none. Under the engine's lock. Throws DeviceError.
  std::vector<cl::Event> last_events() const;
  std::string pending_text();  // of the first submission that has not ended; empty: all have
  Standing look_until_done(const std::vector<cl::Event>& events, std::chrono::steady_clock::time_point start,
                           double limit);
  // From now on another device does this one's work. If launches are unfinished, makes new queues and nobody waits for
  // the old ones. Returns the other device, of the same space, or 0. Requires: can_give_up(); the engine's lock.
  int give_up(int device, const std::string& why);
  bool can_give_up(int device) const;
  bool is_given_up(int device) const { return is_given_up_[static_cast<std::size_t>(device)]; }
  void forget_refusal() { refused_ = -1; }  // once another device does the launch; under the engine's lock

 private:
  friend class Submission;
  struct Ledger;
  struct Wanted;        // a device that the options request
  void open_devices();  // open_devices.cpp
  std::vector<Wanted> wanted_devices();
  void add_spare(std::vector<Wanted>& wanted);
  void make_devices(std::vector<Wanted> wanted);
  int place_beside(int device) const;
  void leave_queues();

  RuntimeOptions options_;
  const WatchdogPtr watchdog_;
  std::string tuning_file_;
  std::vector<std::unique_ptr<Space>> spaces_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<int> places_;  // index into devices_, for each device
  std::vector<bool> is_given_up_;
  std::unique_ptr<Ledger> ledger_;
  const std::unique_ptr<KernelCache> kernel_cache_;
  Recorder recorder_;
  std::unique_ptr<Carrier> carrier_;  // if there are several spaces
  std::atomic<std::uint64_t> launches_{0};
  CompileCount compiled_;
  std::chrono::steady_clock::time_point compiled_at_;
  bool are_compiling_ = false;  // under the engine's lock

  // Touched by submissions only, under the engine's lock.
  int refused_ = -1;                  // device that refused a launch
  std::vector<cl::Event> tails_;      // last event of each device, for order between submissions
  std::vector<cl::Event> crossings_;  // by space: the last transfer from it or to it
  std::uint64_t next_ticket_ = 1;
  std::size_t launches_hint_ = 64;
  void settle_kernels(std::uint64_t newest, std::uint64_t done);
  std::uint64_t kernel_uses_ = 0;        // that were enqueued with ticket
  std::uint64_t kernels_settle_at_ = 0;  // number of a ticket

  Mutex mutex_;
  std::deque<TicketPtr> in_flight_ SAMEBYTES_GUARDED_BY(mutex_);
  TicketPtr failed_ SAMEBYTES_GUARDED_BY(mutex_);  // a failure that has not been reported yet

  int own_devices_ = 0, own_spaces_ = 0;  // without the spare device, and the context that only it needs
  std::atomic<bool> is_spare_open_{false};
};

// The device that a name selects among all devices; throws ArgumentError that lists them if none matches, DeviceError
// if there is no device.
DeviceInfo choose_device(const std::string& name);

}  // namespace samebytes::detail
