// What a Session remembers and says: its state, checkpoints and resume, and the lines that frame its log.
#include <fmt/format.h>

#include <thread>
#include <utility>

#include "core/json.h"
#include "samebytes/error.h"
#include "samebytes/tune.h"
#include "train/session_impl.h"

namespace samebytes::train {
namespace {

constexpr const char* kTest = "test_";  // what the log and the state call a result of the validation

LogLine results_of(const std::optional<double>& train_loss, const std::optional<Evaluation>& validation) {
  LogLine json = LogLine::object();
  if (train_loss) json["train_loss"] = *train_loss;
  if (validation) add_results(*validation, json);
  return json;
}

}  // namespace

std::string text_of_loss(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

void add_results(const Evaluation& evaluation, LogLine& line) {
  line[std::string(kTest) + "loss"] = evaluation.loss;
  for (const auto& [name, value] : evaluation.metrics) line[kTest + name] = value;
}

RunState& Session::Impl::run_state() {
  if (state) return *state;
  state.emplace(engine);
  if (options.keeps_frozen)
    state->add("model", net);
  else
    state->add_trained("model", net);
  state->add("optimizer", *optimizer);
  if (precision.scaler() != nullptr) state->add("scaler", *precision.scaler());
  if (ema) state->add("ema", *ema);
  if (plateau) state->add("plateau", *plateau);
  if (adaptive) adaptive->add_to(*state);
  if (options.shared != nullptr) options.shared->add_to(*state);
  state->add("training", training);
  state->add("train loss", mean);
  state->add(
      "counts", [this] { return counts(); }, [this](const std::string& text) { set_counts(text); });
  state->add(
      "log", [this] { return std::to_string(options.log ? options.log->position() : 0); },
      [this](const std::string& text) { log_position = LogLine::parse(text).get<std::int64_t>(); });
  if (options.early_stopping)
    state->add(
        "early stopping",
        [this] {
          const LogLine best = patience.best ? LogLine(*patience.best) : LogLine();
          return LogLine{{"best", best}, {"bad", patience.bad}}.dump();
        },
        [this](const std::string& text) {
          const LogLine json = LogLine::parse(text);
          patience = {json["best"].is_null() ? std::nullopt : std::optional(json["best"].get<double>()),
                      json["bad"].get<std::int64_t>()};
        });
  return *state;
}

std::string Session::Impl::counts() const {
  return detail::to_line(LogLine{{"steps", meter.steps()},
                                 {"samples", meter.samples()},
                                 {"seconds", meter.seconds()},
                                 {"tested_steps", tested_steps},
                                 {"first_epoch", first_epoch},
                                 {"results", results_of(train_loss, validation)}});
}

void Session::Impl::set_counts(const std::string& text) {
  const LogLine json = LogLine::parse(text);
  meter.go_on_from(json["steps"].get<std::int64_t>(), json["samples"].get<std::int64_t>(),
                   json["seconds"].get<double>());
  tested_steps = json["tested_steps"].get<std::int64_t>();
  first_epoch = json.value("first_epoch", std::int64_t{0});
  train_loss.reset();
  validation.reset();
  for (const auto& [key, value] : json["results"].items()) {
    if (!value.is_number()) continue;
    const double number = value.get<double>();
    if (key == "train_loss") {
      train_loss = number;
      continue;
    }
    if (!validation) validation.emplace();
    const std::string name = key.substr(std::string(kTest).size());
    if (name == "loss")
      validation->loss = number;
    else
      validation->metrics.emplace_back(name, number);
  }
}

std::optional<Resumed> Session::Impl::resume() {
  has_resumed = true;
  if (!options.checkpoints || !options.checkpoints->is_on()) return {};
  Checkpoints& checkpoints = *options.checkpoints;
  log_position = checkpoints.log_begin();
  const std::optional<Checkpoints::Restored> restored = checkpoints.restore(run_state());
  if (options.frames_log && options.callbacks.on_message)
    for (const std::string& text : checkpoints.written().damaged) options.callbacks.on_message("passed over: " + text);
  // A plateau that had lowered the rate has the last word on it.
  if (plateau && plateau->rate() != plateau->options().rate) optimizer->set_rate(plateau->rate());
  if (options.log) options.log->rewind(log_position);
  if (!restored) return {};
  Resumed result{meter.steps(), restored->from, {}};
  result.text = fmt::format("goes on after step {}, from {}", result.step, result.from);
  const RunOrigin here{engine.device().name, engine.tuning().hash};
  if (restored->origin != here)
    result.text += fmt::format("; made on {} with tuning {}, so not bit for bit", restored->origin.device,
                               restored->origin.tuning);
  kept_steps = result.step;
  resumed_from = result.step;
  epoch = number_of(training.place().epoch);
  if (options.frames_log)
    write({{"event", "resume"}, {"step", result.step}, {"from", result.from}, {"text", result.text}});
  return result;
}

void Session::Impl::keep_if_due() {
  if (options.checkpoints && options.checkpoints->is_due(meter.steps())) pause_for([this] { keep(); });
}

void Session::Impl::pause_for(const std::function<void()>& work) {
  if (!is_in_pass) return work();
  engine.wait();  // for steps, whose time it is
  meter.pause();
  work();
  meter.resume();
}

void Session::Impl::keep() {
  read_losses();  // the log has all that the state has; throws for a loss that no state should be kept with
  if (mean.weight() > 0 && !std::isfinite(mean.value()))
    throw Error(fmt::format("step {}: the mean loss of the epoch is {}", meter.steps(), text_of_loss(mean.value())));
  engine.wait();  // also throws what failed: a state is whole or is not written
  wait_for("writing a checkpoint");
  options.checkpoints->save(run_state(), *optimizer, meter.steps());
  wait_for("");
  kept_steps = meter.steps();
  if (options.callbacks.on_checkpoint)
    options.callbacks.on_checkpoint({options.checkpoints->written().path, kept_steps});
}

void Session::Impl::write(const LogLine& line) const {
  if (options.log) options.log->write(detail::to_line(line));
}

void Session::Impl::write_start() const {
  if (!has_log()) return;
  const DeviceInfo& device = engine.device();
  LogLine line{{"event", "start"},
               {"device", device.id + " " + device.name},
               {"personality", name_of(device.personality)},
               {"precision", name_of(precision.dtype())},
               {"tuning", engine.tuning().hash},
               {"seed", engine.options().seed},
               {"rate", optimizer->rate()},
               {"memory_mode", name_of(device.memory_mode)},
               {"memory_limit_bytes", engine.memory().limit_bytes},
               {"cores", std::max(1U, std::thread::hardware_concurrency())},
               {"accumulate", options.accumulation.batches},
               {"check_nan", engine.options().check_nan},
               {"training_samples", training.dataset().size()},
               {"parameters", net.parameter_count()}};
  if (target.steps) line["steps"] = *target.steps;
  if (target.epochs) line["steps"] = *target.epochs * steps_per_epoch();
  if (options.validation != nullptr) line["test_samples"] = options.validation->dataset().size();
  if (options.accumulation.micro_batch > 0) line["micro_batch"] = options.accumulation.micro_batch;
  if (options.ema) line["ema"] = options.ema->decay;
  if (options.grad_norm_every > 0) line["log_grad_norm"] = options.grad_norm_every;
  write(line);
}

void Session::Impl::write_summary(const Report& report) const {
  if (!has_log()) return;
  const RunFigures& figures = report.figures;
  LogLine line{{"event", "summary"},
               {"precision", name_of(precision.dtype())},
               {"steps", figures.steps},
               {"samples", figures.samples},
               {"seconds", figures.seconds},
               {"samples_per_second", figures.samples_per_second()},
               {"step_ms_p50", figures.step_ms_p50},
               {"step_ms_p95", figures.step_ms_p95},
               {"first_step_seconds", figures.first_step_seconds},
               {"bytes_copied_per_step", figures.bytes_copied_per_step},
               {"bytes_gathered_per_step", figures.bytes_gathered_per_step},
               {"launches_per_step", figures.launches_per_step},
               {"bytes_per_step", figures.bytes_per_step},
               {"peak_bytes", figures.peak_bytes},
               {"stall_fraction", figures.stall_fraction},
               {"stopped_because", name_of(report.stopped_because)},
               {"interrupted", report.stopped_because == Stopped::asked}};
  line.update(results_of(report.train_loss, report.validation));
  if (report.loss_scale) line["loss_scale"] = *report.loss_scale;
  if (report.skipped_steps) line["skipped_steps"] = *report.skipped_steps;
  write(line);
}

Report Session::Impl::report() const {
  engine.wait();
  Report result{.figures = meter.figures(), .epochs = epoch, .train_loss = train_loss, .validation = validation};
  if (is_stopped_early()) result.stopped_because = Stopped::early;
  if (const optim::GradScaler* scaler = precision.scaler()) {
    result.loss_scale = scaler->scale();
    result.skipped_steps = optimizer->skipped_steps();
  }
  if (adaptive) result.adaptive = adaptive->report(meter.steps());
  if (options.checkpoints) result.checkpoints = options.checkpoints->written();
  result.resumed_from = resumed_from;
  return result;
}

}  // namespace samebytes::train
