#include "placement/crossings.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "profile/least_seconds.h"
#include "runtime/carrier.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/log.h"

namespace samebytes::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCrossingsAbout =
    "Seconds of an empty transfer between the OpenCL contexts of two devices (or launch, of one device) and its bytes "
    "per second. Measured once; remove the file to measure again, edit it to move where small work runs.";
constexpr int kCrossingsFormat = 1;
constexpr std::size_t kManyBytes = std::size_t{4} << 20;
constexpr std::size_t kFewBytes = 128;
constexpr int kCrossingRounds = 5;

void carry_once(Carrier& carrier, Storage& from, Storage& to, std::size_t bytes) {
  Carrier::Job job;
  job.from = Carrier::side_of(from, 0);
  job.to = Carrier::side_of(to, 0);
  job.bytes = bytes;
  job.at_source = Carrier::make_event(from.space());
  job.at_target = Carrier::make_event(to.space());
  job.verdict = Carrier::make_event(to.space());
  const std::string& device = to.space().name();
  const cl::Event verdict = copy_of(job.verdict, device);
  carrier.add(std::move(job));
  to.space().runtime().watchdog()->wait_for(verdict(), "transfer", "measuring contexts", device);
}

}  // namespace

Crossings::Crossings(Context& context, const Pass& pass) : context_(context) {
  const Runtime& runtime = *context.runtime;
  const bool has_store = !(context.options.tuning && context.options.tuning->empty());
  const std::string store = has_store ? tuning_path(runtime.space(0).info()) : std::string();
  if (store.empty()) return;
  const std::string path = (std::filesystem::path(store).parent_path() / "contexts.json").string();
  costs_ = read(path);
  if (has_all() || runtime.is_dry()) return;
  for (int from = 0; from < runtime.space_count(); ++from) {
    try {
      if (costs_.count(name_of_space(from)) == 0) costs_[name_of_space(from)] = measure_pass(from, pass);
    } catch (const BuildError&) {  // with fallback its launches run elsewhere, and the built-in cost holds
      if (!context.options.fallback) throw;
    }
    for (int to = 0; to < runtime.space_count(); ++to)
      if (from != to && costs_.count(name_of_pair(from, to)) == 0)
        costs_[name_of_pair(from, to)] = measure_pair(from, to);
  }
  write(path);
}

std::string Crossings::name_of_space(int space) const {
  const DeviceInfo& info = context_.runtime->space(space).info();
  return info.name + ", " + info.driver + ", " + std::to_string(info.cores) + " cores, " + name_of(info.memory_mode);
}

std::string Crossings::name_of_pair(int from, int to) const { return name_of_space(from) + " -> " + name_of_space(to); }

Crossings::Costs Crossings::read(const std::string& path) {
  Costs costs;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const std::vector<std::byte> bytes = io::read_file(path);
    const char* const text = reinterpret_cast<const char*>(bytes.data());
    const Json json = parse_json<Json>("contexts", path, {text, bytes.size()});
    const auto is_rate = [](const Json& cost, const char* key) {
      return cost.contains(key) && cost[key].is_number() && cost[key].get<double>() > 0;
    };
    if (!json.is_object() || !json.contains("costs") || !json["costs"].is_object())
      throw IoError("contexts: " + path + ": costs: expected an object; mend the file, or remove it", path);
    for (const auto& [name, cost] : json["costs"].items()) {
      if (!cost.is_object() || !is_rate(cost, "seconds") || !is_rate(cost, "bytes_per_second"))
        throw IoError("contexts: " + path + ": " + name +
                          ": expected seconds and bytes_per_second above 0; mend the file, or remove it",
                      path);
      costs[name] = {cost["seconds"].get<double>(), cost["bytes_per_second"].get<double>()};
    }
  }
  return costs;
}

bool Crossings::has_all() const {
  const int spaces = context_.runtime->space_count();
  for (int from = 0; from < spaces; ++from) {
    if (costs_.count(name_of_space(from)) == 0) return false;
    for (int to = 0; to < spaces; ++to)
      if (from != to && costs_.count(name_of_pair(from, to)) == 0) return false;
  }
  return true;
}

// A folder that cannot be written is no reason to stop; the next run measures again.
void Crossings::write(const std::string& path) const {
  Json costs = Json::object();
  for (const auto& [name, cost] : costs_)
    costs[name] = {{"seconds", cost.seconds}, {"bytes_per_second", cost.bytes_per_second}};
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const Json json{{"about", kCrossingsAbout}, {"format", kCrossingsFormat}, {"costs", costs}};
    io::write_file(path, to_text("contexts", json, 2) + "\n");
  } catch (const std::exception& error) {
    log_message("warning", std::string("the cost of crossing between contexts is not kept: ") + error.what());
  }
}

Crossings::Cost Crossings::measure_pair(int from, int to) const {
  Runtime& runtime = *context_.runtime;
  const StoragePtr source = runtime.space(from).allocate(kManyBytes, Category::value, "measuring contexts");
  const StoragePtr target = runtime.space(to).allocate(kManyBytes, Category::value, "measuring contexts");
  source->wait();
  target->wait();
  Carrier carrier(runtime);
  const double few = least_seconds(kCrossingRounds, [&] { carry_once(carrier, *source, *target, kFewBytes); });
  const double many = least_seconds(kCrossingRounds, [&] { carry_once(carrier, *source, *target, kManyBytes); });
  return {few, static_cast<double>(kManyBytes) / std::max(many - few, 1e-7)};
}

Crossings::Cost Crossings::measure_pass(int space, const Pass& pass) const {
  Runtime& runtime = *context_.runtime;
  Device& device = runtime.space(space).first_device();
  const StoragePtr storage = runtime.space(space).allocate(kManyBytes, Category::value, "measuring contexts");
  const auto seconds_of = [&](std::size_t bytes) {
    return least_seconds(kCrossingRounds, pass(device, *storage, bytes));
  };
  const double few = seconds_of(kFewBytes), many = seconds_of(kManyBytes);
  return {few, static_cast<double>(kManyBytes) / std::max(many - few, 1e-7)};
}

double Crossings::seconds(int from, int to, std::size_t bytes) const {
  if (from == to) return 0;
  const auto found = costs_.find(name_of_pair(from, to));
  const Cost cost = found == costs_.end() ? Cost{} : found->second;
  return cost.seconds + static_cast<double>(bytes) / cost.bytes_per_second;
}

double Crossings::pass_seconds(int space, std::size_t bytes) const {
  const auto found = costs_.find(name_of_space(space));
  const Cost cost = found == costs_.end() ? Cost{} : found->second;
  return cost.seconds + static_cast<double>(bytes) / cost.bytes_per_second;
}

}  // namespace samebytes::detail
