// Qwen2, 2.5 and 3 (A. Yang et al., "Qwen2 technical report", 2024; "Qwen3 technical report", 2025). Qwen2 has biases
// of queries, keys and values; Qwen3 norms of their heads instead. Later layers may have a window.
#include "models/architectures.h"
#include "models/decoder.h"

namespace samebytes::models {

Architecture qwen() {
  return {{"qwen2", "qwen3"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            const bool is_third = config.text("model_type") == "qwen3";
            DecoderOptions options = decoder_of(config);
            DecoderLayerOptions layer = options.layer(0);
            if (is_third) {
              layer.attention.head_norm = NormKind::rms;
            } else {
              layer.attention.bias = true;
              layer.attention.result_bias = false;
            }
            const std::int64_t window =
                config.flag("use_sliding_window", false) ? config.integer("sliding_window", 0) : 0;
            const std::int64_t first = config.integer("max_window_layers", 28);
            const std::vector<std::string> types = config.texts("layer_types");
            options.layer = [layer, window, first, types](std::int64_t i) {
              DecoderLayerOptions one = layer;
              const auto at = static_cast<std::size_t>(i);
              if (at < types.size() ? types[at] == "sliding_attention" : i >= first) one.attention.window = window;
              return one;
            };
            return std::make_unique<Decoder>(config, weights, options);
          }};
}

}  // namespace samebytes::models
