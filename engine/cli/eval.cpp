// samebytes eval: tests saved parameters on the test set.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "cli/workloads.h"
#include "samebytes/samebytes.h"
#include "workloads/onnx_file.h"

namespace samebytes::cli {

int run_eval(const Options& options) {
  const std::string& name = options.workloads.front();
  if (options.load.empty() && !workloads::is_model_file(name)) throw UsageError("eval needs --load FILE");
  Progress progress(stream_for_people(options), options.quiet);
  progress.wait_for(reading_text(options));
  workloads::WorkloadOptions form = options.form;
  form.keeps_head = options.load.empty();
  const Workload workload = make_workload(name, form);
  const train::Precision precision(precision_options(options, false));
  expect_one_device(options, "eval");
  if (!options.load.empty()) expect_weights(io::TensorFile(options.load));
  const data::Split split = workload.open(0);
  const std::int64_t batch = options.batch.value_or(workload.defaults.batch);
  expect_within(batch, *split.test, "test set");
  train::RunLog log(options.log);
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  const std::unique_ptr<nn::Module> net = workload.make_model();
  if (!options.load.empty()) io::load(options.load, *net);
  add_adapters(options, *net);
  merge_adapters(*net);
  precision.prepare(*net);

  data::LoaderOptions loading = loader_options(options, batch);
  loading.transforms = workload.prepare;
  if (options.precision == "int8") {
    progress.wait_for("taking the ranges of inputs");
    data::Loader calibration(*engine, split.train, loading);
    quantize_model(options, workload, *net, calibration);
  }
  data::Loader batches(*engine, split.test, loading);
  train::RunMeter meter(*engine);
  const std::unique_ptr<Autocast> scope = precision.scope();
  progress.wait_for("testing");
  const std::optional<train::Evaluation> result = train::evaluate(
      task_of(workload), *net, batches,
      {.batches = options.steps.value_or(batches.size()), .meter = &meter, .should_stop = is_interrupted});
  progress.erase();
  Summary summary;
  describe(*engine, workload, batch, summary);
  fill(meter.figures(), *engine, summary);
  fill(precision, nullptr, summary);
  if (options.precision == "int8") summary.precision = options.precision;
  if (result) fill(*result, summary);
  auto line = to_json(summary);
  line["event"] = "summary";
  line["interrupted"] = is_interrupted();
  log.write(to_line(line));
  print_summary(options, summary, is_interrupted());
  log.check();
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
