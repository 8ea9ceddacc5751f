#include "samebytes/optim/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "samebytes/error.h"
#include "samebytes/figures.h"
#include "samebytes/optim/adafactor.h"
#include "samebytes/optim/adagrad.h"
#include "samebytes/optim/adam.h"
#include "samebytes/optim/lamb.h"
#include "samebytes/optim/lars.h"
#include "samebytes/optim/lion.h"
#include "samebytes/optim/rmsprop.h"
#include "samebytes/optim/schedule.h"
#include "samebytes/optim/sgd.h"

namespace samebytes::optim {
namespace {

constexpr double kWarmUpShare = 0.05;     // of the steps: the rate rises from nothing
constexpr double kStepGamma = 0.1;        // of step and plateau
constexpr double kExponentialEnd = 0.01;  // share of the rate that an exponential decay leaves at the end
constexpr double kPolynomialPower = 2.0;
constexpr std::int64_t kStepParts = 3;        // step falls after each third
constexpr std::int64_t kPlateauPatience = 2;  // validations that may pass without a better one
constexpr double kLeastCycledMomentum = 0.85, kMostCycledMomentum = 0.95;

using OptimizerPtr = std::unique_ptr<Optimizer>;
using Parameters = std::span<const Array>;

struct Entry {
  const char* name;
  bool has_task_rate;  // the task's rate is one of AdamW, and of what behaves like it
  double rate;         // else
  bool has_momentum;
  bool has_release;
  bool has_moments;
  bool has_weights;
  OptimizerPtr (*make)(Parameters parameters, const RecipeOptions& given, double rate);
};

template <class Options>
Options common(const RecipeOptions& given, double rate) {
  Options options;
  options.rate = rate;
  options.clip_norm = given.clip_norm.value_or(given.task.clip_norm);
  if (given.weight_decay) options.weight_decay = *given.weight_decay;
  return options;
}

template <class Options>
Options with_momentum(const RecipeOptions& given, double rate) {
  Options options = common<Options>(given, rate);
  if (given.momentum) options.momentum = *given.momentum;
  return options;
}

template <class Options>
Options with_betas(const RecipeOptions& given, double rate) {
  Options options = common<Options>(given, rate);
  if (given.momentum) options.beta1 = *given.momentum;
  return options;
}

// Optimizers that the task's second moment and weight decay are meant for.
template <class Options>
Options like_adamw(const RecipeOptions& given, double rate) {
  Options options = with_betas<Options>(given, rate);
  options.beta2 = given.task.beta2;
  options.weight_decay = given.weight_decay.value_or(given.task.weight_decay);
  return options;
}

const Entry kOptimizers[] = {
    {"sgd", false, SgdOptions{}.rate, true, true, true, true,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       SgdOptions options = with_momentum<SgdOptions>(given, rate);
       options.release_gradients = given.release_gradients;
       options.moments = given.moments;
       return std::make_unique<Sgd>(p, options);
     }},
    {"adam", true, 0.0, true, true, true, true,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       AdamOptions options = with_betas<AdamOptions>(given, rate);
       options.beta2 = given.task.beta2;
       options.release_gradients = given.release_gradients;
       options.moments = given.moments;
       return std::make_unique<Adam>(p, options);
     }},
    {"adamw", true, 0.0, true, true, true, true,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       AdamWOptions options = like_adamw<AdamWOptions>(given, rate);
       options.release_gradients = given.release_gradients;
       options.moments = given.moments;
       return std::make_unique<AdamW>(p, options);
     }},
    {"rmsprop", false, RmsPropOptions{}.rate, true, false, true, true,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       RmsPropOptions options = with_momentum<RmsPropOptions>(given, rate);
       options.moments = given.moments;
       return std::make_unique<RmsProp>(p, options);
     }},
    {"adagrad", false, AdagradOptions{}.rate, false, false, false, true,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       return std::make_unique<Adagrad>(p, common<AdagradOptions>(given, rate));
     }},
    {"lars", false, LarsOptions{}.rate, true, false, false, false,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       LarsOptions options = with_momentum<LarsOptions>(given, rate);
       options.exclude_vectors = true;
       return std::make_unique<Lars>(p, options);
     }},
    {"lamb", true, 0.0, true, false, false, false,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       LambOptions options = like_adamw<LambOptions>(given, rate);
       options.exclude_vectors = true;
       return std::make_unique<Lamb>(p, options);
     }},
    {"lion", false, LionOptions{}.rate, true, false, true, true,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       LionOptions options = with_betas<LionOptions>(given, rate);
       options.moments = given.moments;
       return std::make_unique<Lion>(p, options);
     }},
    {"adafactor", false, AdafactorOptions{}.rate, false, false, false, false,
     [](Parameters p, const RecipeOptions& given, double rate) -> OptimizerPtr {
       return std::make_unique<Adafactor>(p, common<AdafactorOptions>(given, rate));
     }},
};

