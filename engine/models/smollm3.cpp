// SmolLM3 (Hugging Face, 2025): a Llama in which every fourth layer knows no positions (B. Yang et al., "RoPE to NoPE
// and back again", 2025).
#include "models/architectures.h"
#include "models/decoder.h"

namespace samebytes::models {

Architecture smollm3() {
  return {{"smollm3"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            DecoderOptions options = decoder_of(config, 2000000.0);
            const DecoderLayerOptions layer = options.layer(0);
            const std::vector<double> has_rope = config.numbers("no_rope_layers");  // 1 where a layer has positions
            const std::int64_t interval = config.size("no_rope_layer_interval", 4);
            const std::vector<std::string> types = config.texts("layer_types");
            const std::int64_t window =
                config.flag("use_sliding_window", false) ? config.integer("sliding_window", 0) : 0;
            options.layer = [=](std::int64_t i) {
              DecoderLayerOptions one = layer;
              const auto at = static_cast<std::size_t>(i);
              if (at < has_rope.size() ? has_rope[at] == 0 : (i + 1) % interval == 0) one.attention.rope.reset();
              if (at < types.size() && types[at] == "sliding_attention") one.attention.window = window;
              return one;
            };
            return std::make_unique<Decoder>(config, weights, options);
          }};
}

}  // namespace samebytes::models
