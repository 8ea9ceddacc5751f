#include "plan/host_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.h"
#include "ops/host.h"
#include "profile/least_seconds.h"
#include "runtime/devices.h"
#include "runtime/protect.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"

namespace samebytes::detail {
namespace {

using Json = nlohmann::ordered_json;

// A run must gain more than this many launches: the effects that the model ignores (the caches of another core, a
// kernel that the device would have started meanwhile) can cost as much.
constexpr double kLeastLaunchesGained = 2;

// In the name of the file, too, so that versions that count otherwise keep files of their own.
constexpr int kHostCostsFormat = 3;
constexpr const char* kHostCostsAbout =
    "What small launches cost on one device and its host, measured when an engine first had many of them. It decides "
    "which of them the host does, and changes no result. Remove the file to measure again.";

struct Constant {
  const char* key;
  double HostCosts::*member;
};
constexpr Constant kConstants[] = {{"launch", &HostCosts::launch},
                                   {"crossing", &HostCosts::crossing},
                                   {"step", &HostCosts::step},
                                   {"value", &HostCosts::value},
                                   {"product", &HostCosts::product}};
constexpr double kMostSeconds = 1;  // upper limit for each constant

[[noreturn]] void bad_costs(const std::string& path, const std::string& key, const std::string& expected,
                            const std::string& found) {
  throw IoError("host costs: " + path + ": " + key + ": expected " + expected + ", found " + found +
                    "; remove the file, and they are measured again",
                path);
}

}  // namespace

double seconds_on_host(const HostCosts& costs, const HostWork& work) {
  return costs.step * work.steps + costs.value * work.values + costs.product * work.products;
}

std::vector<bool> choose_for_host(const HostCosts& costs, std::span<const HostCandidate> launches, HostExecution mode) {
  const std::size_t n = launches.size();
  std::vector<bool> chosen(n, false);
  if (mode == HostExecution::off) return chosen;
  if (mode == HostExecution::always) {
    for (std::size_t i = 0; i < n; ++i) chosen[i] = launches[i].form != nullptr;
    return chosen;
  }
  // The least queue time up to each launch, if the device or the host does that launch.
  constexpr double never = std::numeric_limits<double>::infinity();
  const double enter = costs.crossing + kLeastLaunchesGained * costs.launch;
  struct Least {
    double device = 0, host = never;
    bool device_from_host = false, host_from_host = false;
  };
  std::vector<Least> least(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    const Least& before = least[i];
    Least& now = least[i + 1];
    now.device_from_host = before.host < before.device;
    now.device = costs.launch + std::min(before.device, before.host);
    if (!launches[i].form) continue;
    const bool goes_on = i > 0 && !launches[i].begins && !launches[i - 1].ends;
    const double fresh = std::min(before.device, before.host) + enter;
    now.host_from_host = goes_on && before.host <= fresh;
    now.host = seconds_on_host(costs, launches[i].form->work) + (now.host_from_host ? before.host : fresh);
  }
  bool on_host = least[n].host < least[n].device;
  for (std::size_t i = n; i-- > 0;) {
    chosen[i] = on_host;
    const Least& now = least[i + 1];
    if (!on_host)
      on_host = now.device_from_host;
    else if (!now.host_from_host)
      on_host = least[i].host < least[i].device;
  }
  return chosen;
}

HostExecution host_execution(const EngineOptions& options) {
  // Threads of the host have no right to the pages that protection closes; the driver's have.
  if (wanted_protection() != Protection::off) return HostExecution::off;
  if (options.host_execution != HostExecution::automatic) return options.host_execution;
  const std::string word = environment("SAMEBYTES_HOST_EXECUTION");
  if (word.empty() || word == "automatic") return HostExecution::automatic;
  if (word == "queued") return HostExecution::queued;
  if (word == "off") return HostExecution::off;
  if (word == "always") return HostExecution::always;
  throw ArgumentError("SAMEBYTES_HOST_EXECUTION: expected automatic, queued, off or always, got \"" + word + "\"");
}

// ---- the store

std::string host_costs_path(const DeviceInfo& info) {
  const std::string tuning = tuning_path(info);
  if (tuning.empty()) return {};
  const std::filesystem::path path(tuning);
  return (path.parent_path() / fmt::format("{}--host-{}-v{}.json", path.stem().string(), info.cores, kHostCostsFormat))
      .string();
}

std::string host_costs_text(const HostCosts& costs, const DeviceInfo& info) {
  Json json;
  json["about"] = kHostCostsAbout;
  json["format"] = kHostCostsFormat;
  json["device"] = info.name;
  json["driver"] = info.driver;
  json["cores"] = info.cores;
  for (const Constant& constant : kConstants) json["seconds"][constant.key] = costs.*constant.member;
  return json.dump(2) + "\n";
}

std::optional<HostCosts> parse_host_costs(std::string_view text, const std::string& path, const DeviceInfo& info) {
  Json json;
  try {
    json = parse_json<Json>("host costs", path, text);
  } catch (const IoError&) {
    bad_costs(path, "the whole", "JSON", "damage");
  }
  if (!json.is_object()) bad_costs(path, "the whole", "an object", json.dump());
  const auto at = [&](const Json& object, const std::string& section, const char* key) -> const Json& {
    const auto found = object.find(key);
    if (found == object.end()) bad_costs(path, section + key, "a value", "nothing");
    return *found;
  };
  const Json& format = at(json, "", "format");
  if (format != kHostCostsFormat) bad_costs(path, "format", std::to_string(kHostCostsFormat), format.dump());
  if (at(json, "", "device") != info.name || at(json, "", "driver") != info.driver ||
      at(json, "", "cores") != info.cores)
    return std::nullopt;
  const Json& seconds = at(json, "", "seconds");
  if (!seconds.is_object()) bad_costs(path, "seconds", "an object", seconds.dump());
  HostCosts costs;
  for (const Constant& constant : kConstants) {
    const Json& value = at(seconds, "seconds.", constant.key);
    if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > kMostSeconds)
      bad_costs(path, std::string("seconds.") + constant.key, "a number above 0, at most 1", value.dump());
    costs.*constant.member = value.get<double>();
  }
  return costs;
}

