#include "cli/session.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/limit.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "samebytes/error.h"
#include "samebytes/explain.h"
#include "samebytes/io/safetensors.h"

namespace samebytes::cli {
namespace {

constexpr int kDefaultSlots = 2;

HostExecution host_execution_of(const Options& options) {
  if (options.co_execution.host == "off") return HostExecution::off;
  if (options.co_execution.host == "queued") return HostExecution::queued;
  return options.co_execution.host == "always" ? HostExecution::always : HostExecution::automatic;
}

void check_release(const Options& options) {
  if (!options.release_gradients) return;
  const auto refuse = [](const char* other, const char* why) {
    throw UsageError(
        fmt::format("--release-gradients updates parameters as soon as their gradients are there, but {} "
                    "{}; use one of the two",
                    other, why));
  };
  if (options.step.accumulate > 1) refuse("--accumulate", "adds up the gradients of several batches first");
  if (options.step.micro_batch) refuse("--micro-batch", "adds up the gradients of several pieces first");
  if (options.precision == "f16") refuse("--precision f16", "looks for overflows in all of them first");
}

}  // namespace

std::unique_ptr<Engine> open_engine(const Options& options, const std::string& device, bool profile) {
  if (const std::string trouble = explain_no_device(); !trouble.empty()) throw DeviceError(trouble, "", "", "");
  try {
    EngineOptions engine_options = devices_of(options, device);
    engine_options.memory_limit = engine_limit(options);
    engine_options.seed = options.seed;
    engine_options.host_execution = host_execution_of(options);
    engine_options.recompute = options.limit.recompute;
    engine_options.profile = profile;
    engine_options.dry_run = options.limit.rehearses;
    engine_options.check_nan = options.check_nan;
    engine_options.fallback = options.devices.fallback;
    engine_options.stall_seconds = options.devices.stall_seconds;
    engine_options.kernel_compiler = "/proc/self/exe";
    return std::make_unique<Engine>(engine_options);
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
}

std::string device_text(const DeviceInfo& info) { return info.id + " " + info.name; }

std::string device_text(const Engine& engine) {
  std::string text;
  for (int i = 0; i < engine.device_count(); ++i) text += (i ? " + " : "") + device_text(engine.device(i));
  return text;
}

void expect_within(std::int64_t batch, const data::Dataset& set, const char* name) {
  if (batch <= set.size()) return;
  throw UsageError(fmt::format("--batch {} is larger than the {}, which has {}", batch, name,
                               counted_text(static_cast<double>(set.size()), "sample")));
}

void expect_weights(const io::TensorFile& file) {
  for (const auto& [key, value] : file.metadata())
    if (key == "format" && value.starts_with("samebytes run"))
      throw UsageError(fmt::format(
          "{0} is a checkpoint of a run; `samebytes convert {0} weights.safetensors` writes its weights to a "
          "file of their own",
          file.path()));
}

data::LoaderOptions loader_options(const Options& options, std::int64_t batch) {
  data::LoaderOptions loader;
  loader.batch = batch;
  loader.slots = options.slots.value_or(kDefaultSlots);
  loader.workers = options.workers.value_or(-1);
  loader.seed = options.seed;
  return loader;
}

train::PrecisionOptions precision_options(const Options& options, bool is_training) {
  const Dtype dtype = options.precision == "f16" ? f16 : options.precision == "bf16" ? bf16 : f32;
  const bool has_bf16_weights = options.weights == "bf16";
  if (has_bf16_weights && dtype != bf16)
    throw UsageError("--weights bf16 needs --precision bf16, whose ops read such weights as they are");
  if (options.ranges == "dynamic" && options.precision != "int8")
    throw UsageError("--input-ranges dynamic needs --precision int8");
  if (options.precision == "int8" && is_training)
    throw UsageError("--precision int8 is for inference: add --mode infer");
  if (dtype == f16 && is_training && options.check_nan)
    throw UsageError(
        "--check-nan stops at the overflows that the loss scaler of --precision f16 looks for; take f32 or bf16");
  return {.dtype = dtype, .bf16_weights = has_bf16_weights, .trains = is_training};
}

void quantize_model(const Options& options, const Workload& workload, nn::Module& model, data::Loader& calibration) {
  constexpr int kBatches = 8;
  if (options.precision != "int8") return;
  if (Engine::current().options().dry_run)
    throw UsageError("--precision int8 cannot be planned without values; leave --memory-limit out");
  try {
    if (options.ranges == "dynamic") {
      nn::quantize(model);
      return;
    }
    nn::quantize(model, [&] {
      int batches = 0;
      for (const data::Batch& batch : calibration) {
        workload.forward(model, batch).eval();
        if (++batches == kBatches) return;
      }
    });
  } catch (const ArgumentError& error) {
    throw UsageError("--precision int8: " + std::string(error.what()));
  }
}

Dtype moments_dtype(const Options& options) { return options.moments == "bf16" ? bf16 : f32; }

train::AccumulationOptions accumulation_options(const Options& options) {
  check_release(options);
  return {.batches = options.step.accumulate,
          .micro_batch = options.step.micro_batch.value_or(0),
          .rehearses = options.limit.rehearses};
}

std::int64_t norm_interval(const Options& options, const Defaults& defaults) {
  const bool clips = options.clip_norm.value_or(defaults.clip_norm) > 0;
  // Some norms wait to be read, in a few kB that a plan to the byte does not have.
  const std::int64_t every = options.log_grad_norm.value_or(clips && !options.limit.memory ? 1 : 0);
  if (every > 0 && options.release_gradients)
    throw UsageError(
        "--log-grad-norm reads all gradients at once, and --release-gradients throws each one away; use one of the "
        "two");
  return every;
}

optim::AdamWOptions optimizer_options(const Workload& workload, const Options& options) {
  const Defaults& defaults = workload.defaults;
  return {.rate = defaults.rate,
          .beta2 = defaults.beta2,
          .weight_decay = defaults.weight_decay,
          .clip_norm = options.clip_norm.value_or(defaults.clip_norm),
          .release_gradients = options.release_gradients,
          .moments = moments_dtype(options)};
}

train::Task task_of(const Workload& workload) {
  train::Task task{.loss = workload.loss, .forward = workload.forward};
  if (workload.right) task.metrics.push_back({"accuracy", workload.right});
  task.whole_loss = workload.whole_loss;
  task.is_binary = workload.is_binary;
  return task;
}

std::string to_text(const train::Evaluation& evaluation) {
  std::string text = fmt::format("test loss {:.4f}", evaluation.loss);
  if (const auto accuracy = evaluation.find("accuracy")) text += fmt::format("  accuracy {:.2f} %", 100 * *accuracy);
  if (const auto balanced = evaluation.find("balanced_accuracy"))
    text += fmt::format("  balanced {:.2f} %", 100 * *balanced);
  if (const auto area = evaluation.find("area_under_curve")) text += fmt::format("  area under curve {:.4f}", *area);
  return text;
}

void fill(const train::Evaluation& evaluation, Summary& summary) {
  summary.test_loss = evaluation.loss;
  summary.test_accuracy = evaluation.find("accuracy");
  summary.test_balanced_accuracy = evaluation.find("balanced_accuracy");
  summary.test_area_under_curve = evaluation.find("area_under_curve");
}

void fill(const train::RunFigures& figures, const Engine& engine, Summary& summary) {
  static_cast<train::RunFigures&>(summary) = figures;
  if (engine.options().fallback) summary.fallbacks = engine.fallbacks();
}

void fill(const train::Precision& precision, const optim::Optimizer* optimizer, Summary& summary) {
  summary.precision = name_of(precision.dtype());
  if (precision.scaler() == nullptr || optimizer == nullptr) return;
  summary.loss_scale = precision.scaler()->scale();
  summary.skipped_steps = optimizer->skipped_steps();
}

void describe(const Engine& engine, const Workload& workload, std::int64_t batch, Summary& summary) {
  const DeviceInfo& info = engine.device();
  summary.workload = workload.name;
  summary.device = device_text(engine);
  summary.memory_mode = name_of(info.memory_mode);
  summary.personality = name_of(info.personality);
  summary.tuning = engine.tuning().hash;
  summary.batch = batch;
}

void divide(nn::Module& net, const Options& options) {
  const Checkpointing how = Checkpointing::parse(options.step.checkpointing);
  if (!how.is_on()) return;
  try {
    net.gradient_checkpointing(how);
  } catch (const ArgumentError& error) {
    throw UsageError(std::string("--gradient-checkpointing: ") + error.what());
  }
}

MemoryWatch::MemoryWatch(const Options& options, Engine& engine) : options_(options), engine_(engine) {
  if (options.memory.snapshot.empty() || options.limit.rehearses) return;
  history_ = std::make_unique<MemoryHistory>(engine);
}

void MemoryWatch::save() const {
  if (!history_) return;
  engine_.wait();
  save_memory_snapshot(options_.memory.snapshot, take_memory_snapshot(engine_));
  if (!options_.quiet)
    fmt::print(stream_for_people(options_), "{0}: samebytes memory {0} draws it\n", options_.memory.snapshot);
}

std::string reading_text(const Options& options) {
  return fmt::format("{} the data of {}", options.form.data.empty() ? "making" : "reading", options.workloads.front());
}

std::FILE* stream_for_people(const Options& options) { return options.json ? stderr : stdout; }

void print_plan(const Options& options, const Engine& engine) {
  if (!options.devices.explain || options.limit.rehearses) return;
  const std::string& part = *options.devices.explain;
  const ExplainPart shown = part == "plan"     ? ExplainPart::plan
                            : part == "passes" ? ExplainPart::passes
                                               : ExplainPart::all;
  fmt::print(stream_for_people(options), "{}", explain(engine, {.part = shown}));
}

void print_summary(const Options& options, const Summary& summary, bool interrupted) {
  if (options.json)
    print_json(to_json(summary));
  else
    fmt::print("{}\n", to_text(summary, interrupted));
  std::fflush(stdout);
}

}  // namespace samebytes::cli
