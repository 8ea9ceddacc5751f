#include "plan/host_run.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <new>

#include "runtime/faults.h"
#include "samebytes/cores.h"
#include "samebytes/io/files.h"
#include "samebytes/log.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kLeastNeighbours = 4;   // fewer never pay off and need no measurement
constexpr double kLeastSharedSeconds = 4e-6;  // less is done before a helper has seen it
// Of a run, as one thread would need them: beyond that the evaluating thread has better things to do.
constexpr double kMostSharedBySome = 80e-6, kMostSharedByAll = 2e-3;
constexpr int kMostThreads = 4;  // of a crew: more wait longer for each other than they save
constexpr int kPartsOfEach = 4;  // so that who begins late or is interrupted takes less

// The launches of one device, by place in the plan; those that wait for another device begin a run, those that another
// device waits for end one.
std::vector<std::size_t> launches_of(const Plan& plan, int device) {
  std::vector<std::size_t> places;
  for (std::size_t l = 0; l < plan.launches.size(); ++l)
    if (plan.launches[l].device == device) places.push_back(l);
  return places;
}

std::vector<HostCandidate> candidates(const Plan& plan, const std::vector<std::size_t>& places) {
  std::vector<HostCandidate> result;
  for (const std::size_t l : places) {
    const PlanLaunch& launch = plan.launches[l];
    result.push_back({launch.host_form.get(), !launch.after.empty(), launch.is_awaited});
  }
  return result;
}

// A user's memory may be bound as a buffer even if the device works on the host's bytes.
char* address_of(const Plan& plan, const std::vector<Bound>& bound, int buffer, std::int64_t offset) {
  const Bound& at = bound[static_cast<std::size_t>(buffer)];
  const std::size_t width = bytes_of(plan.buffers[static_cast<std::size_t>(buffer)].dtype);
  void* const base = at.storage->binds_pointer() ? at.storage->device_pointer() : at.storage->host_pointer();
  return static_cast<char*>(base) + static_cast<std::size_t>(at.offset + offset) * width;
}

// Records the times of the host's work if a profile is recorded.
class RecordedTask : public HostTask {
 public:
  RecordedTask(int device, Runtime& runtime, std::size_t other_bytes)
      : recorder_(runtime.recorder().is_active() ? &runtime.recorder() : nullptr),
        device_(device),
        step_(runtime.recorder().step()),
        other_bytes_(other_bytes) {}

 protected:
  template <class Work>
  void timed(const std::shared_ptr<const LaunchInfo>& info, Work work) {
    if (!recorder_) return work();
    const double start = steady_seconds();
    work();
    recorder_->add_timed_launch(info, start, steady_seconds(), device_, step_, other_bytes_);
  }

 private:
  Recorder* const recorder_;  // lives as long as the queue that holds this task
  const int device_, step_;
  const std::size_t other_bytes_;
};

class RunTask final : public RecordedTask {
 public:
  using RecordedTask::RecordedTask;
  std::shared_ptr<const HostProgram> program;
  std::vector<void*> arrays;
  std::vector<double> scalars;
  HostCrew* crew = nullptr;

 private:
  void run() override {
    for (const HostProgram::Step& step : program->steps) timed(step.info, [&] { run(step); });
  }
  void run(const HostProgram::Step& step) {
    void* const* const first_array = arrays.data() + step.first_array;
    const double* const first_scalar = scalars.data() + step.first_scalar;
    const HostForm& form = *step.form;
    if (!crew || !step.is_shared) return form.run(first_array, first_scalar);
    const std::int64_t parts = std::min<std::int64_t>(form.units, kPartsOfEach * (1 + crew->helpers()));
    std::atomic<bool> has_failed = false;  // scratch memory may be refused
    crew->run(static_cast<int>(parts), [&](int part) {
      try {
        form.run_units(first_array, first_scalar, form.units * part / parts, form.units * (part + 1) / parts);
      } catch (...) {
        has_failed.store(true, std::memory_order_relaxed);
      }
    });
    if (has_failed) throw std::bad_alloc();
  }
};

class CallTask final : public RecordedTask {
 public:
  using RecordedTask::RecordedTask;
  HostCall call;
  std::shared_ptr<const LaunchInfo> info;
  std::vector<std::pair<Operand, void*>> operands;

 private:
  void run() override {
    timed(info, [&] {
      call([&](Operand operand) -> void* {
        for (const auto& [known, address] : operands)
          if (known.kind == operand.kind && known.index == operand.index) return address;
        throw Error("a host call asks for an operand that it did not declare");
      });
    });
  }
};

