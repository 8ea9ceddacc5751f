#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/recipe.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/workload.h"

namespace samebytes::cli {
namespace {

constexpr int kHelpColumn = 26;

std::string workload_table() {
  std::string text = "Workloads:\n";
  for (const WorkloadEntry& workload : workloads()) text += fmt::format("  {:<9}{}\n", workload.name, workload.about);
  return text;
}

void add_workload(CLI::App& app, Options& options, bool many) {
  auto* option = app.add_option("workload", options.workloads,
                                many ? "what to measure; all of them where none is given" : "what to run, see below");
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

CLI::App* add_devices(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("devices", "list the OpenCL devices, and how Samebytes uses each one");
  verb->add_flag("--json", options.json, "the list as JSON");
  return verb;
}

// How parameters change (recipe.h).
void add_recipe(CLI::App& app, Options& options) {
  app.add_option("--optimizer", options.optimizer, list_text(optimizer_names()) + "; default: adamw")
      ->option_text("NAME")
      ->check(CLI::IsMember(optimizer_names()));
  app.add_option("--rate", options.rate,
                 "highest learning rate; default: the workload's for adam, adamw and lamb, else PyTorch's")
      ->option_text("R")
      ->check(CLI::PositiveNumber);
  app.add_option("--schedule", options.schedule,
                 list_text(schedule_names()) +
                     ":\nhow the rate falls after its warm-up; plateau: when the test loss does not; default: cosine")
      ->option_text("NAME")
      ->check(CLI::IsMember(schedule_names()));
  app.add_option("--warmup", options.warmup,
                 "steps in which the rate rises; default: 5 % of all, none for constant and plateau")
      ->option_text("STEPS")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--gamma", options.gamma,
                 "what step, exponential and plateau multiply the rate by; default: 0.1; of\n"
                 "exponential, for each step, what leaves a hundredth at the end")
      ->option_text("X")
      ->check(CLI::Range(1e-9, 1.0));
  app.add_option("--every", options.every,
                 "steps between two falls of step or restarts of cosine, default: a third of all; tests that\n"
                 "a plateau waits for, default: 2")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--weight-decay", options.weight_decay,
                 "default: the workload's for adamw and lamb, PyTorch's for the others")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--momentum", options.momentum, "of sgd, rmsprop and lars, beta1 of the others; default: PyTorch's")
      ->option_text("X")
      ->check(CLI::Range(0.0, 0.999999));
  add_clip_norm(app, options);
  app.add_option("--ema", options.ema,
                 "average the weights with this decay, such as 0.999; tests and --save take the averages")
      ->option_text("DECAY")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--scale-rate", options.scale_rate,
                 "linear or sqrt: the rate grows with --batch, at most 32 times, from the one for --base-batch;\n"
                 "a larger one has a warm-up from the old one, of five epochs or a quarter of the run")
      ->option_text("RULE")
      ->check(CLI::IsMember({"linear", "sqrt"}));
  app.add_option("--base-batch", options.base_batch, "of --scale-rate; default: the workload's batch")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
}

CLI::App* add_train(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("train", "train a workload, then test it");
  add_workload(*verb, options, false);
  add_data(*verb, options);
  add_form(*verb, options);
  add_tokenizer(*verb, options);
  verb->add_option("--epochs", options.epochs, "passes over the training set; default: the workload's")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 30));
  add_steps(*verb, options, "end after so many steps, whatever --epochs says");
  add_batch(*verb, options, "samples per step; default: the workload's");
  add_recipe(*verb, options);
  add_release(*verb, options);
  add_precision(*verb, options,
                "f16 or bf16: activations, gradients and working copies of the weights in 16 bits, the weights\n"
                "themselves and all arithmetic in f32; f16 scales the loss and skips steps that overflow;\n"
                "default: f32");
  add_device_options(*verb, options, false);
  add_loader_options(*verb, options);
  verb->add_option("--load", options.load, "start from these parameters (safetensors)")->option_text("FILE");
  verb->add_option("--save", options.save,
                   "write the parameters at the end, also after Ctrl-C (safetensors); an older file stays\n"
                   "whole until the new one is complete")
      ->option_text("FILE");
  verb->add_option("--tensorboard", options.tensorboard,
                   "write loss, rate and test results as event files for `tensorboard --logdir DIR`")
      ->option_text("DIR");
  add_output_options(*verb, options);
  verb->footer(workload_table() +
               "\nExamples:\n"
               "  samebytes train digits\n"
               "  samebytes train cnn --data data/mnist --epochs 3 --save cnn.safetensors\n"
               "\nStatus: 0 done, 1 failed, 2 wrong usage, 130 interrupted (Ctrl-C ends after the step under way).");
  return verb;
}

