// Llama 2 and 3, TinyLlama, SmolLM2 (H. Touvron et al., "Llama 2", 2023; A. Grattafiori et al., "The Llama 3 herd of
// models", 2024): the plain form of decoder.h.
#include "models/architectures.h"
#include "models/decoder.h"

namespace samebytes::models {

Architecture llama() {
  return {{"llama"}, [](const Config& config, const Weights& weights) -> std::unique_ptr<Pretrained> {
            return std::make_unique<Decoder>(config, weights, decoder_of(config));
          }};
}

}  // namespace samebytes::models
