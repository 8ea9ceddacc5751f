#include "optim/optimizer_impl.h"

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
    : impl_(std::make_unique<Impl>(name, common)) {
  require_range(name, "rate", common.rate, 0.0, HUGE_VAL);
  require_range(name, "clip_norm", common.clip_norm, 0.0, HUGE_VAL);
  require_range(name, "clip_value", common.clip_value, 0.0, HUGE_VAL);
  if (impl_->releases_gradients && impl_->clip_norm > 0.0)
    throw ArgumentError(impl_->name +
                        ": release_gradients updates parameters before all gradients are there, so clip_norm must "
                        "be 0, got " +
                        std::to_string(impl_->clip_norm) + "; clip_value can be used");
  if (impl_->moments != f32 && impl_->moments != bf16)
    throw ArgumentError(impl_->name + ": moments must be f32 or bf16, got " + std::string(name_of(impl_->moments)) +
                        " (f16 is too narrow for the squares of small gradients)");
  for (const ParameterGroup& group : groups) {
    if (group.options.adapts && !common.adapts)
      throw ArgumentError(impl_->name + ": it has no option adapts, got a group with one");
    impl_->take_options(group.options, options);
  }
  impl_->take_parameters(groups, common.rounds_weights);
  for (const Array& parameter : impl_->parameters)
    if (impl_->moments == bf16 && parameter.dtype() == f64)
      throw ArgumentError(impl_->name + ": moments in bf16 are for f32 parameters, " + cell_name(parameter) + " is " +
                          std::string(name_of(parameter.dtype())));
  impl_->places = arena_places(impl_->parameters, impl_->parameter_groups);
  for (const auto& places : impl_->places) {
    std::vector<Array> members;
    members.reserve(places.size());
    for (const std::size_t place : places) members.push_back(impl_->parameters[place]);
    impl_->arena_groups.push_back(impl_->parameter_groups[places.front()]);
    impl_->arenas.emplace_back(members, impl_->name + " parameters " + std::to_string(impl_->arenas.size()));
  }
}

void Optimizer::Impl::take_options(const GroupOptions& own, std::span<const Option> options) {
  GroupOptions all;
  all.rate = own.rate.value_or(rate);
  require_range(name.c_str(), "rate", *all.rate, 0.0, HUGE_VAL);
  if (own.rate && *own.rate != rate && rate == 0.0)
    throw ArgumentError(name + ": a group's own rate is kept in proportion to the optimizer's, which is 0");
  all.adapts = own.adapts.value_or(true);
  for (const Option& option : options) {
    const double value = (own.*option.member).value_or(option.value);
    require_range(name.c_str(), option.name, value, option.low, option.high);
    all.*option.member = value;
  }
  for (const NamedMember& named : kMembers)
    if (own.*named.member && !(all.*named.member))
      throw ArgumentError(name + ": it has no option " + named.name + ", got a group with one");
  keeps_momentum.push_back(all.momentum && *all.momentum > 0.0);
  groups.push_back(all);
}

void Optimizer::Impl::take_parameters(std::span<const ParameterGroup> given, bool rounds_weights) {
  std::unordered_map<const void*, std::size_t> seen;
  for (std::size_t g = 0; g < given.size(); ++g) {
    for (const Array& parameter : given[g].parameters) {
      if (!is_cell(parameter)) throw ArgumentError(name + ": a parameter must be a cell, such as those of layers");
      if (parameter.dtype() == bf16 && !rounds_weights)
        throw ArgumentError(name + ": " + cell_name(parameter) +
                            " is bf16; Adam, AdamW, Sgd, RmsProp, Adagrad and Lion round such weights by chance");
      if (parameter.dtype() != f32 && parameter.dtype() != f64 && parameter.dtype() != bf16)
        throw ArgumentError(name + ": parameters are f32 or f64, " + cell_name(parameter) + " is " +
                            std::string(name_of(parameter.dtype())));
      const auto [place, is_new] = seen.try_emplace(parameter.node().get(), g);
      if (place->second != g) throw ArgumentError(name + ": " + cell_name(parameter) + " is in two groups");
      if (!is_new) continue;
      parameters.push_back(parameter);
      parameter_groups.push_back(g);
    }
  }
  if (parameters.empty()) throw ArgumentError(name + ": needs at least one parameter");
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

const std::string& Optimizer::name() const { return impl_->name; }
void Optimizer::set_allow_unused(bool is_allowed) { impl_->allows_unused = is_allowed; }
GradientOptions Optimizer::gradient_options() const { return {.allow_unused = impl_->allows_unused}; }
const std::vector<Array>& Optimizer::parameters() const { return impl_->parameters; }
const std::vector<ParameterArena>& Optimizer::arenas() const { return impl_->arenas; }
bool Optimizer::releases_gradients() const { return impl_->releases_gradients; }
std::size_t Optimizer::group_count() const { return impl_->groups.size(); }
const GroupOptions& Optimizer::group(std::size_t index) const { return impl_->groups.at(index); }
std::size_t Optimizer::group_of_arena(std::size_t arena) const { return impl_->arena_groups.at(arena); }
const GroupOptions& Optimizer::options_of(std::size_t arena) const { return group(group_of_arena(arena)); }
double Optimizer::rate_of(std::size_t arena) const { return rate(group_of_arena(arena)); }
const GradientNorm& Optimizer::gradient_norm() const { return impl_->gradient_norm; }
double Optimizer::rate() const { return impl_->rate; }
std::int64_t Optimizer::step_count() const { return impl_->step_count; }

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
  const double own = *impl_->groups.at(group).rate;
  return own == impl_->first_rate ? impl_->rate : impl_->rate * (own / impl_->first_rate);
}