CLI::App* add_eval(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("eval", "test saved parameters on the test set");
  add_workload(*verb, options, false);
  verb->add_option("--load", options.load, "the parameters (safetensors)")->option_text("FILE")->required();
  add_data(*verb, options);
  add_form(*verb, options);
  add_tokenizer(*verb, options);
  add_steps(*verb, options, "end after so many batches");
  add_batch(*verb, options, "samples per batch; default: the workload's");
  add_precision(*verb, options, "f16 or bf16: activations and weights in 16 bits, arithmetic in f32; default: f32");
  add_device_options(*verb, options, false);
  add_loader_options(*verb, options);
  add_output_options(*verb, options);
  verb->footer(workload_table() + "\nExample:\n  samebytes eval cnn --load cnn.safetensors --data data/mnist");
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
  add_batch(*verb, options, "samples per step; default: the workload's");
  verb->add_flag("--fixed-batch", options.fixed_batch,
                 "loop over one batch that is made once, to see what the loader costs");
  add_clip_norm(*verb, options);
  add_release(*verb, options);
  add_precision(*verb, options, "f32, f16 or bf16, as train and eval have it; default: f32");
  add_device_options(*verb, options, true);
  add_loader_options(*verb, options);
  add_output_options(*verb, options);
  verb->add_flag("--serve", options.serve,
                 "obey lines of the standard input (train, infer, run SECONDS, memory, quit), a line of JSON for\n"
                 "each, as benchmarks/compare.py wants it");
  verb->footer(workload_table() +
               "\nExamples:\n  samebytes bench cnn --batch 128\n  samebytes bench --device all --json");
  return verb;
}

CLI::App* add_generate(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("generate", "write text with a trained gpt");
  verb->add_option("--load", options.load, "the parameters (safetensors), of `train gpt` or as published")
      ->option_text("FILE")
      ->required();
  verb->add_option("--prompt", options.prompt, "text that it goes on from; default: a new line")->option_text("TEXT");
  verb->add_option("--tokens", options.tokens, "to write; default: 500")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  verb->add_option("--temperature", options.temperature,
                   "below 1 the likely tokens come more often, 0: always the most likely one; default: 0.8")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--top-k", options.top_k, "draw among the N most likely tokens; 0: among all; default: 0")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  add_tokenizer(*verb, options);
  add_device_options(*verb, options, false);
  verb->add_flag("--json", options.json, "the text, the number of tokens and the time as one line of JSON");
  verb->footer(
      "Example:\n"
      "  samebytes train gpt --data data/text/tinyshakespeare.txt --save gpt.safetensors\n"
      "  samebytes generate --load gpt.safetensors --prompt ROMEO: --tokens 300");
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
  add_device_options(*verb, options, false);
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
  add_device_options(*verb, options, false);
  add_loader_options(*verb, options);
  verb->add_flag("--json", options.json, "the tables as one line of JSON, the last one of the standard output");
  verb->add_flag("--quiet", options.quiet, "no progress, only the tables");
  verb->footer(
      workload_table() +
      "\nExamples:\n  samebytes profile cnn\n  samebytes profile gpt --by layer --html gpt.html --trace gpt.json");
  return verb;
}

std::string help_of(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) return verb->help(app.get_name());
  return app.help();
}

Parsed wrong(const CLI::App& app, const std::string& message) {
  std::string command = app.get_name();
  for (const CLI::App* verb : app.get_subcommands()) command += " " + verb->get_name();
  return {{}, fmt::format("samebytes: {}\nTry `{} --help`.\n", message, command), kWrongUsage};
}

}  // namespace

Parsed parse_options(int argc, char** argv) {
  Options options;
  CLI::App app("Trains and runs neural networks on any OpenCL device, on the same bytes as the host.", "samebytes");
  app.get_formatter()->column_width(kHelpColumn);
  app.set_version_flag("--version", fmt::format("samebytes {}", kVersionNumber), "print the version");
  app.require_subcommand(1);
  const CLI::App* devices = add_devices(app, options);
  const CLI::App* train = add_train(app, options);
  const CLI::App* eval = add_eval(app, options);
  const CLI::App* bench = add_bench(app, options);
  const CLI::App* generate = add_generate(app, options);
  const CLI::App* tune = add_tune(app, options);
  const CLI::App* profile = add_profile(app, options);
  app.footer(
      "Start with `samebytes train digits`: it needs no files and takes a few seconds.\n"
      "`samebytes VERB --help` explains a verb's options.");

  // A mistyped verb gets the nearest one instead of a list of rules.
  const std::vector<std::string> verbs = {"devices", "train", "eval", "bench", "generate", "tune", "profile"};
  if (argc > 1 && argv[1][0] != '-' && std::find(verbs.begin(), verbs.end(), argv[1]) == verbs.end()) {
    const std::string near = nearest_word(argv[1], verbs);
    return wrong(app, fmt::format("there is no verb {}{}; there are {}", argv[1],
                                  near.empty() ? "" : ", did you mean " + near + "?", list_text(verbs)));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {{}, help_of(app), kDone};
  } catch (const CLI::CallForVersion&) {
    return {{}, fmt::format("samebytes {}\n", kVersionNumber), kDone};
  } catch (const CLI::ParseError& error) {
    if (argc == 1) return {{}, "samebytes: what to do is missing\n\n" + app.help(), kWrongUsage};
    return wrong(app, error.what());
  }
  if (devices->parsed()) options.verb = Verb::devices;
  if (train->parsed()) options.verb = Verb::train;
  if (eval->parsed()) options.verb = Verb::eval;
  if (bench->parsed()) options.verb = Verb::bench;
  if (generate->parsed()) options.verb = Verb::generate;
  if (tune->parsed()) options.verb = Verb::tune;
  if (profile->parsed()) options.verb = Verb::profile;
  return {options, {}, kDone};
}

}  // namespace samebytes::cli
