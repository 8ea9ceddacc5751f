// Engine: one OpenCL context with its queue(s), memory, kernels and plans. A value in main; it does not move.
// The current engine is thread-local: EngineScope sets it for a block; a thread that set none uses the oldest living
// engine. All functions are safe from several threads. ~Engine waits for everything that was enqueued.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/device.h"
#include "samebytes/memory.h"

namespace cl {  // of <CL/opencl.hpp>; interop/opencl.h includes it
class CommandQueue;
class Context;
}  // namespace cl

namespace samebytes {

namespace detail {
struct Context;
}

enum class GemmProvider : std::uint8_t { automatic, packed, clblast, eigen };
// Which small launches the host does over the same bytes: those that the measured costs of the device favour, none, or
// all that it can do.
enum class HostExecution : std::uint8_t { automatic, queued, off, always };

struct EngineOptions {
  std::string device = {};  // "", "cpu", "gpu:0", an index, or a part of a name
  // Several, each named as above, such as {"cpu:0", "gpu:0"}; the first is where work goes that names no other.
  // {"all"}: every device that can be used. Instead of `device`.
  std::vector<std::string> devices = {};
  std::vector<int> split = {};            // sub-devices of one device by cores, such as {1, 1}
  std::optional<MemoryMode> memory = {};  // forced; else SAMEBYTES_MEMORY, else the best the device has
  bool forbid_copies = false;             // throw at the first byte copied between host and device
  std::size_t memory_limit = 0;           // bytes; 0: 85 % of the smaller of the cgroup's limit and what is available
  // Evaluations queued before the next one waits. Up to 32 small ones (a few launches, little work and memory) count as
  // one.
  int steps_in_flight = 3;
  // A wait for a device that takes longer ends with a DeviceError that says what was pending; the engine then waits for
  // nothing more and its memory stays as it is, since the device may still use it. 0: a wait has no end.
  double stall_seconds = 300;
  std::uint64_t seed = 0;                       // of everything random
  GemmProvider gemm = GemmProvider::automatic;  // else SAMEBYTES_GEMM
  // Runs of small launches may be one function of the host in the device's queue, on devices that share their bytes
  // with it and run such functions (PoCL); a small evaluation that waits for nothing is done by the thread that asks
  // for it, unless this is `queued`. The bytes of results are the same. Else SAMEBYTES_HOST_EXECUTION.
  HostExecution host_execution = HostExecution::automatic;
  // Values that the forward pass and the gradient both read may be computed twice instead of being kept, where that
  // lowers the peak of memory: at most this share of what a run costs. 0: only where it costs nothing.
  double recompute = 0.05;
  bool profile = false;  // queues note the times of their launches, for a Profiler (profile.h)
  // A rehearsal: everything is checked, planned and counted, and nothing is built, allocated or launched. Memory is
  // address space that reads as zeros, so a training loop runs as it is and memory() says what it would need.
  bool dry_run = false;
  bool check_nan = false;  // evaluate op by op and throw at the first NaN or infinity, naming the op; slow
  // What a device cannot run (a kernel that its driver does not build or launch, f64 without double) is run by another
  // device of the engine, best one of the same context, else by a CPU device that the engine opens for that; counted in
  // Engine::fallbacks(), and the first one is a warning. Off: it is an error. Else SAMEBYTES_FALLBACK=1.
  bool fallback = false;
  // Products of 16-bit types and of int8 may use the device's own instructions for them (find_matrix_instructions,
  // device.h); off, they are computed as f32 products are. Not set: on, unless SAMEBYTES_MATRIX_INSTRUCTIONS is 0, or
  // names those that may be used: amx_bf16,amx_int8.
  std::optional<bool> matrix_instructions = {};
  // A program that compiles kernels beside this one, in as many processes as there are cores: PoCL compiles one after
  // another within a process. It is started as PROGRAM --compile-kernels and calls serve_kernel_compiler(); the
  // samebytes command is one, and takes itself. Where it cannot be started, or fails, this process compiles. Empty:
  // none. SAMEBYTES_COMPILER, a path or `off`, goes before it.
  std::string kernel_compiler = {};
  // Tiles, splits and providers: not set, those of the device's store where `samebytes tune` made one (tune.h says
  // where; SAMEBYTES_TUNING is its folder, or off); "": the built-in ones; else a store file, which must be of this
  // device and driver.
  std::optional<std::string> tuning = {};
};

// Which choices hold. The same hash, seed, device and build give the same bytes.
struct TuningReport {
  std::string hash;  // of the chosen values, 16 digits; "built-in" where there are none
  std::string file;  // the store that was read, or empty
};

// What the planner did since the start.
struct PlanReport {
  std::uint64_t plans_made = 0;
  std::uint64_t plans_replayed = 0;
  std::uint64_t programs_built = 0;
  std::uint64_t launches = 0;          // kernels and library calls, views and empty arrays excluded
  std::uint64_t launches_on_host = 0;  // of these: that the host did (host_execution)
  std::uint64_t host_runs = 0;         // in so many functions in the devices' queues
  double flops = 0;                    // that the ops of these launches count, as in a profile; multiply-adds are two
  double bytes = 0;                    // of their operands and results, each once in a launch
  std::uint64_t nodes_fused = 0;       // pointwise nodes that share a launch with another
  double bind_seconds = 0;             // host time spent in gathering, hashing and binding replayed plans
};

// Launches that one device cannot run and another one runs instead (EngineOptions::fallback).
struct Fallback {
  std::string op;              // "softmax"; "exp+mul" of a fused kernel
  std::string device;          // that cannot: "gpu:0 'name'"
  std::string reason;          // what its driver said, one line
  std::string ran_on;          // "cpu:0 'name'"; "cpu:0/gpu": that device with the kernels of the other personality
  std::uint64_t launches = 0;  // so far
  std::uint64_t bytes_crossed = 0;  // between contexts for them, both ways, so far
};

// A call of the driver that failed and, made again, succeeded: nothing is lost. Each is also a warning in the log.
struct Recovery {
  std::string call;    // "clGetEventInfo"
  std::string status;  // that it gave first: "CL_OUT_OF_RESOURCES"
  std::string device;
};

// Programs and kernels that were given to compiler processes (EngineOptions::kernel_compiler).
struct CompileReport {
  std::uint64_t asked = 0;
  std::uint64_t done = 0;  // of these; the others are compiled here, or in the making
};

class Engine {
 public:
  using Options = EngineOptions;

