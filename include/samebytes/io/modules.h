// Saves and loads parameters and buffers of modules as safetensors files with PyTorch's names, shapes and order, so
// PyTorch reads them and vice versa: convolution weights are [out, in / groups, kh, kw] in the file and channels last
// in memory; the columns of a Linear after a Flatten run over (channel, position) in the file and (position, channel)
// in memory. Only these functions convert. Saving is atomic; loading changes nothing unless it succeeds completely.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/io/safetensors.h"
#include "samebytes/nn/module.h"

namespace samebytes::io {

// Waits for the parameters' last writers, then writes. Throws IoError as AtomicFile does; the old file then stays
// intact.
void save(const std::string& path, const nn::Module& module, const Metadata& metadata = {{"format", "pt"}});

// A tensor's name in the file becomes a name of the module in these steps: one that matches a pattern of `skip` is left
// out; `prefix` is removed, and names without it are left out; each pair of `rename` replaces a pattern by a text with
// $1, $2 for its groups. Patterns are ECMAScript's and match any part of a name, which has at most 1024 bytes where
// there are any (IoError). Without a prefix, "transformer." of Hugging Face's GPT-2 files is removed where that makes
// names fit.
struct LoadOptions {
  bool strict = true;  // false: skips and reports names that only one side has, and tensors of another shape or kind
  std::string prefix = {};
  std::vector<std::pair<std::string, std::string>> rename = {};
  std::vector<std::string> skip = {};
};
struct LoadReport {
  struct Mismatch {
    std::string name;
    std::string expected, found;  // "f32 [3, 16]"
  };
  std::vector<std::string> missing;     // in the module but not in the file
  std::vector<std::string> unexpected;  // in the file but not in the module; without PyTorch's num_batches_tracked, the
                                        // causal masks of published GPT-2 files, and a head tied to the embedding
  std::vector<std::string> skipped = {};  // names in the file that `skip` or `prefix` left out
  std::vector<Mismatch> mismatched = {};  // not loaded
  std::size_t loaded = 0;                 // entries of the module that have the file's values now
  bool is_complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string to_string() const;  // a line of counts, then a table of what does not fit
};

// Overwrites the module's parameters and buffers. Floating dtypes are converted; the module's engine must be the
// current one. Throws IoError for a missing or damaged file and, if strict, for a tensor with a different shape or kind
// and a name that only one side has; ArgumentError for a pattern that is no regular expression, and where two tensors
// of the file get one name.
LoadReport load(const std::string& path, nn::Module& module, const LoadOptions& options = {});

}  // namespace samebytes::io
