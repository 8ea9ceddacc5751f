// Adapters (nn/lora.h) in files of their own, some megabytes beside a network of gigabytes, with PEFT's names:
// base_model.model.h.0.attn.c_attn.lora_A.weight. Either side reads the other's. Saving is atomic; loading changes no
// values unless all of it succeeds.
#pragma once

#include <string>

#include "samebytes/io/safetensors.h"
#include "samebytes/nn/lora.h"

namespace samebytes::io {

// Writes nn::lora_state(module), and the options of the adapters as words about the file ("r", "lora_alpha", ...).
// Where the file is named adapter_model.safetensors, adapter_config.json is written beside it, and PEFT opens the
// folder. Throws ArgumentError for a module without adapters, IoError as save().
void save_lora(const std::string& path, nn::Module& module, const Metadata& metadata = {{"format", "pt"}});

// The options that the file's adapters were made with: of its own words, or of adapter_config.json beside it. Throws
// IoError where neither has them.
nn::LoraOptions lora_options(const std::string& path);

// Reads the adapters; a module without any gets them first, by apply_lora(module, lora_options(path)), so load_lora()
// comes before the optimizer is made. Throws IoError as load() does, and for a file whose adapters are not those of the
// module.
void load_lora(const std::string& path, nn::Module& module);

}  // namespace samebytes::io
