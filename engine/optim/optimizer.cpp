#include "samebytes/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

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

// Which parameters lie together: those of one dtype, in order, as many as fit into the largest allocation.
std::vector<std::vector<std::size_t>> group(const std::vector<Array>& parameters) {
  const auto largest = static_cast<std::int64_t>(
      std::min<std::size_t>(Engine::current().device().max_allocation_bytes, std::size_t{1} << 62));
  std::vector<std::vector<std::size_t>> groups;
  for (const Dtype dtype : {f32, f64}) {
    std::int64_t bytes = 0;
    bool open = false;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].dtype() != dtype) continue;
      if (!open || bytes + padded_bytes(parameters[i]) > largest) {
        groups.emplace_back();
        bytes = 0;
        open = true;
      }
      groups.back().push_back(i);
      bytes += padded_bytes(parameters[i]);
    }
  }
  return groups;
}

}  // namespace

Optimizer::Optimizer(const char* name, std::span<const Array> parameters, const Common& common)
    : name_(name),
      rate_(common.rate),
      clip_norm_(common.clip_norm),
      clip_value_(common.clip_value),
      releases_gradients_(common.release_gradients) {
  require_range(name, "rate", common.rate, 0.0, HUGE_VAL);
  require_range(name, "clip_norm", common.clip_norm, 0.0, HUGE_VAL);
  require_range(name, "clip_value", common.clip_value, 0.0, HUGE_VAL);
  if (releases_gradients_ && clip_norm_ > 0.0)
    throw ArgumentError(name_ +
                        ": release_gradients updates parameters before all gradients are there, so clip_norm must "
                        "be 0, " +
                        std::to_string(clip_norm_) + " came; clip_value can be used");
  std::unordered_set<const void*> seen;
  for (const Array& parameter : parameters) {
    if (!is_cell(parameter)) throw ArgumentError(name_ + ": a parameter must be a cell, such as those of layers");
    if (parameter.dtype() != f32 && parameter.dtype() != f64)
      throw ArgumentError(name_ + ": parameters are f32 or f64, " + cell_name(parameter) + " is " +
                          std::string(name_of(parameter.dtype())));
    if (seen.insert(parameter.node().get()).second) parameters_.push_back(parameter);
  }
  if (parameters_.empty()) throw ArgumentError(name_ + ": needs at least one parameter");
  places_ = group(parameters_);
  for (const auto& places : places_) {
    std::vector<Array> members;
    members.reserve(places.size());
    for (const std::size_t place : places) members.push_back(parameters_[place]);
    arenas_.emplace_back(members, name_ + " parameters " + std::to_string(arenas_.size()));
  }
}

void Optimizer::require_range(const char* name, const char* option, double value, double low, double high) {
  if (!(value >= low && value < high))
    throw ArgumentError(std::string(name) + ": " + option + " must be in [" + std::to_string(low) + ", " +
                        std::to_string(high) + "), " + std::to_string(value) + " came");
}

void Optimizer::set_rate(double rate) {
  require_range(name_.c_str(), "rate", rate, 0.0, HUGE_VAL);
  rate_ = rate;
  schedule_ = nullptr;
}

void Optimizer::set_schedule(std::function<double(std::int64_t)> schedule) {
  schedule_ = std::move(schedule);
  if (schedule_) rate_ = schedule_(step_count_);
}

void Optimizer::set_step_count(std::int64_t count) {
  if (count < 0) throw ArgumentError(name_ + ": the step count is at least 0, " + std::to_string(count) + " came");
  step_count_ = count;
  if (schedule_) rate_ = schedule_(step_count_);
}

std::vector<Array> Optimizer::flat_gradients(const Array& loss) const {
  return flat_gradients(gradients(loss, parameters_));
}

std::vector<Array> Optimizer::flat_gradients(std::span<const Array> gradients) const {
  if (gradients.size() != parameters_.size())
    throw ArgumentError(name_ + ": needs one gradient for each of " + std::to_string(parameters_.size()) +
                        " parameters, " + std::to_string(gradients.size()) + " came");
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
  run([&] { return flat_gradients(loss); });
}

void Optimizer::step(std::span<const Array> gradients) {
  run([&] { return flat_gradients(gradients); });
}

void Optimizer::step_flat(std::span<const Array> gradients) {
  if (releases_gradients_)
    throw ArgumentError(name_ +
                        ": release_gradients never has a flat gradient; use step(loss), or step_flat without it");
  if (gradients.size() != arenas_.size())
    throw ArgumentError(name_ + ": needs one flat gradient for each of " + std::to_string(arenas_.size()) +
                        " arenas, " + std::to_string(gradients.size()) + " came");
  run([&] { return std::vector<Array>(gradients.begin(), gradients.end()); });
}

std::vector<Array> Optimizer::all_updates(std::vector<Array> gradients) const {
  if (clip_value_ > 0.0) gradients = clip_by_value(gradients, clip_value_);
  if (clip_norm_ > 0.0) gradients = clip_by_global_norm(gradients, clip_norm_);
  std::vector<Array> all;
  for (std::size_t i = 0; i < arenas_.size(); ++i)
    for (Array& one : updates(i, gradients[i])) all.push_back(std::move(one));
  return all;
}

void Optimizer::run(const std::function<std::vector<Array>()>& gradients) {
  static const Label kLabel("optimizer");
  const ProfileScope scope(kLabel);
  // Two statements, so that only the updates have handles when they are evaluated: what else had one would get memory
  // of its own.
  const std::vector<Array> all = all_updates(gradients());
  eval(all);
  ++step_count_;
  if (schedule_) rate_ = schedule_(step_count_);
}

std::vector<Array> Optimizer::zeros_for_arenas(const char* name) const {
  std::vector<Array> cells;
  for (std::size_t i = 0; i < arenas_.size(); ++i)
    cells.push_back(arenas_[i].zeros_like(name_ + " " + name + " " + std::to_string(i)));
  return cells;
}

std::vector<StateArray> Optimizer::named(const char* name, const std::vector<Array>& cells) const {
  std::vector<StateArray> result;
  for (std::size_t i = 0; i < cells.size(); ++i) result.push_back({std::to_string(i) + "." + name, cells[i]});
  return result;
}

}  // namespace samebytes::optim