// Marks the launch's info as done by the host.
void add_step(HostProgram& program, const PlanLaunch& launch, std::shared_ptr<const LaunchInfo> info) {
  HostProgram::Step step{launch.host_form, std::move(info), program.arrays.size(), program.scalars.size()};
  for (const PlanArgument& argument : launch.kernel()->arguments) {
    if (argument.kind == PlanArgument::Kind::array) program.arrays.push_back({argument.buffer, argument.offset});
    if (argument.kind == PlanArgument::Kind::null_array) program.arrays.emplace_back();
    if (argument.kind == PlanArgument::Kind::scalar_real || argument.kind == PlanArgument::Kind::scalar_bits)
      program.scalars.emplace_back(argument.node, argument.scalar);
  }
  program.steps.push_back(std::move(step));
}

// The host does the launch as part of a run, so it needs no kernel.
void move_to_host(HostProgram& program, PlanLaunch& launch) {
  launch.info->kernel = "host";
  add_step(program, launch, launch.info);
  launch.work = PlanHostRun{};
}

// Who helps the evaluating thread: nobody, some, or a thread on each of the device's other cores, which then would do
// the same work no sooner.
enum class Helpers : std::uint8_t { none, some, all };

// The whole plan as one run; null if a launch has no host form, or if the run takes longer than handing the work to the
// device, launch by launch, and waking its threads: what a crew shares may take so much longer as the device would
// still need for it.
std::shared_ptr<const HostProgram> direct_program(const Plan& plan, const HostCosts& costs, Helpers helpers) {
  constexpr double most_seconds = 15e-6;
  const double most_shared_seconds = helpers == Helpers::all ? kMostSharedByAll : kMostSharedBySome;
  const auto is_shared = [&](const PlanLaunch& launch) {
    return helpers != Helpers::none && launch.host_form->units > 1 &&
           seconds_on_host(costs, launch.host_form->work) >= kLeastSharedSeconds;
  };
  double seconds = 0, shared_seconds = 0;
  for (const PlanLaunch& launch : plan.launches) {
    if (!launch.host_form || !launch.kernel()) return nullptr;
    (is_shared(launch) ? shared_seconds : seconds) += seconds_on_host(costs, launch.host_form->work);
  }
  const double handing_over = costs.launch * static_cast<double>(plan.launches.size());
  if (plan.launches.empty() || seconds > most_seconds || seconds + shared_seconds > most_shared_seconds + handing_over)
    return nullptr;
  auto program = std::make_shared<HostProgram>();
  for (const PlanLaunch& launch : plan.launches) {
    auto info = std::make_shared<LaunchInfo>(*launch.info);
    info->kernel = "host";
    add_step(*program, launch, std::move(info));
    program->steps.back().is_shared = is_shared(launch);
  }
  return program;
}

// Gathers the chosen launches into runs: the first launch of each run gets the program; all of them drop their
// arguments and need no kernel.
void make_runs(Plan& plan, const std::vector<std::size_t>& places, const std::vector<HostCandidate>& all,
               const std::vector<bool>& chosen) {
  std::shared_ptr<HostProgram> program;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!chosen[i]) {
      program.reset();
      continue;
    }
    PlanLaunch& launch = plan.launches[places[i]];
    const bool begins = !program || all[i].begins;
    if (begins) program = std::make_shared<HostProgram>();
    move_to_host(*program, launch);
    if (begins) {
      std::get<PlanHostRun>(launch.work).program = program;
      ++plan.host_runs;
    }
    ++plan.launches_on_host;
    if (all[i].ends) program.reset();
  }
}

std::size_t most_neighbours(const std::vector<HostCandidate>& launches) {
  std::size_t most = 0, run = 0;
  for (const HostCandidate& launch : launches) {
    run = launch.form ? run + 1 : 0;
    most = std::max(most, run);
  }
  return most;
}

}  // namespace

HostShare::HostShare(Context& context)
    : context_(context),
      mode_(host_execution(context.options)),
      costs_(static_cast<std::size_t>(context.runtime->own_device_count())) {
  if (mode_ != HostExecution::automatic && mode_ != HostExecution::queued) return;
  if (const Device& device = context.runtime->device();
      mode_ == HostExecution::automatic && device.runs_host_functions()) {
    const int threads = std::min({device.info().cores, static_cast<int>(allowed_cores().size()), kMostThreads});
    if (threads > 1) crew_ = std::make_unique<HostCrew>(threads - 1);
  }
  for (int d = 0; d < context.runtime->own_device_count(); ++d)
    if (const Device& device = context.runtime->device(d); device.runs_host_functions())
      costs_[static_cast<std::size_t>(d)] = load_host_costs(device.info());
}

