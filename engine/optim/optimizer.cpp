#include "samebytes/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "samebytes/autocast.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/optim/clip.h"
#include "samebytes/profile.h"

namespace samebytes::optim {
namespace {

constexpr std::int64_t kAlignmentBytes = 128;  // of each parameter in an arena

std::int64_t padded_bytes(const Array& parameter) {
  const std::int64_t bytes = parameter.size() * static_cast<std::int64_t>(bytes_of(parameter.dtype()));
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// Every option that a group may have of its own.
struct NamedMember {
  const char* name;
  std::optional<double> GroupOptions::*member;
};
constexpr NamedMember kMembers[] = {
    {"weight_decay", &GroupOptions::weight_decay},
    {"momentum", &GroupOptions::momentum},
    {"dampening", &GroupOptions::dampening},
    {"beta1", &GroupOptions::beta1},
    {"beta2", &GroupOptions::beta2},
    {"alpha", &GroupOptions::alpha},
    {"rate_decay", &GroupOptions::rate_decay},
    {"eps", &GroupOptions::eps},
    {"trust", &GroupOptions::trust},
};

// The dtype of a parameter and of its gradient: parameters with a working copy (autocast.h) lie apart from the others.
using Kind = std::pair<Dtype, Dtype>;
constexpr Kind kKinds[] = {{f32, f32}, {f32, f16}, {f32, bf16}, {bf16, bf16}, {f64, f64}};
Kind kind_of(const Array& parameter) {
  const Array copy = working_copy(parameter);
  return {parameter.dtype(), copy.defined() ? copy.dtype() : parameter.dtype()};
}

// Which parameters lie together: those of one group and kind, in order, as many as fit into the largest allocation.
std::vector<std::vector<std::size_t>> arena_places(const std::vector<Array>& parameters,
                                                   const std::vector<std::size_t>& groups) {
  const auto largest = static_cast<std::int64_t>(
      std::min<std::size_t>(Engine::current().device().max_allocation_bytes, std::size_t{1} << 62));
  std::vector<std::vector<std::size_t>> arenas;
  for (std::size_t begin = 0, end = 0; begin < parameters.size(); begin = end) {
    while (end < parameters.size() && groups[end] == groups[begin]) ++end;
    for (const Kind& kind : kKinds) {
      std::int64_t bytes = 0;
      bool open = false;
      for (std::size_t i = begin; i < end; ++i) {
        if (kind_of(parameters[i]) != kind) continue;
        if (!open || bytes + padded_bytes(parameters[i]) > largest) {
          arenas.emplace_back();
          bytes = 0;
          open = true;
        }
        arenas.back().push_back(i);
        bytes += padded_bytes(parameters[i]);
      }
    }
  }
  return arenas;
}

std::string group_number(std::string_view name, std::size_t group) {
  return "group " + std::to_string(group) + " " + std::string(name);
}

}  // namespace

Optimizer::Optimizer(const char* name, std::span<const ParameterGroup> groups, const Common& common,
                     std::initializer_list<Option> options)
    : name_(name),
      rate_(common.rate),
      first_rate_(common.rate),
      clip_norm_(common.clip_norm),
      clip_value_(common.clip_value),
      maximize_(common.maximize),
      releases_gradients_(common.release_gradients),
      moments_(common.moments) {
  require_range(name, "rate", common.rate, 0.0, HUGE_VAL);
  require_range(name, "clip_norm", common.clip_norm, 0.0, HUGE_VAL);
  require_range(name, "clip_value", common.clip_value, 0.0, HUGE_VAL);
  if (releases_gradients_ && clip_norm_ > 0.0)
    throw ArgumentError(name_ +
                        ": release_gradients updates parameters before all gradients are there, so clip_norm must "
                        "be 0, got " +
                        std::to_string(clip_norm_) + "; clip_value can be used");
  if (moments_ != f32 && moments_ != bf16)
    throw ArgumentError(name_ + ": moments must be f32 or bf16, got " + std::string(name_of(moments_)) +
                        " (f16 is too narrow for the squares of small gradients)");
  for (const ParameterGroup& group : groups) {
    if (group.options.adapts && !common.adapts)
      throw ArgumentError(name_ + ": it has no option adapts, got a group with one");
    take_options(group.options, options);
  }
  take_parameters(groups, common.rounds_weights);
  for (const Array& parameter : parameters_)
    if (moments_ == bf16 && parameter.dtype() == f64)
      throw ArgumentError(name_ + ": moments in bf16 are for f32 parameters, " + cell_name(parameter) + " is " +
                          std::string(name_of(parameter.dtype())));
  places_ = arena_places(parameters_, parameter_groups_);
  for (const auto& places : places_) {
    std::vector<Array> members;
    members.reserve(places.size());
    for (const std::size_t place : places) members.push_back(parameters_[place]);
    arena_groups_.push_back(parameter_groups_[places.front()]);
    arenas_.emplace_back(members, name_ + " parameters " + std::to_string(arenas_.size()));
  }
}

void Optimizer::take_options(const GroupOptions& own, std::span<const Option> options) {
  GroupOptions all;
  all.rate = own.rate.value_or(rate_);
  require_range(name_.c_str(), "rate", *all.rate, 0.0, HUGE_VAL);
  if (own.rate && *own.rate != rate_ && rate_ == 0.0)
    throw ArgumentError(name_ + ": a group's own rate is kept in proportion to the optimizer's, which is 0");
  all.adapts = own.adapts.value_or(true);
  for (const Option& option : options) {
    const double value = (own.*option.member).value_or(option.value);
    require_range(name_.c_str(), option.name, value, option.low, option.high);
    all.*option.member = value;
  }
  for (const NamedMember& named : kMembers)
    if (own.*named.member && !(all.*named.member))
      throw ArgumentError(name_ + ": it has no option " + named.name + ", got a group with one");
  keeps_momentum_.push_back(all.momentum && *all.momentum > 0.0);
  groups_.push_back(all);
}

void Optimizer::take_parameters(std::span<const ParameterGroup> groups, bool rounds_weights) {
  std::unordered_map<const void*, std::size_t> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const Array& parameter : groups[g].parameters) {
      if (!is_cell(parameter)) throw ArgumentError(name_ + ": a parameter must be a cell, such as those of layers");
      if (parameter.dtype() == bf16 && !rounds_weights)
        throw ArgumentError(name_ + ": " + cell_name(parameter) +
                            " is bf16; Adam, AdamW, Sgd, RmsProp, Adagrad and Lion round such weights by chance");
      if (parameter.dtype() != f32 && parameter.dtype() != f64 && parameter.dtype() != bf16)
        throw ArgumentError(name_ + ": parameters are f32 or f64, " + cell_name(parameter) + " is " +
                            std::string(name_of(parameter.dtype())));
      const auto [place, is_new] = seen.try_emplace(parameter.node().get(), g);
      if (place->second != g) throw ArgumentError(name_ + ": " + cell_name(parameter) + " is in two groups");
      if (!is_new) continue;
      parameters_.push_back(parameter);
      parameter_groups_.push_back(g);
    }
  }
  if (parameters_.empty()) throw ArgumentError(name_ + ": needs at least one parameter");
}