void Optimizer::set_rate(double rate) {
  require_range(impl_->name.c_str(), "rate", rate, 0.0, HUGE_VAL);
  impl_->rate = rate;
  impl_->schedule = nullptr;
}

void Optimizer::set_schedule(std::function<double(std::int64_t)> schedule) {
  impl_->schedule = std::move(schedule);
  impl_->follow_schedules();
}

void Optimizer::watch_gradient_norm(bool is_on) {
  if (is_on && impl_->releases_gradients)
    throw ArgumentError(impl_->name +
                        ": release_gradients never has all gradients at once, so their norm is not there");
  impl_->watches_norm = is_on;
}

std::optional<double> GroupOptions::*Optimizer::Impl::momentum_member() const {
  return groups.front().momentum ? &GroupOptions::momentum : &GroupOptions::beta1;
}

std::optional<double> Optimizer::momentum() const { return impl_->groups.front().*impl_->momentum_member(); }

bool Optimizer::has_momentum() const {
  return momentum() &&
         (!impl_->groups.front().momentum ||
          std::find(impl_->keeps_momentum.begin(), impl_->keeps_momentum.end(), false) == impl_->keeps_momentum.end());
}

void Optimizer::set_momentum(double momentum) {
  require_range(impl_->name.c_str(), "momentum", momentum, 0.0, 1.0);
  set_momentum_schedule([momentum](std::int64_t) { return momentum; });
  impl_->momentum_schedule = nullptr;
}

void Optimizer::set_momentum_schedule(std::function<double(std::int64_t)> schedule) {
  if (schedule && !this->momentum()) throw ArgumentError(impl_->name + ": it has neither momentum nor beta1");
  if (schedule && !has_momentum())
    throw ArgumentError(impl_->name + ": was made with momentum 0, which keeps no buffers and cannot change then");
  impl_->momentum_schedule = std::move(schedule);
  impl_->follow_schedules();
}

void Optimizer::Impl::follow_schedules() {
  if (schedule) rate = schedule(step_count);
  if (!momentum_schedule) return;
  const double momentum = momentum_schedule(step_count);
  require_range(name.c_str(), "momentum", momentum, 0.0, 1.0);
  for (GroupOptions& group : groups) group.*momentum_member() = momentum;
}

void Optimizer::set_step_count(std::int64_t count) {
  if (count < 0) throw ArgumentError(impl_->name + ": the step count must be at least 0, got " + std::to_string(count));
  impl_->step_count = count;
  impl_->follow_schedules();
}

StateDict Optimizer::state_dict() const {
  StateDict result{state(), {{"step_count", static_cast<double>(impl_->step_count)}, {"rate", impl_->rate}}};
  if (impl_->skipped.defined()) result.numbers.push_back({"skipped_steps", impl_->skipped.value()});
  for (std::size_t g = 0; g < impl_->groups.size(); ++g)
    if (const auto& value = impl_->groups[g].*impl_->momentum_member())
      result.numbers.push_back({group_number("momentum", g), *value});
  return result;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const double count = number_of(impl_->name.c_str(), state, "step_count"),
               rate = number_of(impl_->name.c_str(), state, "rate");
  require_range(impl_->name.c_str(), "step_count", count, 0.0, 0x1p53);
  require_range(impl_->name.c_str(), "rate", rate, 0.0, HUGE_VAL);
  std::vector<double> momenta;
  for (std::size_t g = 0; g < impl_->groups.size(); ++g)
    if (impl_->groups[g].*impl_->momentum_member())
      momenta.push_back(number_of(impl_->name.c_str(), state, group_number("momentum", g)));
  load_arrays(impl_->name.c_str(), this->state(), state.arrays);
  for (std::size_t g = 0; g < momenta.size(); ++g) impl_->groups[g].*impl_->momentum_member() = momenta[g];
  impl_->rate = rate;
  set_step_count(static_cast<std::int64_t>(count));
  const auto skipped = std::find_if(state.numbers.begin(), state.numbers.end(),
                                    [](const StateNumber& number) { return number.name == "skipped_steps"; });
  if (skipped != state.numbers.end())
    set_skipped_steps(static_cast<std::int64_t>(skipped->value));
  else
    impl_->skipped = {};
}

