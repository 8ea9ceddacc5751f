// The timeline as Chrome's trace events:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/profile.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kHostProcess = 1, kDevicesProcess = 2;  // the two processes that the viewer shows

Json named(const char* what, int process, int thread, const std::string& name) {
  Json event{{"ph", "M"}, {"name", what}, {"pid", process}};
  if (thread >= 0) event["tid"] = thread;
  event["args"] = {{"name", name}};
  return event;
}

Json complete(int process, int thread, const std::string& name, double start, double seconds) {
  return {{"ph", "X"}, {"pid", process}, {"tid", thread}, {"name", name}, {"ts", start * 1e6}, {"dur", seconds * 1e6}};
}

}  // namespace

std::string chrome_trace(const Profile& profile) {
  Json events = Json::array();
  events.push_back(named("process_name", kHostProcess, -1, "host"));
  events.push_back(named("process_name", kDevicesProcess, -1, "devices"));
  std::map<std::string, int> lanes;
  for (const ProfiledSpan& span : profile.spans) {
    const auto [lane, is_new] = lanes.emplace(span.lane, static_cast<int>(lanes.size()));
    if (is_new) events.push_back(named("thread_name", kHostProcess, lane->second, span.lane));
    events.push_back(complete(kHostProcess, lane->second, span.name, span.start, span.seconds));
  }
  for (std::size_t i = 0; i < profile.devices.size(); ++i)
    events.push_back(named("thread_name", kDevicesProcess, static_cast<int>(i), profile.devices[i]));
  for (const ProfiledLaunch& launch : profile.launches) {
    Json event = complete(kDevicesProcess, launch.device, launch.op, launch.start, launch.seconds);
    event["cat"] = launch.is_gradient ? "gradient" : "forward";
    event["args"] = {{"kernel", launch.kernel}, {"layer", launch.layer}, {"shape", launch.shape},
                     {"step", launch.step},     {"flops", launch.flops}, {"bytes", launch.bytes}};
    events.push_back(std::move(event));
    events.push_back({{"ph", "C"},
                      {"pid", kDevicesProcess},
                      {"name", "live memory"},
                      {"ts", launch.start * 1e6},
                      {"args", {{"bytes", launch.live_bytes}}}});
  }
  const Json trace{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return detail::to_line(trace);
}

}  // namespace samebytes