const HostCosts& HostShare::costs(int index) {
  std::optional<HostCosts>& costs = costs_[static_cast<std::size_t>(index)];
  if (costs) return *costs;
  Device& device = context_.runtime->device(index);
  const std::string path = host_costs_path(device.info());
  if (path.empty()) return costs.emplace();        // without a store, measure nothing
  for (std::size_t d = 0; d < costs_.size(); ++d)  // equal parts of one device cost the same
    if (costs_[d] && context_.runtime->device(static_cast<int>(d)).info().cores == device.info().cores)
      return costs.emplace(*costs_[d]);
  for (int d = 0; d < context_.runtime->device_count(); ++d) context_.runtime->device(d).finish();
  costs = measure_host_costs(*context_.runtime, device);
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    io::write_file(path, host_costs_text(*costs, device.info()));
  } catch (const std::exception& error) {  // the folder cannot be written: the next engine measures again
    log_message("warning", std::string("host costs: they cannot be kept: ") + error.what());
  }
  return *costs;
}

HostCosts HostShare::direct_costs() const {
  if (costs_[0]) return *costs_[0];
  return host_costs_path(context_.runtime->device().info()).empty() ? HostCosts{} : host_work_costs();
}

void HostShare::take_from(Plan& plan) {
  if (mode_ == HostExecution::off) return;
  const bool is_alone = context_.runtime->lane_count() == 1 && context_.runtime->device().runs_host_functions();
  if (mode_ == HostExecution::automatic && is_alone) {
    const int threads = crew_ ? 1 + crew_->helpers() : 1;
    const Helpers all = threads >= context_.runtime->device().info().cores ? Helpers::all : Helpers::some;
    plan.direct = direct_program(plan, direct_costs(), threads == 1 ? Helpers::none : all);
  }
  for (int d = 0; d < context_.runtime->own_device_count(); ++d) {
    if (!context_.runtime->device(d).runs_host_functions()) continue;
    const std::vector<std::size_t> places = launches_of(plan, d);
    const std::vector<HostCandidate> all = candidates(plan, places);
    if (mode_ != HostExecution::always && most_neighbours(all) < kLeastNeighbours) continue;
    const HostCosts any;
    make_runs(plan, places, all, choose_for_host(mode_ == HostExecution::always ? any : costs(d), all, mode_));
  }
}

std::string name_of_run(const PlanLaunch& launch) {
  if (faults().fail_launch.load(std::memory_order_relaxed)) {
    const MutexLock lock(faults().mutex);
    for (const HostProgram::Step& step : std::get<PlanHostRun>(launch.work).program->steps)
      if (step.info->op == faults().failing_op) return step.info->op;
  }
  return launch.what;
}

std::shared_ptr<HostTask> bind_host_run(const std::shared_ptr<const HostProgram>& program, int device, const Plan& plan,
                                        const GraphList& list, const std::vector<Bound>& bound, Runtime& runtime,
                                        std::size_t other_bytes, HostCrew* crew) {
  auto task = std::make_shared<RunTask>(device, runtime, other_bytes);
  task->program = program;
  task->crew = crew;
  task->arrays.reserve(program->arrays.size());
  for (const HostProgram::Array& array : program->arrays)
    task->arrays.push_back(array.buffer < 0 ? nullptr : address_of(plan, bound, array.buffer, array.offset));
  task->scalars.reserve(program->scalars.size());
  for (const auto& [node, scalar] : program->scalars)
    task->scalars.push_back(list.nodes[static_cast<std::size_t>(node)]->scalars[static_cast<std::size_t>(scalar)].real);
  return task;
}

std::shared_ptr<HostTask> bind_host_call(const PlanLaunch& launch, const Plan& plan, const std::vector<Bound>& bound,
                                         Runtime& runtime, std::size_t other_bytes) {
  auto task = std::make_shared<CallTask>(launch.device, runtime, other_bytes);
  task->call = std::get<PlanHostCall>(launch.work).call;
  task->info = launch.info;
  for (const PlanOperand& o : launch.operands)
    task->operands.emplace_back(o.operand, address_of(plan, bound, o.buffer, o.offset));
  return task;
}

}  // namespace samebytes::detail