std::vector<ParameterGroup> Optimizer::one_group(std::span<const Array> parameters) {
  return {{.parameters = std::vector<Array>(parameters.begin(), parameters.end())}};
}

std::vector<ParameterGroup> Optimizer::without_vectors(const std::vector<ParameterGroup>& groups) {
  std::vector<ParameterGroup> result;
  for (const ParameterGroup& group : groups) {
    GroupOptions plain = group.options;
    plain.adapts = false;
    plain.weight_decay = 0.0;
    for (ParameterGroup& part : split_vectors(group.parameters, plain)) {
      if (part.options.adapts != std::optional(false)) part.options = group.options;
      result.push_back(std::move(part));
    }
  }
  return result;
}

void Optimizer::require_range(const char* name, const char* option, double value, double low, double high) {
  if (!(value >= low && value < high))
    throw ArgumentError(std::string(name) + ": " + option + " must be in [" + std::to_string(low) + ", " +
                        std::to_string(high) + "), got " + std::to_string(value));
}

double Optimizer::rate(std::size_t group) const {
  const double own = *groups_.at(group).rate;
  return own == first_rate_ ? rate_ : rate_ * (own / first_rate_);
}

void Optimizer::set_rate(double rate) {
  require_range(name_.c_str(), "rate", rate, 0.0, HUGE_VAL);
  rate_ = rate;
  schedule_ = nullptr;
}

