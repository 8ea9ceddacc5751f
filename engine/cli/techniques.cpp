#include "cli/techniques.h"

#include <fmt/format.h>

#include <algorithm>

namespace samebytes::cli {
namespace {

constexpr double kMoreRecomputation = 0.3;  // of a step's cost, by launches of the plan's own

bool is_allowed(const Options& options, const char* technique) {
  const auto& allowed = options.limit.allowed;
  return std::find(allowed.begin(), allowed.end(), technique) != allowed.end();
}

std::vector<std::string> precision_levels(bool is_training) {
  std::vector<std::string> levels{"precision bf16"};
  if (is_training) levels.emplace_back("precision bf16 with weights in bf16 alone");
  return levels;
}

}  // namespace

std::vector<Tool> techniques_for(const Options& options, std::int64_t batch, bool is_training) {
  std::vector<Tool> tools;
  if (is_training) {
    const bool may_divide = options.step.checkpointing == "off";
    std::vector<std::string> levels{"recomputation of pointwise values"};
    if (may_divide) levels.insert(levels.end(), {"gradient checkpointing sqrt", "gradient checkpointing block"});
    tools.push_back({{"recomputation", levels}, [](Options& o, int level) {
                       o.limit.recompute = kMoreRecomputation;
                       if (level > 1) o.step.checkpointing = level == 2 ? "sqrt" : "block";
                     }});
    if (!options.step.micro_batch && !options.adaptive.is_on && batch > 1) {
      Technique pieces{"micro-batches", {}};
      for (std::int64_t size = batch / 2; size > 0; size /= 2)
        pieces.levels.push_back(fmt::format("micro-batches of {}", size));
      tools.push_back(
          {pieces, [batch](Options& o, int level) { o.step.micro_batch = std::max<std::int64_t>(1, batch >> level); }});
    }
    if (!options.release_gradients)
      tools.push_back(
          {{"gradient release", {"gradient release"}}, [](Options& o, int) { o.release_gradients = true; }});
    if (options.moments == "f32" && is_allowed(options, "moments"))
      tools.push_back({{"16-bit moments", {"moments in bf16"}}, [](Options& o, int) { o.moments = "bf16"; }});
  }
  if (options.precision == "f32" && is_allowed(options, "precision"))
    tools.push_back({{"precision", precision_levels(is_training)}, [](Options& o, int level) {
                       o.precision = "bf16";
                       if (level > 1) o.weights = "bf16";
                     }});
  return tools;
}

std::string what_stands_in_the_way(const Options& options, double clip_norm, bool is_training) {
  if (is_training && !options.release_gradients && clip_norm > 0)
    return "gradient release does not go with clipping by norm; --clip-norm 0 turns that off";
  return {};
}

}  // namespace samebytes::cli
