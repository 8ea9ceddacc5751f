// LoRA: low-rank adapters beside the linear layers of a frozen network (E. Hu et al., "LoRA: Low-rank adaptation of
// large language models", 2021, section 4.1), with the names and semantics of Hugging Face's PEFT. Only the adapters
// are trained: the weights of the network get no gradients and no optimizer state and stay bit for bit the same.
//   io::load("gpt2.safetensors", net, {.strict = false});
//   nn::apply_lora(net, {.rank = 8, .alpha = 16, .targets = {"c_attn"}});
//   optim::AdamW adam(net.parameters(), {.rate = 1e-3});  // after apply_lora(): only the adapters
//   ...
//   io::save_lora("adapters.safetensors", net);
//   nn::merge_lora(net);                                  // the same network with plain weights
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct LoraOptions {
  std::int64_t rank = 8;         // r
  double alpha = 8.0;            // lora_alpha: scales the adapters' output by alpha / rank
  double dropout = 0.0;          // lora_dropout: on the adapters' input, in training mode
  bool rank_stabilized = false;  // use_rslora: scales by alpha / sqrt(rank) instead (D. Kalajdzievski, 2023)
  // target_modules: full names of linear layers ("h.0.attn.c_attn") or their endings after a dot ("c_attn",
  // "attn.c_proj"), or "all-linear". Empty: the projection of queries, keys and values of each attention (c_attn of a
  // GPT, in_proj of others); every linear layer if the model has no attention.
  std::vector<std::string> targets = {};
  // modules_to_save: layers that are trained in full, without adapters, such as a new head; named as in targets.
  std::vector<std::string> modules_to_save = {};
};

// The adapter of a linear layer: x [..., in] -> scale B A dropout(x) [..., out]. lora_A.weight A [rank, in] starts
// uniform in +-1 / sqrt(in) (kaiming_uniform_ with a = sqrt(5)) and lora_B.weight B [out, rank] as 0, so that the
// network computes the same at first. apply_lora() makes adapters; layers that share a weight share its adapter.
class Lora final : public Module {
 public:
  // An adapter for a weight [out, in]. Throws ArgumentError for a weight that is not a matrix, a rank below 1, an alpha
  // that is not above 0 and a dropout outside [0, 1).
  Lora(const Array& weight, const LoraOptions& options);
  Array forward(const Array& x) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Lora"; }
  std::string describe() const override;

  const LoraOptions& options() const { return options_; }
  double scale() const { return scale_; }
  const Array& a() const { return a_; }
  const Array& b() const { return b_; }
  // Whether the layer's weight includes scale B A; the layer then does not add the adapter's output.
  bool is_merged() const { return is_merged_; }
  // Adds scale B A to the weight, or subtracts it again; a second call has no effect.
  void merge(const Array& weight) { set_merged(weight, true); }
  void unmerge(const Array& weight) { set_merged(weight, false); }

 private:
  void set_merged(const Array& weight, bool merged);
  LoraOptions options_;
  double scale_;
  Parameter a_, b_;
  bool is_merged_ = false;
};

// x weight^T + bias, plus the adapter's output if there is one: what layers with a projection (Visitor::projection)
// compute. A quantized weight (quantize.h) multiplies in int8.
Array adapted_linear(const Array& x, const Parameter& weight, const Array& bias, const std::shared_ptr<Lora>& adapter);

struct LoraReport {
  std::vector<std::string> layers;  // with adapters, "h.0.attn.c_attn"
  std::int64_t trainable = 0;       // number of values in adapters and modules_to_save
  std::int64_t all = 0;             // ... and in all parameters
  std::string to_text() const;      // "294,912 of 124,734,720 parameters are trained (0.24 %), in 12 layers"
};
// Freezes the model and gives adapters to its linear layers: Linear, the projections of attention, the networks of
// transformer blocks, and what the user's own modules name by Visitor::projection. Call it before the optimizer is
// made. Batch norms still update their running statistics in training mode, as in PEFT. Throws ArgumentError for
// options out of range, for a target or module to save that matches nothing (the message lists the available names),
// and for a model that already has adapters.
LoraReport apply_lora(Module& model, const LoraOptions& options = {});

// Adds every adapter to its weight, W + scale B A (PEFT's merge_adapter): the network computes the same to within
// rounding and costs what it did without adapters. Merged adapters have no effect and are not trained. unmerge_lora
// subtracts them again, which restores the weights to within rounding. Both throw ArgumentError if the model has no
// adapters.
void merge_lora(Module& model);
void unmerge_lora(Module& model);
// Removes the adapters; merged ones keep their effect in the weights (PEFT's unload, and merge_and_unload after
// merge_lora). All parameters are trainable again.
void unload_lora(Module& model);
bool has_lora(Module& model);

// The options that the model's adapters were made with. Throws ArgumentError if it has none.
const LoraOptions& lora_options(Module& model);
// The values that training changes, by name: the adapters ("h.0.attn.c_attn.lora_A.weight"), other parameters that are
// not frozen, and running statistics. Throws ArgumentError if the model has no adapters.
std::vector<NamedArray> lora_state(const Module& model);

}  // namespace samebytes::nn
