// Mistral (A. Jiang et al., "Mistral 7B", 2023): a Llama whose tokens see a window.
#include "models/architectures.h"
#include "models/decoder.h"

namespace samebytes::models {

Architecture mistral() {
  return {{"mistral"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            DecoderOptions options = decoder_of(config);
            DecoderLayerOptions layer = options.layer(0);
            layer.attention.bias = layer.attention.result_bias = false;
            layer.attention.window = config.integer("sliding_window", 0);
            options.layer = [layer](std::int64_t) { return layer; };
            return std::make_unique<Decoder>(config, weights, options);
          }};
}

}  // namespace samebytes::models