void Optimizer::set_schedule(std::function<double(std::int64_t)> schedule) {
  schedule_ = std::move(schedule);
  follow_schedules();
}

void Optimizer::watch_gradient_norm(bool is_on) {
  if (is_on && releases_gradients_)
    throw ArgumentError(name_ + ": release_gradients never has all gradients at once, so their norm is not there");
  watches_norm_ = is_on;
}

std::optional<double> GroupOptions::*Optimizer::momentum_member() const {
  return groups_.front().momentum ? &GroupOptions::momentum : &GroupOptions::beta1;
}

std::optional<double> Optimizer::momentum() const { return groups_.front().*momentum_member(); }

bool Optimizer::has_momentum() const {
  return momentum() && (!groups_.front().momentum ||
                        std::find(keeps_momentum_.begin(), keeps_momentum_.end(), false) == keeps_momentum_.end());
}

void Optimizer::set_momentum(double momentum) {
  require_range(name_.c_str(), "momentum", momentum, 0.0, 1.0);
  set_momentum_schedule([momentum](std::int64_t) { return momentum; });
  momentum_schedule_ = nullptr;
}

void Optimizer::set_momentum_schedule(std::function<double(std::int64_t)> schedule) {
  if (schedule && !this->momentum()) throw ArgumentError(name_ + ": it has neither momentum nor beta1");
  if (schedule && !has_momentum())
    throw ArgumentError(name_ + ": was made with momentum 0, which keeps no buffers and cannot change then");
  momentum_schedule_ = std::move(schedule);
  follow_schedules();
}

void Optimizer::follow_schedules() {
  if (schedule_) rate_ = schedule_(step_count_);
  if (!momentum_schedule_) return;
  const double momentum = momentum_schedule_(step_count_);
  require_range(name_.c_str(), "momentum", momentum, 0.0, 1.0);
  for (GroupOptions& group : groups_) group.*momentum_member() = momentum;
}

void Optimizer::set_step_count(std::int64_t count) {
  if (count < 0) throw ArgumentError(name_ + ": the step count must be at least 0, got " + std::to_string(count));
  step_count_ = count;
  follow_schedules();
}

StateDict Optimizer::state_dict() const {
  StateDict result{state(), {{"step_count", static_cast<double>(step_count_)}, {"rate", rate_}}};
  if (skipped_.defined()) result.numbers.push_back({"skipped_steps", skipped_.value()});
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (const auto& value = groups_[g].*momentum_member())
      result.numbers.push_back({group_number("momentum", g), *value});
  return result;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const double count = number_of(name_.c_str(), state, "step_count"), rate = number_of(name_.c_str(), state, "rate");
  require_range(name_.c_str(), "step_count", count, 0.0, 0x1p53);
  require_range(name_.c_str(), "rate", rate, 0.0, HUGE_VAL);
  std::vector<double> momenta;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].*momentum_member()) momenta.push_back(number_of(name_.c_str(), state, group_number("momentum", g)));
  load_arrays(name_.c_str(), this->state(), state.arrays);
  for (std::size_t g = 0; g < momenta.size(); ++g) groups_[g].*momentum_member() = momenta[g];
  rate_ = rate;
  set_step_count(static_cast<std::int64_t>(count));
  const auto skipped = std::find_if(state.numbers.begin(), state.numbers.end(),
                                    [](const StateNumber& number) { return number.name == "skipped_steps"; });
  if (skipped != state.numbers.end())
    set_skipped_steps(static_cast<std::int64_t>(skipped->value));
  else
    skipped_ = {};
}

std::vector<Array> Optimizer::flat_gradients(const Array& loss, const GradientMap& map) const {
  if (gradient_source_) return gradient_source_(loss, map);
  std::vector<Array> all = gradients(loss, parameters_, gradient_options());
  for (std::size_t i = 0; map && i < all.size(); ++i) all[i] = map(i, all[i]);
  return flat_gradients(all);
}

