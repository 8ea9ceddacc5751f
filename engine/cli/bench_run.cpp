#include "cli/bench_run.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "cli/interrupt.h"
#include "cli/usage_error.h"
#include "cli/workloads.h"

namespace samebytes::cli {
namespace {

constexpr std::int64_t kFewSteps = 20;

data::LoaderOptions loading_of(const Options& options, const Workload& workload, std::int64_t batch, bool is_training) {
  data::LoaderOptions loading = loader_options(options, batch);
  if (is_training) loading.transforms = workload.augment;
  loading.transforms.insert(loading.transforms.end(), workload.prepare.begin(), workload.prepare.end());
  return loading;
}

}  // namespace

BenchRun::BenchRun(const Options& options, Engine& engine, const Workload& workload, bool is_training)
    : workload_(is_training ? with_head(workload, options) : workload),
      engine_(engine),
      is_training_(is_training),
      precision_(precision_options(options, is_training)),
      is_int8_(options.precision == "int8"),
      has_fixed_batch_(options.fixed_batch),
      clip_norm_(options.clip_norm.value_or(workload.defaults.clip_norm)),
      meter_(engine) {
  using Clock = std::chrono::steady_clock;
  describe(engine, workload, options.batch.value_or(workload.defaults.batch), described_);
  described_.mode = is_training ? "train" : "infer";
  described_.fixed_batch = has_fixed_batch_;
  const std::int64_t batch = described_.batch;
  batches_.emplace(engine, workload.make_samples(batch * kBatchesOfData),
                   loading_of(options, workload, batch, is_training));
  resident_.emplace();
  if (!is_training) no_grad_.emplace();
  const auto begin = Clock::now();
  net_ = workload.make_model();
  add_adapters(options, *net_);
  precision_.prepare(*net_);
  if (is_training) {
    divide(*net_, options);
    if (net_->parameters().empty())
      throw UsageError(workload.name + " has no parameter that trains; measure inference alone with --mode infer");
    optimizer_.emplace(net_->parameters(), optimizer_options(workload, options));
  } else {
    net_->eval();
    quantize_model(options, workload_, *net_, *batches_);
  }
  devices_ = make_devices(options, engine, *net_, is_training);
  if (options.unfrozen && workload_.needs_own_class)
    throw UsageError("--unfrozen: a model's file always repeats its graph; leave the option out");
  if (!is_training && !devices_ && !options.unfrozen && !workload_.needs_own_class)
    frozen_.emplace(nn::freeze_for_inference(*net_));
  if (is_training) accumulation_.emplace(accumulation_options(options), precision_, *optimizer_, devices_.get());
  making_seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
  described_.parameters = net_->parameter_count();
}

Array BenchRun::loss_of(const data::Batch& batch) {
  const std::unique_ptr<Autocast> scope = precision_.scope();
  return workload_.loss_of(*net_, batch);
}

void BenchRun::step(const data::Batch& batch) {
  if (is_training_) {  // no handle keeps the output, which would then need memory of its own
    const auto step = accumulation_->add(batch, [this](const data::Batch& piece) { return loss_of(piece); });
    if (!step) return;
    last_loss_ = step->loss;
    if (waits_) engine_.wait();
    meter_.step(step->samples);
  } else {
    const std::unique_ptr<Autocast> scope = precision_.scope();
    if (devices_)
      devices_->parallel().map(batch.samples(), [&](std::int64_t begin, std::int64_t end) {
        return std::vector{workload_.forward(*net_, end - begin == batch.samples() ? batch : batch.piece(begin, end))};
      });
    else
      workload_.forward(frozen_ ? *frozen_ : *net_, batch).eval();
    if (waits_) engine_.wait();
    meter_.step(batch.samples());
  }
  if (listener_) listener_();
}

void BenchRun::restart() {
  meter_.restart();
  flops_before_ = engine_.plans().flops;
}

bool BenchRun::is_over(std::int64_t until, double end) const {
  return meter_.steps() >= until || meter_.seconds() >= end || is_interrupted();
}

void BenchRun::run_loader(std::int64_t until, double end) {
  do {
    batches_->reset_stats();
    meter_.begin();
    for (const data::Batch& batch : *batches_) {
      step(batch);
      if (is_over(until, end)) break;
    }
    meter_.end(batches_->stats().loop_wait_seconds);
  } while (!is_over(until, end));
}

void BenchRun::run(std::int64_t steps, double seconds) {
  waits_ = steps < kFewSteps;
  const std::int64_t until = meter_.steps() + steps;
  const double end = meter_.seconds() + seconds;
  if (!has_fixed_batch_) return run_loader(until, end);
  if (fixed_.samples() == 0) fixed_ = *batches_->begin();
  meter_.begin();
  do step(fixed_);
  while (!is_over(until, end));
  meter_.end(0);
}

// An update of each arena that reads its gradient once, as optimizers do, or clipped by norm.
LiveBytes BenchRun::live_bytes() {
  const data::Batch batch = *batches_->begin();
  const auto updates = [&] {
    std::vector<Array> gradients = optimizer_->flat_gradients(loss_of(batch));
    if (clip_norm_ > 0) gradients = optim::clip_by_global_norm(gradients, clip_norm_);
    std::vector<Array> result;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Array& values = optimizer_->arenas()[i].values();
      result.push_back(update(values, values - astype(gradients[i], values.dtype())));
    }
    return result;
  };
  return live_at_peak(updates());
}

MemoryParts BenchRun::memory() const {
  std::vector<Array> state;
  if (optimizer_)
    for (const optim::StateArray& array : optimizer_->state()) state.push_back(array.array);
  return memory_at_peak(engine_, state);
}

std::size_t BenchRun::frozen_bytes() const {
  if (trained_parameters() == described_.parameters) return 0;
  const MemoryByCategory held = engine_.memory().live_by_category;
  const std::size_t all = held[MemoryCategory::parameters] + held[MemoryCategory::other];
  std::size_t trained = 0;
  for (const optim::ParameterArena& arena : optimizer_->arenas())
    trained += pool_bytes(static_cast<std::size_t>(arena.values().size()) * bytes_of(arena.values().dtype()));
  return all > trained ? all - trained : 0;
}

Summary BenchRun::summary() const {
  Summary summary = described_;
  fill(meter_.figures(), engine_, summary);
  fill(precision_, optimizer_ ? &*optimizer_ : nullptr, summary);
  if (is_int8_) summary.precision = "int8";
  summary.first_step_seconds += making_seconds_;
  summary.resident_peak_bytes = resident_peak();
  if (devices_) fill(*devices_, engine_, summary);
  if (last_loss_.defined()) summary.train_loss = last_loss_.value();
  const workloads::FlopCount& flops = workload_.flops;
  if (flops.forward() > 0)
    summary.gflops = (is_training_ ? flops.training() : flops.forward()) * summary.samples_per_second() * 1e-9;
  else if (summary.seconds > 0)  // a model's file: what its ops count
    summary.gflops = (engine_.plans().flops - flops_before_) / summary.seconds * 1e-9;
  return summary;
}

}  // namespace samebytes::cli
