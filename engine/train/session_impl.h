// Inside a Session: its parts, what it has counted, and the work of one step, one epoch and one state.
#pragma once

#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "samebytes/engine.h"
#include "samebytes/pressure.h"
#include "samebytes/run_state.h"
#include "samebytes/train/session.h"
#include "train/adaptive_steps.h"

namespace samebytes::train {

using LogLine = nlohmann::ordered_json;

inline LogLine finite_or_null(double value) { return std::isfinite(value) ? LogLine(value) : LogLine(); }

std::string text_of_loss(double value);
void add_results(const Evaluation& evaluation, LogLine& line);  // "test_loss", "test_accuracy"

struct Session::Impl {
  // An update whose loss was not read yet.
  struct Pending {
    StepReport report;
    Array loss;  // or its value:
    std::optional<double> value;
    optim::GradientNorm norm;  // where it was kept
    LogLine more;              // fields of its line in the log
  };
  // How far fit() goes; nothing: without end.
  struct Target {
    std::optional<std::int64_t> steps = {}, epochs = {};
  };
  // How often a validation was no better than the best one.
  struct Patience {
    std::optional<double> best = {};
    std::int64_t bad = 0;
  };

  Impl(Engine& engine_, nn::Module& net_, Task task_, data::Loader& training_, SessionOptions options_);

  // session_step.cpp
  std::optional<Accumulation::Step> step(const data::Batch& batch);
  void flush();
  void begin_pass(bool is_new_epoch);
  void end_pass();
  Array loss_of(const data::Batch& batch) const;
  std::optional<Accumulation::Step> update(const data::Batch& batch);
  void finish_step(double rate, const Accumulation::Step& made);
  void tell(const PressureAction& action);
  void tell_batch();
  void wait_for(const char* what) const {
    if (options.callbacks.on_wait) options.callbacks.on_wait(what);
  }
  void log_recoveries();
  void read_oldest_loss();
  [[noreturn]] void end_not_finite(std::int64_t step, const std::string& text);
  void read_losses();
  void draw();
  bool reads_losses() const { return has_log() || options.callbacks.on_step; }

  // session.cpp
  void check() const;
  std::int64_t steps_per_epoch() const;
  int number_of(std::int64_t loader_epoch) const { return static_cast<int>(loader_epoch - first_epoch) + 1; }
  void start();  // of the log, before the first step
  Report run(const Target& goal);
  bool is_before_goal() const;
  void go_on_in_epoch();
  void train_epoch();
  EpochReport end_epoch();
  std::optional<Evaluation> validate();
  void look_at(const Evaluation& result);
  bool is_asked() const { return stop_requested || (options.should_stop && options.should_stop()); }
  bool stops() const { return options.shared != nullptr ? options.shared->stops(is_asked()) : is_asked(); }
  bool agree_to_stop() const {
    return options.shared != nullptr ? options.shared->agree_to_stop(is_asked()) : is_asked();
  }
  bool is_stopped_early() const { return options.early_stopping && patience.bad >= options.early_stopping->patience; }

  // session_state.cpp
  bool saves() const { return options.checkpoints && options.checkpoints->saves(); }
  RunState& run_state();
  std::optional<Resumed> resume();
  void keep();
  void keep_if_due();
  void pause_for(const std::function<void()>& work);  // between two steps, of whose time it is none
  std::string counts() const;
  void set_counts(const std::string& text);
  bool has_log() const { return options.log && options.log->is_on(); }
  void write(const LogLine& line) const;
  void write_start() const;
  void write_summary(const Report& report) const;
  Report report() const;

  Engine& engine;
  nn::Module& net;
  Task task;
  data::Loader& training;
  SessionOptions options;
  Precision precision;
  OptimizerPtr owned;
  optim::Optimizer* optimizer = nullptr;
  std::optional<Accumulation> accumulation;
  std::unique_ptr<optim::Ema> ema;
  std::optional<AdaptiveSteps> adaptive;
  std::optional<optim::Plateau> plateau;
  std::optional<PressureGuard> guard;
  RunMeter meter;
  std::optional<RunState> state;
  std::int64_t log_position = 0;
  bool has_resumed = false, has_started = false;
  std::optional<std::int64_t> resumed_from;

  Target target;
  std::int64_t largest_batch = 0;  // samples
  std::int64_t first_epoch = 0;    // of the loader when the run began: it may have served another run
  int epoch = 0;                   // from 1; 0: none was begun
  bool is_in_pass = false;         // the meter runs
  double seconds_before = 0;       // of this epoch's steps in this process
  std::int64_t tested_steps = 0;   // after how many steps the last validation was
  std::int64_t kept_steps = -1;    // after how many steps the state was kept last
  std::int64_t updates_seen = 0;   // whose norms were asked for
  std::size_t recoveries_seen = 0;
  Mean mean;  // of the losses of this epoch
  std::deque<Pending> pending;
  double recent_norm = NAN;
  std::chrono::steady_clock::time_point next_progress;
  std::optional<double> train_loss;      // of the last whole epoch
  std::optional<Evaluation> validation;  // the last one
  Patience patience;
  bool stop_requested = false;
};

}  // namespace samebytes::train
