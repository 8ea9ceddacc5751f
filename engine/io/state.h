// Shared by modules.cpp and lora.cpp: reads and writes named arrays of modules, with conversion.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "samebytes/io/modules.h"

namespace samebytes::io {

// As save() and load() for a module with this state; floating values as `dtype` where it is given.
void save_state(const std::string& path, std::span<const nn::NamedArray> state, const Metadata& metadata,
                std::optional<Dtype> dtype = {});
LoadReport load_state(const TensorFile& file, std::span<const nn::NamedArray> state, const LoadOptions& options);

}  // namespace samebytes::io
