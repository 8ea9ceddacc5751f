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
#include "workloads/workload.h"

namespace samebytes::cli {

const std::vector<std::string>& optimizer_names();  // recipe.h
const std::vector<std::string>& schedule_names();

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

// Adapters beside a frozen network (lora.h). Empty: no adapters.
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
  std::string precision = "f32";  // f16, bf16
  StepOptions step;
  HeadOptions head;
  LimitOptions limit;
  AdapterOptions lora;
  std::string load;
  std::string save;
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
  row(o.workloads, {.flag = "workload", .value = "WORKLOAD", .group = group::run,
      .verbs = train | eval | profile | estimate | sweep, .is_required = true,
      .help = "what to run (see below), or a run file (.yaml) that says it"});
  row(o.workloads, {.flag = "workload", .value = "[WORKLOAD ...]", .group = group::run, .verbs = bench,
      .help = "what to measure, or a run file (.yaml); without one, all workloads"});
  row(o.epochs, {.flag = "--epochs", .value = "N", .group = group::run, .verbs = train, .check = whole(1, kMostSamples),
      .in_rehearsal = false,
      .help = "passes over the training set; default: the workload's"});
  row(o.epochs, {.flag = "--epochs", .value = "N", .group = group::run, .verbs = sweep, .check = whole(1, kMostSamples),
      .excludes = "--steps", .in_rehearsal = false,
      .help = "passes over the training set for each size, at most; default: the workload's, up to 60 000 samples"});
  const auto steps = [&](Verbs verbs, const char* help) {
    row(o.steps, {.flag = "--steps", .value = "N", .group = group::run, .verbs = verbs, .check = whole(1, kMostSteps),
        .help = help});
  };
  steps(train, "end after N steps, whatever --epochs says");
  steps(eval, "end after N batches");
  steps(bench, "steps to measure, after a warm-up; default: 100");
  steps(profile, "steps to keep; default: 20");
  steps(sweep, "steps of each size, at most; default: the same number of samples for each, see --epochs");
  row(Written{.read =
                  [&o](const std::string& text) {
                    o.limit.automatic_batch = text == "auto";
                    if (!o.limit.automatic_batch) o.batch = std::stoll(text);
                  },
              .text =
                  [&o] {
                    return o.limit.automatic_batch ? "auto" : o.batch ? std::to_string(*o.batch) : "the default";
                  },
              .json = [&o] { return o.batch ? nlohmann::ordered_json(*o.batch) : nullptr; }},
      {.flag = "--batch", .value = "N|auto", .group = group::run, .verbs = train | bench,
      .check = or_word("auto", whole(1, kMostSamples)), .resume = Resume::must_agree, .log = Log::always,
      .help = "samples per step; auto: as many as fit into memory, found by planning the step, not by trying it (2 "
              "GiB stay free, or --memory-limit is used); default: the workload's"});
  row(o.batch, {.flag = "--batch", .value = "N", .group = group::run, .verbs = eval | profile | estimate,
      .check = whole(1, kMostSamples),
      .help = "samples per step; default: the workload's"});
  row(o.form.data, {.flag = "--data", .value = "PATH", .group = group::data, .verbs = train | eval | sweep,
      .help = "the workload's data, a folder or a file (see below); digits and transit need none"});
  row(o.form.name, {.flag = "--name", .value = "SET", .group = group::data, .verbs = kWorkloadVerbs,
      .resume = Resume::must_agree_if_given,
      .help = "the set that series reads in the folder --data"});
  row(o.form.size, {.flag = "--size", .value = "SIZE", .group = group::model, .verbs = kWorkloadVerbs,
      .choices = {"nano", "small", "medium"}, .resume = Resume::must_agree_if_given,
      .help = "size of gpt: nano, small or medium; default: nano"});
  row(o.form.context, {.flag = "--context", .value = "N", .group = group::model, .verbs = kWorkloadVerbs,
      .check = whole(1, 1 << 20), .resume = Resume::must_agree_if_given,
      .help = "tokens that gpt sees at a time; default: the size's own"});
  row(o.form.tokenizer, {.flag = "--tokenizer", .value = "DIR", .group = group::model,
      .verbs = train | eval | sweep | generate,
      .help = "a folder with GPT-2's vocab.json and merges.txt, for gpt; default: characters"});
  row(o.load, {.flag = "--load", .value = "FILE", .group = group::model, .verbs = train, .in_rehearsal = false,
      .help = "start a new run from these parameters (safetensors); --resume continues an old run"});
  row(o.load, {.flag = "--load", .value = "FILE", .group = group::model, .verbs = eval, .is_required = true,
      .help = "the parameters (safetensors)"});
  row(o.load, {.flag = "--load", .value = "FILE", .group = group::model, .verbs = generate, .is_required = true,
      .help = "the parameters (safetensors), written by `train gpt` or as published"});
  row(o.save, {.flag = "--save", .value = "FILE", .group = group::model, .verbs = train, .in_rehearsal = false,
      .help = "write the parameters at the end, also after Ctrl-C (safetensors); an older file stays whole until the "
              "new one is complete; --checkpoint keeps what --resume needs"});
}

