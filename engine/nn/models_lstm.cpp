// The recurrent classifier of models.h.
#include "samebytes/models.h"
#include "samebytes/ops.h"

namespace samebytes::models {

LstmClassifier::LstmClassifier(const LstmClassifierOptions& options)
    : lstm_({.in = options.in,
             .hidden = options.hidden,
             .layers = options.layers,
             .dropout = options.layers > 1 ? options.dropout : 0.0,
             .bidirectional = options.bidirectional}),
      dropout_({.p = static_cast<float>(options.dropout)}),
      fc_({.in = options.hidden * (options.bidirectional ? 2 : 1), .out = options.classes}) {}

Array LstmClassifier::forward(const Input& x, const Input& lengths) {
  const Array states = lstm_.run(x, {}, lengths).state.h;  // [layers * directions, N, H]
  const std::int64_t last = states.shape()[0] - 1;
  const auto state = [&](std::int64_t i) { return squeeze(slice(states, 0, i, i + 1), 0); };
  const Array top = lstm_.options().bidirectional ? concat({state(last - 1), state(last)}, 1) : state(last);
  return fc_(dropout_(top));
}

Array LstmClassifier::forward_all(std::span<const Array> inputs) {
  return inputs.size() == 2 ? forward(inputs[0], inputs[1]) : Module::forward_all(inputs);
}

void LstmClassifier::visit(nn::Visitor& visitor) {
  visitor.child("lstm", lstm_);
  visitor.child("fc", fc_);
}

LstmClassifier lstm_classifier(const LstmClassifierOptions& options) { return LstmClassifier(options); }

}  // namespace samebytes::models
