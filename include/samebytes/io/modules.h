// Parameters and buffers of modules in safetensors files, with PyTorch's names, shapes and order, so that either side
// reads the other's: convolution weights are [out, in / groups, kh, kw] in the file and channels last here, and the
// columns of a Linear behind a Flatten run over (channel, position) in the file and (position, channel) here.
// Conversion happens here alone. Saving is atomic; loading changes nothing unless all of it succeeds.
#pragma once

#include <string>
#include <vector>

#include "samebytes/io/safetensors.h"
#include "samebytes/nn/module.h"

namespace samebytes::io {

// Waits for the parameters' last writers, then writes. Throws IoError as AtomicFile does; the old file then stays
// whole.
void save(const std::string& path, const nn::Module& module, const Metadata& metadata = {{"format", "pt"}});

struct LoadOptions {
  bool strict = true;  // false: what the file or the module does not have is left alone and reported
};
struct LoadReport {
  std::vector<std::string> missing;     // of the module, not in the file
  std::vector<std::string> unexpected;  // in the file, not of the module; PyTorch's num_batches_tracked and
                                        // the causal masks of published GPT-2 files never count
};

// Overwrites the module's parameters and buffers. Floating dtypes are converted; the module's engine must be the
// current one. Throws IoError for a missing or damaged file, a tensor of another shape or kind, and, when strict, for a
// name that only one side has.
LoadReport load(const std::string& path, nn::Module& module, const LoadOptions& options = {});

}  // namespace samebytes::io