std::vector<Array> Optimizer::flat_gradients(const Array& loss, const GradientMap& map) const {
  std::vector<Array> all = gradients(loss, impl_->parameters, gradient_options());
  for (std::size_t i = 0; map && i < all.size(); ++i) all[i] = map(i, all[i]);
  return flat_gradients(all);
}

std::vector<Array> Optimizer::flat_gradients(std::span<const Array> gradients) const {
  if (gradients.size() != impl_->parameters.size())
    throw ArgumentError(impl_->name + ": needs one gradient for each of " + std::to_string(impl_->parameters.size()) +
                        " parameters, got " + std::to_string(gradients.size()));
  std::vector<Array> flat;
  for (std::size_t i = 0; i < impl_->arenas.size(); ++i) {
    std::vector<Array> members;
    members.reserve(impl_->places[i].size());
    for (const std::size_t place : impl_->places[i]) members.push_back(gradients[place]);
    flat.push_back(impl_->arenas[i].pack(members, impl_->releases_gradients));
  }
  return flat;
}

void Optimizer::step(const Array& loss) {
  run([&] { return StepParts{flat_gradients(loss)}; });
}

void Optimizer::step(const Array& loss, const GradientSource& source) {
  if (!source) return step(loss);
  run([&] { return StepParts{source(loss, {})}; });
}

void Optimizer::step(std::span<const Array> gradients) {
  run([&] { return StepParts{flat_gradients(gradients)}; });
}

void Optimizer::step_flat(std::span<const Array> gradients) {
  if (impl_->releases_gradients)
    throw ArgumentError(impl_->name +
                        ": release_gradients never has a flat gradient; use step(loss), or step_flat without it");
  if (gradients.size() != impl_->arenas.size())
    throw ArgumentError(impl_->name + ": needs one flat gradient for each of " + std::to_string(impl_->arenas.size()) +
                        " arenas, got " + std::to_string(gradients.size()));
  run([&] { return StepParts{{gradients.begin(), gradients.end()}}; });
}

std::vector<Array> Optimizer::all_updates(StepParts parts) {
  std::vector<Array>& gradients = parts.gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].dtype() != compute_dtype(i)) gradients[i] = astype(gradients[i], compute_dtype(i));
  const Array& is_taken = parts.is_taken;
  if (is_taken.defined() && !impl_->skipped.defined()) set_skipped_steps(0);
  if (impl_->maximize)
    for (Array& gradient : gradients) gradient = -gradient;
  if (impl_->clip_value > 0.0) gradients = clip_by_value(gradients, impl_->clip_value);
  std::vector<Array> all = std::move(parts.more);
  impl_->gradient_norm = {};
  if (impl_->clip_norm > 0.0 || impl_->watches_norm) {
    const GradientNorm norm(gradients);
    if (impl_->clip_norm > 0.0) gradients = clip_by_global_norm(gradients, impl_->clip_norm, norm);
    if (impl_->watches_norm) {
      impl_->gradient_norm = norm;
      all.insert(all.end(), norm.squares().begin(), norm.squares().end());
    }
  }
  impl_->is_taken = is_taken;
  for (std::size_t i = 0; i < impl_->arenas.size(); ++i)
    for (const CellUpdate& one : updates_of_share(i, gradients[i])) {
      const Array value = is_taken.defined() && one.cell.defined() ? where(is_taken, one.value, one.cell) : one.value;
      all.push_back(one.cell.defined() ? update(one.cell, value) : value);
    }
  impl_->is_taken = {};
  if (is_taken.defined()) all.push_back(update(impl_->skipped, where(is_taken, impl_->skipped, impl_->skipped + 1.0)));
  return all;
}

void Optimizer::run(const std::function<StepParts()>& parts) {
  static const Label kLabel("optimizer");
  const ProfileScope scope(kLabel);
  // Two statements, so that only the updates have handles when they are evaluated: what else had one would get memory
  // of its own.
  const std::vector<Array> all = all_updates(parts());
  eval(all);
  if (impl_->shard.spread) impl_->shard.spread();
  ++impl_->step_count;
  impl_->follow_schedules();
}

Array Optimizer::steps_taken() const {
  return impl_->skipped.defined() ? static_cast<double>(impl_->step_count + 1) - impl_->skipped : Array();
}

std::int64_t Optimizer::skipped_steps() const {
  return impl_->skipped.defined() ? static_cast<std::int64_t>(impl_->skipped.value()) : 0;
}

void Optimizer::set_skipped_steps(std::int64_t count) {
  if (count < 0)
    throw ArgumentError(impl_->name + ": the number of skipped steps must be at least 0, got " + std::to_string(count));
  const Array number = full({1}, static_cast<double>(count));
  if (impl_->skipped.defined())
    assign(impl_->skipped, number);
  else
    impl_->skipped = cell(number, impl_->name + " skipped steps");
}

}  // namespace samebytes::optim
