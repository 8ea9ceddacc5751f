#include "samebytes/device_watch.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "plan/planner.h"
#include "runtime/device_times.h"
#include "samebytes/error.h"

namespace samebytes {
namespace {

constexpr double kFirstLook = 0.85;  // of the expected wait: looking earlier takes a core away from a CPU device

}  // namespace

DeviceTimer::DeviceTimer() : times_(std::make_shared<detail::DeviceTimes>()), previous_(detail::device_times) {
  detail::device_times = times_;
}
DeviceTimer::~DeviceTimer() { detail::device_times = previous_; }

DeviceStanding wait_for_devices(Engine& engine, std::chrono::steady_clock::time_point start, double limit,
                                double expected, const DeviceTimer* timer) {
  const auto& context = engine.context();
  detail::Runtime& runtime = *context->runtime;
  if (runtime.device_count() == 1 || runtime.is_dry()) {
    engine.wait();
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {std::vector<double>(static_cast<std::size_t>(runtime.own_device_count()), passed), -1, -1, {}};
  }
  if (expected > 0) std::this_thread::sleep_until(start + std::chrono::duration<double>(kFirstLook * expected));
  std::vector<cl::Event> events;
  {
    const std::lock_guard lock(context->mutex);
    events = runtime.last_events();
  }
  detail::Runtime::Standing standing = runtime.look_until_done(events, start, limit);
  for (std::size_t d = 0; timer != nullptr && d < standing.seconds.size() && d < detail::DeviceTimes::kMost; ++d)
    // An earlier command of a device that has not answered may have ended.
    if (const std::int64_t ended = timer->times_->ended[d]; ended > 0 && !std::isinf(standing.seconds[d]))
      standing.seconds[d] =
          std::min(standing.seconds[d],
                   std::chrono::duration<double>(std::chrono::nanoseconds(ended) - start.time_since_epoch()).count());
  for (int d = 0; d < runtime.device_count(); ++d)  // if a device was given up: the one that does its work
    standing.seconds[static_cast<std::size_t>(d)] =
        standing.seconds[static_cast<std::size_t>(runtime.device(d).index())];
  standing.seconds.resize(static_cast<std::size_t>(runtime.own_device_count()));
  const int silent = standing.silent < runtime.own_device_count() ? standing.silent : -1;
  return {std::move(standing.seconds), standing.failed, silent, std::move(standing.why)};
}

int give_up_device(Engine& engine, int device, const std::string& why) {
  const auto& context = engine.context();
  const std::lock_guard lock(context->mutex);
  detail::Runtime& runtime = *context->runtime;
  if (device < 0 || device >= runtime.own_device_count() || !runtime.can_give_up(device))
    throw ArgumentError("give_up_device: device " + std::to_string(device) + " of " +
                        std::to_string(runtime.own_device_count()) +
                        "; another one of its context must be left to do its work");
  const int other = runtime.give_up(device, why);
  if (auto* const planner = dynamic_cast<detail::Planner*>(context->evaluator.get())) planner->forget();
  return other;
}

bool is_given_up(const Engine& engine, int device) {
  return device >= 0 && device < engine.device_count() && engine.context()->runtime->is_given_up(device);
}

}  // namespace samebytes