std::vector<Array> Optimizer::flat_gradients(std::span<const Array> gradients) const {
  if (gradients.size() != parameters_.size())
    throw ArgumentError(name_ + ": needs one gradient for each of " + std::to_string(parameters_.size()) +
                        " parameters, got " + std::to_string(gradients.size()));
  std::vector<Array> flat;
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    std::vector<Array> members;
    members.reserve(places_[i].size());
    for (const std::size_t place : places_[i]) members.push_back(gradients[place]);
    flat.push_back(arenas_[i].pack(members, releases_gradients_));
  }
  return flat;
}

void Optimizer::step(const Array& loss) {
  run([&] { return StepParts{flat_gradients(loss)}; });
}

void Optimizer::step(std::span<const Array> gradients) {
  run([&] { return StepParts{flat_gradients(gradients)}; });
}

void Optimizer::step_flat(std::span<const Array> gradients) {
  if (releases_gradients_)
    throw ArgumentError(name_ +
                        ": release_gradients never has a flat gradient; use step(loss), or step_flat without it");
  if (gradients.size() != arenas_.size())
    throw ArgumentError(name_ + ": needs one flat gradient for each of " + std::to_string(arenas_.size()) +
                        " arenas, got " + std::to_string(gradients.size()));
  run([&] { return StepParts{{gradients.begin(), gradients.end()}}; });
}

std::vector<Array> Optimizer::all_updates(StepParts parts) {
  std::vector<Array>& gradients = parts.gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].dtype() != compute_dtype(i)) gradients[i] = astype(gradients[i], compute_dtype(i));
  const Array& is_taken = parts.is_taken;
  if (is_taken.defined() && !skipped_.defined()) set_skipped_steps(0);
  if (maximize_)
    for (Array& gradient : gradients) gradient = -gradient;
  if (clip_value_ > 0.0) gradients = clip_by_value(gradients, clip_value_);
  std::vector<Array> all = std::move(parts.more);
  gradient_norm_ = {};
  if (clip_norm_ > 0.0 || watches_norm_) {
    const GradientNorm norm(gradients);
    if (clip_norm_ > 0.0) gradients = clip_by_global_norm(gradients, clip_norm_, norm);
    if (watches_norm_) {
      gradient_norm_ = norm;
      all.insert(all.end(), norm.squares().begin(), norm.squares().end());
    }
  }
  is_taken_ = is_taken;
  for (std::size_t i = 0; i < arenas_.size(); ++i)
    for (const CellUpdate& one : updates_of_share(i, gradients[i])) {
      const Array value = is_taken.defined() && one.cell.defined() ? where(is_taken, one.value, one.cell) : one.value;
      all.push_back(one.cell.defined() ? update(one.cell, value) : value);
    }
  is_taken_ = {};
  if (is_taken.defined()) all.push_back(update(skipped_, where(is_taken, skipped_, skipped_ + 1.0)));
  return all;
}

void Optimizer::run(const std::function<StepParts()>& parts) {
  static const Label kLabel("optimizer");
  const ProfileScope scope(kLabel);
  // Two statements, so that only the updates have handles when they are evaluated: what else had one would get memory
  // of its own.
  const std::vector<Array> all = all_updates(parts());
  eval(all);
  if (shard_.spread) shard_.spread();
  ++step_count_;
  follow_schedules();
}

Array Optimizer::steps_taken() const {
  return skipped_.defined() ? static_cast<double>(step_count_ + 1) - skipped_ : Array();
}

std::int64_t Optimizer::skipped_steps() const {
  return skipped_.defined() ? static_cast<std::int64_t>(skipped_.value()) : 0;
}

void Optimizer::set_skipped_steps(std::int64_t count) {
  if (count < 0) throw ArgumentError(name_ + ": at least 0 steps were skipped, got " + std::to_string(count));
  const Array number = full({1}, static_cast<double>(count));
  if (skipped_.defined())
    assign(skipped_, number);
  else
    skipped_ = cell(number, name_ + " skipped steps");
}

}  // namespace samebytes::optim
