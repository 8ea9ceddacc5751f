// Saves and loads adapters (nn/lora.h) in separate files, some megabytes beside a network of gigabytes, with PEFT's
// names: base_model.model.h.0.attn.c_attn.lora_A.weight. PEFT reads them and vice versa. Saving is atomic; loading
// changes no values unless it succeeds completely.
#pragma once

#include <string>

#include "samebytes/io/safetensors.h"
#include "samebytes/nn/lora.h"

namespace samebytes::io {

// Writes nn::lora_state(module), and the adapters' options as metadata ("r", "lora_alpha", ...). If the file is named
// adapter_model.safetensors, also writes adapter_config.json beside it, so PEFT can open the folder. Throws
// ArgumentError for a module without adapters, IoError as save().
void save_lora(const std::string& path, nn::Module& module, const Metadata& metadata = {{"format", "pt"}});

// The options that the file's adapters were made with, from its metadata or from adapter_config.json beside it. Throws
// IoError if neither has them.
nn::LoraOptions lora_options(const std::string& path);

// Reads the adapters. A module without adapters gets them first, by apply_lora(module, lora_options(path)), so call
// load_lora() before the optimizer is made. Throws IoError as load() does, and for a file whose adapters do not match
// the module's.
void load_lora(const std::string& path, nn::Module& module);

}  // namespace samebytes::io