const Entry& entry_of(const std::string& name) {
  const Entry* const entry =
      std::find_if(std::begin(kOptimizers), std::end(kOptimizers), [&](const Entry& e) { return e.name == name; });
  if (entry != std::end(kOptimizers)) return *entry;
  throw ArgumentError(fmt::format("optimizer: expected one of {}, got {}", fmt::join(optimizer_names(), ", "), name));
}

// Schedules that begin low of their own, or stay where they are, have no warm-up that nobody asked for.
bool warms_up(const std::string& schedule) {
  return schedule != "constant" && schedule != "plateau" && schedule != "onecycle";
}

void check(const RecipeOptions& options, const Entry& entry) {
  const auto refuse = [&](const char* field, const std::string& why) {
    throw ArgumentError(fmt::format("{}: {} {}", field, options.optimizer, why));
  };
  const auto& names = schedule_names();
  if (std::find(names.begin(), names.end(), options.schedule) == names.end())
    throw ArgumentError(fmt::format("schedule: expected one of {}, got {}", fmt::join(names, ", "), options.schedule));
  if (options.momentum && !entry.has_momentum) refuse("momentum", "has none");
  if (options.release_gradients && !entry.has_release)
    refuse("release_gradients", "does not update parameters one by one; sgd, adam and adamw do");
  if (options.moments != f32 && !entry.has_moments)
    refuse("moments", "keeps them in f32; sgd, adam, adamw, rmsprop and lion have the choice");
  if (options.bf16_weights && !entry.has_weights)
    refuse("weights", "keeps them in f32; sgd, adam, adamw, rmsprop, adagrad and lion have the choice");
  if (options.base_batch && options.scale_rate == ScaleRule::none)
    throw ArgumentError("base_batch: it needs a rule for scale_rate");
  if (options.warmup && options.schedule == "onecycle")
    throw ArgumentError("schedule: onecycle begins with a warm-up of its own; leave warmup out");
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Entry& entry : kOptimizers) result.emplace_back(entry.name);
    return result;
  }();
  return names;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = {"constant", "linear",      "cosine",     "restarts", "onecycle",
                                                 "step",     "exponential", "polynomial", "plateau"};
  return names;
}

Recipe::Recipe(RecipeOptions options) : options_(std::move(options)) {
  const Entry& entry = entry_of(options_.optimizer);
  check(options_, entry);
  const std::int64_t steps = options_.steps;
  std::int64_t warmup = options_.warmup.value_or(
      warms_up(options_.schedule) ? std::llround(kWarmUpShare * static_cast<double>(steps)) : std::int64_t{0});
  warmup = std::min(warmup, std::max<std::int64_t>(steps - 1, 0));
  default_rate_ = entry.has_task_rate ? options_.task.rate : entry.rate;
  scaled_ =
      optim::scale_rate(options_.rate.value_or(default_rate_),
                        {.rule = options_.scale_rate,
                         .batch = options_.batch,
                         .base_batch = options_.base_batch.value_or(options_.task.batch),
                         .warmup = warmup,
                         .epoch_steps = options_.warmup || options_.schedule == "onecycle" ? 0 : options_.epoch_steps,
                         .total_steps = steps});
}

