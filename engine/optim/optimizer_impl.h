// What an Optimizer keeps, and what one step is made of: for the files that share its work, and for Accumulator and
// GradScaler, which take steps of their own.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

// Flat gradients, whether to take the step (bool [1]; an empty handle: always), and nodes that are evaluated with it.
struct Optimizer::StepParts {
  std::vector<Array> gradients;
  Array is_taken = {};
  std::vector<Array> more = {};
};

struct Optimizer::Impl {
  Impl(const char* optimizer, const Common& common)
      : name(optimizer),
        rate(common.rate),
        first_rate(common.rate),
        clip_norm(common.clip_norm),
        clip_value(common.clip_value),
        maximize(common.maximize),
        releases_gradients(common.release_gradients),
        moments(common.moments) {}
  void take_parameters(std::span<const ParameterGroup> given, bool rounds_weights);
  void take_options(const GroupOptions& own, std::span<const Option> options);
  void follow_schedules();
  std::optional<double> GroupOptions::*momentum_member() const;

  std::string name;
  double rate, first_rate;  // of the next step; of the options
  double clip_norm, clip_value;
  bool maximize, releases_gradients;
  bool allows_unused = false;
  bool watches_norm = false;
  GradientNorm gradient_norm;
  Dtype moments;
  Shard shard;
  bool shares_parameters = false;  // whole ones
  std::vector<std::pair<Array, Cut>> sharded_cells;
  std::function<double(std::int64_t)> schedule, momentum_schedule;
  std::int64_t step_count = 0;
  Array is_taken;  // bool [1] while the updates of a step with a scaler are made
  Array skipped;   // cell [1] of the number of skipped steps, once there is a scaler
  std::vector<GroupOptions> groups;
  std::vector<bool> keeps_momentum;  // of each group: made with a momentum above 0
  std::vector<Array> parameters;
  std::vector<std::size_t> parameter_groups;  // of each parameter
  std::vector<ParameterArena> arenas;
  std::vector<std::size_t> arena_groups;         // of each arena
  std::vector<std::vector<std::size_t>> places;  // of each arena's parameters in parameters
};

}  // namespace samebytes::optim
