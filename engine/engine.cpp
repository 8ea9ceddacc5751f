// The engine: sees all rooms and puts them together.
#include "samebytes/engine.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "graph/context.h"
#include "graph/node.h"
#include "plan/planner.h"
#include "runtime/devices.h"
#include "runtime/opencl.h"
#include "samebytes/error.h"

namespace samebytes {

namespace {

std::mutex engines_mutex;
std::vector<Engine*> engines;  // living ones, oldest first; guarded by engines_mutex
thread_local Engine* scope_engine = nullptr;

// "0", "1" or nothing.
std::string_view switch_word(const char* name) {
  const char* const text = std::getenv(name);
  const std::string_view word = text ? text : "";
  if (!word.empty() && word != "0" && word != "1")
    throw ArgumentError(std::string(name) + ": expected 0 or 1, got '" + std::string(word) + "'");
  return word;
}

bool wants_fallback(const EngineOptions& options) {
  const std::string_view word = switch_word("SAMEBYTES_FALLBACK");
  return options.fallback || word == "1";
}

detail::Instructions matrix_instructions_of(const EngineOptions& options) {
  if (options.matrix_instructions)
    return *options.matrix_instructions ? detail::kAllInstructions : detail::kNoInstructions;
  const char* const word = std::getenv("SAMEBYTES_MATRIX_INSTRUCTIONS");
  return word == nullptr ? detail::kAllInstructions : detail::instructions_named(word);
}

}  // namespace

Engine::Engine(const EngineOptions& options) : Engine(options, nullptr, nullptr) {}

Engine::Engine(const cl::Context& context, const cl::CommandQueue& queue, const EngineOptions& options)
    : Engine(options, &context, &queue) {}

Engine::Engine(const EngineOptions& options, const cl::Context* context, const cl::CommandQueue* queue)
    : context_(std::make_shared<detail::Context>()) {
  context_->options = options;
  context_->options.fallback = wants_fallback(options);
  context_->engine = this;
  detail::RuntimeOptions runtime;
  runtime.device = options.device;
  runtime.devices = options.devices;
  runtime.split = options.split;
  runtime.force_mode = options.memory.has_value();
  runtime.mode = options.memory.value_or(MemoryMode::fine);
  runtime.forbid_copies = options.forbid_copies;
  runtime.memory_limit = options.memory_limit;
  runtime.fallback = context_->options.fallback;
  runtime.steps_in_flight = options.steps_in_flight;
  runtime.stall_seconds = options.stall_seconds;
  const std::string compiler = detail::environment("SAMEBYTES_COMPILER");
  runtime.kernel_compiler = compiler.empty() ? options.kernel_compiler : compiler == "off" ? "" : compiler;
  runtime.tuning = options.tuning;
  runtime.matrix_instructions = matrix_instructions_of(options);
  runtime.profile = options.profile;
  runtime.dry_run = options.dry_run;
  if (context) runtime.given = {detail::copy_of(*context, options.device), detail::copy_of(*queue, options.device)};
  context_->runtime =
      detail::on_device(options.device, [&] { return std::make_unique<detail::Runtime>(std::move(runtime)); });
  context_->evaluator = std::make_unique<detail::Planner>(*context_);
  const std::lock_guard lock(engines_mutex);
  engines.push_back(this);
}

Engine::~Engine() {
  {
    const std::lock_guard lock(engines_mutex);
    std::erase(engines, this);
  }
  if (scope_engine == this) scope_engine = nullptr;
  if (!context_->process.is_here()) return;
  const std::lock_guard lock(context_->mutex);
  context_->alive.store(false, std::memory_order_release);
  try {
    context_->runtime->wait();
  } catch (const Error&) {  // what failed was or will be thrown where it is waited for; a destructor has nobody to tell
  }
  context_->evaluator.reset();
  context_->engine = nullptr;
}

const EngineOptions& Engine::options() const { return context_->options; }
const DeviceInfo& Engine::device(int index) const {
  if (index < 0 || index >= device_count())
    throw ArgumentError("device: the engine has " + std::to_string(device_count()) + " device(s), device " +
                        std::to_string(index) + " was asked for");
  return context_->runtime->device(index).info();
}
int Engine::device_count() const { return context_->runtime->own_device_count(); }
TuningReport Engine::tuning() const {
  return {.hash = context_->runtime->tuning_hash(), .file = context_->runtime->tuning_file()};
}
void Engine::wait() {
  context_->check_alive("wait");
  context_->runtime->wait();
}
MemoryReport Engine::memory() const {
  context_->check_alive("memory");
  return context_->runtime->memory();
}
TransferReport Engine::transfers() const {
  context_->check_alive("transfers");
  return context_->runtime->transfers();
}
std::size_t Engine::clear_cache() {
  context_->check_alive("clear_cache");
  return context_->runtime->clear_cache();
}
void Engine::set_memory_limit(std::size_t bytes) { context_->runtime->set_memory_limit(bytes); }
void Engine::set_memory_fraction(double fraction) {
  if (!(fraction >= 0))
    throw ArgumentError("set_memory_fraction: expected a part of the device's memory, got 0 or more; " +
                        std::to_string(fraction));
  context_->runtime->set_memory_fraction(fraction);
}
std::uint64_t Engine::random_counter() const { return context_->random_counter.load(); }
void Engine::set_random_counter(std::uint64_t counter) { context_->random_counter.store(counter); }
PlanReport Engine::plans() const {
  context_->check_alive("plans");
  const std::lock_guard lock(context_->mutex);
  return context_->evaluator->report();
}
CompileReport Engine::compiles() const {
  context_->check_alive("compiles");
  const detail::Runtime::CompileCount& count = context_->runtime->compiled();
  return {count.asked.load(std::memory_order_relaxed), count.done.load(std::memory_order_relaxed)};
}
std::vector<Fallback> Engine::fallbacks() const {
  context_->check_alive("fallbacks");
  const std::lock_guard lock(context_->mutex);
  return context_->evaluator->fallbacks();
}
std::vector<Recovery> Engine::recoveries() const {
  context_->check_alive("recoveries");
  return context_->runtime->watchdog()->recoveries();
}

Engine& Engine::current() {
  if (scope_engine) return *scope_engine;
  const std::lock_guard lock(engines_mutex);
  if (engines.empty())
    throw ArgumentError("Engine::current: no engine lives; make one first: samebytes::Engine engine;");
  return *engines.front();
}

EngineScope::EngineScope(Engine& engine) : previous_(scope_engine) { scope_engine = &engine; }
EngineScope::~EngineScope() { scope_engine = previous_; }

}  // namespace samebytes
