// Prints a plan as text, for people who ask what runs where and why.
#include "samebytes/explain.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "plan/planner.h"
#include "samebytes/figures.h"

namespace samebytes {
namespace detail {
namespace {

constexpr std::size_t kWidestColumn = 40;  // characters; longer texts are cut

std::string size_text(double bytes) { return bytes_text(static_cast<std::size_t>(bytes)); }

std::string cut(const std::string& text) {
  return text.size() > kWidestColumn ? text.substr(0, kWidestColumn - 2) + ".." : text;
}

std::string place_of(const PlanLaunch& launch, const Plan& plan, Runtime& runtime) {
  const PlanTransfer* const transfer = launch.transfer();
  if (!transfer) return runtime.device(launch.device).info().id;
  const auto context_of = [&](int buffer) {
    return std::to_string(plan.buffers[static_cast<std::size_t>(buffer)].space);  // never of a part
  };
  return "context " + context_of(transfer->from) + " to " + context_of(transfer->to);
}

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

std::string device_lines(const Plan& plan, Runtime& runtime, std::map<int, int>& launches_of) {
  int transfers = 0, relayouts = 0;
  double relayout_bytes = 0;
  for (const PlanLaunch& launch : plan.launches) {
    if (launch.transfer())
      ++transfers;
    else
      ++launches_of[launch.device];
    if (launch.info->op == "relayout" || launch.info->op == "copy") {
      ++relayouts;
      relayout_bytes += static_cast<double>(launch.info->bytes);
    }
  }
  std::string text = "plan of " + counted_text(static_cast<double>(plan.launches.size()), "launch") + "; arena " +
                     size_text(static_cast<double>(plan.arena_bytes())) + "; between contexts: ";
  text += transfers == 0 ? "nothing\n"
                         : counted_text(transfers, "transfer") + " of " +
                               size_text(static_cast<double>(plan.transfer_bytes)) + "\n";
  text += "relayouts: " + std::to_string(relayouts) +
          (relayouts == 0 ? "" : ", which move " + size_text(relayout_bytes)) + "\n";
  for (int d = 0; d < runtime.device_count(); ++d) {
    const Device& device = runtime.device(d);
    text += "  " + device.info().id + " '" + device.info().name + "': context " +
            std::to_string(device.space().index()) + ", memory mode " + name_of(device.space().mode()) + ", " +
            counted_text(launches_of[d], "launch") + "\n";
  }
  return text;
}

std::string launch_lines(const Plan& plan, Runtime& runtime, const ExplainOptions& options) {
  TextTable table("rllllrl", 2);
  table.add({"#", "where", "op", "layer", "shape", "moves", "waits for"});
  const std::size_t most =
      options.most_launches > 0 ? static_cast<std::size_t>(options.most_launches) : plan.launches.size();
  for (std::size_t l = 0; l < std::min(most, plan.launches.size()); ++l) {
    const PlanLaunch& launch = plan.launches[l];
    const LaunchInfo& info = *launch.info;
    table.add({std::to_string(l), place_of(launch, plan, runtime), cut(info.op + (info.is_gradient ? " '" : "")),
               cut(info.layer), launch.transfer() ? "" : cut(info.shape), size_text(info.bytes),
               list_of(launch.after)});
  }
  std::string text = table.to_text();
  if (most < plan.launches.size()) text += "  and " + std::to_string(plan.launches.size() - most) + " more\n";
  return text;
}

std::string pass_lines(const Plan& plan) {
  TextTable passes("ll", 2);
  for (const PlanPass& pass : plan.passes) passes.add({pass.name, pass.did});
  return "passes:\n" + passes.to_text();
}

std::string reason_lines(const Plan& plan, Runtime& runtime, const std::map<int, int>& launches_of) {
  std::string text = "why:\n";
  for (const std::string& reason : plan.reasons) text += "  " + reason + "\n";
  if (runtime.device_count() == 1) text += "  there is one device\n";
  if (runtime.device_count() > 1 && runtime.space_count() == 1)
    text += "  all devices share one context: what one writes the others read where it lies\n";
  if (runtime.device_count() > 1 && launches_of.size() == 1)
    text +=
        "  nothing was placed on another device than " + runtime.device(launches_of.begin()->first).info().id + "\n";
  return text;
}

}  // namespace

std::string Planner::explain(const ExplainOptions& options) const {
  // What runs again and again is a step; what ran once or twice may have made the parameters, or warmed up, and what is
  // far smaller than others may be a constant that each step makes anew.
  constexpr std::size_t kFarSmaller = 8;
  std::size_t largest = 0;
  for (const auto& [key, each] : plans_)
    if (each->replays > 0) largest = std::max(largest, each->launches.size());
  const auto is_large = [&](const Plan& each) { return kFarSmaller * each.launches.size() >= largest; };
  std::uint64_t most = 0;
  for (const auto& [key, each] : plans_)
    if (is_large(*each)) most = std::max<std::uint64_t>(most, each->replays);
  const auto order = [&](const Plan& each) {
    return std::tuple(each.replays > 0 && is_large(each) && 2 * each.replays >= most, each.launches.size(),
                      each.last_used);
  };
  const Plan* plan = nullptr;
  for (const auto& [key, each] : plans_)
    if (!plan || order(*each) > order(*plan)) plan = each.get();
  if (!plan) return "no plan was made yet\n";
  if (options.part == ExplainPart::passes) return pass_lines(*plan);
  Runtime& runtime = *context_.runtime;
  std::map<int, int> launches_of;  // by device
  std::string text = device_lines(*plan, runtime, launches_of) + launch_lines(*plan, runtime, options);
  if (options.part == ExplainPart::all) text += pass_lines(*plan) + reason_lines(*plan, runtime, launches_of);
  return text;
}

}  // namespace detail

std::string explain(const Engine& engine, const ExplainOptions& options) {
  const auto& context = engine.context();
  const std::lock_guard lock(context->mutex);
  const auto* const planner = dynamic_cast<const detail::Planner*>(context->evaluator.get());
  return planner ? planner->explain(options) : std::string();
}

}  // namespace samebytes
