// LoRA on published models (pretrained.h), as Hugging Face's PEFT does it: which layers of a family get adapters, and
// PEFT's folders with adapter_config.json and adapter_model.safetensors. nn/lora.h has the adapters themselves, merging
// and removing.
//   auto model = models::from_pretrained("Qwen2.5-0.5B");
//   models::apply_lora(*model, {.rank = 16, .alpha = 32});
//   optim::AdamW adam(model->parameters(), {.rate = 2e-4});  // the adapters
//   ...
//   models::save_lora("adapters", *model);                   // PeftModel.from_pretrained(base, "adapters")
//   nn::merge_lora(*model);
//   models::save_pretrained("mine", *model);
#pragma once

#include <string>
#include <vector>

#include "samebytes/models/pretrained.h"
#include "samebytes/nn/lora.h"

namespace samebytes::models {

// The layers that get adapters where options have no targets: PEFT's defaults (q_proj and v_proj of a Llama), and the
// same kind of layers where PEFT has no default: queries and values of SmolLM3, DistilBERT, ViT and DeiT, Phi-3's
// qkv_proj. Empty for a family without attention.
std::vector<std::string> lora_targets(const Pretrained& model);

// nn::apply_lora() with these defaults; "all-linear" is every linear layer but those over the vocabulary or the labels,
// as in PEFT. Throws ArgumentError as nn::apply_lora() does, and for empty targets of a family without attention.
nn::LoraReport apply_lora(Pretrained& model, const nn::LoraOptions& options = {});

// Writes adapter_model.safetensors and adapter_config.json into the folder, which it makes. `base` is the name or
// folder of the model without adapters, which the config tells PEFT. Each file is replaced as a whole. Throws
// ArgumentError for a model without adapters, IoError as io::save_lora() does.
void save_lora(const std::string& folder, Pretrained& model, const std::string& base = "");

// Reads such a folder; a model without adapters gets them first, so call it before the optimizer is made. Throws
// IoError as io::load_lora() does.
void load_lora(const std::string& folder, Pretrained& model);

// Writes the model of `base`, a folder or a GGUF file, with the adapters of a folder merged into its weights into
// `folder`, as save_pretrained() does, and the files of its tokenizer beside it; quantised matrices are f16 then.
// Throws IoError, and ArgumentError as nn::merge_lora() does.
void save_merged(const std::string& folder, const std::string& base, const std::string& adapters);

}  // namespace samebytes::models
