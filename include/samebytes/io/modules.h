// Saves and loads parameters and buffers of modules as safetensors files with PyTorch's names, shapes and order, so
// PyTorch reads them and vice versa: convolution weights are [out, in / groups, kh, kw] in the file and channels last
// in memory; the columns of a Linear after a Flatten run over (channel, position) in the file and (position, channel)
// in memory. Only these functions convert. Saving is atomic; loading changes nothing unless it succeeds completely.
#pragma once

#include <string>
#include <vector>

#include "samebytes/io/safetensors.h"
#include "samebytes/nn/module.h"

namespace samebytes::io {

// Waits for the parameters' last writers, then writes. Throws IoError as AtomicFile does; the old file then stays
// intact.
void save(const std::string& path, const nn::Module& module, const Metadata& metadata = {{"format", "pt"}});

struct LoadOptions {
  bool strict = true;  // false: skips and reports names that only one side has
};
struct LoadReport {
  std::vector<std::string> missing;     // in the module but not in the file
  std::vector<std::string> unexpected;  // in the file but not in the module; without PyTorch's num_batches_tracked and
                                        // the causal masks of published GPT-2 files
};

// Overwrites the module's parameters and buffers. Floating dtypes are converted; the module's engine must be the
// current one. Throws IoError for a missing or damaged file, a tensor with a different shape or kind, and, if strict, a
// name that only one side has.
LoadReport load(const std::string& path, nn::Module& module, const LoadOptions& options = {});

}  // namespace samebytes::io
