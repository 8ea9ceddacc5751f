#include "cli/techniques.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace samebytes::cli {
namespace {

constexpr double kMoreRecomputation = 0.3;  // of a step's cost, by launches of the plan's own

bool is_allowed(const Options& options, const char* technique) {
  const auto& allowed = options.limit.allowed;
  return std::find(allowed.begin(), allowed.end(), technique) != allowed.end();
}

// From what costs least: pointwise values, the chunked head, checkpointing beside it.
Tool recomputation(const Options& options, const Subject& subject) {
  struct Level {
    const char* text;
    const char* checkpointing;  // null: as it is
    bool cuts_head;
  };
  const bool may_cut = subject.has_head && !options.head.is_chunked(), may_divide = options.step.checkpointing == "off";
  std::vector<Level> levels{{"recomputation of pointwise values", nullptr, false}};
  if (may_cut) levels.push_back({"chunked head", nullptr, true});
  if (may_divide) {
    levels.push_back(
        {may_cut ? "gradient checkpointing sqrt, chunked head" : "gradient checkpointing sqrt", "sqrt", may_cut});
    levels.push_back(
        {may_cut ? "gradient checkpointing block, chunked head" : "gradient checkpointing block", "block", may_cut});
  }
  Technique technique{"recomputation", {}};
  for (const Level& level : levels) technique.levels.emplace_back(level.text);
  return {technique, [levels](Options& o, int level) {
            const Level& taken = levels[static_cast<std::size_t>(level - 1)];
            o.limit.recompute = kMoreRecomputation;
            if (taken.checkpointing) o.step.checkpointing = taken.checkpointing;
            if (taken.cuts_head) o.head.chunks = HeadOptions::kAutomatic;
          }};
}

// Where nothing else keeps all gradients, that of a head which is also the embedding is the largest one for long.
std::optional<Tool> release(const Options& options, const Subject& subject) {
  Technique technique{"gradient release", {}};
  const bool may_release = !options.release_gradients, may_delay = subject.has_head && !options.head.is_late;
  if (may_release) technique.levels.emplace_back("gradient release");
  if (may_delay)
    technique.levels.emplace_back(may_release ? "gradient release, late head gradient" : "late head gradient");
  if (technique.levels.empty()) return {};
  const int first_late = may_release ? 2 : 1;
  return Tool{technique, [first_late](Options& o, int level) {
                o.release_gradients = true;
                if (level < first_late) return;
                o.head.is_late = true;
                if (!o.head.is_chunked()) o.head.chunks = HeadOptions::kAutomatic;
              }};
}

std::vector<std::string> precision_levels(bool is_training) {
  std::vector<std::string> levels{"precision bf16"};
  if (is_training) levels.emplace_back("precision bf16 with weights in bf16 alone");
  return levels;
}

}  // namespace

std::vector<Tool> techniques_for(const Options& options, const Subject& subject) {
  std::vector<Tool> tools;
  const std::int64_t batch = subject.batch;
  if (subject.is_training) {
    tools.push_back(recomputation(options, subject));
    if (!options.step.micro_batch && !options.adaptive.is_on && batch > 1) {
      Technique pieces{"micro-batches", {}};
      for (std::int64_t size = batch / 2; size > 0; size /= 2)
        pieces.levels.push_back(fmt::format("micro-batches of {}", size));
      tools.push_back(
          {pieces, [batch](Options& o, int level) { o.step.micro_batch = std::max<std::int64_t>(1, batch >> level); }});
    }
    if (std::optional<Tool> tool = release(options, subject)) tools.push_back(std::move(*tool));
    if (options.moments == "f32" && is_allowed(options, "moments"))
      tools.push_back({{"16-bit moments", {"moments in bf16"}}, [](Options& o, int) { o.moments = "bf16"; }});
  }
  if (options.precision == "f32" && is_allowed(options, "precision"))
    tools.push_back({{"precision", precision_levels(subject.is_training)}, [](Options& o, int level) {
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
