// samebytes train: trains a workload, tests it after every epoch, and says what it came to.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/interrupt.h"
#include "cli/limit.h"
#include "cli/parallel.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/survive.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "cli/workloads.h"
#include "samebytes/samebytes.h"
#include "workloads/language_model.h"
#include "workloads/onnx_file.h"

namespace samebytes::cli {
namespace {

// One training run: a train::Session made of the options and the workload, and what people and the log are told of it.
class Trainer {
 public:
  Trainer(const Options& options, const Workload& workload, std::shared_ptr<train::RunLog> log, Keeper& keeper,
          int fold, const Ranks& ranks, Progress& progress);
  Summary run();
  Rehearsal rehearsed() const;  // after run(), in a dry engine

 private:
  void make_loaders();
  void plan_steps();
  void make_session();
  void start();  // from a state, or anew
  train::Callbacks callbacks();
  void log_start();
  void tell_epoch(const train::EpochReport& epoch);
  void draw(const train::ProgressReport& report);
  void say(const std::string& text) { progress_.say(fold_text() + text); }
  void save_network();            // --save and --lora-save
  std::string fold_text() const;  // "fold 2/5  " where there are several

  const Options& options_;
  const Workload workload_;
  const train::PrecisionOptions precision_;
  const int fold_;
  data::Split split_;
  const std::int64_t first_batch_;  // of the options
  std::int64_t batch_;              // of the loader
  std::shared_ptr<train::RunLog> log_;
  Keeper& keeper_;
  const Ranks& ranks_;
  Progress& progress_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<MemoryWatch> memory_;
  std::unique_ptr<nn::Module> net_;
  data::LoaderOptions loading_;
  std::string adapters_;  // what there is to say of them
  std::unique_ptr<data::Loader> training_, test_;
  int epochs_ = 0;
  std::int64_t steps_ = 0, epoch_steps_ = 0;
  std::optional<Recipe> recipe_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<train::DevicesStrategy> devices_;  // where there are several
  std::unique_ptr<train::RanksStrategy> joined_;     // ... processes
  std::unique_ptr<train::Session> session_;
  Summary summary_;
};

bool saves_model(const Options& options) { return workloads::is_model_file(options.save); }

train::PressureRelief relief_of(const Options& options) {
  const auto& allowed = options.limit.allowed;
  return {
      .limit = options.limit.pressure.value_or(0),
      .may_change = options.step.micro_batch || std::find(allowed.begin(), allowed.end(), "pieces") != allowed.end(),
      .hint = "--allow pieces"};
}

Trainer::Trainer(const Options& options, const Workload& workload, std::shared_ptr<train::RunLog> log, Keeper& keeper,
                 int fold, const Ranks& ranks, Progress& progress)
    : options_(options),
      workload_(with_head(workload, options)),
      precision_(precision_options(options, true)),
      fold_(fold),
      split_(workload.open(fold)),
      first_batch_(options.batch.value_or(workload.defaults.batch)),
      batch_(first_batch_),
      log_(std::move(log)),
      keeper_(keeper),
      ranks_(ranks),
      progress_(progress) {
  expect_within(batch_, *split_.train, "training set");
  if (options.adaptive.is_on) batch_ = adaptive_micro_batch(options, first_batch_);
  progress_.wait_for("opening the device");
  engine_ = open_engine(options, options.device);
  progress_.wait_for("making the model");
  memory_ = std::make_unique<MemoryWatch>(options, *engine_);
  net_ = workload.make_model();
  if (!options.load.empty()) io::load(options.load, *net_);
  adapters_ = add_adapters(options, *net_);
  train::Precision(precision_).prepare(*net_);
  divide(*net_, options);
  plan_steps();
  recipe_.emplace(make_recipe(options, workload, first_batch_ * options.step.accumulate, steps_, epoch_steps_));
  optimizer_ = recipe_->make_optimizer(net_->parameters());
  devices_ = make_devices(options, *engine_, *net_);
  joined_ = ranks_.join(options, *engine_, *net_, *optimizer_);
  make_loaders();
  describe(*engine_, workload, first_batch_, summary_);
  summary_.optimizer = recipe_->optimizer();
  summary_.schedule = recipe_->schedule();
  summary_.rate = recipe_->rate();
  summary_.warmup = recipe_->warmup();
  summary_.ema = options.ema;
  make_session();
  start();
}

void Trainer::plan_steps() {
  const std::int64_t per_step = batch_ * options_.step.accumulate;  // samples; with --adaptive-batch, of a micro-batch
  epoch_steps_ = (split_.train->size() + per_step - 1) / per_step;
  const int epochs = options_.epochs.value_or(workload_.defaults.epochs);
  const std::int64_t default_steps =
      options_.epochs || !workload_.defaults.steps ? epoch_steps_ * epochs : *workload_.defaults.steps;
  steps_ = options_.steps.value_or(default_steps);
  epochs_ = static_cast<int>((steps_ + epoch_steps_ - 1) / epoch_steps_);
}

void Trainer::make_loaders() {
  loading_ = training_loader_options(options_, batch_);
  loading_.shuffle = true;
  loading_.transforms = workload_.augment;
  loading_.transforms.insert(loading_.transforms.end(), workload_.prepare.begin(), workload_.prepare.end());
  if (joined_) joined_->divide(loading_, *split_.train);
  training_ = std::make_unique<data::Loader>(*engine_, split_.train, loading_);
  data::LoaderOptions testing = loader_options(options_, std::min(batch_, split_.test->size()));
  testing.transforms = workload_.prepare;
  if (joined_) joined_->divide_validation(testing, *split_.test);
  test_ = std::make_unique<data::Loader>(*engine_, split_.test, testing);
}

void Trainer::make_session() {
  train::SessionOptions parts{.validation = test_.get(),
                              .optimizer = optimizer_.get(),
                              .plateau = recipe_->plateau_options(),
                              .plateau_start = recipe_->warmup(),
                              .precision = precision_,
                              .accumulation = accumulation_options(options_),
                              .ema = recipe_->ema_options(),
                              .grad_norm_every = norm_interval(options_, workload_.defaults),
                              .checkpoints = keeper_.checkpoints(),
                              .keeps_frozen = !workload_.save_adapters,
                              .log = log_,
                              .frames_log = false,
                              .callbacks = callbacks(),
                              .should_stop = is_interrupted,
                              .nan_hint = "--check-nan",
                              .shared = devices_.get()};
  if (options_.adaptive.is_on)
    parts.adaptive = adaptive_batching(options_, *recipe_, first_batch_, split_.train->size());
  if (joined_)
    parts.shared = joined_.get();
  else
    parts.pressure = relief_of(options_);
  session_ = std::make_unique<train::Session>(*engine_, *net_, task_of(workload_), *training_, std::move(parts));
}

train::Callbacks Trainer::callbacks() {
  train::Callbacks result;
  result.on_epoch = [this](const train::EpochReport& epoch) { tell_epoch(epoch); };
  result.on_checkpoint = [this](const Checkpoint&) { keeper_.saved(); };
  result.on_batch = [this](const train::BatchReport& batch) { say(to_text(batch)); };
  result.on_message = [this](const std::string& text) { say(text); };
  if (options_.quiet) return result;
  result.on_wait = [this](const std::string& what) { progress_.wait_behind_bar(what); };
  result.on_progress = [this](const train::ProgressReport& report) { draw(report); };
  result.progress_seconds = progress_.seconds_between();
  return result;
}

void Trainer::start() {
  const auto resumed = keeper_.begin(workload_, {*engine_, *recipe_, *training_, batch_, steps_}, *session_);
  for (const std::string& text : keeper_.troubles()) progress_.say(text);
  if (devices_) {
    progress_.wait_for("measuring the devices");
    devices_->report_to([this](const std::string& text) { say(text); }, *log_);
    train::Precision& precision = session_->precision();
    devices_->measure(*optimizer_, precision, *training_, batch_, [&](const data::Batch& piece) {
      const std::unique_ptr<Autocast> scope = precision.scope();
      return workload_.loss_of(*net_, piece);
    });
  }
  if (resumed)
    say(*resumed);
  else
    log_start();
  keeper_.tell_log();
}

void Trainer::log_start() {
  Json line = start_line({options_, workload_, *recipe_, summary_, split_, summary_.batch, steps_}, *engine_, *net_);
  add_loading_to(line, loading_);
  if (devices_) add_to(line, *devices_, *engine_);
  log_->write(to_line(line));
}

std::string Trainer::fold_text() const {
  return workload_.folds > 1 ? fmt::format("fold {}/{}  ", fold_ + 1, workload_.folds) : std::string();
}

Summary Trainer::run() {
  say(fmt::format("{}: {} parameters, {} training and {} test samples, on {}, memory mode {}", workload_.name,
                  count_text(static_cast<double>(net_->parameter_count())),
                  count_text(static_cast<double>(split_.train->size())),
                  count_text(static_cast<double>(split_.test->size())), summary_.device, summary_.memory_mode));
  for (const std::string& note : workload_.notes) say(note);
  if (const std::int64_t frozen = net_->parameter_count() - net_->trainable_parameter_count();
      frozen > 0 && !options_.form.freeze.empty())
    say(fmt::format("{} parameters are frozen", count_text(static_cast<double>(frozen))));
  say(recipe_->to_text());
  if (devices_) say(to_text(*devices_));
  if (const std::string text = loading_text(options_, loading_); !text.empty()) progress_.say(text);
  if (!adapters_.empty()) progress_.say(adapters_);
  const WaitEnds ends(progress_);  // before the engine does
  if (session_->steps() >= steps_)
    say(fmt::format("already complete: {} of {} steps; nothing is left to train", session_->steps(), steps_));
  else
    progress_.wait_for("compiling kernels", compiled_on(*engine_));
  const train::Report report = session_->fit_steps(steps_);
  fill(report.figures, *engine_, summary_);
  summary_.train_loss = report.train_loss;
  if (report.validation) fill(*report.validation, summary_);
  keeper_.fill(summary_);
  if (devices_) fill(*devices_, *engine_, summary_);
  fill(session_->precision(), optimizer_.get(), summary_);
  if (report.adaptive) {
    summary_.last_batch = report.adaptive->batch;
    summary_.updates = report.adaptive->updates;
    summary_.noise_scale = report.adaptive->noise_scale;
  }
  if (joined_) fill(*joined_, *optimizer_, summary_);
  progress_.erase();
  print_plan(options_, *engine_);
  memory_->save();
  save_network();
  progress_.wait_for("fitting simpler methods");
  if (workload_.baselines && !is_interrupted()) summary_.baselines = workload_.baselines(split_, is_interrupted);
  progress_.erase();
  return summary_;
}

void Trainer::save_network() {
  if (options_.save.empty() && options_.lora.save.empty()) return;
  io::Metadata metadata = workload_.metadata;
  metadata.emplace_back("tuning", summary_.tuning);  // which choices gave these bytes
  metadata.emplace_back("precision", options_.precision);
  std::optional<optim::EmaScope> averages;
  if (optim::Ema* ema = session_->ema(); ema != nullptr && ema->update_count() > 0) averages.emplace(*ema);
  if (workload_.save_adapters) {
    workload_.save_adapters(*net_, options_.save);
    return;
  }
  save_adapters(options_, *net_, metadata);
  if (options_.save.empty()) return;
  merge_adapters(*net_);
  if (saves_model(options_))
    workload_.save_model(*net_, options_.save);
  else
    io::save(options_.save, *net_, metadata);
}

Rehearsal Trainer::rehearsed() const {
  std::vector<Array> state;
  for (const optim::StateArray& array : optimizer_->state()) state.push_back(array.array);
  return {engine_->memory().peak_bytes, memory_at_peak(*engine_, state)};
}

void Trainer::tell_epoch(const train::EpochReport& epoch) {
  std::string text = fmt::format("epoch {}/{}  loss {:.4f}", epoch.epoch, epochs_, epoch.train_loss);
  if (epoch.validation) text += "  " + to_text(*epoch.validation);
  say(text + "  " + duration_text(epoch.seconds));
}

void Trainer::draw(const train::ProgressReport& report) {
  const std::string size = report.batch ? fmt::format("  batch {}", *report.batch) : std::string();
  progress_.draw({.title = fmt::format("{}epoch {}/{}{}", fold_text(), report.epoch, epochs_, size),
                  .done = report.step,
                  .total = steps_,
                  .samples_per_second = report.samples_per_second,
                  .seconds_left = report.seconds_left,
                  .loss = report.loss,
                  .grad_norm = report.grad_norm});
}

// Once, or again after a device error, as --on-device-error says.
Summary train_fold(Options options, const Workload& workload, const std::shared_ptr<train::RunLog>& log, Keeper& keeper,
                   Ranks& ranks, Progress& progress) {
  for (;;) {
    try {
      progress.wait_for(reading_text(options));
      return Trainer(options, workload, log, keeper, keeper.folds().fold, ranks, progress).run();
    } catch (const distributed::DistributedError& error) {
      throw distributed::DistributedError(error.what() + keeper.last_resort());
    } catch (const DeviceError& error) {
      const std::string before = options.device;
      if (!keeper.goes_on_after(error, options.device))
        throw DeviceError(error.what() + keeper.last_resort(), error.call(), error.status(), error.device());
      if (options.device != before) options.devices = {};  // of the device that was left
    }
  }
}

std::string line_of(const std::exception& error) {
  if (dynamic_cast<const UsageError*>(&error) == nullptr) return train::error_line(error);
  return to_line({{"event", "error"}, {"kind", "UsageError"}, {"message", error.what()}});
}

}  // namespace

Rehearsal rehearse_train(const Options& options, const Workload& workload) {
  const auto log = std::make_shared<train::RunLog>("");
  Keeper keeper(options, *log);
  Ranks alone;
  Progress silent(stdout, true);
  Trainer trainer(options, workload, log, keeper, 0, alone, silent);
  trainer.run();
  return trainer.rehearsed();
}

int run_train(const Options& options) {
  if (const std::string& name = options.workloads.front(); workloads::is_language_model(name))
    throw UsageError(fmt::format("{} is a language model; `samebytes finetune {}` trains adapters for it", name, name));
  return train_workload(options, [&] { return make_workload(options.workloads.front(), options.form); });
}

int train_workload(const Options& all, const std::function<Workload()>& make) {
  Ranks ranks(all);
  const Options asked = ranks.own(all);
  Progress progress(stream_for_people(asked), asked.quiet);
  progress.wait_for(reading_text(asked));
  const Workload workload = with_data_kept(make());
  if (asked.limit.memory || asked.limit.automatic_batch) progress.wait_for("planning the step in memory");
  const Fitted fitted = fit_train(asked, workload);
  const Options& options = fitted.options;
  check_lora(options);
  if (!options.load.empty()) expect_weights(io::TensorFile(options.load));
  if (workload.folds > 1 && !(options.save.empty() && options.lora.save.empty()))
    throw UsageError("--save keeps one network, and this data is trained in several folds");
  if (saves_model(options) && !workload.save_model)
    throw UsageError(
        fmt::format("--save {}: {} has parameters to save and no ONNX file; expected a name that ends in .safetensors",
                    options.save, workload.name));
  check_survival(options);
  const auto log = std::make_shared<train::RunLog>(options.log, options.tensorboard, !options.survive.resume.empty());
  if (!fitted.text.empty()) {
    progress.say(fitted.text);
    log->write(to_line(fitted.to_json()));
  }
  Summary summary;
  Keeper keeper(options, *log);
  if (workload.folds > 1) keeper.find_fold();
  while (keeper.folds().fold < workload.folds && !ranks.agree_to_stop()) {
    try {
      summary = train_fold(options, workload, log, keeper, ranks, progress);
    } catch (const std::exception& error) {
      log->write(line_of(error));
      throw;
    }
    if (!is_interrupted()) keeper.end_fold(summary);
  }
  if (workload.folds > 1) summary.fold_areas = keeper.folds().areas;
  fitted.fill(summary);
  nlohmann::ordered_json line = to_json(summary);
  line["event"] = "summary";
  line["interrupted"] = is_interrupted();
  log->write(to_line(line));
  progress.erase();
  if (ranks.rank() == 0) print_summary(options, summary, is_interrupted());
  log->check();
  return is_interrupted() ? kInterrupted : kDone;
}

}  // namespace samebytes::cli
