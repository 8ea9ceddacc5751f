// Phi-3 (M. Abdin et al., "Phi-3 technical report", 2024): one projection for queries, keys and values, one for both
// halves of the network, LongRoPE for long texts.
#include "models/architectures.h"
#include "models/decoder.h"

namespace samebytes::models {

Architecture phi3() {
  return {{"phi3"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            DecoderOptions options = decoder_of(config);
            DecoderLayerOptions layer = options.layer(0);
            layer.attention.bias = layer.attention.result_bias = false;
            layer.attention.fused = "qkv_proj";
            layer.attention.window = config.integer("sliding_window", 0);
            layer.network.gate.clear();
            layer.network.up = "gate_up_proj";
            layer.network.fused = true;
            layer.network.bias = false;
            options.layer = [layer](std::int64_t) { return layer; };
            return std::make_unique<Decoder>(config, weights, options);
          }};
}

}  // namespace samebytes::models
