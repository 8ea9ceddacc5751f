// Shared by modules.cpp and lora.cpp: reads and writes named arrays of modules, with conversion.
#pragma once

#include <span>
#include <string>

#include "samebytes/io/modules.h"

namespace samebytes::io {

// As save() and load() for a module with this state.
void save_state(const std::string& path, std::span<const nn::NamedArray> state, const Metadata& metadata);
LoadReport load_state(const TensorFile& file, std::span<const nn::NamedArray> state, const LoadOptions& options);

}  // namespace samebytes::io
