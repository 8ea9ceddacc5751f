// Options of single verbs: bench, profile, sweep, tune, generate, memory, doctor, completion. Members first, then the
// row of each (option_row.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options_running.h"

namespace samebytes::cli {

struct SweepOptions {
  std::vector<std::int64_t> batches = {1, 8, 32, 128};
  std::optional<double> target_loss;
  std::string plot;
};

struct DoctorOptions {
  std::string run;      // a log of train
  std::string profile;  // empty: none
};

struct ModelOptions {
  std::string file;                 // of run and inspect
  std::vector<std::string> inputs;  // NAME=FILE.npy
  std::vector<std::string> dims;    // SYMBOL=N
  std::string output;               // folder
  bool random = false;
  int repeat = 0;
};

struct NewOptions {
  std::string what;  // op
  std::string name;
  std::string folder = ".";
  bool overwrites = false;
};

struct ConvertingOptions {
  std::string from, to;
  std::string dtype;  // empty: as they are
  std::string graph;  // an ONNX model
  std::string part;   // of a checkpoint
};

struct DataOptions {
  std::string name;  // empty: all are listed
  std::string from;  // a folder, an archive or an address
  std::string to;    // folder
};

// Of the verbs chat and embed, beside what they share with generate.
struct LanguageOptions {
  std::string system;
  double top_p = 1, min_p = 0, repetition_penalty = 1;
  std::vector<std::string> stop;
  std::string input, output;  // of embed: a text a line; empty: the standard streams
  std::string pooling;        // empty: what the folder says
};

struct ToolOptions {
  std::string mode = "both";  // of bench: train, infer or both
  bool fixed_batch = false;
  bool unfrozen = false;
  bool finds_largest_batch = false;
  bool serve = false;
  int profile_wait = 0;    // of profile: steps before anything is recorded
  int profile_warmup = 5;  // recorded and thrown away
  std::string profile_by;  // kernel, op or layer; empty: kernel and layer
  std::string profile_sort = "time";
  int profile_top = 15;
  std::string trace;
  std::string html;
  SweepOptions sweep;
  std::string prompt = "\n";
  std::int64_t tokens = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  LanguageOptions language;
  bool tune_rapid = false;
  std::optional<double> tune_seconds;
  std::vector<std::string> tune_only;  // gemm, conv, clblast
  bool tune_dry_run = false;
  bool tune_show = false;
  bool tune_reset = false;
  DoctorOptions doctor;
  ModelOptions model_file;
  NewOptions fresh;
  ConvertingOptions convert;
  DataOptions data_set;
  std::string shell;  // bash, zsh, fish
};

// clang-format off
template <class Row>
void describe_measurement(Row& row, ToolOptions& o) {
  using enum Verb;
  constexpr int kMost = 1 << 30;
  row(o.mode, {.flag = "--mode MODE", .group = group::measurement, .verbs = bench | warm,
      .choices = {"train", "infer", "both"}, .help = "train, infer or both; default: both"});
  row(o.mode, {.flag = "--mode MODE", .group = group::measurement, .verbs = profile, .choices = {"train", "infer"},
      .help = "train or infer; default: train"});
  row(o.fixed_batch, {.flag = "--fixed-batch", .group = group::measurement, .verbs = bench,
      .help = "reuse a single batch, to see what the loader costs"});
  row(o.unfrozen, {.flag = "--unfrozen", .group = group::measurement, .verbs = bench,
    .help = "run the model's code in each step of inference, to see what nn::freeze_for_inference() gains"});
  row(o.finds_largest_batch, {.flag = "--largest-batch", .group = group::measurement, .verbs = bench,
      .help = "also find the largest batch whose step fits into memory, by planning; implied by --html"});
  row(o.serve, {.flag = "--serve", .group = group::measurement, .verbs = bench,
      .help = "read commands from standard input (train [STEPS], infer, run SECONDS, steps N, memory, quit) and answer "
              "each with a line of JSON, for benchmarks/compare.py"});
  row(o.profile_wait, {.flag = "--wait N", .group = group::measurement, .verbs = profile, .check = whole(0, kMost),
      .help = "steps to skip before recording"});
  row(o.profile_warmup, {.flag = "--warmup N", .group = group::measurement, .verbs = profile, .check = whole(0, kMost),
      .help = "steps to record and discard"});
  row(o.profile_by, {.flag = "--by WHAT", .group = group::output, .verbs = profile,
      .choices = {"kernel", "op", "layer"},
      .help = "group by kernel, op or layer; default: one table by kernel and one by layer"});
  row(o.profile_sort, {.flag = "--sort WHAT", .group = group::output, .verbs = profile,
      .choices = {"time", "count", "flops", "bytes"}, .help = "column to sort the rows by"});
  row(o.profile_top, {.flag = "--top N", .group = group::output, .verbs = profile, .check = whole(0, kMost),
      .help = "rows of a table; one more row sums up the rest; 0: all rows"});
  row(o.trace, {.flag = "--trace FILE.json", .group = group::output, .verbs = profile, .writes = Writes::file,
      .help = "write the timeline in Chrome's trace format, for https://ui.perfetto.dev"});
  row(o.html, {.flag = "--html FILE.html", .group = group::output, .verbs = profile, .writes = Writes::file,
      .help = "write an HTML page with layers, timeline, roofline, memory and all tables"});
  row(o.html, {.flag = "--html FILE.html", .group = group::output, .verbs = bench, .writes = Writes::file,
      .help = "write an HTML page with the devices, all rows, bar charts and a roofline for each device"});
  row(o.sweep.batches, {.flag = "--batch LIST", .also = {"--batch-size"}, .group = group::run, .verbs = sweep,
      .check = whole(1, kMost), .help = "comma-separated batch sizes"});
  row(o.sweep.target_loss, {.flag = "--target-loss X", .group = group::run, .verbs = sweep,
      .help = "test loss to reach; steps and seconds are counted until then; default: the lowest loss that the size "
              "nearest to the workload's own reaches in the first half of its training"});
  row(o.sweep.plot, {.flag = "--plot FILE.svg", .group = group::output, .verbs = sweep, .writes = Writes::file,
      .help = "plot samples/s, steps and seconds to the target, noise scale and memory by batch size"});
}

template <class Row>
void describe_tools(Row& row, ToolOptions& o, MemoryOptions& drawn) {
  using enum Verb;
  constexpr std::int64_t kMost = 1 << 30;
  row(o.language.system, {.flag = "--system TEXT", .group = group::run, .verbs = chat,
      .help = "message of the system that the conversation begins with; default: the template's, if it has one"});
  row(o.tokens, {.flag = "--tokens N", .also = {"--max-new-tokens"}, .group = group::run, .verbs = chat,
      .check = whole(1, kMost), .help = "most tokens of an answer"});
  row(o.temperature, {.flag = "--temperature X", .group = group::run, .verbs = chat, .check = at_least_zero(),
      .help = "sampling temperature; below 1, likely tokens become likelier; 0: always take the most likely token"});
  row(o.top_k, {.flag = "--top-k N", .group = group::run, .verbs = chat, .check = whole(0, kMost),
      .help = "sample from the N most likely tokens; 0: from all"});
  row(o.language.top_p, {.flag = "--top-p P", .group = group::run, .verbs = chat, .check = number(1e-9, 1),
      .help = "sample from the most likely tokens that have the probability P together"});
  row(o.language.min_p, {.flag = "--min-p P", .group = group::run, .verbs = chat, .check = number(0, 1),
      .help = "leave out tokens that are less likely than P times the most likely one"});
  row(o.language.repetition_penalty, {.flag = "--repetition-penalty X", .group = group::run, .verbs = chat,
      .check = above_zero(), .help = "make tokens that were there before less likely by this factor; 1: do not"});
  row(o.language.stop, {.flag = "--stop TEXT", .group = group::run, .verbs = chat,
      .help = "end an answer before this text; several by commas or by repeating"});
  row(o.language.input, {.flag = "--input FILE", .group = group::data, .verbs = embed,
      .help = "file with a text a line; default: standard input"});
  row(o.language.output, {.flag = "--output FILE", .group = group::output, .verbs = embed, .writes = Writes::file,
      .help = "write the vectors into this file: FILE.npy for NumPy, else a line of numbers for each text; default: "
              "standard output"});
  row(o.language.pooling, {.flag = "--pooling WORD", .group = group::run, .verbs = embed,
      .choices = {"mean", "first", "model"},
      .help = "mean of all tokens, the first token, or the model's own pooler; default: what the folder says, else "
              "mean"});
  row(o.prompt, {.flag = "--prompt TEXT", .group = group::run, .verbs = generate,
      .help = "text to continue; default: a newline"});
  row(o.tokens, {.flag = "--tokens N", .group = group::run, .verbs = generate, .check = whole(1, kMost),
      .help = "number of tokens to generate"});
  row(o.temperature, {.flag = "--temperature X", .group = group::run, .verbs = generate, .check = at_least_zero(),
      .help = "sampling temperature; below 1, likely tokens become likelier; 0: always take the most likely token"});
  row(o.top_k, {.flag = "--top-k N", .group = group::run, .verbs = generate, .check = whole(0, kMost),
      .help = "sample from the N most likely tokens; 0: from all"});
  row(o.tune_rapid, {.flag = "--rapid", .group = group::run, .verbs = tune,
      .help = "tune only the shapes and candidates that matter most, in about 20 s; on a CPU, skip CLBlast"});
  row(o.tune_seconds, {.flag = "--seconds N", .group = group::run, .verbs = tune, .check = above_zero(),
      .help = "start no new candidate after N seconds; default: 180, with --rapid 20"});
  row(o.tune_only, {.flag = "--only LIST", .group = group::run, .verbs = tune, .choices = {"gemm", "conv", "clblast"},
      .help = "tune only these (comma-separated) and leave the others as they are"});
  row(o.tune_dry_run, {.flag = "--dry-run", .group = group::run, .verbs = tune,
      .help = "measure without changing the store"});
  row(o.tune_show, {.flag = "--show", .group = group::run, .verbs = tune,
      .help = "print the path of the store and every choice: the value in use, the built-in one, the legal ones"});
  row(o.tune_reset, {.flag = "--reset", .group = group::run, .verbs = tune,
      .help = "delete the store and return to the built-in choices"});
  row(drawn.file, {.flag = "file FILE", .group = group::run, .verbs = memory, .is_required = true,
      .help = "snapshot from --memory-snapshot of train, bench or profile"});
  row(drawn.snapshot, {.flag = "--diff LATER", .group = group::run, .verbs = memory,
      .help = "show what grew and what shrank from FILE to this later snapshot"});
  row(drawn.svg, {.flag = "--svg OUT.svg", .group = group::output, .verbs = memory, .excludes = "--diff",
      .writes = Writes::file, .help = "draw the timeline and the arena as an SVG image"});
  row(drawn.top, {.flag = "--top N", .group = group::output, .verbs = memory, .check = whole(0, kMost),
      .help = "rows of a list; one more row sums up the rest; 0: all rows"});
  row(o.doctor.run, {.flag = "run RUN.jsonl", .group = group::run, .verbs = doctor, .is_required = true,
      .help = "log from `train --log FILE.jsonl`, also of a run that failed"});
  row(o.doctor.profile, {.flag = "profile [PROFILE.json]", .group = group::run, .verbs = doctor,
      .help = "output of `profile WORKLOAD --json`, for advice on speed"});
  row(o.model_file.file, {.flag = "model FILE", .group = group::run, .verbs = inspect, .is_required = true,
      .help = "ONNX model, safetensors file, checkpoint or GGUF file"});
  row(o.model_file.dims, {.flag = "--dim SYMBOL=N", .group = group::run, .verbs = inspect,
      .help = "size that an ONNX model leaves open, by its symbol or as INPUT.AXIS, such as x.2, for its flops and memory"});
  row(o.convert.from, {.flag = "source FILE", .group = group::run, .verbs = convert, .is_required = true,
      .help = "ONNX model, safetensors file or checkpoint"});
  row(o.convert.to, {.flag = "target NEWFILE", .group = group::run, .verbs = convert, .is_required = true,
      .writes = Writes::file, .help = "write to this file: weights (.safetensors), or a model (.onnx, with --graph)"});
  row(o.convert.dtype, {.flag = "--dtype DTYPE", .group = group::run, .verbs = convert,
      .choices = {"f64", "f32", "f16", "bf16"},
      .help = "store floating weights as f64, f32, f16 or bf16, rounded to the nearest; default: as they are"});
  row(o.convert.graph, {.flag = "--graph FILE.onnx", .group = group::run, .verbs = convert,
      .help = "model whose graph NEWFILE gets, with the weights of FILE"});
  row(o.convert.part, {.flag = "--part NAME", .group = group::run, .verbs = convert,
      .help = "network in a checkpoint that has several; default: model"});
  row(o.data_set.name, {.flag = "set [NAME]", .group = group::run, .verbs = data,
      .help = "data set; default: list all"});
  row(o.data_set.from, {.flag = "--from PLACE", .group = group::run, .verbs = data,
      .help = "folder, archive or address (https://, file://) to take the files from; default: print where they are "
              "published"});
  row(o.data_set.to, {.flag = "--to DIR", .group = group::output, .verbs = data, .needs = "--from",
      .writes = Writes::folder, .help = "write the files to this folder, new or empty; default: data/NAME"});
  row(o.model_file.file, {.flag = "model FILE.onnx", .group = group::run, .verbs = Verb::run, .is_required = true,
      .help = "ONNX model"});
  row(o.model_file.inputs, {.flag = "--input NAME=FILE.npy", .group = group::run, .verbs = Verb::run,
      .help = "array for an input of the model, as numpy.save writes it; several by commas or by repeating"});
  row(o.model_file.random, {.flag = "--random", .group = group::run, .verbs = Verb::run,
      .help = "make up the inputs that are not given: uniform numbers from 0 to 1, zeros for integers"});
  row(o.model_file.dims, {.flag = "--dim SYMBOL=N", .group = group::run, .verbs = Verb::run, .needs = "--random",
      .help = "size that the model leaves open, by its symbol or as INPUT.AXIS, such as x.2, for --random"});
  row(o.model_file.repeat, {.flag = "--repeat N", .group = group::measurement, .verbs = Verb::run,
      .check = whole(0, kMost), .help = "run N more times and print the median time"});
  row(o.model_file.output, {.flag = "--output DIR", .group = group::output, .verbs = Verb::run,
      .writes = Writes::folder, .help = "write each output into this folder as NAME.npy"});
  row(o.fresh.what, {.flag = "what WHAT", .group = group::run, .verbs = Verb::new_, .choices = {"op"},
      .is_required = true, .help = "op: an op of your own with its kernel, its gradient and a check of both"});
  row(o.fresh.name, {.flag = "function NAME", .group = group::run, .verbs = Verb::new_, .check = identifier(),
      .is_required = true, .help = "name of the op; the file is NAME.cpp"});
  row(o.fresh.folder, {.flag = "--output DIR", .group = group::output, .verbs = Verb::new_, .writes = Writes::folder,
      .help = "write the file into this folder"});
  row(o.fresh.overwrites, {.flag = "--force", .group = group::output, .verbs = Verb::new_,
      .help = "overwrite a file that is there"});
  row(o.shell, {.flag = "shell SHELL", .group = group::run, .verbs = completion, .choices = {"bash", "zsh", "fish"},
      .is_required = true, .help = "shell: bash, zsh or fish"});
}
// clang-format on

}  // namespace samebytes::cli
