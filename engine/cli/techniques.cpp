#include "cli/techniques.h"

#include <algorithm>

namespace samebytes::cli {
namespace {

constexpr double kMoreRecomputation = 0.3;  // of a step's cost, by launches of the plan's own

bool is_allowed(const Options& options, const char* technique) {
  const auto& allowed = options.limit.allowed;
  return std::find(allowed.begin(), allowed.end(), technique) != allowed.end();
}

}  // namespace

std::vector<Tool> techniques_for(const Options& options, std::int64_t batch, bool is_training) {
  std::vector<Tool> tools;
  (void)batch;
  if (is_training) {
    tools.push_back({{"recomputation", {"recomputation of pointwise values"}},
                     [](Options& o, int) { o.limit.recompute = kMoreRecomputation; }});
    if (!options.release_gradients)
      tools.push_back(
          {{"gradient release", {"gradient release"}}, [](Options& o, int) { o.release_gradients = true; }});
  }
  if (options.precision == "f32" && is_allowed(options, "precision"))
    tools.push_back({{"precision", {"precision bf16"}}, [](Options& o, int) { o.precision = "bf16"; }});
  return tools;
}

std::string what_stands_in_the_way(const Options& options, double clip_norm, bool is_training) {
  if (is_training && !options.release_gradients && clip_norm > 0)
    return "gradient release does not go with clipping by norm; --clip-norm 0 turns that off";
  return {};
}

}  // namespace samebytes::cli
