// samebytes memory: a snapshot as text, as a picture or as JSON.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/io/files.h"
#include "samebytes/memory_diff.h"

namespace samebytes::cli {
namespace {

constexpr int kDefaultColumns = 100, kLeastColumns = 60, kMostColumns = 160;

int terminal_columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return std::clamp<int>(size.ws_col, kLeastColumns, kMostColumns);
}

Json to_json(const MemoryByCategory& bytes) {
  Json json = Json::object();
  for (std::size_t c = 0; c < kMemoryCategories; ++c) json[name_of(static_cast<MemoryCategory>(c))] = bytes.bytes[c];
  return json;
}

Json to_json(const MemorySnapshot& snapshot) {
  const MemoryReport& report = snapshot.report;
  Json json{{"device", snapshot.device},
            {"live_bytes", report.live_bytes},
            {"cached_bytes", report.cached_bytes},
            {"peak_bytes", report.peak_bytes},
            {"peak_op", report.peak_cause},
            {"peak_layer", report.peak_layer},
            {"live", to_json(report.live_by_category)},
            {"peak", to_json(report.peak_by_category)},
            {"step", to_json(snapshot.step)}};
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
  return json;
}

Json to_json(const MemoryDifference& difference) {
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
  return json;
}

}  // namespace

int run_memory(const Options& options) {
  const MemorySnapshot snapshot = load_memory_snapshot(options.memory.file);
  if (!options.memory.snapshot.empty()) {
    const MemoryDifference difference = compare_memory(snapshot, load_memory_snapshot(options.memory.snapshot));
    if (options.json)
      fmt::print("{}\n", to_json(difference).dump());
    else
      fmt::print("{}", memory_text(difference, {.columns = terminal_columns(), .top = options.memory.top}));
    return kDone;
  }
  if (!options.memory.svg.empty()) io::write_file(options.memory.svg, memory_svg(snapshot));
  if (options.json)
    fmt::print("{}\n", to_json(snapshot).dump());
  else
    fmt::print("{}", memory_text(snapshot, {.columns = terminal_columns(), .top = options.memory.top}));
  return kDone;
}

}  // namespace samebytes::cli
