// Profiler and ProfileScope: the user's side of the recorder that the runtime fills.
#include "graph/context.h"
#include "samebytes/error.h"
#include "samebytes/profile.h"

namespace samebytes {
ProfileScope::ProfileScope(Label label) : previous_(detail::current_layer), span_(label.text()) {
  if (!label.is_empty()) detail::current_layer = label;
}

ProfileScope::~ProfileScope() { detail::current_layer = previous_; }

Profiler::Profiler(Engine& engine, const ProfilerOptions& options) : engine_(&engine), options_(options) {
  if (!engine.options().profile)
    throw ArgumentError("Profiler: the engine was opened without EngineOptions::profile, its queues note no times");
  if (options.wait < 0 || options.warmup < 0 || options.active < 0)
    throw ArgumentError("Profiler: wait, warmup and active must be 0 or more, got " + std::to_string(options.wait) +
                        ", " + std::to_string(options.warmup) + " and " + std::to_string(options.active));
  if (engine.context()->runtime->recorder().claim()) throw ArgumentError("Profiler: the engine has one already");
  if (options.wait == 0) begin();
}

Profiler::~Profiler() {
  detail::Recorder& recorder = engine_->context()->runtime->recorder();
  recorder.stop();
  recorder.release();
}

void Profiler::begin() {
  engine_->wait();
  detail::Runtime& runtime = *engine_->context()->runtime;
  {
    const std::lock_guard lock(engine_->context()->mutex);
    for (int i = 0; i < runtime.lane_count(); ++i) runtime.device(i).calibrate_clock();
  }
  runtime.recorder().set_step(step_ - options_.wait - options_.warmup);
  runtime.recorder().start();
  is_recording_ = true;
  begin_ = detail::steady_seconds();
}

void Profiler::step() {
  if (is_stopped_ || is_done()) return;
  ++step_;
  detail::Recorder& recorder = engine_->context()->runtime->recorder();
  if (!is_recording_) {
    if (step_ >= options_.wait) begin();
  } else if (step_ == options_.wait + options_.warmup) {
    begin();  // forgets the warm-up
  }
  if (is_done()) {
    engine_->wait();
    end_ = detail::steady_seconds();
    recorder.stop();
  }
  recorder.set_step(step_ - options_.wait - options_.warmup);
}

bool Profiler::is_done() const {
  return options_.active > 0 && step_ >= options_.wait + options_.warmup + options_.active;
}

Profile Profiler::stop() {
  Profile profile;
  if (is_stopped_) throw ArgumentError("Profiler: it was stopped before; make another one");
  is_stopped_ = true;
  engine_->wait();
  if (!is_done()) end_ = detail::steady_seconds();
  detail::Runtime& runtime = *engine_->context()->runtime;
  runtime.recorder().stop();
  is_recording_ = false;
  const int lanes = runtime.space_count() > 1 ? runtime.lane_count() : runtime.device_count();
  for (int i = 0; i < lanes; ++i) profile.devices.push_back(runtime.device(i).info().name);
  if (runtime.space_count() > 1) profile.devices.emplace_back("between contexts");  // the row of transfers
  runtime.recorder().take(begin_, profile);
  std::erase_if(profile.launches, [](const ProfiledLaunch& launch) { return launch.step < 0; });
  profile.steps = std::max(0, step_ - options_.wait - options_.warmup);
  profile.seconds = begin_ > 0 ? end_ - begin_ : 0;
  return profile;
}

}  // namespace samebytes