template <class Row>
void describe_recipe(Row& row, TrainingOptions& o) {
  using enum Verb;
  constexpr Verbs kLearning = train | sweep;
  row(o.optimizer, {.flag = "--optimizer", .value = "NAME", .group = group::optimizer, .verbs = kLearning,
      .choices = optimizer_names(), .resume = Resume::must_agree, .log = Log::always,
      .help = "how parameters follow their gradients"});
  row(o.rate, {.flag = "--rate", .value = "R", .group = group::optimizer, .verbs = kLearning, .check = above_zero(),
      .resume = Resume::must_agree, .log = Log::always,
      .help = "highest learning rate; default: the workload's for adam, adamw and lamb, else PyTorch's"});
  row(o.weight_decay, {.flag = "--weight-decay", .value = "X", .group = group::optimizer, .verbs = kLearning,
      .check = at_least_zero(), .resume = Resume::must_agree, .log = Log::always,
      .help = "decay of the weights; default: the workload's for adamw and lamb, else PyTorch's"});
  row(o.momentum, {.flag = "--momentum", .value = "X", .group = group::optimizer, .verbs = kLearning,
      .check = number(0, 0.999999), .resume = Resume::must_agree,
      .help = "momentum of sgd, rmsprop and lars, beta1 of the others; default: PyTorch's"});
  row(o.clip_norm, {.flag = "--clip-norm", .value = "X", .group = group::optimizer, .verbs = kStepVerbs | sweep,
      .check = at_least_zero(), .resume = Resume::must_agree, .log = Log::always,
      .help = "largest norm of all gradients together; 0: not clipped; default: the workload's"});
  row(o.ema, {.flag = "--ema", .value = "DECAY", .group = group::optimizer, .verbs = kLearning, .check = number(0, 1),
      .resume = Resume::must_agree, .log = Log::if_given,
      .help = "average the weights with this decay, such as 0.999; tests and --save take the averages"});
  row(o.schedule, {.flag = "--schedule", .value = "NAME", .group = group::schedule, .verbs = kLearning,
      .choices = schedule_names(), .resume = Resume::must_agree, .log = Log::always,
      .help = "how the rate falls after its warm-up; plateau: when the test loss stops falling; default: cosine"});
  row(o.warmup, {.flag = "--warmup", .value = "STEPS", .group = group::schedule, .verbs = kLearning,
      .check = whole(0, kMostSteps), .resume = Resume::must_agree, .log = Log::always,
      .help = "steps in which the rate rises; default: 5 % of all, none for constant and plateau"});
  row(o.gamma, {.flag = "--gamma", .value = "X", .group = group::schedule, .verbs = kLearning, .check = number(1e-9, 1),
      .resume = Resume::must_agree,
      .help = "what step, exponential and plateau multiply the rate by; default: 0.1; exponential does it in each "
              "step, by default so that a hundredth of the rate is left at the end"});
  row(o.every, {.flag = "--every", .value = "N", .group = group::schedule, .verbs = kLearning,
      .check = whole(1, kMostSteps), .resume = Resume::must_agree,
      .help = "steps between two falls of step or restarts of cosine, default: a third of all; tests that a plateau "
              "waits for, default: 2"});
  row(o.scale_rate, {.flag = "--scale-rate", .value = "RULE", .group = group::schedule, .verbs = kLearning,
      .choices = {"linear", "sqrt"}, .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "linear or sqrt: the rate grows with --batch, from the one for --base-batch, at most 32 times; a "
              "larger rate has a warm-up from the old one, of five epochs or a quarter of the run"});
  row(o.base_batch, {.flag = "--base-batch", .value = "N", .group = group::schedule, .verbs = kLearning,
      .check = whole(1, kMostSamples),
      .help = "the batch that --scale-rate starts from; default: the workload's batch"});
  row(o.adaptive.is_on, {.flag = "--adaptive-batch", .group = group::training, .verbs = train,
      .resume = Resume::must_agree_if_given,
      .help = "double the batch, from --batch on, whenever the gradient noise scale stays above it; the rate follows "
              "(--scale-rate; default: linear for sgd, sqrt for the others). A step of the progress and of --steps "
              "is then half of --batch"});
  row(o.adaptive.max_batch, {.flag = "--max-batch", .value = "N", .group = group::training, .verbs = train,
      .check = whole(1, kMostSamples), .needs = "--adaptive-batch", .resume = Resume::must_agree_if_given,
      .help = "largest batch of --adaptive-batch; default: 32 times --batch, at most an eighth of the set"});
}