  // Throws DeviceError where there is no device (with what to install), ArgumentError for an unknown device (with what
  // there is) and for one that is named twice, IoError for a damaged store of choices (with file, key, what was
  // expected and what came).
  explicit Engine(const EngineOptions& options = {});
  // On a context and an in-order queue of yours, with the device of the queue; interop/opencl.h has the contract.
  // Retains both. Throws ArgumentError for a queue of another context or out of order, for options that name devices,
  // for `profile` with a queue that does not note times, and for a device that cannot be used.
  Engine(const cl::Context& context, const cl::CommandQueue& queue, const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const EngineOptions& options() const;
  const DeviceInfo& device(int index = 0) const;
  int device_count() const;  // more than one with `devices` and with `split`

  void wait();  // for everything enqueued; throws DeviceError of what failed
  TuningReport tuning() const;
  MemoryReport memory() const;
  TransferReport transfers() const;
  PlanReport plans() const;
  CompileReport compiles() const;            // waits for nothing: another thread may ask while this one evaluates
  std::vector<Fallback> fallbacks() const;   // in the order in which they were first needed
  std::vector<Recovery> recoveries() const;  // so far, in their order
  std::size_t clear_cache();                 // bytes given back to the system
  void set_memory_limit(std::size_t bytes);
  // The same as a part of the memory that each device says it has, as set_per_process_memory_fraction() and the high
  // watermark ratio of PyTorch; 0: no limit. Throws ArgumentError below 0.
  void set_memory_fraction(double fraction);
  // How many keys next_random_key() has given. Set where a saved run goes on; the next key is the one after it.
  std::uint64_t random_counter() const;
  void set_random_counter(std::uint64_t counter);

  static Engine& current();  // throws ArgumentError where no engine lives

  const std::shared_ptr<detail::Context>& context() const { return context_; }  // for the engine's rooms

 private:
  Engine(const EngineOptions& options, const cl::Context* context, const cl::CommandQueue* queue);
  std::shared_ptr<detail::Context> context_;
};

// Makes an engine the current one of this thread for a block.
class EngineScope {
 public:
  explicit EngineScope(Engine& engine);
  ~EngineScope();
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;

 private:
  Engine* previous_;
};

// Nodes built in this block run on this device of the engine: its place in `devices`, or its part of `split`.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_;
};

// Where the library's few messages go (never to the terminal by itself). Level: "info" or "warning".
using LogSink = std::function<void(std::string_view level, std::string_view message)>;
void set_log_sink(LogSink sink);

// What a program does that was started with --compile-kernels (EngineOptions::kernel_compiler): compiles what the
// process on the other side of its standard input asks for, until that one ends. Returns the exit status.
int serve_kernel_compiler();

}  // namespace samebytes