std::optional<HostCosts> load_host_costs(const DeviceInfo& info) {
  const std::string path = host_costs_path(info);
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  const std::vector<std::byte> bytes = io::read_file(path);
  return parse_host_costs({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, info);
}

// ---- measuring

namespace {

class Nothing final : public HostTask {
  void run() override {}
};

// A kernel for one value, like the small launches of plans.
class SmallLaunch {
 public:
  SmallLaunch(Runtime& runtime, Device& device)
      : runtime_(runtime),
        device_(device),
        storage_(runtime.allocate(64, Category::library, "host costs")),
        kernel_(device.kernels().make_kernel(Dtype::f32, "fill_i32")) {
    const std::int64_t start = 0, n = 1;
    const std::uint64_t zero = 0;
    kernel_->set_storage(0, *storage_);
    kernel_->set_bytes(1, &start, sizeof start);
    kernel_->set_bytes(2, &n, sizeof n);
    kernel_->set_bytes(3, &zero, sizeof zero);
  }
  // Runs `launches`, each followed by a host function if `crosses`.
  void run(int launches, bool crosses) {
    Submission submission(runtime_);
    submission.acquire(*storage_, true, "host costs", 0, storage_->bytes(), true);
    for (int i = 0; i < launches; ++i) {
      submission.enqueue(device_, *kernel_, {}, "host costs");
      if (crosses) submission.enqueue_host(device_, "host costs", std::make_shared<Nothing>());
    }
    submission.finish()->wait();
  }

 private:
  Runtime& runtime_;
  Device& device_;
  StoragePtr storage_;
  std::unique_ptr<Kernel> kernel_;
};

constexpr double kLeast = 1e-12;  // used if two measurements cannot be told apart

// Seconds for the sums of rows of n values with n others.
double seconds_of_sums(std::int64_t rows, std::int64_t n) {
  std::vector<float> a(static_cast<std::size_t>(rows * n), 1.0f), b(a), c(a);
  HostPointwise add;
  add.sizes = {rows, n};
  add.inputs = {{Dtype::f32, {n, 1}, 0}, {Dtype::f32, {n, 1}, 1}};
  add.outputs = {{Dtype::f32, 2}};
  add.code = {{HostInstruction::Code::add, 2, 0, 1, 0}};
  add.registers = 3;
  void* const arrays[] = {a.data(), b.data(), c.data()};
  return least_seconds(40, [&] { host_pointwise(add, arrays, nullptr, 0, add.units()); });
}

double seconds_of_product(std::int64_t n, int calls) {
  std::vector<float> a(static_cast<std::size_t>(n * n), 1.0f), b(a), c(a);
  HostProduct product{n, n, n, n, 1, n, 1};
  return least_seconds(5,
                       [&] {
                         for (int i = 0; i < calls; ++i)
                           host_product<float>(product, a.data(), b.data(), nullptr, nullptr, c.data(), 0, 1);
                       }) /
         calls;
}

}  // namespace

HostCosts host_work_costs() {
  static const HostCosts costs = [] {
    HostCosts measured;
    // A sum is one pass over arrays in memory order, which lie beyond the nearest cache, as those of launches do. As
    // many values in rows that a pass takes one of, the longest and the shortest that there are.
    constexpr std::int64_t rows = 64, most = HostPointwise::kMostLanes, few = most / 2 + 1;
    const double in_long = seconds_of_sums(rows, most), in_short = seconds_of_sums(2 * rows, few);
    const double more_values = static_cast<double>(2 * few) / static_cast<double>(most);
    measured.step = std::max(kLeast, (in_short - in_long * more_values) / rows);
    measured.value = std::max(kLeast, (in_long - rows * measured.step) / (rows * most));
    measured.product = std::max(kLeast, seconds_of_product(16, 50) / (16 * 16 * 16));
    return measured;
  }();
  return costs;
}

HostCosts measure_host_costs(Runtime& runtime, Device& device) {
  constexpr int kFew = 16, kMany = 144;
  SmallLaunch small(runtime, device);
  small.run(kFew, true);  // warms up what happens only once
  const auto slope = [&](bool crosses) {
    return (least_seconds(12, [&] { small.run(kMany, crosses); }) -
            least_seconds(12, [&] { small.run(kFew, crosses); })) /
           (kMany - kFew);
  };
  HostCosts costs = host_work_costs();
  costs.launch = std::max(kLeast, slope(false));
  costs.crossing = std::max(kLeast, slope(true) - costs.launch);
  return costs;
}

}  // namespace samebytes::detail
