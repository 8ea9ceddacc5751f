// What modules.cpp and lora.cpp share: named arrays of modules in files, converted at the door.
#pragma once

#include <span>
#include <string>

#include "samebytes/io/modules.h"

namespace samebytes::io {

// As save() and load() of a module with this state.
void save_state(const std::string& path, std::span<const nn::NamedArray> state, const Metadata& metadata);
LoadReport load_state(const TensorFile& file, std::span<const nn::NamedArray> state, const LoadOptions& options);

}  // namespace samebytes::io
