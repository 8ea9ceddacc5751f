// What programs want to know of a memory snapshot, and of the difference of two, as JSON.
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/memory_diff.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const MemoryByCategory& bytes) {
  Json json = Json::object();
  for (std::size_t c = 0; c < kMemoryCategories; ++c) json[name_of(static_cast<MemoryCategory>(c))] = bytes.bytes[c];
  return json;
}

}  // namespace

std::string memory_json(const MemorySnapshot& snapshot) {
  const MemoryReport& report = snapshot.report;
  Json json{{"device", snapshot.device},
            {"live_bytes", report.live_bytes},
            {"cached_bytes", report.cached_bytes},
            {"peak_bytes", report.peak_bytes},
            {"peak_op", report.peak_cause},
            {"peak_layer", report.peak_layer},
            {"live", json_of(report.live_by_category)},
            {"peak", json_of(report.peak_by_category)},
            {"step", json_of(snapshot.step)}};
  if (!snapshot.plans.empty() && snapshot.plans.front().peak_launch() >= 0) {
    const int peak = snapshot.plans.front().peak_launch();
    const MemoryLaunch& launch = snapshot.plans.front().launches[static_cast<std::size_t>(peak)];
    json["step_peak"] = {{"launch", peak},
                         {"launches", snapshot.plans.front().launches.size()},
                         {"op", launch.op},
                         {"layer", launch.layer}};
  }
  Json layers = Json::array();
  for (const MemoryLayer& layer : snapshot.layers)
    layers.push_back({{"name", layer.name},
                      {"parameters", layer.parameters},
                      {"gradients", layer.gradients},
                      {"optimizer", layer.optimizer},
                      {"activations", layer.activations}});
  json["layers"] = std::move(layers);
  return detail::to_line(json);
}

std::string memory_json(const MemoryDifference& difference) {
  const auto change = [](std::size_t before, std::size_t after) {
    return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
  };
  const MemoryReport &before = difference.before, &after = difference.after;
  Json live = Json::object();
  for (std::size_t c = 0; c < kMemoryCategories; ++c)
    live[name_of(static_cast<MemoryCategory>(c))] =
        change(before.live_by_category.bytes[c], after.live_by_category.bytes[c]);
  Json json{{"live_bytes", change(before.live_bytes, after.live_bytes)},
            {"cached_bytes", change(before.cached_bytes, after.cached_bytes)},
            {"adopted_bytes", change(before.adopted_bytes, after.adopted_bytes)},
            {"peak_bytes", change(before.peak_bytes, after.peak_bytes)},
            {"process_bytes", change(difference.process_before, difference.process_after)},
            {"live", std::move(live)}};
  Json arrays = Json::array(), layers = Json::array();
  for (const MemoryChange& one : difference.arrays)
    arrays.push_back({{"name", one.name},
                      {"layer", one.layer},
                      {"category", name_of(one.category)},
                      {"count", one.count},
                      {"bytes", one.bytes}});
  for (const MemoryChange& one : difference.layers) layers.push_back({{"name", one.layer}, {"bytes", one.bytes}});
  json["arrays"] = std::move(arrays);
  json["layers"] = std::move(layers);
  return detail::to_line(json);
}

}  // namespace samebytes