template <class Row>
void describe_step(Row& row, TrainingOptions& o) {
  using enum Verb;
  row(o.step.accumulate, {.flag = "--accumulate", .value = "N", .group = group::training, .verbs = kStepVerbs,
      .check = whole(1, 1 << 20), .resume = Resume::must_agree, .log = Log::always,
      .help = "batches whose gradients make one update; the last ones of an epoch make one too"});
  row(o.step.micro_batch, {.flag = "--micro-batch", .value = "N", .group = group::training, .verbs = kStepVerbs,
      .check = whole(1, kMostSamples), .resume = Resume::must_agree, .log = Log::if_given,
      .help = "evaluate a batch in pieces of N samples, which needs the memory of one piece; the update is that of "
              "the whole batch, except that batch norms see pieces"});
  row(Written{.read =
                  [&o](const std::string& text) {
                    o.head.chunks = text == "auto" ? HeadOptions::kAutomatic : std::stoll(text);
                  },
              .text = [&o] { return o.head.is_chunked() ? o.head.to_text() : "1"; },
              .json = [&o] { return nlohmann::ordered_json(o.head.to_text()); }},
      {.flag = "--head-chunks", .value = "N|auto", .group = group::memory, .verbs = kStepVerbs,
      .check = or_word("auto", whole(0, kMostSamples)), .resume = Resume::must_agree_if_given, .log = Log::if_given,
      .help = "for gpt: make logits, loss and gradients for one N-th of the tokens at a time, so that they are never "
              "in memory all at once; auto: chosen by their size; 0 and 1: all at once"});
  row(o.head.is_late, {.flag = "--late-head-gradient", .group = group::memory, .verbs = kStepVerbs,
      .help = "with --head-chunks: compute the logits a second time at the end of the backward pass, and only then "
              "the gradient of the token embedding, which takes no memory until then"});
  const auto precision = [&](Verbs verbs, const char* help) {
    row(o.precision, {.flag = "--precision", .value = "TYPE", .group = group::precision, .verbs = verbs,
        .choices = {"f32", "f16", "bf16"}, .resume = Resume::must_agree, .log = Log::always,
        .help = help});
  };
  precision(train | sweep,
            "f16, bf16: activations, gradients and working copies of the weights in 16 bits, the weights "
            "themselves and all arithmetic in f32; f16 scales the loss and skips steps that overflow");
  precision(bench | profile | estimate | eval, "f16, bf16: activations and weights in 16 bits, arithmetic in f32");
  row(o.weights, {.flag = "--weights", .value = "DTYPE", .group = group::precision, .verbs = kStepVerbs,
      .choices = {"f32", "bf16"}, .resume = Resume::must_agree, .log = Log::always,
      .help = "f32, or bf16 with --precision bf16: weights in half the bytes, without a wider copy, rounded "
              "stochastically in each update; with --lora-rank only the frozen weights"});
  row(o.moments, {.flag = "--moments", .value = "DTYPE", .group = group::precision, .verbs = kStepVerbs,
      .choices = {"f32", "bf16"}, .resume = Resume::must_agree, .log = Log::always,
      .help = "type of what sgd, adam, adamw, rmsprop and lion remember; bf16: half the bytes"});
  row(o.release_gradients, {.flag = "--release-gradients", .group = group::memory, .verbs = kStepVerbs,
      .log = Log::always,
      .help = "update each parameter as soon as its gradient is known, which saves the memory of the others; "
              "excludes clipping by norm, so gpt needs --clip-norm 0 too"});
  row(o.step.checkpointing, {.flag = "--gradient-checkpointing", .value = "K", .group = group::memory,
      .verbs = kStepVerbs, .check = checkpointing_fault, .log = Log::always,
      .help = "block, sqrt or a number of blocks: keep only the inputs of each block, of each stretch of the square "
              "root of their number, or of K of them; the rest is computed again"});
  row(o.limit.recompute, {.flag = "--recompute", .value = "SHARE", .group = group::memory, .verbs = kStepVerbs,
      .check = number(0, 10),
      .help = "share of a step's cost that the plan may spend on computing pointwise values again instead of keeping "
              "them; 0: only where it costs nothing; the results are the same bytes"});
  row(o.limit.memory, {.flag = "--memory-limit", .value = "BYTES", .group = group::memory, .verbs = train | bench,
      .help = "such as 1.5GB (10^9) or 800MiB (2^20): the step is planned so that it fits, if need be with "
              "recomputation, micro-batches, gradient release, 16-bit moments, 16-bit precision, in this order"});
  row(o.limit.allowed, {.flag = "--allow", .value = "LIST", .group = group::memory, .verbs = train | bench,
      .choices = {"moments", "precision", "pieces"},
      .help = "what --memory-limit may use although results change: moments, precision; pieces: train may cut "
              "batches under memory pressure, although batch norms see the pieces"});
  row(o.limit.pressure, {.flag = "--pressure-limit", .value = "BYTES", .group = group::memory, .verbs = train,
      .help = "memory of the process: at 85 % of it the run gives up its cache, then batches ahead, then half of its "
              "pieces at a time, and continues; default: what the machine and its cgroups give"});
  row(o.limit.measures, {.flag = "--measure", .group = group::memory, .verbs = estimate,
      .help = "then run some steps too, and say by how much the process grew at most (VmHWM)"});
}

