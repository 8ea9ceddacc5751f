#include "cli/option_groups.h"
#include "cli/option_verbs.h"
#include "cli/options_limit.h"

namespace samebytes::cli {

CLI::App* add_devices(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("devices", "list the OpenCL devices, and how Samebytes uses each one");
  verb->add_flag("--json", options.json, "the list as JSON");
  return verb;
}

CLI::App* add_bench(CLI::App& app, Options& options) {
  auto* verb =
      app.add_subcommand("bench", "measure training and inference on made-up data, against the device's own peak");
  add_workload(*verb, options, true);
  add_form(*verb, options);
  verb->add_option("--mode", options.mode, "train, infer or both; default: both")
      ->option_text("MODE")
      ->check(CLI::IsMember({"train", "infer", "both"}));
  add_steps(*verb, options, "steps to measure, after a warm-up; default: 100");
  add_batch_or_auto(*verb, options);
  add_limit(*verb, options);
  verb->add_flag("--fixed-batch", options.fixed_batch,
                 "loop over one batch that is made once, to see what the loader costs");
  add_clip_norm(*verb, options);
  add_release(*verb, options);
  add_moments(*verb, options);
  add_weights(*verb, options);
  add_checkpointing(*verb, options);
  add_head(*verb, options);
  add_accumulation(*verb, options);
  add_shares(*verb, options);
  add_lora_training(*verb, options);
  add_precision(*verb, options, "f32, f16 or bf16, as train and eval have it; default: f32");
  add_device_options(*verb, options, DeviceWish::one_after_the_other);
  add_loader_options(*verb, options);
  add_memory_snapshot(*verb, options);
  verb->add_flag("--largest-batch", options.finds_largest_batch,
                 "also find the largest batch whose step fits into memory, by planning it; implied by --html");
  verb->add_option("--html", options.html,
                   "one page with the devices, all rows, bars side by side and a roofline for each device")
      ->option_text("FILE.html");
  add_output_options(*verb, options);
  verb->add_flag("--serve", options.serve,
                 "obey lines of the standard input (train [STEPS], infer, run SECONDS, steps N, memory, quit), a\n"
                 "line of JSON for each, as benchmarks/compare.py wants it");
  verb->footer(workload_table() +
               "\nExamples:\n  samebytes bench cnn --batch 128\n  samebytes bench --device all --json\n  samebytes "
               "bench mlp cnn --device all --html bench.html");
  return verb;
}

CLI::App* add_tune(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("tune", "search for faster tiles and splits on a device and keep them in its store");
  verb->add_flag("--rapid", options.tune_rapid,
                 "the shapes and candidates that matter most, in about 20 s; without CLBlast on a CPU");
  verb->add_option("--seconds", options.tune_seconds,
                   "time box: no candidate is begun after it; default: 180, with --rapid 20")
      ->option_text("N")
      ->check(CLI::PositiveNumber);
  verb->add_option("--only", options.tune_only,
                   "of gemm, conv and clblast, in a comma list; the others stay as they are")
      ->option_text("LIST")
      ->delimiter(',')
      ->check(CLI::IsMember({"gemm", "conv", "clblast"}));
  verb->add_flag("--dry-run", options.tune_dry_run, "measure, but leave the store as it is");
  verb->add_flag("--show", options.tune_show,
                 "print where the store lies and every choice: what holds, what is built in, what is legal");
  verb->add_flag("--reset", options.tune_reset, "remove the store; the built-in choices hold again");
  add_device_options(*verb, options, DeviceWish::one);
  verb->add_flag("--json", options.json, "the result as one line of JSON, the last one of the standard output");
  verb->add_flag("--quiet", options.quiet, "no progress, only the result");
  verb->footer(
      "The store is a JSON file for each device, driver and kernel personality, in $SAMEBYTES_TUNING, else in\n"
      "$XDG_CACHE_HOME/samebytes, else in ~/.cache/samebytes. Its values may be edited. SAMEBYTES_TUNING=off\n"
      "means the built-in choices. Other choices may change the last bits of results; the log and the summary\n"
      "of a run say which ones held (\"tuning\").\n"
      "\nExamples:\n  samebytes tune --rapid\n  samebytes tune --only gemm,conv --seconds 600\n  samebytes tune "
      "--show");
  return verb;
}

CLI::App* add_profile(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("profile", "show where the time and the memory of a workload's steps go");
  add_workload(*verb, options, false);
  add_form(*verb, options);
  verb->add_option("--mode", options.mode, "train or infer; default: train")
      ->option_text("MODE")
      ->check(CLI::IsMember({"train", "infer"}));
  verb->add_option("--wait", options.profile_wait, "steps before anything is recorded; default: 0")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--warmup", options.profile_warmup, "steps that are recorded and thrown away; default: 5")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 30));
  add_steps(*verb, options, "steps that are kept; default: 20");
  add_batch(*verb, options, "samples per step; default: the workload's");
  add_clip_norm(*verb, options);
  add_release(*verb, options);
  add_moments(*verb, options);
  add_weights(*verb, options);
  add_checkpointing(*verb, options);
  add_head(*verb, options);
  add_accumulation(*verb, options);
  add_lora_training(*verb, options);
  add_precision(*verb, options, "f32, f16 or bf16, as train and bench have it; default: f32");
  verb->add_option("--by", options.profile_by, "kernel, op or layer; default: a table by kernel and one by layer")
      ->option_text("WHAT")
      ->check(CLI::IsMember({"kernel", "op", "layer"}));
  verb->add_option("--sort", options.profile_sort, "time, count, flops or bytes; default: time")
      ->option_text("WHAT")
      ->check(CLI::IsMember({"time", "count", "flops", "bytes"}));
  verb->add_option("--top", options.profile_top, "lines of a table, the rest is one more; 0: all; default: 15")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 30));
  verb->add_option("--trace", options.trace, "the timeline as Chrome's trace events, for https://ui.perfetto.dev")
      ->option_text("FILE.json");
  verb->add_option("--html", options.html, "one page with layers, timeline, roofline, memory and all tables")
      ->option_text("FILE.html");
  add_memory_snapshot(*verb, options);
  add_device_options(*verb, options, DeviceWish::together);
  add_loader_options(*verb, options);
  verb->add_flag("--json", options.json, "the tables as one line of JSON, the last one of the standard output");
  verb->add_flag("--quiet", options.quiet, "no progress, only the tables");
  verb->footer(
      workload_table() +
      "\nExamples:\n  samebytes profile cnn\n  samebytes profile gpt --by layer --html gpt.html --trace gpt.json");
  return verb;
}

}  // namespace samebytes::cli
