// Networks for inference in 8-bit integers. Linear layers, the projections of attention, the networks of transformer
// blocks and convolutions of one group in one or two dimensions keep an i8 form of their weight, with a scale for each
// result channel, and multiply by the CPU's instructions for it (ops/int8.h); everything between them stays f32.
//   net.eval();
//   nn::quantize(net, {batch0, batch1});   // ranges of the inputs from these; without any, from each input itself
//   const Array y = net(x);
// Accuracy before and after: docs/precision.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/nn/module.h"
#include "samebytes/ops/int8.h"

namespace samebytes::nn {

struct QuantizeOptions {
  // Layers that stay as they are: full names ("layer4.1.conv2"), or their endings after a dot ("head"), as the targets
  // of LoRA. Names that match nothing are an error.
  std::vector<std::string> skip = {};
};

struct QuantizeReport {
  struct Layer {
    std::string name;
    Shape weight;
    std::optional<Int8Range> range;  // nothing: each row or image has its own
  };
  std::vector<Layer> layers;
  std::vector<std::string> kept;  // skipped ones, and those in groups or of more than 65536 products a sum
  std::int64_t bytes = 0;         // of the i8 forms, which stand beside the weights
  std::string to_text() const;    // "21 layers multiply in int8 (11.7 MB), 1 does not: conv1"
};

// Dynamic: an input's range is taken when it comes, for each row of a product and each image of a convolution.
QuantizeReport quantize(Module& model, const QuantizeOptions& options = {});
// Static: calls the model with each batch, without gradients, and takes for each layer the range that its inputs had;
// faster, and a batch's companions change nothing either. Throws ArgumentError where a layer saw no input.
QuantizeReport quantize(Module& model, std::span<const Array> calibration, const QuantizeOptions& options = {});
QuantizeReport quantize(Module& model, std::initializer_list<Array> calibration, const QuantizeOptions& options = {});
// The same for models that are called otherwise: `run` calls it as often as it likes.
QuantizeReport quantize(Module& model, const std::function<void()>& run, const QuantizeOptions& options = {});
// All of them put the model into evaluation mode. They throw ArgumentError for a model that is quantized, has adapters
// (merge_lora() and unload_lora() first) or has no such layer, and change nothing then. A forward pass throws where a
// weight was overwritten since: its i8 form would be another network's.

// Back to the weights, which were there all the time.
void dequantize(Module& model);
bool is_quantized(Module& model);

}  // namespace samebytes::nn
