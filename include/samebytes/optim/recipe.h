// Recipe: an optimizer by name with the schedule of its rate, from plain values as a command line or a file has them.
// `samebytes train` and `sweep` train by it.
//   const optim::Recipe recipe({.optimizer = "lamb", .schedule = "cosine", .batch = 256, .steps = 2000});
//   const std::unique_ptr<optim::Optimizer> optimizer = recipe.make_optimizer(net.parameters());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/optim/ema.h"
#include "samebytes/optim/optimizer.h"
#include "samebytes/optim/plateau.h"
#include "samebytes/optim/scale_rate.h"

namespace samebytes::optim {

const std::vector<std::string>& optimizer_names();  // "sgd", "adam", "adamw" ...
const std::vector<std::string>& schedule_names();   // "constant", "linear", "cosine" ...

// What suits AdamW on a task, with its usual batch.
struct TaskDefaults {
  double rate = 1e-3;
  double weight_decay = 1e-2;
  double beta2 = 0.999;
  double clip_norm = 0;  // of all gradients together; 0: off
  std::int64_t batch = 64;
};

struct RecipeOptions {
  std::string optimizer = "adamw";  // one of optimizer_names()
  std::string schedule = "cosine";  // one of schedule_names(), after the warm-up
  TaskDefaults task = {};
  std::int64_t batch = 64;          // samples per step
  std::int64_t steps = 1;           // of the run
  std::int64_t epoch_steps = 0;     // of an epoch; 0: unknown
  std::optional<double> rate = {};  // the highest; empty: the task's for adam, adamw and lamb, else the optimizer's own
  std::optional<double> weight_decay = {};      // empty: the task's for adamw and lamb, else the optimizer's own
  std::optional<double> momentum = {};          // or beta1; empty: the optimizer's own
  std::optional<double> clip_norm = {};         // empty: the task's
  std::optional<double> ema = {};               // decay of averaged weights
  std::optional<std::int64_t> warmup = {};      // steps; empty: 5 % of all, none for constant and plateau
  std::optional<double> gamma = {};             // factor of step, exponential and plateau
  std::optional<std::int64_t> every = {};       // steps between drops or restarts; validations that plateau waits
  ScaleRule scale_rate = ScaleRule::none;       // of the rate, with batch / base_batch
  std::optional<std::int64_t> base_batch = {};  // empty: the task's
  bool release_gradients = false;
  Dtype moments = f32;        // bf16
  bool bf16_weights = false;  // the parameters are stored in bf16
};

class Recipe {
 public:
  // Throws ArgumentError, which begins with the name of the field and ": ", for an unknown name and for what the
  // optimizer or the schedule does not have.
  explicit Recipe(RecipeOptions options);

  const std::string& optimizer() const { return options_.optimizer; }
  const std::string& schedule() const { return options_.schedule; }
  double rate() const { return scaled_.rate; }           // the highest
  double default_rate() const { return default_rate_; }  // without RecipeOptions::rate, for the task's batch
  std::int64_t warmup() const { return scaled_.warmup; }
  // The rate as a function of the step. Throws ArgumentError for onecycle and plateau, which change more than the rate
  // or follow validations.
  RateSchedule rate_schedule() const;

  std::unique_ptr<Optimizer> make_optimizer(std::span<const Array> parameters) const;  // with the schedule set
  std::optional<EmaOptions> ema_options() const;          // nullopt without RecipeOptions::ema
  std::optional<PlateauOptions> plateau_options() const;  // of the schedule plateau
  std::string to_text() const;                            // "adamw, cosine schedule, rate 0.003, warm-up of 12 steps"

 private:
  RateSchedule decay(std::int64_t steps) const;

  RecipeOptions options_;
  double default_rate_ = 0;
  ScaledRate scaled_;
};

}  // namespace samebytes::optim
