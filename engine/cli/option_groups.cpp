#include "cli/option_groups.h"

#include <fmt/format.h>

#include "cli/workload.h"

namespace samebytes::cli {

std::string workload_table() {
  std::string text = "Workloads:\n";
  for (const WorkloadEntry& workload : workloads()) text += fmt::format("  {:<9}{}\n", workload.name, workload.about);
  return text;
}

void add_workload(CLI::App& app, Options& options, bool many) {
  auto* option = app.add_option("workload", options.workloads,
                                many ? "what to measure, or a run file (.yaml); all of them where none is given"
                                     : "what to run, see below, or a run file (.yaml) that says it");
  option->option_text(many ? "[WORKLOAD ...]" : "WORKLOAD");
  if (!many) option->required()->expected(1);
}

void add_device_options(CLI::App& app, Options& options, bool several) {
  app.add_option("--device", options.device,
                 std::string("cpu:0, gpu:0, an index, a part of a name, cpu or gpu (see `samebytes devices`);\n") +
                     (several ? "or all, for one after the other; " : "") + "default: the best device found")
      ->option_text("DEVICE");
  app.add_option("--threads", options.threads, "cores that a CPU device may use; default: all of them")
      ->option_text("N")
      ->check(CLI::Range(1, 4096));
  add_co_execution(app, options);
  app.add_option("--seed", options.seed, "of everything random; the same seed gives the same bytes; default: 1")
      ->option_text("N");
}

void add_loader_options(CLI::App& app, Options& options) {
  app.add_option("--workers", options.workers,
                 "threads that prepare batches; 0: none, the loop does it; default: 1, more from 8 cores on")
      ->option_text("N")
      ->check(CLI::Range(0, 1024));
  app.add_option("--slots", options.slots, "batches in memory: one is read while the others are filled; default: 2")
      ->option_text("N")
      ->check(CLI::Range(1, 1024));
}

void add_output_options(CLI::App& app, Options& options) {
  app.add_option("--log", options.log, "one JSON object a line, for each step and each epoch, while it runs")
      ->option_text("FILE.jsonl");
  app.add_flag("--check-nan", options.check_nan,
               "stop at the first NaN or infinity and name the op that made it; runs every op by itself and\n"
               "looks at all its results, so it is several times slower");
  app.add_flag("--json", options.json, "the summary as one line of JSON, the last one of the standard output");
  app.add_flag("--quiet", options.quiet, "no progress, only the summary");
}

CLI::Option* add_batch(CLI::App& app, Options& options, const char* text) {
  return app.add_option("--batch", options.batch, text)
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
}

CLI::Option* add_steps(CLI::App& app, Options& options, const char* text) {
  return app.add_option("--steps", options.steps, text)
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
}

void add_tokenizer(CLI::App& app, Options& options) {
  app.add_option("--tokenizer", options.form.tokenizer,
                 "of gpt: a folder with GPT-2's vocab.json and merges.txt; default: characters")
      ->option_text("DIR");
}

void add_clip_norm(CLI::App& app, Options& options) {
  app.add_option("--clip-norm", options.clip_norm,
                 "largest norm of all gradients together, 0: not clipped; default: the workload's")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
}

void add_release(CLI::App& app, Options& options) {
  app.add_flag("--release-gradients", options.release_gradients,
               "update parameters as soon as their gradients are there, which then need less memory; not with\n"
               "clipping by norm, so gpt needs --clip-norm 0 beside it");
}

void add_moments(CLI::App& app, Options& options) {
  app.add_option("--moments", options.moments,
                 "what sgd, adam, adamw, rmsprop and lion remember: f32, or bf16 in half the bytes; default: f32")
      ->option_text("DTYPE")
      ->check(CLI::IsMember({"f32", "bf16"}));
}

void add_weights(CLI::App& app, Options& options) {
  app.add_option("--weights", options.weights,
                 "f32, or bf16 beside --precision bf16: weights in half the bytes and nothing wider beside them,\n"
                 "rounded by chance in each update; with --lora-rank those that are frozen; default: f32")
      ->option_text("DTYPE")
      ->check(CLI::IsMember({"f32", "bf16"}));
}

void add_form(CLI::App& app, Options& options) {
  app.add_option("--size", options.form.size, "of gpt: nano, small or medium; default: nano")
      ->option_text("SIZE")
      ->check(CLI::IsMember({"nano", "small", "medium"}));
  app.add_option("--context", options.form.context, "tokens that gpt sees at a time; default: the size's own")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--name", options.form.name, "of the set that series reads in its folder")->option_text("SET");
}

void add_data(CLI::App& app, Options& options) {
  app.add_option("--data", options.form.data,
                 "the workload's data, a folder or a file, see below; digits and transit need none")
      ->option_text("PATH");
}

void add_precision(CLI::App& app, Options& options, const char* text) {
  app.add_option("--precision", options.precision, text)
      ->option_text("TYPE")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
}

}  // namespace samebytes::cli
