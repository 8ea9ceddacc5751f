// samebytes estimate: the memory of a workload's training steps, by the closed form and by the exact plan, side by
// side, and where asked for as measured.
#include "samebytes/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_run.h"
#include "cli/limit.h"
#include "cli/session.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kMeasuredSteps = 4;

struct ClosedForm {
  LiveBytes live;
  StepSize step;
  MemoryParts parts;
};

ClosedForm by_closed_form(const Options& options, const Workload& hollow, std::int64_t batch) {
  Options dry = options;
  dry.batch = batch;
  const std::unique_ptr<Engine> engine = open_engine(dry, dry.device);
  BenchRun run(dry, *engine, hollow, true);
  const LiveBytes live = run.live_bytes();
  StepSize step{.parameters = run.summary().parameters, .batch = batch, .slots = loader_options(options, batch).slots};
  for (const data::FieldSpec& field : hollow.make_samples(1)->fields())
    step.sample_bytes.push_back(static_cast<std::size_t>(field.shape.size()) * bytes_of(field.dtype));
  const auto samples = static_cast<std::size_t>(batch);
  step.intermediate_bytes = (live.of_a_batch() + samples - 1) / samples;
  step.gradients_then = live.gradients;
  if (options.precision != "f32") {
    step.weight_bytes = 6;
    step.gradient_bytes = 2;
  }
  if (options.weights == "bf16") step.weight_bytes = 2;
  if (options.release_gradients) step.gradient_bytes = 0;
  if (options.moments == "bf16") step.state_bytes = {2, 2};
  return {live, step, closed_form(step)};
}

// What the process grew by, with the kernels that the driver loads: some 30 MB on PoCL, whatever the batch.
std::optional<std::size_t> measured(const Options& options, const Workload& workload) {
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  BenchRun run(options, *engine, workload, true);
  run.run(kMeasuredSteps);
  return run.resident_peak();
}

nlohmann::ordered_json to_json(const MemoryParts& parts) {
  return {{"parameters", parts.parameters}, {"gradients", parts.gradients},
          {"optimizer", parts.optimizer},   {"activations", parts.activations},
          {"batches", parts.batches},       {"other", parts.other},
          {"total", parts.total()}};
}

nlohmann::ordered_json to_json(const LiveBytes& live) {
  return {{"kept", live.kept},
          {"passing", live.passing},
          {"operands", live.operands},
          {"gradients", live.gradients},
          {"op", live.op}};
}

// The closed form with its numbers.
std::string formula(const ClosedForm& form) {
  const StepSize& step = form.step;
  std::string state, samples;
  for (const double bytes : step.state_bytes) state += fmt::format(" + {}", bytes);
  for (const std::size_t bytes : step.sample_bytes) samples += fmt::format("{}{}", samples.empty() ? "" : " + ", bytes);
  const LiveBytes& live = form.live;
  return fmt::format(
      "  closed form: {} parameters x ({} weight + {} gradient{} state)\n"
      "    + batch {} x ({} slots x ({}) + {} intermediate values){}\n"
      "    intermediate values at their fullest, in {}: {:.1f} % kept for the backward pass, {:.1f} % passing,\n"
      "    {:.1f} % operands that kernels pack; each array as the pool rounds it\n",
      step.parameters, step.weight_bytes, form.parts.gradients > 0 ? step.gradient_bytes : 0.0, state, step.batch,
      step.slots, samples, step.intermediate_bytes,
      live.gradients > 0 ? fmt::format(" + {} gradients there then", live.gradients) : std::string(), live.op,
      100.0 * static_cast<double>(live.kept) / static_cast<double>(std::max<std::size_t>(1, live.of_a_batch())),
      100.0 * static_cast<double>(live.passing) / static_cast<double>(std::max<std::size_t>(1, live.of_a_batch())),
      100.0 * static_cast<double>(live.operands) / static_cast<double>(std::max<std::size_t>(1, live.of_a_batch())));
}

std::string line(const char* name, std::size_t closed, std::size_t exact) {
  return fmt::format("  {:<14}{:>14.2f}{:>14.2f}\n", name, static_cast<double>(closed) * 1e-6,
                     static_cast<double>(exact) * 1e-6);
}

}  // namespace

int run_estimate(const Options& options) {
  const Workload workload = make_workload(options.workloads.front(), options.form);
  const Workload hollow = with_hollow_data(workload);
  const std::int64_t batch = options.batch.value_or(workload.defaults.batch);
  Options dry = options;
  dry.limit.rehearses = true;
  dry.workers = 0;
  dry.quiet = true;
  const ClosedForm form = by_closed_form(dry, hollow, batch);
  const MemoryParts& closed = form.parts;
  const MemoryParts exact = rehearse_bench(dry, options.device, hollow, true).parts;
  std::optional<std::size_t> grown;
  if (options.limit.measures) grown = measured(options, workload);

  if (options.json) {
    nlohmann::ordered_json json{{"workload", workload.name},      {"batch", batch},
                                {"precision", options.precision}, {"closed_form", to_json(closed)},
                                {"live", to_json(form.live)},     {"exact", to_json(exact)}};
    if (options.limit.measures) json["measured"] = grown ? nlohmann::ordered_json(*grown) : nullptr;
    fmt::print("{}\n", json.dump());
    return kDone;
  }
  fmt::print("{} training, batch {}, {}; megabytes (10^6)\n  {:<14}{:>14}{:>14}\n", workload.name, batch,
             options.precision, "", "closed form", "exact plan");
  fmt::print("{}{}{}{}{}{}{}", line("parameters", closed.parameters, exact.parameters),
             line("gradients", closed.gradients, exact.gradients), line("optimizer", closed.optimizer, exact.optimizer),
             line("activations", closed.activations, exact.activations), line("batches", closed.batches, exact.batches),
             line("other", closed.other, exact.other), line("total", closed.total(), exact.total()));
  fmt::print("{}", formula(form));
  if (exact.gradients == 0)
    fmt::print("    gradients lie among the intermediate values, of which they take the place\n");
  if (grown) {
    const auto share = [&](std::size_t bytes) {
      return 100.0 * (static_cast<double>(bytes) / static_cast<double>(*grown) - 1);
    };
    fmt::print("  {:<14}{:>28.2f}   (closed form {:+.1f} %, exact plan {:+.1f} %)\n", "measured",
               static_cast<double>(*grown) * 1e-6, share(closed.total()), share(exact.total()));
  }
  return kDone;
}

}  // namespace samebytes::cli
