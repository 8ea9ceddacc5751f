// samebytes estimate: the memory of a workload's training steps, by the closed form and by the exact plan, side by
// side, and where asked for as measured.
#include "samebytes/estimate.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/bench_run.h"
#include "cli/limit.h"
#include "cli/session.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kMeasuredSteps = 4;

// The closed form of a step of the training.
void add_closed_form(const Options& options, const Workload& hollow, StepEstimate& estimate) {
  const std::int64_t batch = estimate.batch;
  Options dry = options;
  dry.batch = batch;
  const std::unique_ptr<Engine> engine = open_engine(dry, dry.device);
  BenchRun run(dry, *engine, hollow, true);
  estimate.live = run.live_bytes();
  estimate.mapped = engine->memory().adopted_bytes;
  estimate.step = {.parameters = run.trained_parameters(),
                   .frozen_bytes = run.frozen_bytes(),
                   .batch = batch,
                   .slots = loader_options(options, batch).slots};
  for (const data::FieldSpec& field : hollow.make_samples(1)->fields())
    estimate.step.sample_bytes.push_back(static_cast<std::size_t>(field.shape.size()) * bytes_of(field.dtype));
  const auto samples = static_cast<std::size_t>(batch);
  StepSize& step = estimate.step;
  step.intermediate_bytes = (estimate.live.of_a_batch() + samples - 1) / samples;
  step.gradients_then = estimate.live.gradients;
  if (options.precision != "f32") {
    step.weight_bytes = 6;
    step.gradient_bytes = 2;
  }
  if (options.weights == "bf16") step.weight_bytes = 2;
  if (options.release_gradients) step.gradient_bytes = 0;
  if (options.moments == "bf16") step.state_bytes = {2, 2};
  estimate.closed = closed_form(step);
}

// What the process grew by, with the kernels that the driver loads: some 30 MB on PoCL, whatever the batch.
std::optional<std::size_t> measured(const Options& options, const Workload& workload) {
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  BenchRun run(options, *engine, workload, true);
  run.run(kMeasuredSteps);
  return run.resident_peak();
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
  StepEstimate estimate{.workload = workload.name, .precision = options.precision, .batch = batch};
  add_closed_form(dry, hollow, estimate);
  estimate.exact = rehearse_bench(dry, options.device, hollow, true).parts;
  if (options.limit.measures) estimate.measured = measured(options, workload).value_or(0);
  fmt::print("{}", options.json ? estimate_json(estimate) + "\n" : estimate_text(estimate));
  return kDone;
}

}  // namespace samebytes::cli
