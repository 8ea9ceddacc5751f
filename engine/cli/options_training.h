// What is trained and how: the options of a workload, its steps, optimizer, precision and memory. Members first, then
// the row of each (option_row.h). An empty optional takes the workload's default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_row.h"
#include "samebytes/checkpoint.h"
#include "samebytes/error.h"
#include "samebytes/optim/recipe.h"
#include "workloads/workload.h"

namespace samebytes::cli {

using workloads::WorkloadOptions;

// A batch that grows with the gradient noise scale.
struct AdaptiveOptions {
  bool is_on = false;
  std::optional<std::int64_t> max_batch;
};

// What a step keeps and how it is cut.
struct StepOptions {
  std::string checkpointing = "off";        // block, sqrt, or a number of blocks
  std::int64_t accumulate = 1;              // batches of an update
  std::optional<std::int64_t> micro_batch;  // samples of a piece of a batch
};

// How the product with the classes at the end of a model and its loss are made (workload.h).
struct HeadOptions {
  static constexpr std::int64_t kAutomatic = -1;
  std::int64_t chunks = 1;
  bool is_late = false;  // the gradient of the weight at the end of the backward pass
  bool is_chunked() const { return chunks > 1 || chunks == kAutomatic; }
  std::string to_text() const {  // "4", "auto", "auto, late"
    return (chunks == kAutomatic ? "auto" : std::to_string(chunks)) + (is_late ? ", late" : "");
  }
};

// Adapters beside a frozen network (workloads.h). Empty: no adapters.
struct AdapterOptions {
  std::optional<std::int64_t> rank;
  std::optional<double> alpha, dropout;
  std::vector<std::string> targets;
  std::string load, save;  // files with adapters alone
};

// How much memory a run may take (limit.h).
struct LimitOptions {
  bool automatic_batch = false;         // --batch auto
  std::optional<std::size_t> memory;    // --memory-limit
  std::vector<std::string> allowed;     // techniques that change results: moments, precision, pieces
  std::optional<std::size_t> pressure;  // --pressure-limit: of the process (relief.h)
  bool measures = false;                // of estimate
  double recompute = 0.05;              // share of a step's cost, EngineOptions::recompute
  bool rehearses = false;               // the engine of this run is a dry one
};

struct TrainingOptions {
  std::vector<std::string> workloads;  // one, or any number for bench
  WorkloadOptions form;
  std::optional<int> epochs;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> batch;
  std::optional<double> rate;
  std::string optimizer = "adamw";
  std::optional<std::string> schedule;
  std::optional<std::int64_t> warmup;  // steps
  std::optional<double> gamma;         // what some schedules multiply the rate by
  std::optional<std::int64_t> every;   // ... and after how many steps, or tests of a plateau
  std::optional<double> weight_decay;
  std::optional<double> momentum;         // or beta1
  std::optional<double> clip_norm;        // 0: off
  std::optional<double> ema;              // decay of averaged weights
  std::optional<std::string> scale_rate;  // linear, sqrt
  std::optional<std::int64_t> base_batch;
  AdaptiveOptions adaptive;
  bool release_gradients = false;
  std::string moments = "f32";    // what optimizers remember: f32, bf16
  std::string weights = "f32";    // how weights are stored: f32, bf16
  std::string precision = "f32";  // f16, bf16; without training int8
  std::string ranges = "static";  // of inputs in int8: static, dynamic
  StepOptions step;
  HeadOptions head;
  LimitOptions limit;
  AdapterOptions lora;
  std::string load;
  std::string save;
  std::string merged;  // of finetune: a folder
};

inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 30, kMostSteps = std::int64_t{1} << 40;

inline std::string checkpointing_fault(const std::string& text) {
  try {
    static_cast<void>(Checkpointing::parse(text));
    return {};
  } catch (const ArgumentError&) {
    return "expected off, block, sqrt or a number of blocks above 0, got " + text;
  }
}

// clang-format off
template <class Row>
void describe_workload(Row& row, TrainingOptions& o) {
  using enum Verb;
  row(o.workloads, {.flag = "workload WORKLOAD", .group = group::run,
      .verbs = train | eval | profile | estimate | sweep, .is_required = true,
      .help = "what to run (see below), a model's file (.onnx), or a run file (.yaml)"});
  row(o.workloads, {.flag = "model DIR", .group = group::run, .verbs = kLanguageVerbs, .is_required = true,
      .help = "folder of Hugging Face (config.json, safetensors, tokenizer.json), or a GGUF file"});
  row(o.workloads, {.flag = "workload [WORKLOAD ...]", .group = group::run, .verbs = bench | warm,
      .help = "which ones (see below), model files (.onnx), or a run file (.yaml); default: all workloads"});
  row(o.epochs, {.flag = "--epochs N", .also = {"--num-epochs"}, .group = group::run, .verbs = train,
      .check = whole(1, kMostSamples), .in_rehearsal = false,
      .help = "passes over the training set; default: the workload's"});
  row(o.epochs, {.flag = "--epochs N", .also = {"--num-epochs"}, .group = group::run, .verbs = finetune,
      .check = whole(1, kMostSamples), .in_rehearsal = false, .help = "passes over the samples; default: 3"});
  row(o.epochs, {.flag = "--epochs N", .also = {"--num-epochs"}, .group = group::run, .verbs = sweep,
      .check = whole(1, kMostSamples), .excludes = "--steps", .in_rehearsal = false,
      .help = "maximum passes over the training set for each size; default: the workload's, up to 60 000 samples"});
  const auto steps = [&](Verbs verbs, const char* help) {
    row(o.steps, {.flag = "--steps N", .also = {"--max-steps"}, .group = group::run, .verbs = verbs,
        .check = whole(1, kMostSteps), .help = help});
  };
  steps(train | finetune, "stop after N steps, regardless of --epochs");
  steps(eval, "stop after N batches");
  steps(bench, "steps to measure after a warm-up; default: 100");
  steps(profile, "steps to record; default: 20");
  steps(sweep, "maximum steps for each size; default: the same number of samples for each, see --epochs");
  row(Written{.read =
                  [&o](const std::string& text) {
                    o.limit.automatic_batch = text == "auto";
                    if (!o.limit.automatic_batch) o.batch = std::stoll(text);
                  },
              .text =
                  [&o] {
                    return o.limit.automatic_batch ? "auto" : o.batch ? std::to_string(*o.batch) : "the default";
                  },
              .json = [&o] { return json_of(o.batch); }},
      {.flag = "--batch N|auto", .also = {"--batch-size"}, .group = group::run, .verbs = train | bench,
      .check = or_word("auto", whole(1, kMostSamples)), .resume = Resume::must_agree, .log = Log::always,
      .help = "samples per step; auto: as many as fit into --memory-limit, or into memory less 2 GiB, found by "
              "planning the step without running it; default: the workload's"});
  row(o.batch, {.flag = "--batch N", .also = {"--batch-size"}, .group = group::run, .verbs = eval | profile | estimate | warm,
      .check = whole(1, kMostSamples), .help = "samples per step; default: the workload's"});
  row(o.batch, {.flag = "--batch N", .also = {"--batch-size"}, .group = group::run, .verbs = finetune,
      .check = whole(1, kMostSamples), .log = Log::always, .help = "rows of a step; default: 4"});
  row(o.batch, {.flag = "--batch N", .also = {"--batch-size"}, .group = group::run, .verbs = embed,
      .check = whole(1, kMostSamples), .help = "texts at once; default: 32"});
  row(o.batch, {.flag = "--batch N", .group = group::run, .verbs = inspect, .check = whole(1, kMostSamples),
      .help = "samples of a forward pass, for the flops and the memory of an ONNX model; default: 1"});
  row(o.form.data, {.flag = "--data PATH", .group = group::data, .verbs = train | eval | sweep,
      .help = "the workload's data, a folder or a file (see below); digits and transit need none"});
  row(o.form.data, {.flag = "--data FILE.jsonl", .group = group::data, .verbs = finetune, .is_required = true,
      .help = "conversations, a JSON object a line: {\"messages\": [{\"role\", \"content\"}, ...]}, {\"prompt\", "
              "\"answer\"}, {\"instruction\", \"input\", \"output\"} or {\"text\"}; the loss counts answers only"});
  row(o.form.validation, {.flag = "--validation SHARE", .group = group::data, .verbs = finetune,
      .check = number(0.001, 0.5), .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "share of the samples that is for testing; default: 0.05"});
  row(Written{.read = [&o](const std::string& text) { o.form.packs = text == "on"; },
              .text = [&o] { return o.form.packs ? "on" : "off"; },
              .json = [&o] { return nlohmann::ordered_json(o.form.packs); }},
      {.flag = "--packing WORD", .group = group::data, .verbs = finetune, .choices = {"on", "off"},
      .resume = Resume::must_agree,
      .help = "on: short samples share a row of --context tokens and do not see each other; off: each has its own"});
  row(o.form.quantise, {.flag = "--quantise TYPE", .also = {"--quantize"}, .group = group::model,
      .verbs = kLanguageVerbs | estimate, .choices = {"none", "q8", "q4", "nf4"},
      .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "keep the frozen linear layers as Q8_0, Q4_K or NF4 blocks, which are made as the model is read; not of "
              "GGUF files, whose own blocks are used; default: none, as the files have them"});
  row(o.form.dtype, {.flag = "--dtype DTYPE", .group = group::model, .verbs = kLanguageVerbs | estimate,
      .choices = {"f32", "f16", "bf16"}, .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "keep the matrices of a language model as f32, f16 or bf16; products with them then multiply that type, "
              "bf16 by the CPU's own instructions where it has them; default: as the files have them"});
  row(o.form.validation, {.flag = "--validation SHARE", .group = group::data, .verbs = train | eval | sweep,
      .check = number(0.001, 0.999), .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "of a model's file: share of each class that is for testing, where the --data folder has no part for "
              "that; default: 0.1"});
  row(o.form.mean, {.flag = "--mean LIST", .group = group::data, .verbs = train | eval | sweep, .needs = "--std",
      .resume = Resume::must_agree_if_given,
      .help = "of a model's file: what is subtracted from pixels of 0 to 1, one number or one for each channel; "
              "default: ImageNet's means, of grey images the training set's own"});
  row(o.form.deviation, {.flag = "--std LIST", .group = group::data, .verbs = train | eval | sweep, .needs = "--mean",
      .resume = Resume::must_agree_if_given,
      .help = "of a model's file: what pixels are divided by then; default: as for --mean"});
  row(o.form.name, {.flag = "--name SET", .group = group::data, .verbs = kWorkloadVerbs,
      .resume = Resume::must_agree_if_given, .help = "data set in the --data folder, for series"});
  row(o.form.size, {.flag = "--size SIZE", .group = group::model, .verbs = kWorkloadVerbs,
      .choices = {"nano", "small", "medium"}, .resume = Resume::must_agree_if_given,
      .help = "model size of gpt: nano, small or medium; default: nano"});
  row(o.form.context, {.flag = "--context N", .group = group::model, .verbs = kWorkloadVerbs,
      .check = whole(1, 1 << 20), .resume = Resume::must_agree_if_given,
      .help = "context length of gpt, in tokens; default: that of the size"});
  row(o.form.context, {.flag = "--context N", .group = group::model, .verbs = finetune, .check = whole(2, 1 << 20),
      .resume = Resume::must_agree_if_given, .log = Log::if_given, .help = "tokens of a row; default: 512, or what the model has positions for"});
  row(o.form.tokenizer, {.flag = "--tokenizer DIR", .group = group::model, .verbs = train | eval | sweep | generate,
      .help = "folder with GPT-2's vocab.json and merges.txt, for gpt; default: one token per character"});
  row(o.load, {.flag = "--load FILE", .group = group::model, .verbs = train, .in_rehearsal = false,
      .help = "start a new run from these parameters (safetensors); to continue a run, use --resume"});
  row(o.form.dims, {.flag = "--dim SYMBOL=N", .group = group::model, .verbs = kWorkloadVerbs,
      .resume = Resume::must_agree_if_given,
      .help = "of a model's file: a size that it leaves open, by its symbol or as INPUT.AXIS, such as x.2; the first one of "
              "each input is the batch"});
  row(o.form.freeze, {.flag = "--freeze PATTERN", .group = group::training, .verbs = kStepVerbs | sweep,
      .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "keep the parameters with these names as they are, such as 'layer[123].*'; several by commas or by "
              "repeating; `samebytes inspect` lists the names of a file"});
  row(o.save, {.flag = "--save DIR", .group = group::model, .verbs = finetune, .writes = Writes::folder,
      .in_rehearsal = false,
      .help = "write the adapters into this folder as PEFT's files, also after Ctrl-C; default: adapters"});
  row(o.merged, {.flag = "--merge DIR", .group = group::model, .verbs = finetune, .writes = Writes::folder,
      .in_rehearsal = false,
      .help = "write the model with the adapters merged into its weights, and its tokenizer, into this folder, too"});
  row(o.load, {.flag = "--load FILE", .group = group::model, .verbs = eval,
      .help = "parameters to test (safetensors); a model's file (.onnx) has its own"});
  row(o.load, {.flag = "--load FILE", .group = group::model, .verbs = generate, .is_required = true,
      .help = "parameters (safetensors), from `train gpt --save` or as published for GPT-2"});
  row(o.save, {.flag = "--save FILE", .group = group::model, .verbs = train, .writes = Writes::file,
      .in_rehearsal = false,
      .help = "write the parameters at the end, also after Ctrl-C (safetensors; .onnx: the model, where it came from "
              "such a file), replacing an older file atomically; to be able to --resume, use --checkpoint"});
}

template <class Row>
void describe_recipe(Row& row, TrainingOptions& o) {
  using enum Verb;
  constexpr Verbs kLearning = train | sweep | finetune;
  row(o.optimizer, {.flag = "--optimizer NAME", .group = group::optimizer, .verbs = kLearning,
      .choices = optim::optimizer_names(), .resume = Resume::must_agree, .log = Log::always,
      .help = "optimization algorithm"});
  row(o.rate, {.flag = "--rate R", .also = {"--lr", "--learning-rate"}, .group = group::optimizer, .verbs = kLearning,
      .check = above_zero(), .resume = Resume::must_agree, .log = Log::always,
      .help = "peak learning rate; default: the workload's for adam, adamw and lamb, else PyTorch's"});
  row(o.weight_decay, {.flag = "--weight-decay X", .also = {"--wd"}, .group = group::optimizer, .verbs = kLearning,
      .check = at_least_zero(), .resume = Resume::must_agree, .log = Log::always,
      .help = "weight decay; default: the workload's for adamw and lamb, else PyTorch's"});
  row(o.momentum, {.flag = "--momentum X", .also = {"--beta1"}, .group = group::optimizer, .verbs = kLearning,
      .check = number(0, 0.999999), .resume = Resume::must_agree,
      .help = "momentum of sgd, rmsprop and lars, beta1 of the other optimizers; default: PyTorch's"});
  row(o.clip_norm, {.flag = "--clip-norm X", .also = {"--max-grad-norm"}, .group = group::optimizer,
      .verbs = kStepVerbs | sweep | finetune, .check = at_least_zero(), .resume = Resume::must_agree,
      .log = Log::always,
      .help = "clip the global norm of the gradients to X; 0: no clipping; default: the workload's"});
  row(o.ema, {.flag = "--ema DECAY", .group = group::optimizer, .verbs = kLearning, .check = number(0, 1),
      .resume = Resume::must_agree, .log = Log::if_given,
      .help = "keep an exponential moving average of the weights with this decay, such as 0.999; tests and --save use "
              "the averages"});
  row(o.schedule, {.flag = "--schedule NAME", .also = {"--lr-scheduler"}, .group = group::schedule, .verbs = kLearning,
      .choices = optim::schedule_names(), .resume = Resume::must_agree, .log = Log::always,
      .help = "how the learning rate falls after the warm-up; plateau: when the test loss stops falling; default: "
              "cosine"});
  row(o.warmup, {.flag = "--warmup STEPS", .also = {"--warmup-steps"}, .group = group::schedule, .verbs = kLearning,
      .check = whole(0, kMostSteps), .resume = Resume::must_agree, .log = Log::always,
      .help = "steps of linear warm-up; default: 5 % of all steps, 0 for constant and plateau"});
  row(o.gamma, {.flag = "--gamma X", .group = group::schedule, .verbs = kLearning, .check = number(1e-9, 1),
      .resume = Resume::must_agree,
      .help = "factor by which step, exponential and plateau multiply the rate; default: 0.1; exponential applies it "
              "in each step, by default the factor that leaves a hundredth of the rate at the end"});
  row(o.every, {.flag = "--every N", .group = group::schedule, .verbs = kLearning, .check = whole(1, kMostSteps),
      .resume = Resume::must_agree,
      .help = "steps between two drops of step or restarts of cosine, default: a third of all steps; tests that "
              "plateau waits, default: 2"});
  row(o.scale_rate, {.flag = "--scale-rate RULE", .group = group::schedule, .verbs = kLearning,
      .choices = {"linear", "sqrt"}, .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "scale the rate with --batch / --base-batch, linear or sqrt, at most 32 times; a scaled rate warms up "
              "from the unscaled one, for five epochs or a quarter of the run"});
  row(o.base_batch, {.flag = "--base-batch N", .group = group::schedule, .verbs = kLearning,
      .check = whole(1, kMostSamples),
      .help = "batch that the unscaled rate belongs to, for --scale-rate; default: the workload's batch"});
  row(o.adaptive.is_on, {.flag = "--adaptive-batch", .group = group::training, .verbs = train,
      .resume = Resume::must_agree_if_given,
      .help = "start with --batch and double the batch whenever the gradient noise scale stays above it; the rate "
              "follows (--scale-rate; default: linear for sgd, sqrt for the others); progress and --steps then count "
              "steps of half of --batch"});
  row(o.adaptive.max_batch, {.flag = "--max-batch N", .group = group::training, .verbs = train,
      .check = whole(1, kMostSamples), .needs = "--adaptive-batch", .resume = Resume::must_agree_if_given,
      .help = "largest batch of --adaptive-batch; default: 32 times --batch, at most an eighth of the set"});
}

template <class Row>
void describe_step(Row& row, TrainingOptions& o) {
  using enum Verb;
  row(o.step.accumulate, {.flag = "--accumulate N", .also = {"--gradient-accumulation-steps"}, .group = group::training,
      .verbs = kStepVerbs | finetune, .check = whole(1, 1 << 20), .resume = Resume::must_agree, .log = Log::always,
      .help = "accumulate the gradients of N batches for each update; an incomplete group at the end of an epoch also "
              "makes one"});
  row(o.step.micro_batch, {.flag = "--micro-batch N", .group = group::training, .verbs = kStepVerbs | finetune,
      .check = whole(1, kMostSamples), .resume = Resume::must_agree, .log = Log::if_given,
      .help = "evaluate a batch in pieces of N samples, which needs the memory of one piece only; the update is that "
              "of the whole batch, except that batch norm sees pieces"});
  row(Written{.read =
                  [&o](const std::string& text) {
                    o.head.chunks = text == "auto" ? HeadOptions::kAutomatic : std::stoll(text);
                  },
              .text = [&o] { return o.head.is_chunked() ? o.head.to_text() : "1"; },
              .json = [&o] { return nlohmann::ordered_json(o.head.to_text()); }},
      {.flag = "--head-chunks N|auto", .group = group::memory, .verbs = kStepVerbs,
      .check = or_word("auto", whole(0, kMostSamples)), .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "for gpt: compute logits, loss and their gradients in N chunks of tokens, so that only one chunk is "
              "in memory; auto: choose N by the size of the logits; 0 and 1: a single chunk"});
  row(o.head.is_late, {.flag = "--late-head-gradient", .group = group::memory, .verbs = kStepVerbs,
      .help = "with --head-chunks: recompute the logits at the end of the backward pass and compute the gradient of "
              "the token embedding only there, so that it takes no memory before"});
  const auto precision = [&](Verbs verbs, const std::vector<std::string>& choices, const char* help) {
    row(o.precision, {.flag = "--precision TYPE", .group = group::precision, .verbs = verbs,
        .choices = choices, .resume = Resume::must_agree, .log = Log::always, .help = help});
  };
  precision(train | sweep, {"f32", "f16", "bf16"},
            "f16, bf16: store activations, gradients and working copies of the weights in 16 bits, keep the weights "
            "themselves and all arithmetic in f32; f16 scales the loss and skips steps that overflow");
  precision(estimate, {"f32", "f16", "bf16"}, "f16, bf16: store activations and weights in 16 bits, compute in f32");
  precision(bench | profile | eval | warm, {"f32", "f16", "bf16", "int8"},
            "f16, bf16: store activations and weights in 16 bits, compute in f32; int8, without training: multiply "
            "8-bit integers in linear layers and convolutions");
  row(o.ranges, {.flag = "--input-ranges KIND", .group = group::precision, .verbs = bench | profile | eval | warm,
      .choices = {"static", "dynamic"},
      .help = "with --precision int8: what inputs lie between, as batches of the training set had it (static, the "
              "default), or each row or image by itself (dynamic)"});
  row(o.weights, {.flag = "--weights DTYPE", .group = group::precision, .verbs = kStepVerbs, .choices = {"f32", "bf16"},
      .resume = Resume::must_agree, .log = Log::always,
      .help = "storage type of the weights; bf16 (with --precision bf16): half the bytes, no f32 copy, updates rounded "
              "stochastically; with --lora-rank, of the frozen weights only"});
  row(o.moments, {.flag = "--moments DTYPE", .group = group::precision, .verbs = kStepVerbs | finetune, .choices = {"f32", "bf16"},
      .resume = Resume::must_agree, .log = Log::always,
      .help = "storage type of the moments of sgd, adam, adamw, rmsprop and lion; bf16: half the bytes"});
  row(o.release_gradients, {.flag = "--release-gradients", .group = group::memory, .verbs = kStepVerbs | finetune,
      .log = Log::always,
      .help = "update each parameter as soon as its gradient is known, then free the gradient; excludes clipping by "
              "norm, so gpt also needs --clip-norm 0"});
  row(o.step.checkpointing, {.flag = "--gradient-checkpointing K", .group = group::memory, .verbs = kStepVerbs | finetune,
      .check = checkpointing_fault, .log = Log::always,
      .help = "block, sqrt or a number: keep only the inputs of each block, of groups of sqrt(number of blocks) "
              "blocks, or of groups of K blocks, and recompute the rest in the backward pass"});
  row(o.limit.recompute, {.flag = "--recompute SHARE", .group = group::memory, .verbs = kStepVerbs | finetune,
      .check = number(0, 10),
      .help = "share of a step's cost that the planner may spend on recomputing pointwise values instead of keeping "
              "them; 0: only if it costs nothing; the results are the same bytes"});
  row(o.limit.memory, {.flag = "--memory-limit BYTES", .group = group::memory, .verbs = train | bench | finetune,
      .help = "memory that the run may use, such as 1.5GB (10^9) or 800MiB (2^20); if the step does not fit, the "
              "planner adds recomputation, micro-batches, gradient release, 16-bit moments and 16-bit precision, in "
              "this order"});
  row(o.limit.allowed, {.flag = "--allow LIST", .group = group::memory, .verbs = train | bench | finetune,
      .choices = {"moments", "precision", "pieces"},
      .help = "allow techniques that change results: moments and precision for --memory-limit; pieces: cut batches "
              "under memory pressure even if batch norm then sees pieces"});
  row(o.limit.pressure, {.flag = "--pressure-limit BYTES", .group = group::memory, .verbs = train,
      .help = "memory that the process may use; at 85 % of it the run frees its cache, then prefetched batches, then "
              "halves its pieces, and continues; default: the limit of the machine and its cgroups"});
  row(o.limit.measures, {.flag = "--measure", .group = group::memory, .verbs = estimate,
      .help = "also run some steps and print the peak growth of the process (VmHWM)"});
}

template <class Row>
void describe_adapters(Row& row, TrainingOptions& o) {
  using enum Verb;
  constexpr Verbs kTraining = train | bench | profile;
  row(o.lora.rank, {.flag = "--lora-rank R", .group = group::adapters, .verbs = kTraining, .check = whole(1, 1 << 20),
      .resume = Resume::must_agree, .log = Log::if_given,
      .help = "train only low-rank adapters of this rank beside the linear layers (LoRA); --load reads the network, "
              "--save writes it with the adapters merged into its weights"});
  row(o.lora.rank, {.flag = "--lora R", .group = group::adapters,
      .verbs = finetune | estimate, .check = whole(1, 1 << 20), .resume = Resume::must_agree, .log = Log::if_given,
      .help = "rank of the adapters beside the linear layers of a language model (LoRA); finetune's default: 16"});
  row(o.lora.alpha, {.flag = "--lora-alpha X", .group = group::adapters, .verbs = finetune, .check = above_zero(),
      .resume = Resume::must_agree, .log = Log::if_given, .help = "scale the output of the adapters by alpha / rank; default: twice the rank"});
  row(o.lora.dropout, {.flag = "--lora-dropout P", .group = group::adapters, .verbs = finetune,
      .check = number(0, 0.999999), .resume = Resume::must_agree, .log = Log::if_given,
      .help = "dropout on the input of the adapters; default: 0"});
  row(o.lora.targets, {.flag = "--lora-targets LIST", .group = group::adapters, .verbs = finetune | estimate,
      .resume = Resume::must_agree,
      .help = "comma-separated names of layers, such as q_proj,v_proj, or all-linear; default: PEFT's for the family"});
  row(o.lora.load, {.flag = "--adapter DIR", .group = group::adapters, .verbs = chat | embed,
      .help = "adapters to add, a folder from `finetune --save` or from PEFT"});
  row(o.lora.alpha, {.flag = "--lora-alpha X", .group = group::adapters, .verbs = kTraining, .check = above_zero(),
      .needs = "--lora-rank", .resume = Resume::must_agree,
      .help = "scale the output of the adapters by alpha / rank; default: 8"});
  row(o.lora.dropout, {.flag = "--lora-dropout P", .group = group::adapters, .verbs = kTraining,
      .check = number(0, 0.999999), .needs = "--lora-rank", .resume = Resume::must_agree,
      .help = "dropout on the input of the adapters; default: 0"});
  row(o.lora.targets, {.flag = "--lora-targets LIST", .group = group::adapters, .verbs = kTraining,
      .needs = "--lora-rank", .resume = Resume::must_agree,
      .help = "comma-separated names of layers, such as c_attn,c_proj, or all-linear; default: the queries, keys and "
              "values of attention (c_attn), or all linear layers if the network has no attention"});
  row(o.lora.load, {.flag = "--lora FILE", .group = group::adapters, .verbs = train,
      .help = "continue training these adapters, beside the network of --load"});
  row(o.lora.load, {.flag = "--lora FILE", .group = group::adapters, .verbs = eval | generate,
      .help = "adapters to add to the parameters (safetensors, from train --lora-save or from PEFT)"});
  row(o.lora.save, {.flag = "--lora-save FILE", .group = group::adapters, .verbs = train, .writes = Writes::file,
      .in_rehearsal = false,
      .help = "write only the adapters at the end (safetensors with PEFT's names; name the file "
              "adapter_model.safetensors for PEFT to open its folder)"});
}
// clang-format on

}  // namespace samebytes::cli
