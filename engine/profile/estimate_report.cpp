// The memory of a training step, as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "samebytes/estimate.h"
#include "samebytes/figures.h"

namespace samebytes {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const MemoryParts& parts) {
  return {{"parameters", parts.parameters}, {"gradients", parts.gradients},
          {"optimizer", parts.optimizer},   {"activations", parts.activations},
          {"batches", parts.batches},       {"other", parts.other},
          {"total", parts.total()}};
}

Json json_of(const LiveBytes& live) {
  return {{"kept", live.kept},
          {"passing", live.passing},
          {"operands", live.operands},
          {"gradients", live.gradients},
          {"op", live.op}};
}

// The closed form with its numbers.
std::string formula(const StepEstimate& estimate) {
  const StepSize& step = estimate.step;
  const LiveBytes& live = estimate.live;
  const auto count = [](auto number) { return count_text(static_cast<double>(number)); };
  const auto percent = [&](std::size_t bytes) {
    return 100.0 * static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(1, live.of_a_batch()));
  };
  std::string state, samples;
  for (const double bytes : step.state_bytes) state += fmt::format(" + {}", bytes);
  for (const std::size_t bytes : step.sample_bytes) samples += (samples.empty() ? "" : " + ") + count(bytes);
  return fmt::format(
      "  closed form: {} parameters x ({} weight + {} gradient{} state){}\n"
      "    + batch {} x ({} slots x ({}) + {} of intermediate values){}\n"
      "    intermediate values at their fullest, in {}: {:.1f} % kept for the backward pass, {:.1f} % passing,\n"
      "    {:.1f} % operands that kernels pack; each array as the pool rounds it\n",
      count(step.parameters), step.weight_bytes, estimate.closed.gradients > 0 ? step.gradient_bytes : 0.0, state,
      step.frozen_bytes > 0 ? fmt::format(" + {} of frozen weights", count(step.frozen_bytes)) : std::string(),
      count(step.batch), step.slots, samples, count(step.intermediate_bytes),
      live.gradients > 0 ? fmt::format(" + {} of gradients there then", count(live.gradients)) : std::string(), live.op,
      percent(live.kept), percent(live.passing), percent(live.operands));
}

std::string mega_text(std::size_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) * 1e-6); }

}  // namespace

std::string estimate_text(const StepEstimate& estimate) {
  const MemoryParts &closed = estimate.closed, &exact = estimate.exact;
  TextTable table("lrrl", 2);
  table.add({"", "closed form", "exact plan"});
  const auto add = [&](const char* name, std::size_t by_form, std::size_t by_plan) {
    table.add({name, mega_text(by_form), mega_text(by_plan)});
  };
  add("parameters", closed.parameters, exact.parameters);
  add("gradients", closed.gradients, exact.gradients);
  add("optimizer", closed.optimizer, exact.optimizer);
  add("activations", closed.activations, exact.activations);
  add("batches", closed.batches, exact.batches);
  add("other", closed.other, exact.other);
  add("total", closed.total(), exact.total());
  const std::size_t mapped = estimate.mapped;
  if (mapped > 0) {
    add("mapped files", mapped, mapped);
    add("with them", closed.total() + mapped, exact.total() + mapped);
  }
  if (const std::size_t grown = estimate.measured.value_or(0); grown > 0) {
    const auto share = [&](std::size_t bytes) {
      return 100.0 * (static_cast<double>(bytes + mapped) / static_cast<double>(grown) - 1);
    };
    table.add(
        {"measured", "", mega_text(grown),
         fmt::format("(closed form {:+.1f} %, exact plan {:+.1f} %)", share(closed.total()), share(exact.total()))});
  }
  std::string text = fmt::format("{} training, batch {}, {}; megabytes (10^6)\n", estimate.workload, estimate.batch,
                                 estimate.precision) +
                     table.to_text() + formula(estimate);
  if (exact.gradients == 0) text += "    gradients lie among the intermediate values, of which they take the place\n";
  return text;
}

std::string estimate_json(const StepEstimate& estimate) {
  Json json{{"workload", estimate.workload},   {"batch", estimate.batch},
            {"precision", estimate.precision}, {"closed_form", json_of(estimate.closed)},
            {"live", json_of(estimate.live)},  {"exact", json_of(estimate.exact)},
            {"mapped", estimate.mapped}};
  if (estimate.measured) json["measured"] = *estimate.measured > 0 ? Json(*estimate.measured) : Json();
  return detail::to_line(json);
}

}  // namespace samebytes