template <class Row>
void describe_adapters(Row& row, TrainingOptions& o) {
  using enum Verb;
  constexpr Verbs kTraining = train | bench | profile;
  row(o.lora.rank, {.flag = "--lora-rank", .value = "R", .group = group::adapters, .verbs = kTraining,
      .check = whole(1, 1 << 20), .resume = Resume::must_agree, .log = Log::if_given,
      .help = "train low-rank adapters of this rank beside the linear layers (LoRA) and nothing else; --load has the "
              "network, --save writes it with the adapters merged into its weights"});
  row(o.lora.alpha, {.flag = "--lora-alpha", .value = "X", .group = group::adapters, .verbs = kTraining,
      .check = above_zero(), .needs = "--lora-rank", .resume = Resume::must_agree,
      .help = "the output of adapters is multiplied by alpha / rank; default: 8"});
  row(o.lora.dropout, {.flag = "--lora-dropout", .value = "P", .group = group::adapters, .verbs = kTraining,
      .check = number(0, 0.999999), .needs = "--lora-rank", .resume = Resume::must_agree,
      .help = "dropout of the input of adapters; default: 0"});
  row(o.lora.targets, {.flag = "--lora-targets", .value = "LIST", .group = group::adapters, .verbs = kTraining,
      .needs = "--lora-rank", .resume = Resume::must_agree,
      .help = "names of layers in a comma list, such as c_attn,c_proj, or all-linear; default: the queries, keys and "
              "values of attention (c_attn), without attention all linear layers"});
  row(o.lora.load, {.flag = "--lora", .value = "FILE", .group = group::adapters, .verbs = train,
      .help = "continue to train these adapters instead of new ones, beside the network of --load"});
  row(o.lora.load, {.flag = "--lora", .value = "FILE", .group = group::adapters, .verbs = eval | generate,
      .help = "adapters to add to the parameters (safetensors, from train --lora-save or from PEFT)"});
  row(o.lora.save, {.flag = "--lora-save", .value = "FILE", .group = group::adapters, .verbs = train,
      .in_rehearsal = false,
      .help = "write the adapters alone at the end (safetensors with PEFT's names; for PEFT to open the folder, call "
              "the file adapter_model.safetensors)"});
}
// clang-format on

}  // namespace samebytes::cli