// The schedule behind the warm-up, over `steps` steps.
RateSchedule Recipe::decay(std::int64_t steps) const {
  const double rate = scaled_.rate;
  if (options_.schedule == "linear") return Schedule{.decay = Decay::linear, .rate = rate, .steps = steps};
  if (options_.schedule == "cosine") return Schedule{.decay = Decay::cosine, .rate = rate, .steps = steps};
  if (options_.schedule == "restarts")
    return CosineRestarts{.rate = rate,
                          .period = options_.every.value_or(std::max<std::int64_t>(1, steps / kStepParts))};
  if (options_.schedule == "step")
    return StepDecay{.rate = rate,
                     .every = options_.every.value_or(std::max<std::int64_t>(1, steps / kStepParts)),
                     .gamma = options_.gamma.value_or(kStepGamma)};
  if (options_.schedule == "exponential")
    return Exponential{.rate = rate,
                       .gamma = options_.gamma.value_or(std::pow(kExponentialEnd, 1.0 / static_cast<double>(steps)))};
  if (options_.schedule == "polynomial") return Polynomial{.rate = rate, .steps = steps, .power = kPolynomialPower};
  return [rate](std::int64_t) { return rate; };
}

RateSchedule Recipe::rate_schedule() const {
  if (options_.schedule == "onecycle" || options_.schedule == "plateau")
    throw ArgumentError("schedule: " + options_.schedule + " is no function of the step that sets the rate alone");
  return scaled_.schedule(decay(std::max<std::int64_t>(1, options_.steps - scaled_.warmup)));
}

OptimizerPtr Recipe::make_optimizer(std::span<const Array> parameters) const {
  OptimizerPtr optimizer = entry_of(options_.optimizer).make(parameters, options_, scaled_.rate);
  if (options_.schedule == "onecycle")
    set_one_cycle(*optimizer, OneCycle{.max_rate = scaled_.rate,
                                       .total_steps = options_.steps,
                                       .base_momentum = kLeastCycledMomentum,
                                       .max_momentum = kMostCycledMomentum});
  else if (options_.schedule != "plateau" || scaled_.warmup > 0)
    optimizer->set_schedule(scaled_.schedule(decay(std::max<std::int64_t>(1, options_.steps - scaled_.warmup))));
  return optimizer;
}

std::optional<EmaOptions> Recipe::ema_options() const {
  return options_.ema ? std::optional(EmaOptions{.decay = *options_.ema, .warmup = true}) : std::nullopt;
}

std::optional<PlateauOptions> Recipe::plateau_options() const {
  if (options_.schedule != "plateau") return std::nullopt;
  return PlateauOptions{.rate = scaled_.rate,
                        .factor = options_.gamma.value_or(kStepGamma),
                        .patience = options_.every.value_or(kPlateauPatience)};
}

std::string Recipe::to_text() const {
  std::string text = fmt::format("{}, {} schedule, rate {:.4g}", options_.optimizer, options_.schedule, scaled_.rate);
  if (options_.scale_rate != ScaleRule::none)
    text += fmt::format(" ({:.3g} times that for a batch of {}{})", scaled_.factor,
                        options_.base_batch.value_or(options_.task.batch), scaled_.is_clamped ? ", the most" : "");
  if (scaled_.warmup > 0) text += ", warm-up of " + counted_text(static_cast<double>(scaled_.warmup), "step");
  if (options_.moments != f32) text += fmt::format(", moments in {}", name_of(options_.moments));
  if (options_.bf16_weights) text += ", weights in bf16";
  if (options_.ema) text += fmt::format(", averaged weights {:g}", *options_.ema);
  return text;
}

}  // namespace samebytes::optim
