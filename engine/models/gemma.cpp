// Gemma 2 and 3, text (Gemma Team, "Gemma 2", 2024; "Gemma 3 technical report", 2025): norms before and behind each
// part, a scaled embedding, GeGLU, layers with a window in turn with layers that see all. Gemma 2 caps scores and
// logits; Gemma 3 has norms of heads, and another base of its positions where there is a window.
#include <cmath>

#include "models/architectures.h"
#include "models/decoder.h"

namespace samebytes::models {
namespace {

constexpr const char* kWindowed = "sliding_attention";

// The positions of layers of this type: rope_parameters has a part for each, older files two bases.
std::shared_ptr<Rope> rope_of(const Config& config, std::int64_t depth, bool is_windowed) {
  const Config both = rope_section(config);
  const char* const type = is_windowed ? kWindowed : "full_attention";
  if (both.has(type)) return std::make_shared<Rope>(config, both.part(type), depth);
  if (!is_windowed) return std::make_shared<Rope>(config, both, depth, 1000000.0);
  // Scaling is not for windows, and config's rope_theta is the base of the others.
  const double base = config.number("rope_local_base_freq", 10000.0);
  const Config local = Config::parse(config.path(), "{\"rope_theta\": " + std::to_string(base) + "}");
  return std::make_shared<Rope>(config, local, depth);
}

std::unique_ptr<Pretrained> make(const Config& config, const Weights& weights) {
  const bool is_third = config.text("model_type") == "gemma3_text";
  if (config.flag("use_bidirectional_attention", false)) config.fail("use_bidirectional_attention", "false", "true");
  DecoderOptions options = decoder_of(config);
  DecoderLayerOptions layer = options.layer(0);
  layer.attention.depth = config.size("head_dim", 256);
  layer.attention.scale = 1 / std::sqrt(static_cast<double>(config.size("query_pre_attn_scalar", 256)));
  layer.attention.soft_cap = config.number("attn_logit_softcapping", 0.0);
  layer.network.activation = activation_of(config, "hidden_activation", "gelu_pytorch_tanh");
  layer.network.bias = false;
  layer.norm = options.norm = NormKind::rms_plus_one;
  layer.sandwich = true;
  if (is_third) layer.attention.head_norm = NormKind::rms_plus_one;
  options.soft_cap = config.number("final_logit_softcapping", 0.0);
  if (!(layer.attention.soft_cap >= 0 && options.soft_cap >= 0))
    config.fail("attn_logit_softcapping", "caps of 0 or more", "a negative one");
  options.embedding_scale = std::sqrt(static_cast<double>(options.width));
  const std::int64_t depth = layer.attention.depth, window = config.integer("sliding_window", 4096);
  const auto all =
      is_third ? rope_of(config, depth, false) : std::make_shared<Rope>(config, rope_section(config), depth);
  const auto near = is_third ? rope_of(config, depth, true) : all;
  options.ropes = {all, near};
  const std::vector<std::string> types = config.texts("layer_types");
  const std::int64_t pattern = is_third ? config.size("sliding_window_pattern", 6) : 2;
  options.layer = [=](std::int64_t i) {
    DecoderLayerOptions one = layer;
    const auto at = static_cast<std::size_t>(i);
    const bool is_windowed = at < types.size() ? types[at] == kWindowed : (i + 1) % pattern != 0;
    one.attention.rope = is_windowed ? near : all;
    if (is_windowed) one.attention.window = window;
    return one;
  };
  return std::make_unique<Decoder>(config, weights, options);
}

}  // namespace

Architecture gemma() { return {{"gemma2", "gemma3_text"}, make}; }

}  // namespace samebytes::models
