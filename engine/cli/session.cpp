#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/interrupt.h"
#include "cli/limit.h"
#include "cli/ranks.h"
#include "cli/recipe.h"
#include "cli/shares.h"
#include "cli/test_counts.h"
#include "cli/usage_error.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/explain.h"
#include "samebytes/memory.h"
#include "samebytes/train.h"
#include "samebytes/weights.h"

namespace samebytes::cli {
namespace {

constexpr int kDefaultSlots = 2;

HostExecution host_execution_of(const Options& options) {
  if (options.co_execution.host == "off") return HostExecution::off;
  return options.co_execution.host == "always" ? HostExecution::always : HostExecution::automatic;
}

// A run of small launches on the host is one command.
std::uint64_t enqueued(const Engine& engine) {
  const PlanReport plans = engine.plans();
  return plans.launches - plans.launches_on_host + plans.host_runs;
}

}  // namespace

std::unique_ptr<Engine> open_engine(const Options& options, const std::string& device, bool profile) {
  if (const std::string trouble = explain_no_device(); !trouble.empty()) throw DeviceError(trouble, "", "", "");
  try {
    EngineOptions wish = device_wish(options, device);
    wish.memory_limit = engine_limit(options);
    wish.seed = options.seed;
    wish.host_execution = host_execution_of(options);
    wish.recompute = options.limit.recompute;
    wish.profile = profile;
    wish.dry_run = options.limit.rehearses;
    wish.check_nan = options.check_nan;
    wish.fallback = options.devices.fallback;
    return std::make_unique<Engine>(wish);
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

data::LoaderOptions loader_options(const Options& options, std::int64_t batch) {
  data::LoaderOptions loader;
  loader.batch = batch;
  loader.slots = options.slots.value_or(kDefaultSlots);
  loader.workers = options.workers.value_or(-1);
  loader.seed = options.seed;
  return loader;
}

void RunMeter::begin() {
  const TransferReport moved = engine_->transfers();
  copied_before_ = moved.bytes_copied;
  gathered_before_ = moved.bytes_gathered;
  launches_before_ = enqueued(*engine_);
  touched_before_ = engine_->plans().bytes;
  clock_.resume();
}

void RunMeter::step(std::int64_t samples) {
  if (is_first_) engine_->wait();
  last_step_seconds_ = clock_.tick();
  samples_ += samples;
  if (is_first_) {
    is_first_ = false;
    first_step_seconds_ = last_step_seconds_;
    launches_before_ = enqueued(*engine_);
    touched_before_ = engine_->plans().bytes;
  } else {
    ++launch_steps_;
  }
}

void RunMeter::end(double stalled_seconds) {
  engine_->wait();
  clock_.add_rest();
  stall_seconds_ += stalled_seconds;
  const TransferReport moved = engine_->transfers();
  copied_ += moved.bytes_copied - copied_before_;
  gathered_ += moved.bytes_gathered - gathered_before_;
  launches_ += enqueued(*engine_) - launches_before_;
  touched_ += engine_->plans().bytes - touched_before_;
}

void RunMeter::go_on_from(std::int64_t steps, std::int64_t samples, double seconds) {
  steps_before_ = steps;
  samples_ = samples;
  seconds_before_ = seconds;
}

void RunMeter::restart() {
  const double first = first_step_seconds_;
  *this = RunMeter(*engine_);
  is_first_ = false;
  first_step_seconds_ = first;
}

void RunMeter::fill(Summary& summary) const {
  const auto per_step = [](std::uint64_t count, std::int64_t steps) {
    return steps > 0 ? static_cast<double>(count) / static_cast<double>(steps) : 0.0;
  };
  summary.steps = steps();
  summary.samples = samples_;
  summary.seconds = seconds();
  summary.step_ms_p50 = clock_.milliseconds(50);
  summary.step_ms_p95 = clock_.milliseconds(95);
  summary.bytes_copied_per_step = per_step(copied_, clock_.steps());
  summary.bytes_gathered_per_step = per_step(gathered_, clock_.steps());
  summary.launches_per_step = per_step(launches_, launch_steps_);
  summary.bytes_per_step = launch_steps_ > 0 ? touched_ / static_cast<double>(launch_steps_) : 0;
  summary.peak_bytes = engine_->memory().peak_bytes;
  summary.stall_fraction = clock_.seconds() > 0 ? std::min(1.0, stall_seconds_ / clock_.seconds()) : 0;
  summary.first_step_seconds = first_step_seconds_;
  if (engine_->options().fallback) summary.fallbacks = engine_->fallbacks();
}

Precision::Precision(const Options& options, bool is_training)
    : dtype_(options.precision == "f16"    ? f16
             : options.precision == "bf16" ? bf16
                                           : f32),
      has_bf16_weights_(options.weights == "bf16") {
  if (has_bf16_weights_ && dtype_ != bf16)
    throw UsageError(
        "--weights bf16 is of --precision bf16, whose ops read such weights as they are; ask for that too");
  if (dtype_ != f16 || !is_training) return;
  if (options.check_nan)
    throw UsageError(
        "--check-nan stops at the overflows that the loss scaler of --precision f16 looks for; take f32 or bf16");
  scaler_.emplace();
}

void Precision::prepare(nn::Module& net) const {
  if (dtype_ == f32) return;
  std::vector<Array> alone, copied;  // frozen ones too, which would be cast in every step
  for (const nn::NamedArray& entry : net.named_parameters())
    (has_bf16_weights_ && !entry.is_adapter ? alone : copied).push_back(entry.array);
  store_in_bf16(alone);
  keep_working_copies(copied, dtype_);
}

std::unique_ptr<Autocast> Precision::scope() const {
  return dtype_ == f32 ? nullptr : std::make_unique<Autocast>(AutocastOptions{.dtype = dtype_});
}

void Precision::step(optim::Optimizer& optimizer, const Array& loss) {
  if (scaler_)
    scaler_->step(optimizer, loss);
  else
    optimizer.step(loss);
}

Array Precision::scaled(const Array& loss) { return scaler_ ? scaler_->scale(loss) : loss; }

void Precision::step(optim::Accumulator& accumulator) {
  if (!scaler_) return accumulator.step();
  accumulator.step(*scaler_);
  scaler_->update();
}

void Precision::step(optim::Accumulator& accumulator, const Array& loss, double samples) {
  if (scaler_)
    accumulator.step(scaler_->scale(loss), samples, *scaler_);
  else
    accumulator.step(loss, samples);
}

void Precision::fill(const optim::Optimizer* optimizer, Summary& summary) const {
  summary.precision = name_of(dtype_);
  if (!scaler_ || optimizer == nullptr) return;
  summary.loss_scale = scaler_->scale();
  summary.skipped_steps = optimizer->skipped_steps();
}

void Precision::add_to(nlohmann::ordered_json& line, const optim::Optimizer& optimizer) const {
  if (!scaler_) return;
  line["loss_scale"] = scaler_->scale();
  line["skipped_steps"] = optimizer.skipped_steps();
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

void Evaluation::fill(Summary& summary) const {
  summary.test_loss = loss;
  summary.test_accuracy = accuracy;
  summary.test_balanced_accuracy = balanced_accuracy;
  summary.test_area_under_curve = area_under_curve;
}

std::string Evaluation::to_text() const {
  std::string text = fmt::format("test loss {:.4f}", loss);
  if (accuracy) text += fmt::format("  accuracy {:.2f} %", 100 * *accuracy);
  if (balanced_accuracy) text += fmt::format("  balanced {:.2f} %", 100 * *balanced_accuracy);
  if (area_under_curve) text += fmt::format("  area under curve {:.4f}", *area_under_curve);
  return text;
}

std::optional<Evaluation> evaluate(const Workload& workload, nn::Module& net, data::Loader& batches, std::int64_t steps,
                                   RunMeter* meter, SharedSteps* shared, const Ranks* ranks) {
  const NoGrad no_grad;
  const bool was_training = net.is_training();
  net.eval();
  if (ranks != nullptr) ranks->share_buffers(net);
  TestCounts counts(workload, ranks);
  batches.reset_stats();
  if (meter != nullptr) meter->begin();
  std::int64_t left = ranks != nullptr && ranks->test_batches() > 0 ? ranks->own_test_batches() : steps;
  // The loss and, where there are, right answers and the output.
  const auto results_of = [&](const data::Batch& batch) -> std::vector<Array> {
    if (workload.whole_loss) return {workload.whole_loss(net, batch)};
    const Array output = workload.forward(net, batch);  // kept, so that one pass makes it for all of them
    return {workload.loss(output, batch), workload.right ? workload.right(output, batch) : Array(), output};
  };
  const auto test = [&](const data::Batch& batch) {
    if (shared != nullptr)
      for (const SharedSteps::Results& part : shared->map(batch, results_of)) counts.add(part.arrays, part.samples);
    else
      counts.add(results_of(batch), batch.samples());
    counts.add_labels(batch);
    if (meter != nullptr) meter->step(batch.samples());
    return --left > 0 && !is_interrupted();
  };
  if (left > 0)
    for (const data::Batch& batch : batches)
      if (!test(batch)) break;
  if (meter != nullptr) meter->end(batches.stats().loop_wait_seconds);
  net.train(was_training);
  if (ranks != nullptr ? ranks->agree_to_stop() : is_interrupted()) return {};
  return counts.total();
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

std::FILE* stream_for_people(const Options& options) { return options.json ? stderr : stdout; }

void print_plan(const Options& options, const Engine& engine) {
  if (options.devices.explain && !options.limit.rehearses)
    fmt::print(stream_for_people(options), "{}", explain(engine));
}

void print_summary(const Options& options, const Summary& summary, bool interrupted) {
  if (options.json)
    fmt::print("{}\n", to_json(summary).dump());
  else
    fmt::print("{}\n", to_text(summary, interrupted));
  std::fflush(stdout);
}

}  // namespace samebytes::cli
